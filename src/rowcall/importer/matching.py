"""What an importer says about rows that are already there, and about the steps of its jobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args


@dataclass(frozen=True, slots=True)
class Skip:
    """Leave the row of the target as it is."""


@dataclass(frozen=True, slots=True)
class Update:
    """Change the row of the target to what the file says."""


@dataclass(frozen=True, slots=True)
class Version:
    """Keep the row of the target and add another one, with the next number in `column`."""

    column: str = "version"


@dataclass(frozen=True, slots=True)
class Fail:
    """Report the row as failed."""


OnMatch = Skip | Update | Version | Fail


Ask = Literal["never", "unsure", "always"]

OnMissing = Literal["fail", "ask", "empty", "skip", "create"]
"""What becomes of a row with a value that nothing matches: it fails, a person is asked what the value means, the field
stays empty, the row is skipped, or what the value names is created."""


@dataclass(frozen=True, slots=True)
class Flow:
    """At which steps a job waits for a person."""

    preview: bool = False
    """Show what would happen, and go on when that is confirmed."""
    columns: Ask = "never"
    """Ask which column is which field: never, where that isn't sure, or always. Never means names and aliases only."""


def on_missing_mistakes(policy: str) -> Iterator[str]:
    """What is wrong with what is said of values that nothing matches."""
    known = get_args(OnMissing)
    if policy not in known:
        yield f"on_missing is {policy!r}; one of {', '.join(known)} is expected."
