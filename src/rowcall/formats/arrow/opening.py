"""Parquet and Arrow files as rows. They are decoded in a guarded child, which sends batches of text."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import cast

import numpy as np
import polars as pl

from rowcall.errors import FileRefused
from rowcall.formats.arrow.messages import Ended, Opened, Rows
from rowcall.formats.columns import columns_of
from rowcall.formats.guard import guarded
from rowcall.formats.reading import (
    BadRecord,
    Batch,
    CellIssue,
    Column,
    Detected,
    LocalFile,
    Note,
    Reading,
    ReadOptions,
    point_of,
)
from rowcall.model import Code

Message = Opened | Rows | Ended

_OUTSIDE = "Dates from year 1 to 9999 and times of one day can be read."
_CPU_SECONDS, _BYTES_PER_SECOND = 120, 100_000
"""What a child may take: measured are 5 to 30 MB a second, and a damaged file may keep it busy for ever."""


def open_parquet(file: LocalFile, options: ReadOptions, base: Detected) -> Reading:
    """Open a Parquet file."""
    return _open(_Arrow(file, options, "rowcall.formats.arrow.child:read_parquet"), base)


def open_arrow(file: LocalFile, options: ReadOptions, base: Detected) -> Reading:
    """Open an Arrow file or stream (Feather is one)."""
    return _open(_Arrow(file, options, "rowcall.formats.arrow.child:read_arrow"), base)


def _open(arrow: "_Arrow", base: Detected) -> Reading:
    opened = arrow.opened()
    headers = [field.header for field in opened.fields]
    columns, notes = columns_of(headers, arrow.limits)
    arrow.promised = opened.rows
    arrow.columns += [replace(column, native=opened.fields[column.index].native) for column in columns]
    if binary := [column.name for column in columns if opened.fields[column.index].binary]:
        message = f"Binary data is shown as hexadecimal digits behind \\x: {', '.join(binary[:20])}."
        notes.append(Note(Code.OTHER_DATA, message))
    detected = replace(base, notes=base.notes + tuple(notes))
    reading = Reading(
        arrow.file, detected, arrow.columns, arrow.batches, position=lambda: arrow.position, close=arrow.close
    )

    def tell(note: Note) -> None:
        if note not in reading.detected.notes:
            reading.detected = replace(reading.detected, notes=(*reading.detected.notes, note))

    arrow.tell = tell
    return reading


class _Arrow:
    """One file and the children that read it: the one that told the columns reads it first, then one per iteration."""

    def __init__(self, file: LocalFile, options: ReadOptions, task: str) -> None:
        self.file = file
        self.limits, self._point = options.limits, point_of(options)
        self.columns: list[Column] = []
        self.position = 0
        self.tell: Callable[[Note], None]
        self.promised: int | None = None
        self._task = task
        self._waiting: Generator[Message] | None = None  # the child that told the columns, for the first iteration

    def opened(self) -> Opened:
        if not self.file.size:
            raise FileRefused(Code.EMPTY_FILE, "The file is empty.", hint="Check that it was exported and sent whole.")
        self._waiting = self._messages()
        return cast("Opened", next(self._waiting))

    def batches(self) -> Iterator[Batch]:
        messages, self._waiting = self._waiting or islice(self._messages(), 1, None), None
        number = 1
        for message in messages:
            if isinstance(message, Rows):
                yield self._batch(message, number)
                number += message.rows
                self.position = self.file.size * (number - 1) // max(self.promised or 0, number - 1)
            elif isinstance(message, Ended):
                self._end(message)

    def close(self) -> None:
        if self._waiting:
            self._waiting.close()
            self._waiting = None

    def _messages(self) -> Generator[Message]:
        size = self.file.size
        cpu_seconds = _CPU_SECONDS + size // _BYTES_PER_SECOND
        path = str(self.file.path)
        messages = guarded(self._task, path, self.limits, memory=self.limits.child_memory, cpu_seconds=cpu_seconds)
        return cast("Generator[Message]", messages)

    def _batch(self, rows: Rows, number: int) -> Batch:
        frame = pl.read_ipc_stream(BytesIO(rows.stream))
        frame.columns = [column.name for column in self.columns]
        if self._point != ".":
            numbers = [column.name for column in self.columns if column.native == "number"]
            frame = frame.with_columns(pl.col(numbers).str.replace(".", self._point, literal=True))
        numbers = np.arange(number, number + rows.rows)
        if rows.bad:
            numbers = np.delete(numbers, [row.index for row in rows.bad])
        numbers = pl.Series(values=numbers, dtype=pl.Int64)
        bad = [BadRecord(number + r.index, number + r.index, r.code, r.message, b"", 0, r.cells) for r in rows.bad]
        issues = [
            CellIssue(
                number + cell.index, number + cell.index, cell.column, Code.DATE_OUT_OF_RANGE, cell.value, _OUTSIDE
            )
            for cell in rows.odd
        ]
        return Batch(frame, numbers, numbers, tuple(bad), tuple(issues))

    def _end(self, ended: Ended) -> None:
        if not ended.marked:
            message = "The stream stops without the mark of its end; rows may be missing."
            self.tell(Note(Code.TRUNCATED, message))
        if ended.trailing:
            self.tell(Note(Code.TRAILING_BYTES, f"{ended.trailing:,} bytes behind the end of the stream are not read."))
