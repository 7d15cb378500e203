"""Frames to and from PostgreSQL by COPY. No cell passes through a Python object."""

import re
import select
from codecs import BOM_UTF8
from collections.abc import Generator, Mapping, Sequence
from io import BytesIO
from typing import Any, Literal
from uuid import UUID

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl
import psycopg
import pyarrow as pa
from psycopg import Connection
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn
from psycopg.sql import SQL, Composable, Composed, Identifier

from rowcall.store.binary import Bytes, binary_rows

_SPECIAL = r"[\\\t\n\r]"
_RAW = ["\\", "\t", "\n", "\r"]
_ESCAPED = ["\\\\", "\\t", "\\n", "\\r"]
_UNESCAPES = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r", "\\b": "\b", "\\f": "\f", "\\v": "\v"}
_NULL = "\\N"
_COPY_LINE = re.compile(r"^COPY .*?, line (\d+)", re.MULTILINE)
_PIECE = 500
_AS_TEXT = SQL("")
_OWN = {
    "row": {"job_id": "uuid", "number": "int8", "line": "int8", "cells": "_text", "problems": "jsonb"},
    "outcome": {
        "job_id": "uuid",
        "row_number": "int8",
        "attempt": "int2",
        "status": "enum",
        "target_key": "_text",
        **dict.fromkeys(("issues", "before", "result"), "jsonb"),
    },
}
"""The types of the columns of tables of ours."""


def copy_in(
    connection: Connection[Any],
    table: Composed | Identifier,
    frame: pl.DataFrame,
    types: Mapping[str, str] | None = None,
) -> int:
    """COPY the frame into the columns of its names; returns how many rows the table took.

    `types`: what PostgreSQL calls the types of the columns. Where they are told, it goes in binary if it can.
    """
    rows = binary_rows(frame, types) if types else None
    if rows is None:
        return _send(connection, table, frame.columns, [copy_text(frame)])
    return _send(connection, table, frame.columns, rows, SQL(" (FORMAT binary)"))


def _send(
    connection: Connection[Any],
    table: Composed | Identifier,
    columns: Sequence[str],
    rows: Sequence[Bytes],
    how: SQL = _AS_TEXT,
) -> int:
    cursor, names = connection.cursor(), SQL(", ").join(map(Identifier, columns))
    with cursor.copy(SQL("COPY {} ({}) FROM STDIN{}").format(table, names, how)) as copy:
        for piece in rows:
            copy.write(piece)
    return cursor.rowcount


