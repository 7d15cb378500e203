"""Cells of a sheet in long form: what every engine hands over, in portions, and how a place in a sheet is called."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl

from rowcall.formats.reading import MIB, Ints
from rowcall.model import Code

LAST_ROW, LAST_COLUMN = 1_048_576, 16_384
PORTION = 2 * MIB


@dataclass(frozen=True, slots=True)
class Cells:
    """The filled cells of some whole rows, in the sheet's order: up to PORTION bytes of text, or one row."""

    rows: Ints
    """The sheet's row of each cell, from 1."""
    cols: Ints
    """The sheet's column of each cell, from 0."""
    texts: pl.Series
    """String without nulls; of a cell that can't be used, what is stored in it."""
    sizes: Ints
    """The bytes of each text; of one that is too long to be kept, what it would have."""
    last: int
    """The last row that the file has so far; a row without cells is blank."""
    faults: dict[int, Code] = field(default_factory=dict[int, Code])
    """What is wrong with a cell, by position."""


@dataclass(frozen=True, slots=True)
class SheetSurvey:
    """What is known of a sheet before it is read."""

    name: str
    rows: int
    """Rows that hold a value."""
    visible: bool
    hidden_rows: int = 0
    merged: int = 0


class Workbook(Protocol):
    """An opened workbook of any format."""

    @property
    def sheets(self) -> Sequence[SheetSurvey]: ...

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        ...

    def cells(self, sheet: int) -> Generator[Cells]:
        """The cells of a sheet, from the start."""
        ...

    def close(self) -> None: ...


def ranges_of(rows: Ints) -> tuple[Ints, Ints]:
    """Where each row's cells start and end."""
    starts = np.flatnonzero(np.diff(rows, prepend=0))
    return starts, np.append(starts, len(rows))[1:]


def portions(sizes: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of items that have at most `most` together, or one item each."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, last
        first = last


def letters(column: int) -> str:
    """The sheet's name of a column: 0 is A, 16,383 is XFD."""
    name = ""
    column += 1
    while column:
        column, digit = divmod(column - 1, 26)
        name = chr(65 + digit) + name
    return name


def column_number(name: str) -> int:
    """The column of these letters, from 0."""
    number = 0
    for letter in name:
        number = number * 26 + ord(letter) - 64
    return number - 1
