"""An export into a file or a stream: whole, or not at all."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
from psycopg import Connection

from rowcall.errors import FileRefused
from rowcall.export.rows import export_rows
from rowcall.export.selection import Selection
from rowcall.formats import WriteFormat, WriteOptions, open_writer

_DEFAULT = WriteOptions()


def export_to(
    connection: Connection[Any],
    selection: Selection,
    target: Path | BinaryIO,
    format: WriteFormat,  # noqa: A002 (the product's word)
    *,
    options: WriteOptions = _DEFAULT,
    progress: Callable[[int], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> int:
    """Write the rows of a selection and return how many.

    `progress` is told the number so far, and `tell` at the end what the format could not keep.
    """
    lost: set[str] = set()
    typed = format is WriteFormat.PARQUET  # the other formats take text and what it stands for
    with (
        open_writer(target, format, selection.write_columns, options) as writer,
        closing(export_rows(connection, selection, typed=typed)) as rows,
    ):
        for frame in rows:
            before = writer.rows
            for refused in writer.write(frame):
                place = before + refused.row + 1
                hint = "Export CSV, NDJSON or Parquet, or leave the field out."
                raise FileRefused(refused.code, f"Row {place:,}, {refused.column!r}: {refused.message}", hint=hint)
            lost |= _empty_texts(frame, selection) if format is WriteFormat.CSV else set()
            progress(writer.rows)
    if lost:
        listed = ", ".join(column.name for column in selection.columns if column.name in lost)
        tell(f"CSV can't tell empty texts from no value; there are some in {listed}. The other formats can.")
    return writer.rows


def _empty_texts(frame: pl.DataFrame, selection: Selection) -> set[str]:
    """The columns with empty texts that an import would take for no value."""
    texts = [column.name for column in selection.columns if column.optional and column.kind.native == "text"]
    return {name for name in texts if (frame[name] == "").any()}