def copy_into_own(connection: Connection[Any], name: Literal["row", "outcome"], job: UUID, frame: pl.DataFrame) -> None:
    """The same into a table of Rowcall's own, with the job that the rows are of.

    Who doesn't own the table may not COPY into it, since it has policies.
    """
    rows, types = frame.select(pl.lit(str(job)).alias("job_id"), pl.all()), _OWN[name]
    table = Identifier("rowcall", name)
    if connection.execute("SELECT row_security_active(%s)", [table.as_string()]).fetchone() != (True,):
        copy_in(connection, table, rows, types)
        return
    columns, staged = SQL(", ").join(map(Identifier, rows.columns)), Identifier("pg_temp", f"rowcall_own_{name}")
    select = SQL("SELECT {} FROM {}").format(columns, table)
    connection.execute(SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS {} LIMIT 0").format(staged, select))
    copy_in(connection, staged, rows, types)
    connection.execute(SQL("INSERT INTO {} ({}) SELECT {} FROM {}").format(table, columns, columns, staged))
    connection.execute(SQL("DROP TABLE {}").format(staged))


def copy_text(frame: pl.DataFrame) -> bytes:
    """The lines that COPY takes. Texts must be free of NUL, which every reader sees to."""
    frame = text_columns(frame)
    frame = frame.with_columns(pl.col(name).str.replace_many(_RAW, _ESCAPED) for name in _with_special(frame))
    out = BytesIO()
    frame.write_csv(out, include_header=False, separator="\t", quote_style="never", null_value=_NULL)
    return out.getvalue()


def text_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with all that is written otherwise than PostgreSQL reads it turned into text."""
    return frame.select(_as_text(series) for series in frame)


def _as_text(series: pl.Series) -> pl.Series:
    """What `write_csv` would write differently than PostgreSQL reads, as text."""
    match series.dtype:
        case pl.Datetime(time_zone=zone):
            return series.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.6f{'Z' if zone else ''}")
        case pl.Decimal():
            return series.cast(pl.String).str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
        case pl.List():
            return series.to_frame().select(array_text(pl.col(series.name))).to_series()
        case _:
            return series


def _with_special(frame: pl.DataFrame) -> list[str]:
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    if not texts:
        return []
    found = frame.select(pl.col(texts).str.contains(_SPECIAL).any()).row(0)
    return [name for name, special in zip(texts, found, strict=True) if special]


def array_text(lists: pl.Expr) -> pl.Expr:
    """Lists of texts as PostgreSQL writes arrays."""
    element = pl.concat_str(pl.lit('"'), pl.element().str.replace_many(["\\", '"'], ["\\\\", '\\"']), pl.lit('"'))
    inside = lists.list.eval(element.fill_null("NULL")).list.join(",")
    return pl.concat_str(pl.lit("{"), inside, pl.lit("}")).alias(lists.meta.output_name())


def text_array(texts: pl.Series) -> str:
    """Texts as one array, to be cast to `text[]`: psycopg would write it text by text, in Python."""
    listed = texts.cast(pl.String).implode().alias("list").to_frame().select(array_text(pl.col("list")))
    return listed.item()


def jsonb_text(value: object) -> str:
    """JSON that a jsonb column takes: PostgreSQL holds no NUL."""
    return msgspec.json.encode(value).decode().replace("\\u0000", "\\ufffd")


def json_text(lists: pl.Expr) -> pl.Expr:
    """Lists of texts as JSON arrays."""
    wrapped = pl.struct(lists.alias("list")).struct.json_encode()  # {"list":[…]}
    return pl.when(lists.is_not_null()).then(wrapped.str.slice(8).str.head(-1)).alias(lists.meta.output_name())


def cells_text(frame: pl.DataFrame) -> pl.Series:
    """All columns of a row as one array, column by column: building lists first would take three times as long."""
    if not frame.width:
        return pl.repeat("{}", frame.height, dtype=pl.String, eager=True).alias("cells")
    special = frame.select(pl.all().str.contains(r'[\\"]').any()).row(0)
    nulls = frame.null_count().row(0)
    parts: list[pl.Expr] = [pl.lit("{")]
    for place, name in enumerate(frame.columns):
        text = pl.col(name)
        if special[place]:
            text = text.str.replace_many(["\\", '"'], ["\\\\", '\\"'])
        comma = "," if place else ""
        if nulls[place]:
            quoted = pl.concat_str(pl.lit(comma + '"'), text, pl.lit('"'))
            parts.append(quoted.fill_null(comma + "NULL"))
        else:
            parts += [pl.lit(comma + '"'), text, pl.lit('"')]
    return frame.select(pl.concat_str(*parts, pl.lit("}")).alias("cells")).to_series()


def copy_out(connection: Connection[Any], query: Composed, schema: Sequence[tuple[str, Any]]) -> pl.DataFrame:
    """The result of a query as a frame with these columns; String columns are unescaped, others parsed by Polars."""
    text = b"".join(copied_blocks(connection, SQL("COPY ({}) TO STDOUT").format(query)))
    return copied_frame(text, dict(schema))


def copied_blocks(connection: Connection[Any], statement: Composed, size: int = 2**21) -> Generator[bytes]:
    """What a COPY TO STDOUT gives, in blocks of whole lines of about this size, at least one.

    A message comes for each row. Those that are here already are taken from libpq at once: waiting for each by itself,
    as psycopg does, costs more than all else about reading.
    """
    server = connection.pgconn
    arrived = select.poll()
    arrived.register(server.socket, select.POLLIN)
    held = bytearray()
    with connection.cursor().copy(statement):
        while (taken := server.get_copy_data(1))[0] >= 0:
            if taken[0]:
                held += taken[1]
            else:
                arrived.poll()
                server.consume_input()
            if len(held) >= size:
                yield bytes(held)
                held.clear()
        _require_success(server)
    yield bytes(held)


def _require_success(server: PGconn) -> None:
    """Take what ends a statement off the connection, and raise if it is an error."""
    results = list(iter(server.get_result, None))
    if failed := next((result for result in results if result.status == ExecStatus.FATAL_ERROR), None):
        raise error_from_result(failed)


def copied_frame(text: bytes, schema: Mapping[str, Any]) -> pl.DataFrame:
    """The lines that COPY gives as a frame."""
    if not text:
        return pl.DataFrame(schema=dict(schema))
    frame = pl.read_csv(
        BOM_UTF8 + text,  # one is taken off, and it must not be that of the first cell
        has_header=False,
        separator="\t",
        quote_char=None,
        null_values=_NULL,
        empty_string_is_null=False,
        schema=dict(schema),
    )
    if text.count(b"\\") == text.count(_NULL.encode()):  # a backslash in a text is written as two
        return frame
    texts = [name for name, dtype in schema.items() if dtype == pl.String]
    escaped = frame.select(pl.col(texts).str.contains("\\", literal=True).any()).row(0) if texts else ()
    return frame.with_columns(
        pl.col(name).str.replace_many(list(_UNESCAPES), list(_UNESCAPES.values()))
        for name, found in zip(texts, escaped, strict=True)
        if found
    )


def read_columns(
    connection: Connection[Any], source: Composed, number: str, columns: Mapping[str, Composable]
) -> pl.DataFrame:
    """Rows as columns: an integer column and expressions of type text, each fetched as lengths and one long text.

    COPY sends a message per row, and taking those one by one costs more than all else about reading.
    """
    aliases = {name: Identifier(f"c{place}") for place, name in enumerate(columns)}
    inner = SQL(", ").join(SQL("{} AS {}").format(columns[name], alias) for name, alias in aliases.items())
    outer = SQL(", ").join(
        SQL("array_agg(coalesce(octet_length({0}), -1)), string_agg({0}, '')").format(alias)
        for alias in aliases.values()
    )
    cursor = connection.cursor(binary=True)
    cursor.execute(
        SQL("SELECT array_agg(n::bigint), {} FROM (SELECT {} AS n, {} FROM {}) AS r").format(
            outer, Identifier(number), inner, source
        )
    )
    result = cursor.pgresult
    numbers = result.get_value(0, 0) if result else None
    if result is None or numbers is None:
        return pl.DataFrame(schema={number: pl.Int64, **dict.fromkeys(columns, pl.String)})
    frame: dict[str, pl.Series] = {
        number: pl.Series(
            np.frombuffer(numbers, np.uint8)[20:].reshape(-1, 12)[:, 4:].copy().view(">i8")[:, 0].astype(np.int64)
        )
    }
    for place, name in enumerate(columns):
        lengths, text = result.get_value(0, 1 + 2 * place), result.get_value(0, 2 + 2 * place)
        frame[name] = _texts(
            np.frombuffer(lengths or b"", np.uint8)[20:].view(">i4")[1::2].astype(np.int64), text or b""
        )
    return pl.DataFrame(frame)


def _texts(lengths: npt.NDArray[np.int64], text: bytes) -> pl.Series:
    """Texts cut from one; a length of -1 is null."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=ends[1:])
    arrow: Any = pa  # it has no types
    there = arrow.py_buffer(np.packbits(lengths >= 0, bitorder="little")) if (lengths < 0).any() else None
    parts = [there, arrow.py_buffer(ends), arrow.py_buffer(text)]
    return pl.Series(arrow.Array.from_buffers(arrow.large_string(), len(lengths), parts))


def copy_taken(
    connection: Connection[Any],
    table: Composed | Identifier,
    rows: pl.DataFrame,
    types: Mapping[str, str] | None = None,
) -> list[tuple[int, psycopg.Error]]:
    """COPY what the table takes of the rows; those that it refuses come back with the reason.

    COPY names the line where it stopped: what stands before goes in again, what stands behind is tried next, in pieces.
    """
    refused: list[tuple[int, psycopg.Error]] = []
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        try:
            with connection.transaction():
                copy_in(connection, table, part, types)
        except psycopg.Error as error:
            line = _COPY_LINE.search(error.diag.context or "")
            if line is None or (isinstance(error, psycopg.OperationalError) and not _is_beyond_limits(error)):
                raise
            guilty = int(line[1]) - 1
            refused.append((part.item(guilty, "rowcall_number"), error))
            waiting += [*part.slice(guilty + 1).iter_slices(_PIECE), part.head(guilty)]
    return refused


def _is_beyond_limits(error: psycopg.Error) -> bool:
    """Whether a value is more than PostgreSQL can work with, as opposed to what else psycopg calls operational."""
    return (error.sqlstate or "").startswith("54")
