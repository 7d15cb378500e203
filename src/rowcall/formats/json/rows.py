"""JSON as rows: newline-delimited records, and documents that hold an array of records."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from rowcall.errors import FileRefused
from rowcall.formats.columns import columns_of
from rowcall.formats.json.document import find_records
from rowcall.formats.json.elements import HEAD, Elements, Lost
from rowcall.formats.json.lines import lines_of
from rowcall.formats.json.record import Fault
from rowcall.formats.json.table import Cells, Kind, Piece, Shape, pieces_of
from rowcall.formats.reading import (
    BadRecord,
    Batch,
    Column,
    Detected,
    LocalFile,
    Note,
    Reading,
    ReadOptions,
    Spans,
    point_of,
)
from rowcall.model import Code

Source = Callable[[], Iterator[Elements | Lost | Note]]

_BOM = b"\xef\xbb\xbf"
_MOST_ROWS, _MOST_CELLS = 20_000, 1_000_000


def open_ndjson(file: LocalFile, options: ReadOptions, base: Detected) -> Reading:
    """Open a file with one JSON object per line."""
    start = _start(file)
    return _reading(file, options, base, lambda: lines_of(file.path, start, options.limits))


def open_json(file: LocalFile, options: ReadOptions, base: Detected) -> Reading:
    """Open a JSON document: an array of objects, an object that holds one, or one object after the other."""
    document = find_records(file.path, _start(file), options)
    detected = replace(base, records=document.records, notes=base.notes + document.notes)
    return _reading(file, options, detected, lambda: document.elements(options.limits))


def _start(file: LocalFile) -> int:
    with file.path.open("rb") as opened:
        start = len(_BOM) if opened.read(len(_BOM)) == _BOM else 0
    if file.size == start:
        raise FileRefused(Code.EMPTY_FILE, "The file is empty.", hint="Check that it was exported and sent whole.")
    return start


def _reading(file: LocalFile, options: ReadOptions, detected: Detected, source: Source) -> Reading:
    rows = _Rows(source, options)
    reading = Reading(file, detected, rows.columns, rows.batches, settle=rows.settle, position=lambda: rows.position)

    def tell(note: Note) -> None:
        if note not in reading.detected.notes:
            reading.detected = replace(reading.detected, notes=(*reading.detected.notes, note))

    rows.tell = tell
    rows.look_ahead()
    return reading


class _Rows:
    """The rows of one file: reading them again starts anew, but the columns, once seen, stay."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.columns: list[Column] = []
        self.position = 0
        self.tell: Callable[[Note], None]
        self._source = source
        self._limits, self._point = options.limits, point_of(options)

    def batches(self) -> Iterator[Batch]:
        shape = Shape(self._limits, self._point)
        number = 1
        for item in self._source():
            if isinstance(item, Note):
                self.tell(item)
            elif isinstance(item, Lost):
                self.position = item.upto
                bad = BadRecord(number, item.line, item.code, item.message, item.raw, item.size)
                yield Batch(self._frame([], 0), _int64([]), _int64([]), (bad,))
                number += 1
            else:
                self.position = item.upto
                yield from self._decoded(item, shape, number)
                number += len(item.starts)
        self.columns[:] = [
            replace(column, native=_native(kinds)) for column, kinds in zip(self.columns, shape.kinds, strict=True)
        ]

    def settle(self) -> None:
        """Read the file through once, for all of its keys and the kinds of their values."""
        for _ in self.batches():
            pass

    def look_ahead(self) -> None:
        """Learn the columns of the first records."""
        batches = self.batches()
        next((batch for batch in batches if batch.frame.height or batch.bad), None)
        for note in columns_of([column.header for column in self.columns], self._limits)[1]:
            self.tell(note)
        self.position = 0

    def _decoded(self, elements: Elements, shape: Shape, number: int) -> Iterator[Batch]:
        skipped = elements.skipped
        pending = _Pending()
        for piece in pieces_of(elements, shape):
            pending.add(piece)
            if pending.records >= _MOST_ROWS or pending.records * len(shape.keys) >= _MOST_CELLS:
                yield replace(self._batch(pending, elements, shape, number), skipped=skipped)
                pending, skipped = _Pending(), ()
        if pending.records or skipped:
            yield replace(self._batch(pending, elements, shape, number), skipped=skipped)

    def _batch(self, pending: "_Pending", elements: Elements, shape: Shape, number: int) -> Batch:
        if len(shape.keys) > len(self.columns):
            self.columns[:] = columns_of(list(shape.keys), self._limits)[0]
        good = np.array(pending.good, np.int64)
        return Batch(
            self._frame(pending.columns, len(good)),
            _int64(good + number),
            _int64(elements.lines[good]),
            tuple(_bad_record(elements, index, number, fault) for index, fault in pending.faults),
            raw=Spans(elements.data, elements.starts[good], elements.ends[good]),
        )

    def _frame(self, cells: Sequence[Cells], height: int) -> pl.DataFrame:
        blank: Cells = [None] * height
        series = [
            pl.Series(column.name, cells[column.index] if column.index < len(cells) else blank, pl.String)
            for column in self.columns
        ]
        return pl.DataFrame(series or None, height=height)


class _Pending:
    """Decoded records that wait to become a batch."""

    def __init__(self) -> None:
        self.good: list[int] = []
        self.columns: list[Cells] = []
        self.faults: list[tuple[int, Fault]] = []

    @property
    def records(self) -> int:
        return len(self.good) + len(self.faults)

    def add(self, piece: Piece) -> None:
        while len(self.columns) < len(piece.columns):
            self.columns.append([None] * len(self.good))
        for mine, theirs in zip(self.columns, piece.columns, strict=True):
            mine += theirs
        self.good += piece.good
        self.faults += piece.faults


def _bad_record(elements: Elements, index: int, number: int, fault: Fault) -> BadRecord:
    start, end = int(elements.starts[index]), int(elements.ends[index])
    kept = min(end, start + HEAD) if fault.code == Code.LINE_TOO_LONG else end
    line, raw = int(elements.lines[index]), elements.data[start:kept]
    return BadRecord(number + index, line, fault.code, fault.message, raw, end - start)


def _native(kinds: set[Kind]) -> Kind:
    return next(iter(kinds)) if len(kinds) == 1 else "text"


def _int64(values: Sequence[int] | np.ndarray) -> pl.Series:
    return pl.Series(values=values, dtype=pl.Int64)
