"""How the texts of each column are read: which order its dates have, which decimal mark its numbers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from psycopg import Connection

from rowcall.engine.columns.asking import in_config, is_asked
from rowcall.errors import Final, NotSettled
from rowcall.importer import Date, DateTime, Decimal, Field, Importer, Integer, Text
from rowcall.importer.fields import ColumnReading
from rowcall.importer.matching import Ask
from rowcall.model import Code
from rowcall.store.jobs import Job
from rowcall.store.mappings import ColumnMapping, Counted, columns_of, count_evidence, decide_columns, set_reading

_SAMPLE_ROWS = 10_000
_EXACT_FORMATS = frozenset({"json", "ndjson", "parquet", "arrow", "xlsx", "xls", "xlsb", "ods"})
"""Formats that have numbers of their own, written with a point when they become text, and tell empty from none."""


def watched(importer: type[Importer], columns: Sequence[ColumnMapping]) -> dict[int, str]:
    """The columns whose values can be read in two ways, with a pattern of the values that raise the question."""
    patterns: dict[int, str] = {}
    for column in columns:
        declared = importer.fields.get(column.target_field or "") if column.place == 0 else None
        if isinstance(declared, Date | DateTime):
            patterns[column.position] = r"^\s*\d{1,2}[-/.]"
        elif isinstance(declared, Decimal | Integer):
            patterns[column.position] = r"[.,]"
    return patterns


def blank_is_none(
    importer: type[Importer], columns: Sequence[ColumnMapping], *, kind: str, ask: Ask, never_null: frozenset[str]
) -> frozenset[int]:
    """The columns of exact texts in which a blank cell is no value: CSV can't tell the two, and there may be none.

    Columns that may become such are among them.
    """
    if kind in _EXACT_FORMATS:
        return frozenset()
    exact = {name for name, declared in importer.fields.items() if isinstance(declared, Text) and declared.exact}
    open_ = {None} if ask != "never" and exact else set[None]()
    return frozenset(column.position for column in columns if column.target_field in exact - never_null | open_)


def decide_readings(connection: Connection[Any], job: Job, importer: type[Importer]) -> None:
    """For each column of dates or numbers: which order, which decimal mark. Asked of the values, never of one cell.

    A sample decides where it can, else all rows. What stays open is a question for a person: it raises, or where
    people are asked, the column is unresolved.
    """
    columns = columns_of(connection, job.id)
    for column in _unread(columns):
        try:
            set_reading(connection, job.id, with_reading(connection, job, importer, column))
        except Final as error:
            if not is_asked(importer, job.config, columns):
                raise
            decide_columns(connection, job.id, [replace(column, status="UNRESOLVED", reason=error.message)])


def settle_readings(connection: Connection[Any], job: Job, importer: type[Importer]) -> None:
    """The same when somebody lets the job go on: raises `NotSettled` where they have to say more."""
    for column in _unread(columns_of(connection, job.id)):
        try:
            set_reading(connection, job.id, with_reading(connection, job, importer, column))
        except Final as error:
            dates = error.code == Code.AMBIGUOUS_DATES
            option, other = (
                (f"--dates '{column.header}=dmy'", "mdy") if dates else (f"--decimals '{column.header}=comma'", "point")
            )
            how = {"dateOrder": "dmy"} if dates else {"decimalMark": ","}
            update = json.dumps({"position": column.position, "confirm": True, **how})
            over_http = f"Say so first, with the update `{update}`."
            raise NotSettled(
                error.code, error.message, hint=f"Say {option}, or {other}.", over_http=over_http
            ) from None


def _unread(columns: Sequence[ColumnMapping]) -> list[ColumnMapping]:
    """Those of which nobody has said, and nothing has told, how they are read."""
    return [
        column
        for column in columns
        if column.doubtful is not False and not (column.date_order or column.decimal_mark or column.place)
    ]


def with_reading(
    connection: Connection[Any], job: Job, importer: type[Importer], column: ColumnMapping, *, last: int | None = None
) -> ColumnMapping:
    """The column with how it is read, as its values up to the last row tell, or all. Raises where they don't."""
    declared = importer.fields.get(column.target_field or "")
    rows = (job.row_count or 0) if last is None else last
    if isinstance(declared, Date | DateTime) and not column.date_order:
        return replace(column, date_order=_date_order(connection, job, column, rows))
    if isinstance(declared, Decimal | Integer) and not column.decimal_mark:
        mark = _decimal_mark(connection, job, column, declared, rows, exact=job.file_format in _EXACT_FORMATS)
        return replace(column, decimal_mark=mark)
    return column


