"""Which column of a job's file goes to which field, and how its texts are read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rowcall.store.queries import query
from rowcall.store.rows import Source

Evidence = Literal["date_evidence", "number_evidence"]
ColumnStatus = Literal["UNRESOLVED", "AUTO_MATCHED", "USER_CONFIRMED", "USER_OVERRIDDEN", "IGNORED"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """A column of the file, and the field that takes its values."""

    position: int
    header: str
    samples: list[str | None]
    target_field: str | None
    status: ColumnStatus
    reason: str
    decimal_mark: Literal[".", ","] | None = None
    date_order: Literal["dmy", "mdy", "ymd"] | None = None
    confidence: float = 1.0
    others: Sequence[tuple[str, float]] = ()
    """Further fields that it could be, with how sure that is."""
    doubtful: bool | None = None
    """Whether it may have values that can be read in two ways; None: nobody looked."""
    decided_by: str | None = None
    place: int = 0
    """Its place among the columns that are joined into its field."""
    separator: str = " "
    """What stands before its text in a join."""
    filled: int | None = None
    """How many rows have a value in it; None: nobody counted."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many values can only be read the first way, only the second, and either way, with an example of those."""

    first: int
    second: int
    open: int
    example: str | None
    dotted: str | None = None
    """Of numbers that can be read either way, one with a point."""
    with_point: str | None = None
    """A number that can only have a decimal point."""
    with_comma: str | None = None


def add_columns(connection: Connection[Any], job_id: UUID, columns: Iterable[ColumnMapping]) -> None:
    """Keep the mapping of a job."""
    given = [
        {
            "id": job_id,
            "position": column.position,
            "header": column.header,
            "samples": column.samples,
            "field": column.target_field,
            "status": column.status,
            "reason": column.reason,
            "confidence": column.confidence,
            "others": Jsonb(list(column.others)),
            "decimal": column.decimal_mark,
            "order": column.date_order,
            "place": column.place,
            "separator": column.separator,
        }
        for column in columns
    ]
    connection.cursor().executemany(query("add_column"), given)


def columns_of(connection: Connection[Any], job_id: UUID) -> list[ColumnMapping]:
    """The mapping of a job, in the file's order."""
    cursor = connection.cursor(row_factory=class_row(ColumnMapping))
    return cursor.execute(query("get_columns"), {"id": job_id}).fetchall()


def sources_of(columns: Iterable[ColumnMapping]) -> dict[str, Source]:
    """Where the texts of each field come from, in the order of their first columns."""
    parts: dict[str, list[ColumnMapping]] = {}
    for column in columns:
        if column.target_field:
            parts.setdefault(column.target_field, []).append(column)
    return {name: _source(sorted(joined, key=lambda column: column.place)) for name, joined in parts.items()}


def _source(parts: Sequence[ColumnMapping]) -> Source:
    return Source(tuple(part.position for part in parts), parts[-1].separator)


def decide_columns(connection: Connection[Any], job_id: UUID, columns: Sequence[ColumnMapping]) -> None:
    """Keep what a person decided of some columns. Fields can change places: all are freed before one is taken."""
    positions = [column.position for column in columns]
    connection.execute(query("free_columns"), {"id": job_id, "positions": positions})
    given = [
        {
            "id": job_id,
            "position": column.position,
            "field": column.target_field,
            "status": column.status,
            "reason": column.reason,
            "decimal": column.decimal_mark,
            "order": column.date_order,
            "place": column.place,
            "separator": column.separator,
            "doubtful": column.doubtful,
            "by": column.decided_by,
        }
        for column in columns
    ]
    connection.cursor().executemany(query("decide_column"), given)


def set_doubts(connection: Connection[Any], job_id: UUID, doubts: Mapping[int, bool]) -> None:
    """Keep which columns may have values that can be read in two ways."""
    given = [{"id": job_id, "position": position, "doubtful": doubtful} for position, doubtful in doubts.items()]
    connection.cursor().executemany(query("set_doubt"), given)


def set_filled(connection: Connection[Any], job_id: UUID, filled: Mapping[int, int]) -> None:
    """Keep how many rows have a value in each column."""
    given = [{"id": job_id, "position": position, "filled": count} for position, count in filled.items()]
    connection.cursor().executemany(query("set_filled"), given)


def set_reading(connection: Connection[Any], job_id: UUID, column: ColumnMapping) -> None:
    """Keep how a column's numbers or dates are read."""
    given = {"decimal": column.decimal_mark, "order": column.date_order, "position": column.position}
    connection.execute(query("set_column_reading"), {"id": job_id, **given})


def count_evidence(connection: Connection[Any], job_id: UUID, what: Evidence, position: int, last: int) -> Counted:
    """What the values of a column up to a row say about how they are to be read."""
    given = {"id": job_id, "place": position + 1, "last": last}
    row = connection.execute(query(what), given).fetchone()
    return Counted(*row) if row else Counted(0, 0, 0, None)
