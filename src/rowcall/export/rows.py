"""The rows of a selection, as frames of text or of types. They come by COPY; no cell passes through a Python object."""

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from typing import Any

import polars as pl
import psycopg
from psycopg import Connection
from psycopg.sql import SQL

from rowcall.errors import FileRefused
from rowcall.export.selection import ExportColumn, Selection
from rowcall.model import Code
from rowcall.store.copying import copied_blocks, copied_frame
from rowcall.store.db import translated

_AHEAD = 4
BLOCK = 2**21
"""Bytes that are worked on at once, as COPY has them."""

# Values are written the same way everywhere, and a reader of our output may pause for as long as it likes.
SETTINGS = """
    SELECT set_config('timezone', 'UTC', true),
           set_config('datestyle', 'ISO, YMD', true),
           set_config('intervalstyle', 'iso_8601', true),
           set_config('extra_float_digits', '1', true),
           set_config('bytea_output', 'hex', true),
           set_config('statement_timeout', '0', true),
           set_config('idle_in_transaction_session_timeout', '0', true),
           set_config('tcp_user_timeout', '0', true)
"""


def export_rows(
    connection: Connection[Any], selection: Selection, *, typed: bool = False, block: int = BLOCK
) -> Generator[pl.DataFrame]:
    """The rows as they are at this moment, in frames of bounded size, at least one.

    Columns are text, dates and times in ISO 8601, arrays in JSON; or, when `typed`, of the types that Parquet has.
    Close the generator to stop early: the server stops too.
    """
    try:
        with connection.transaction():
            connection.execute(SETTINGS)
            with closing(_blocks(connection, selection, block)) as blocks:
                for lines in blocks:
                    frame = _texts(lines, selection)
                    yield _typed(frame, selection) if typed else frame
    except psycopg.Error as error:
        raise translated(error) from error


def _blocks(connection: Connection[Any], selection: Selection, size: int) -> Generator[bytes]:
    """The lines of COPY in blocks, at least one, with some being read while others are worked on."""
    statement = SQL("COPY ({}) TO STDOUT (ENCODING 'UTF8')").format(selection.statement)  # one, so one snapshot
    with closing(copied_blocks(connection, statement, size)) as blocks, ThreadPoolExecutor(1, "export") as reader:
        wait([reader.submit(int)])  # an interrupt while the thread starts would lose sight of it, and of its work
        try:
            ahead = deque(reader.submit(next, blocks, b"") for _ in range(_AHEAD))
            block = _result(ahead.popleft())
            while True:
                ahead.append(reader.submit(next, blocks, b""))
                yield block
                if not (block := _result(ahead.popleft())):
                    return
        except psycopg.Error:
            raise
        except BaseException:  # leaving early would wait for a block that the server may take long to make
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=5)
            raise


def _result(ahead: "Future[bytes]") -> bytes:
    # In short waits: the signal handler of Polars keeps Ctrl-C from ending an endless one.
    while not wait([ahead], timeout=0.2).done:
        pass
    return ahead.result()


def _texts(block: bytes, selection: Selection) -> pl.DataFrame:
    schema = {column.name: pl.String() for column in selection.columns}
    frame = copied_frame(block, schema)
    return frame.with_columns(_iso(column) for column in selection.columns if column.kind.native == "datetime")


def _iso(column: ExportColumn) -> pl.Expr:
    """2024-01-31T12:00:00Z where PostgreSQL writes 2024-01-31 12:00:00+00; infinity and years BC as they are."""
    text = pl.col(column.name)
    with_t = text.str.replace(" ", "T", literal=True)
    if not column.kind.zone:
        return with_t
    return pl.when(text.str.ends_with("+00")).then(with_t.str.strip_suffix("+00") + "Z").otherwise(text)


def _typed(frame: pl.DataFrame, selection: Selection) -> pl.DataFrame:
    return frame.select(_parsed(frame[column.name], column) for column in selection.columns)


def _parsed(texts: pl.Series, column: ExportColumn) -> pl.Series:
    try:
        values = texts.to_frame().select(_parsing(column)).to_series()
    except pl.exceptions.ComputeError as error:  # JSON has no lenient way
        raise _no_place(column, str(texts.drop_nulls().first())) from error
    lost = values.is_null() & texts.is_not_null()
    if lost.any():
        raise _no_place(column, str(texts.filter(lost)[0]))
    return values


def _parsing(column: ExportColumn) -> pl.Expr:
    text, dtype = pl.col(column.name), column.kind.dtype
    match dtype:
        case pl.Boolean():
            return text == "true"
        case pl.Date():
            return text.str.to_date("%Y-%m-%d", strict=False)
        case pl.Datetime():
            suffix = "Z" if column.kind.zone else ""
            parsed = text.str.to_datetime(f"%Y-%m-%dT%H:%M:%S%.f{suffix}", time_unit="us", strict=False)
            return parsed.dt.replace_time_zone(dtype.time_zone)
        case pl.List():
            return text.str.json_decode(dtype)
        case _:
            return text.cast(dtype, strict=False)


def _no_place(column: ExportColumn, value: str) -> FileRefused:
    return FileRefused(
        Code.FORMAT_LIMIT,
        f"The field {column.name!r} has a value that {column.kind.dtype} can't hold, such as {value[:60]!r}.",
        hint="Export CSV or NDJSON, leave the field out with --fields, or those rows with --filter.",
        over_http="Export CSV or NDJSON, leave the field out with `fields`, or those rows with `filter`.",
    )
