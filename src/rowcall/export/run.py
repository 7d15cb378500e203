"""An export into a file or a stream: whole, or not at all."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
from psycopg import Connection

from rowcall.errors import FileRefused
from rowcall.export.results import JobResults, result_frames
from rowcall.export.rows import BLOCK, export_rows
from rowcall.export.selection import Selection
from rowcall.formats import WriteFormat, WriteOptions, open_writer

_DEFAULT = WriteOptions()


def export_to(
    connection: Connection[Any],
    chosen: Selection | JobResults,
    target: Path | BinaryIO,
    format: WriteFormat,  # noqa: A002 (the product's word)
    *,
    options: WriteOptions = _DEFAULT,
    block: int = BLOCK,
    progress: Callable[[int], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> int:
    """Write the rows that were chosen and return how many.

    About `block` bytes are worked on at once. `progress` is told the number so far, and `tell` at the end what the
    format could not keep.
    """
    lost: set[str] = set()
    typed = format is WriteFormat.PARQUET  # the other formats take text and what it stands for
    with (
        open_writer(target, format, chosen.write_columns, options) as writer,
        closing(_frames(connection, chosen, typed=typed, block=block)) as rows,
    ):
        for frame in rows:
            before = writer.rows
            for refused in writer.write(frame):
                place = before + refused.row + 1
                hint = "Export CSV, NDJSON or Parquet, or leave the field out."
                raise FileRefused(refused.code, f"Row {place:,}, {refused.column!r}: {refused.message}", hint=hint)
            lost |= _empty_texts(frame, chosen.optional_texts) if format is WriteFormat.CSV else set()
            progress(writer.rows)
    if lost:
        listed = ", ".join(name for name in chosen.optional_texts if name in lost)
        tell(f"CSV can't tell empty texts from no value; there are some in {listed}. The other formats can.")
    return writer.rows


def _frames(
    connection: Connection[Any], chosen: Selection | JobResults, *, typed: bool, block: int
) -> Generator[pl.DataFrame]:
    if isinstance(chosen, JobResults):
        return result_frames(connection, chosen)
    return export_rows(connection, chosen, typed=typed, block=block)


def _empty_texts(frame: pl.DataFrame, texts: Sequence[str]) -> set[str]:
    """The columns with empty texts that an import would take for no value."""
    return {name for name in texts if (frame[name] == "").any()}
