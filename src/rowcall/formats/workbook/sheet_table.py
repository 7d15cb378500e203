"""Finds the table in a sheet: its header row, its columns, and what stands above it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rowcall.errors import FileRefused
from rowcall.formats.header import find_header, is_known_header
from rowcall.formats.reading import MIB, Fact, Limits, ReadOptions, expected_names
from rowcall.formats.workbook.sheet_cells import Cells, letters, ranges_of
from rowcall.model import Code

_SAMPLE = 100  # rows with a value
_SAMPLE_TEXT = 4 * MIB  # characters in all of them
_TEXT = 32_767  # characters of one cell, which is all that Excel allows
_SHOWN = 1_000  # characters of a line of preamble


@dataclass(frozen=True, slots=True)
class Table:
    """Where the table of a sheet lies."""

    sheet: str
    header_row: int
    """The sheet's row of the header; 0 when there is none."""
    header: tuple[str, ...]
    """The header's texts, one for each column of the table; empty ones when there is none."""
    first_col: int
    """The sheet's column of the table's first one."""
    why: Fact
    preamble: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.header)

    def place(self, col: int, row: int) -> str:
        """How a cell is called, by the sheet's own column and row: Sheet1!C7."""
        return f"{self.sheet}!{letters(col)}{row}"


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    cells: dict[int, str]

    def texts(self, first: int, width: int) -> list[str]:
        return [self.cells.get(first + i, "") for i in range(width)]

    def line(self) -> str:
        return "\t".join(self.texts(min(self.cells), max(self.cells) - min(self.cells) + 1))[:_SHOWN]


def find_table(sheet: str, cells: Iterable[Cells], options: ReadOptions) -> Table:
    """Look at the first rows. The header is in the row that was asked for, 0 for none, None to find it."""
    header, limits = options.header, options.limits
    above, rows = _sample(_rows(cells, header or 0, limits.record_bytes), header or 0)
    if not rows:
        raise FileRefused(
            Code.NO_RECORDS,
            f"The sheet {sheet!r} holds no value{f' from row {header} on' if header else ''}.",
            hint=f"Choose another sheet. (Rows of more than {limits.record_bytes:,} bytes don't count.)",
        )
    if header and rows[0].number != header:
        raise FileRefused(
            Code.BAD_OPTION,
            f"Row {header} of the sheet {sheet!r} is empty, so it can't be the header.",
            hint=f"The next row with a value is {rows[0].number}.",
        )
    index, why = _header(rows, options)
    return _table(sheet, rows, index, above, why, limits)


def _header(rows: Sequence[_Row], options: ReadOptions) -> tuple[int | None, str]:
    if options.header is not None:
        return (0 if options.header else None), "given"
    first, last = _span(rows)
    names = expected_names(options)
    if is_known_header(rows[0].texts(first, last - first + 1), names):
        return 0, "names that are expected"
    index = find_header([row.texts(first, last - first + 1) for row in rows], names)
    if index is None:
        return None, f"row {rows[0].number}, the first one with values, looks like data"
    above = f", below {index} row{'s' if index > 1 else ''} of preamble" if index else ""
    return index, f"the first row that names what stands below it{above}"


def _table(
    sheet: str, rows: Sequence[_Row], index: int | None, above: Sequence[_Row], why: str, limits: Limits
) -> Table:
    body = rows[index or 0 :]
    first, last = _span(body)
    width = last - first + 1
    if index is None:
        return Table(sheet, 0, ("",) * width, first, Fact("none", why), ())
    header = rows[index].texts(first, width)
    size = sum(len(text.encode()) for text in header)
    if size > limits.header_bytes:
        raise FileRefused(
            Code.HEADER_TOO_LONG,
            f"The header in row {rows[index].number} has {size:,} bytes; at most {limits.header_bytes:,} are read.",
            hint="Say which row is the header.",
        )
    preamble = tuple(row.line() for row in [*above, *rows[:index]])
    number = rows[index].number
    return Table(sheet, number, tuple(header), first, Fact(str(number), why), preamble)


def _span(rows: Iterable[_Row]) -> tuple[int, int]:
    """The first and the last column that hold something in these rows."""
    columns = [col for row in rows for col, text in row.cells.items() if text]
    return min(columns), max(columns)


def _sample(found: Iterable[_Row], header: int) -> tuple[list[_Row], list[_Row]]:
    """The first rows with a value above the header that was asked for, and from there on."""
    above: list[_Row] = []
    rows: list[_Row] = []
    size = 0
    for row in found:
        (above if row.number < header else rows).append(row)
        size += sum(map(len, row.cells.values()))
        if len(rows) == _SAMPLE or (rows and size > _SAMPLE_TEXT):
            break
    return above, rows


def _rows(cells: Iterable[Cells], header: int, record_bytes: int) -> Iterator[_Row]:
    """The rows that hold something and aren't too long, few of those above the header."""
    above = 0
    for portion in cells:
        starts, ends = ranges_of(portion.rows)
        sizes = np.add.reduceat(portion.sizes, starts) if len(starts) else starts
        usable = (sizes > 0) & (sizes <= record_bytes)
        for start, end in zip(starts[usable].tolist(), ends[usable].tolist(), strict=True):
            number = int(portion.rows[start])
            above += number < header
            if number >= header or above <= _SAMPLE:
                texts = portion.texts[start:end].str.slice(0, _TEXT)
                yield _Row(number, dict(zip(portion.cols[start:end].tolist(), texts, strict=True)))
