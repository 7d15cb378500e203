"""Rows and what became of them."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rowcall.client.answers.jobs import Counts, Job
from rowcall.client.answers.wire import Wire


class Issue(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What is wrong with a row."""

    code: str
    message: str = ""
    field: str | None = None
    value: str | None = None
    metadata: dict[str, Any] | None = None


class Item(Wire, frozen=True, kw_only=True):
    """A row as it came in, and what became of it."""

    row: int
    line: int
    status: str
    issues: list[Issue] = []
    values: dict[str, str | None] = {}
    """As they are in the file, or were corrected since."""
    original: dict[str, str | None] | None = None
    """Of corrected cells: what the file has."""
    revision: int = 0
    """How often it was corrected."""
    target_key: list[str] | None = None
    attempt: int | None = None
    at: datetime | None = None
    changes: dict[str, tuple[Any, Any]] | None = None
    """Of a row that is updated: each column of the target that changes, from what to what."""


class PendingItem(Wire, frozen=True, kw_only=True):
    """A row of some job that waits for something or somebody."""

    job_id: UUID
    job_number: str
    importer: str
    row: int
    line: int
    status: str
    issues: list[Issue] = []
    revision: int = 0
    at: datetime | None = None


class IssueCount(Wire, frozen=True, kw_only=True):
    """How many rows have an issue, and the first of them."""

    code: str
    field: str | None = None
    status: str
    count: int
    first_row: int


class Summary(Wire, frozen=True, kw_only=True):
    """What became of the rows, counted."""

    counts: Counts
    issues: list[IssueCount] = []


class Reprocessed(Wire, frozen=True, kw_only=True):
    """The job, and how many of its rows are tried again."""

    job: Job
    rows: int


class View(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Which rows of a job. None or nothing: no matter."""

    statuses: tuple[str, ...] = ()
    code: str | None = None
    field: str | None = None
    text: str | None = None
    """Somewhere in a cell."""
    edited: bool = False
    """Only rows with corrections."""
    sort: Literal["row", "-row", "updated", "-updated"] = "row"