def _counted(
    connection: Connection[Any],
    job: Job,
    column: ColumnMapping,
    what: Literal["date_evidence", "number_evidence"],
    rows: int,
) -> Counted:
    counted = count_evidence(connection, job.id, what, column.position, _SAMPLE_ROWS)
    if counted.first or counted.second or rows <= _SAMPLE_ROWS:
        return counted
    return count_evidence(connection, job.id, what, column.position, rows)


def _date_order(
    connection: Connection[Any], job: Job, column: ColumnMapping, rows: int
) -> Literal["dmy", "mdy", "ymd"]:
    if job.config.read.date_order:
        return job.config.read.date_order
    counted = _counted(connection, job, column, "date_evidence", rows)
    if not counted.first and not counted.second and not counted.open:
        return "dmy" if counted.example else "ymd"  # 5/5/2024 is one day either way
    if counted.first != counted.second:
        return "dmy" if counted.first > counted.second else "mdy"
    known = "as many values tell one as the other" if counted.first else "no value tells which"
    raise Final(
        Code.AMBIGUOUS_DATES,
        f"Column {column.header!r} has dates such as {counted.example!r} that can be read with the day "
        f"or the month first, and {known}.",
        hint="Say which with --date-order dmy or --date-order mdy.",
        over_http=f"Say which with {in_config('dateOrder', 'dmy')}, or mdy.",
    )


def _decimal_mark(
    connection: Connection[Any], job: Job, column: ColumnMapping, declared: Field, rows: int, *, exact: bool
) -> Literal[".", ","]:
    if job.config.read.decimal:
        return job.config.read.decimal
    counted = _counted(connection, job, column, "number_evidence", rows)
    if counted.first < counted.second and exact:
        _refuse_mixed(column, count_evidence(connection, job.id, "number_evidence", column.position, rows))
    if counted.first != counted.second:
        return "." if counted.first > counted.second else ","
    if exact or (not counted.open and not counted.first):
        return "."
    if isinstance(declared, Integer):
        return "." if "," in (counted.example or "") else ","  # a whole number: what stands in it can only group digits
    raise Final(
        Code.AMBIGUOUS_NUMBERS,
        f"Column {column.header!r} has numbers {_in_doubt(counted)}.",
        hint="Say which with --decimal point or --decimal comma.",
        over_http=f"Say which with {in_config('decimal', '.')}, or a comma.",
    )


def _in_doubt(counted: Counted) -> str:
    """Why numbers don't tell their decimal mark."""
    if counted.first:
        pair = f"{counted.with_point!r} and {counted.with_comma!r}"
        return f"such as {pair}, and as many tell the point for the decimal mark as the comma"
    mark = (counted.example or "")[-4:-3]
    return f"such as {counted.example!r} whose {mark!r} can be a decimal mark or group digits, and no value tells which"


def _refuse_mixed(column: ColumnMapping, counted: Counted) -> None:
    """Of a file that has numbers of its own: `1.234` is one of them, or a text beside others with a decimal comma."""
    if counted.dotted:
        raise Final(
            Code.AMBIGUOUS_NUMBERS,
            f"Column {column.header!r} has texts with a decimal comma beside {counted.dotted!r}: a number, whose point "
            "is a decimal mark, or a text, in which it groups digits.",
            hint="Import the file with --decimal comma: its numbers are told from its texts then.",
            over_http=f"Import the file with {in_config('decimal', ',')}: its numbers are told from its texts then.",
        )


def readings_of(columns: Sequence[ColumnMapping]) -> dict[str, ColumnReading]:
    """How each mapped column is read."""
    return {
        column.target_field: ColumnReading(decimal=column.decimal_mark or ".", date_order=column.date_order or "ymd")
        for column in columns
        if column.target_field and column.place == 0
    }
