"""From the cells of a sheet to batches of rows; every row of the sheet is a record or a skipped one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from rowcall.formats.reading import (
    KIB,
    BadRecord,
    Batch,
    CellIssue,
    Flags,
    Ints,
    Skipped,
    SkippedLines,
)
from rowcall.formats.workbook.sheet_cells import Cells, letters, ranges_of
from rowcall.formats.workbook.sheet_table import Table
from rowcall.model import Code

_BATCH_ROWS = 20_000
_BATCH_CELLS = 1_000_000  # rows times columns: a frame has a place for every cell, empty or not
_PENDING = 10_000  # skipped runs that wait for a batch with rows
_RAW = 64 * KIB  # bytes kept of a record that is too long

_MESSAGES = {
    Code.CELL_ERROR: "{place} holds the error {value}.",
    Code.DATE_OUT_OF_RANGE: "{place} is formatted as a date or time, but {value} stands for none that exists.",
    Code.NOT_CALCULATED: "{place} holds the formula {value} and no result of it: it was never calculated. Open the "
    "workbook in its own program, save it there, and bring it again.",
    Code.CELL_BROKEN: "{place} can't be read: what is stored there is {value!r}.",
}


def sheet_batches(cells: Iterable[Cells], table: Table, names: Sequence[str], record_bytes: int) -> Iterator[Batch]:
    """The records of a sheet with their true rows; blank rows, preamble and headers as runs."""
    sheet = _Sheet(table, names, record_bytes)
    for portion in cells:
        yield from sheet.batches(portion)
    yield from sheet.rest()


@dataclass(slots=True)
class _Sheet:
    table: Table
    names: Sequence[str]
    record_bytes: int
    records: int = 0
    filled_to: int = 0
    last: int = 0
    pending: list[SkippedLines] = field(default_factory=list[SkippedLines])

    def batches(self, cells: Cells) -> Iterator[Batch]:
        self.last = max(self.last, cells.last)
        portion = _portion(cells, self.table)
        if not len(portion.lines):
            return
        header = portion.headers(self.table)
        above = portion.lines < self.table.header_row
        self._skip(portion.lines, above, header)
        records = np.flatnonzero(~above & ~header)
        step = max(1, min(_BATCH_ROWS, _BATCH_CELLS // portion.span))
        for start in range(0, len(records), step):
            yield self._batch(portion, records[start : start + step])
        if len(self.pending) > _PENDING:
            yield self._empty()

    def rest(self) -> Iterator[Batch]:
        if self.last > self.filled_to:
            self.pending.append(SkippedLines(Skipped.BLANK, self.filled_to + 1, self.last - self.filled_to))
        if self.pending:
            yield self._empty()

    def _skip(self, lines: Ints, above: Flags, header: Flags) -> None:
        before = np.concatenate([[self.filled_to], lines[:-1]])
        blank = np.flatnonzero(lines - before > 1)
        runs = [SkippedLines(Skipped.BLANK, int(before[i]) + 1, int(lines[i] - before[i]) - 1) for i in blank]
        runs += _runs(Skipped.PREAMBLE, lines[above]) + _runs(Skipped.HEADER, lines[header])
        self.pending += sorted(runs, key=lambda run: run.line)
        self.filled_to = int(lines[-1])

    def _batch(self, portion: "_Portion", records: Ints) -> Batch:
        numbers = np.arange(self.records + 1, self.records + 1 + len(records))
        self.records += len(records)
        too_long = portion.row_bytes[records] > self.record_bytes
        bad = too_long | portion.outside[records]
        good = records[~bad]
        skipped, self.pending = tuple(self.pending), []
        return Batch(
            portion.frame(good, self.table, self.names),
            pl.Series(numbers[~bad], dtype=pl.Int64),
            pl.Series(portion.lines[good], dtype=pl.Int64),
            tuple(
                portion.bad_record(row, number, self.table, self.record_bytes)
                for row, number in zip(records[bad].tolist(), numbers[bad].tolist(), strict=True)
            ),
            tuple(portion.issues(good, numbers[~bad], self.table)),
            skipped,
        )

    def _empty(self) -> Batch:
        skipped, self.pending = tuple(self.pending), []
        nothing = pl.Series([], dtype=pl.Int64)
        return Batch(pl.DataFrame(schema=dict.fromkeys(self.names, pl.String)), nothing, nothing, skipped=skipped)


def _runs(kind: Skipped, lines: Ints) -> list[SkippedLines]:
    if not len(lines):
        return []
    runs = np.split(lines, np.flatnonzero(np.diff(lines) > 1) + 1)
    return [SkippedLines(kind, int(run[0]), len(run)) for run in runs]


@dataclass(frozen=True, slots=True)
class _Portion:
    """Some rows that hold something, and their cells."""

    cells: Cells
    row_of: Ints
    """The row of each cell, as an index into `lines`."""
    lines: Ints
    row_bytes: Ints
    """The bytes of text in each row."""
    outside: Flags
    """Rows with something left or right of the table."""
    within: Flags
    """Cells in the table's columns."""
    span: int
    """The columns that rows reach over, the table's own included."""

    def headers(self, table: Table) -> Flags:
        """Which rows are the header, the first time or again."""
        found = self.lines == table.header_row
        if not table.header_row:
            return found
        marked = next(i for i, text in enumerate(table.header) if text)
        of_column = np.flatnonzero(self.cells.cols == table.first_col + marked)
        same = of_column[(self.cells.texts.gather(of_column) == table.header[marked]).to_numpy()]
        for row in self.row_of[same].tolist():
            found[row] |= not self.outside[row] and self.texts(row, table.first_col, table.width) == table.header
        return found

    def texts(self, row: int, first: int, width: int) -> tuple[str, ...]:
        """The texts of a row from a column on."""
        texts = [""] * width
        start, end = np.searchsorted(self.row_of, [row, row + 1])
        for col, text in zip(self.cells.cols[start:end].tolist(), self.cells.texts[int(start) : int(end)], strict=True):
            if first <= col < first + width:
                texts[col - first] = text
        return tuple(texts)

    def frame(self, rows: Ints, table: Table, names: Sequence[str]) -> pl.DataFrame:
        """These rows as columns of text. Every place of the table gets the position of its cell, or of a null."""
        null = len(self.cells.texts)
        new_row = np.full(len(self.lines), -1)
        new_row[rows] = np.arange(len(rows))
        used = np.flatnonzero(self.within & (new_row[self.row_of] >= 0))
        places = np.full((table.width, len(rows)), null)
        places[self.cells.cols[used] - table.first_col, new_row[self.row_of[used]]] = used
        if self.cells.faults:
            places[np.isin(places, list(self.cells.faults))] = null
        texts = self.cells.texts.clone().extend_constant(None, 1).gather(places.ravel())
        return pl.DataFrame([texts.slice(i * len(rows), len(rows)).alias(name) for i, name in enumerate(names)])

    def issues(self, rows: Ints, numbers: Ints, table: Table) -> Iterator[CellIssue]:
        number_of = dict(zip(rows.tolist(), numbers.tolist(), strict=True)) if self.cells.faults else {}
        for at, code in self.cells.faults.items():
            number = number_of.get(int(self.row_of[at]))
            if number is not None and self.within[at]:
                col, line, value = int(self.cells.cols[at]), int(self.cells.rows[at]), str(self.cells.texts[at])
                message = _MESSAGES[code].format(place=table.place(col, line), value=value[:100])
                yield CellIssue(number, line, col - table.first_col, code, value, message)

    def bad_record(self, row: int, number: int, table: Table, record_bytes: int) -> BadRecord:
        """A row with something outside of the table, or too long."""
        start, end = (int(i) for i in np.searchsorted(self.row_of, [row, row + 1]))
        cols = self.cells.cols[start:end]
        first = min(int(cols[0]), table.first_col)
        texts = self.texts(row, first, max(int(cols[-1]) + 1, table.first_col + table.width) - first)
        raw = "\t".join(texts).encode()
        size, line = int(self.row_bytes[row]), int(self.lines[row])
        if size > record_bytes:
            message = f"Row {line} has {size:,} bytes; at most {record_bytes:,} are read."
            return BadRecord(number, line, Code.LINE_TOO_LONG, message, raw[:_RAW], size)
        at = start + int(np.argmax(~self.within[start:end] & (self.cells.sizes[start:end] > 0)))
        place, value = table.place(int(self.cells.cols[at]), line), str(self.cells.texts[at])[:100]
        columns = f"{letters(table.first_col)} to {letters(table.first_col + table.width - 1)}"
        message = f"{place} holds {value!r}, but the table has the columns {columns}."
        return BadRecord(number, line, Code.TOO_MANY_FIELDS, message, raw, len(raw), texts)


