"""Corrections of cells, laid over rows that themselves never change. Each is kept, with who made it and when."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, scalar_row
from psycopg.sql import SQL

from rowcall.store.grid import RowResult
from rowcall.store.queries import query

_OF_ROW = (
    "(SELECT %(number)s::bigint AS row_number, * "
    "FROM unnest(%(positions)s::int[], %(texts)s::text[]) AS given (position, after))"
)
_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEdit:
    """A correction of a cell, as it was made."""

    revision: int
    position: int
    before: str | None
    after: str | None
    account: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EditCount:
    """How many rows an account corrected, and how many cells of them."""

    account: str
    rows: int
    cells: int


@dataclass(frozen=True, slots=True)
class Laid:
    """How much was corrected."""

    rows: int
    cells: int


def lay_over(connection: Connection[Any], job_id: UUID, source: LiteralString, who: str, **given: Any) -> Laid:
    """Lay texts over cells. `source` gives row_number, position (from 0), after; null takes a correction back."""
    statement = SQL(query("lay_edits")).format(source=SQL(source))
    row = connection.execute(statement, {"id": job_id, "who": who, **given}).fetchone()
    return Laid(*row) if row else Laid(0, 0)


def lay_over_row(
    connection: Connection[Any], job_id: UUID, number: int, cells: Mapping[int, str | None], who: str
) -> Laid:
    """The same for cells of one row, by position."""
    given = {"number": number, "positions": list(cells), "texts": list(cells.values())}
    return lay_over(connection, job_id, _OF_ROW, who, **given)


def has_edits(connection: Connection[Any], job_id: UUID) -> bool:
    """Whether rows of a job were corrected, also if all of it is taken back."""
    return connection.execute(query("has_edits"), {"id": job_id}).fetchone() == (True,)


def edited_of(connection: Connection[Any], job_id: UUID, numbers: Sequence[int]) -> list[int]:
    """Those of some rows that have corrections."""
    given = {"id": job_id, "numbers": list(numbers)}
    return connection.cursor(row_factory=scalar_row).execute(query("edited_of"), given).fetchall()


def all_edited(connection: Connection[Any], job_id: UUID) -> Iterator[list[int]]:
    """All rows that have corrections, in order, some at a time."""
    after = 0
    cursor = connection.cursor(row_factory=scalar_row)
    while numbers := cursor.execute(query("next_edited"), {"id": job_id, "after": after, "most": _AT_ONCE}).fetchall():
        yield numbers
        after = numbers[-1]


def lost_to_edited(connection: Connection[Any], job_id: UUID, numbers: Sequence[int]) -> dict[int, int]:
    """Those of some rows that lost against one that was corrected since, with that one."""
    return dict(connection.execute(query("lost_to_edited"), {"id": job_id, "numbers": list(numbers)}).fetchall())


def row_of(connection: Connection[Any], job_id: UUID, number: int) -> RowResult | None:
    """A row as it counts, with what became of it."""
    cursor = connection.cursor(row_factory=class_row(RowResult))
    return cursor.execute(query("row_to_edit"), {"id": job_id, "number": number}).fetchone()


def edits_of(connection: Connection[Any], job_id: UUID, number: int) -> list[CellEdit]:
    """All corrections of a row, the latest first, those taken back included."""
    cursor = connection.cursor(row_factory=class_row(CellEdit))
    return cursor.execute(query("edits_of"), {"id": job_id, "number": number}).fetchall()


def count_edits(connection: Connection[Any], job_id: UUID) -> list[EditCount]:
    """How much of a job is corrected, by who corrected a row last."""
    return connection.cursor(row_factory=class_row(EditCount)).execute(query("count_edits"), {"id": job_id}).fetchall()
