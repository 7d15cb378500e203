"""What is written to a target: its columns, how rows are matched, what happens with a match."""

from dataclasses import dataclass
from typing import Literal

from rowcall.store.targets import Target

OnMatch = Literal["skip", "fail", "update", "version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What is written to a target: its columns, how rows are matched, what happens with a match."""

    target: Target
    columns: tuple[str, ...]
    """Columns of the target that rows which are created bring."""
    given: frozenset[str]
    """Those of them that the file gives: the others are defaults, and don't change a row that is there."""
    keys: tuple[tuple[str, ...], ...]
    """Columns that a match goes by: the first whose values are all there."""
    on_match: OnMatch
    version: str | None = None
    """The column that numbers the rows of one key, from 1 on."""
    keyed: bool = False
    """Each row brings a key that is taken once, for ever."""

    @property
    def overwrites(self) -> bool:
        """Whether a match is written, if there is something new about it."""
        return self.on_match in ("update", "version")

    @property
    def staged(self) -> tuple[str, ...]:
        """The columns of the temporary table: those brought, and those that PostgreSQL fills for the target's key."""
        own = (*self.target.primary_key, *((self.version,) if self.version else ()))
        return tuple(dict.fromkeys((*self.columns, *own)))

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns that make a difference: not the keys that were matched by, nor the target's own numbers."""
        identity = [name for name, column in self.target.columns.items() if column.always]
        fixed = {*self.target.primary_key, *(self.keys[0] if self.keys else ()), self.version, *identity}
        return tuple(name for name in self.columns if name in self.given and name not in fixed)