def _portion(cells: Cells, table: Table) -> _Portion:
    """The rows that hold something. An empty text alone doesn't make a row, but stays an empty text in one."""
    starts, ends = ranges_of(cells.rows)
    filled = cells.sizes > 0
    if len(starts):
        keep = np.repeat(np.logical_or.reduceat(filled, starts), ends - starts)
        cells = _only(cells, keep) if not keep.all() else cells
        starts, ends = ranges_of(cells.rows)
        filled = cells.sizes > 0
    within = (cells.cols >= table.first_col) & (cells.cols < table.first_col + table.width)
    row_of = np.repeat(np.arange(len(starts)), ends - starts)
    outside = np.zeros(len(starts), np.bool_)
    outside[row_of[filled & ~within]] = True
    reach = np.concatenate([cells.cols[filled], [table.first_col, table.first_col + table.width - 1]])
    row_bytes = np.add.reduceat(cells.sizes, starts) if len(starts) else starts
    span = int(reach.max() - reach.min()) + 1
    return _Portion(cells, row_of, cells.rows[starts], row_bytes, outside, within, span)


def _only(cells: Cells, keep: Flags) -> Cells:
    at = np.flatnonzero(keep)
    moved = np.cumsum(keep) - 1
    return Cells(
        cells.rows[at],
        cells.cols[at],
        cells.texts.gather(at),
        cells.sizes[at],
        cells.last,
        {int(moved[i]): code for i, code in cells.faults.items()},  # an unusable cell holds something
    )
