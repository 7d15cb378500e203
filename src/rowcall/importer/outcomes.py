"""What importers that do their own processing give back."""

from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.model import Issue, Status


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What happened to a row of the file."""

    number: int
    status: Status
    target_key: tuple[str, ...] | None = None
    issues: tuple[Issue, ...] = ()
    result: Mapping[str, object] | None = None
    """What is to be kept about it, for the receipt and for exports."""
    before: Mapping[str, object] | None = None
    """The row of the target as it was, for undoing."""


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What came of processing one item."""

    status: Status
    target_key: tuple[str, ...] | None = None
    issues: tuple[Issue, ...] = ()
    result: Mapping[str, object] | None = None
