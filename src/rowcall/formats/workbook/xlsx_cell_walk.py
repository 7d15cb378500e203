"""The exact way from the XML of a sheet to its cells: element by element, with everything XML allows."""

import re
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from rowcall.formats.workbook.sheet_cells import LAST_COLUMN, column_number
from rowcall.formats.workbook.xlsx_cells import KindOf, StoredCells
from rowcall.formats.workbook.xlsx_parts import Kind
from rowcall.formats.workbook.xlsx_xml import Attributes, XmlWalk
from rowcall.formats.workbook.xlsx_zip import corrupt, row_too_long

_REFERENCE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,7})")


@dataclass(slots=True)
class CellWalk:
    """Takes bytes of a sheet's XML, gives the cells of the rows that are complete."""

    part: str
    kind_of: KindOf
    longest_row: int
    row: int = 0
    """The row before the first one."""
    _last: int = 0
    _col: int = -1
    _kind: int = 0
    _complete: int = 0
    _held: int = 0
    _phonetic: bool = False
    _text: list[str] | None = None
    _formula: list[str] | None = None
    _in_formula: bool = False
    _collecting: bool = False
    _rows: list[int] = field(default_factory=list[int])
    _cols: list[int] = field(default_factory=list[int])
    _kinds: list[int] = field(default_factory=list[int])
    _texts: list[str] = field(default_factory=list[str])
    _xml: XmlWalk = field(init=False)

    def __post_init__(self) -> None:
        self._xml = XmlWalk(self.part, self._start, self._end, self._data)

    def feed(self, data: bytes, *, final: bool = False) -> StoredCells:
        self._xml.feed(data, final=final)
        done = self._complete
        cells = StoredCells(
            np.array(self._rows[:done], np.int64),
            np.array(self._cols[:done], np.int64),
            np.array(self._kinds[:done], np.int64),
            pl.Series(self._texts[:done], dtype=pl.String),
            self._last,
        )
        for held in (self._rows, self._cols, self._kinds, self._texts):
            del held[:done]
        self._complete = 0
        return cells

    def _start(self, name: str, attributes: Attributes) -> None:
        if name == "c":
            self._start_cell(attributes)
        elif name in ("v", "t"):
            self._collecting = not self._phonetic
            self._text = self._text or []
        elif name == "f":
            self._formula, self._in_formula = [], True
        elif name == "row":
            self._start_row(attributes.get("r"))
        elif name == "rPh":
            self._phonetic = True

    def _end(self, name: str) -> None:
        if name in ("v", "t"):
            self._collecting = False
        elif name == "f":
            self._in_formula = False
        elif name == "c":
            self._end_cell()
        elif name == "row":
            self._complete, self._held, self._last = len(self._rows), 0, self.row
        elif name == "rPh":
            self._phonetic = False

    def _data(self, text: str) -> None:
        target = self._formula if self._in_formula else self._text if self._collecting else None
        if target is not None:
            target.append(text)
            self._held += len(text)
            if self._held > self.longest_row:
                raise row_too_long(self.part)

    def _start_row(self, number: str | None) -> None:
        if number is not None and not (number.isascii() and number.isdigit() and len(number) < 10):
            raise corrupt(f"{self.part} has a row numbered {number!r}.")
        self.row = self.row + 1 if number is None else int(number)
        self._col = -1

    def _start_cell(self, attributes: Attributes) -> None:
        reference = attributes.get("r")
        if reference is None:
            self._col += 1
        else:
            place = _REFERENCE.fullmatch(reference)
            if place is None:
                raise corrupt(f"{self.part} has a cell called {reference!r}.")
            self._col, self.row = column_number(place[1]), int(place[2])
        self._kind = self.kind_of(attributes.get("t"), attributes.get("s"))
        self._text = self._formula = None

    def _end_cell(self) -> None:
        if self._formula is not None and self._kind != Kind.TEXT and not any(self._text or ()):
            self._text, self._kind = ["=", *self._formula], Kind.FORMULA
        if self._text is None:
            return
        if len(self._rows) - self._complete >= LAST_COLUMN:
            raise corrupt(f"row {self.row} of {self.part} has more than {LAST_COLUMN:,} cells.")
        self._rows.append(self.row)
        self._cols.append(self._col)
        self._kinds.append(self._kind)
        self._texts.append("".join(self._text))
