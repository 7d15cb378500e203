"""The sequences that number an application's rows: moved forward, never back."""

from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row, scalar_row
from psycopg.sql import SQL, Identifier

from rowcall.store.queries import query
from rowcall.store.targets import Target

_DRAWN = 10_000
"""Numbers that are drawn one by one; beyond that a sequence is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a sequence stands, and what this role may do with it."""

    last: int | None
    """None: nothing was drawn yet."""
    start: int
    most: int
    step: int
    may_draw: bool
    may_set: bool

    @property
    def reach(self) -> int:
        """How far it may be moved: by half of what it has left."""
        last = self.start if self.last is None else self.last
        return last + (self.most - last) // 2


def standing_of(connection: Connection[Any], sequence: str) -> Standing:
    """Where a sequence stands."""
    found = connection.cursor(row_factory=class_row(Standing)).execute(query("sequence_standing"), {"name": sequence})
    return next(found)


def catch_up(connection: Connection[Any], sequence: str, number: int) -> None:
    """Have a sequence go on behind a number, if it stands before it and this role may move it.

    Others may draw from it at any moment, and nothing that we could lock keeps them from it. A short way is gone by
    drawing, which can't go back. A long one is set: others would have to draw the whole of it in that very moment.
    """
    with connection.transaction():
        connection.execute(query("lock_sequence"), {"name": sequence})  # of two that set it, the higher must win
        standing = standing_of(connection, sequence)
        if not standing.may_draw or standing.step < 1 or (standing.last is None and number < standing.start):
            return
        if number > standing.reach:
            return
        last = _drawn(connection, sequence, 1) if standing.last is None else standing.last
        while last < number:
            ahead = -((last - number) // standing.step)
            if ahead > _DRAWN:
                if standing.may_set:
                    connection.execute(query("set_sequence"), {"name": sequence, "number": number})
                return
            last = _drawn(connection, sequence, ahead)


def _drawn(connection: Connection[Any], sequence: str, count: int) -> int:
    """The last of so many numbers."""
    given = {"name": sequence, "count": count}
    return next(connection.cursor(row_factory=scalar_row).execute(query("draw_numbers"), given))


def collides(connection: Connection[Any], target: Target, column: str, sequence: str, count: int) -> int | None:
    """The largest number in the column, if one of the next so many of the sequence is there already."""
    standing = standing_of(connection, sequence)
    first = standing.start - standing.step if standing.last is None else standing.last
    select = SQL(
        "SELECT max({column}) FROM {target} WHERE EXISTS ("
        "SELECT FROM {target} t WHERE t.{column} > {first} AND t.{column} <= {last})"
    ).format(
        column=Identifier(column),
        target=target.identifier,
        first=first,  # no parameters: a percent sign in a column's name would be taken for one
        last=first + count * standing.step,
    )
    return next(connection.cursor(row_factory=scalar_row).execute(select))
