"""Whether a file is about the same things as the target: what importers say of it."""

from collections.abc import Sequence
from dataclasses import dataclass

MOST_SAMPLED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Compare a sample of the file's rows with the target's rows of the same key, before anything is written.

    A key that a file has by chance names somebody else in the target: then the fields of `identity` differ.
    """

    identity: tuple[str, ...] = ()
    """The fields that tell who or what a row is about. Case, accents and blanks make no difference."""
    by: tuple[str, ...] = ()
    """The key to find rows of the target by; the importer's `key` if nothing is said."""
    sample: int = 200
    """How many rows of the file are looked at; the same ones whenever the same file comes."""
    warn: float = 0.05
    """From which share of rows that differ a person is asked."""
    abort: float = 0.3
    """From which share the job goes no further."""
    least: int = 10
    """How many rows have to be found by their key for the share to say anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A row whose key is somebody else's in the target."""

    row: int
    field: str
    found: str | None
    """What the file says."""
    expected: str | None
    """What the target says."""
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """How many rows of a sample could be compared, and what differs."""

    matched: int
    mismatches: Sequence[Mismatch] = ()
