"""Reads XLS, XLSB and ODS with calamine. It may abort on a hostile file, so this runs in a guarded child.

Calamine hands over error cells (#N/A and its kin) as empty ones, makes some date or time of a serial that is none, and
tells dates from datetimes by the value, not by the cell's format. None of that can be seen from here.
"""

import datetime as dt
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import numpy as np
import polars as pl
import python_calamine as calamine

from rowcall.formats.workbook.cell_text import duration_text, number_text
from rowcall.formats.workbook.sheet_cells import PORTION, Cells, SheetSurvey
from rowcall.formats.workbook.sheet_choice import choose_sheet
from rowcall.formats.workbook.xlsx_zip import corrupt, password_protected, too_large

Value = str | float | bool | dt.date | dt.time | dt.timedelta

_PORTION_CELLS = 50_000
_WORKSHEET = calamine.SheetTypeEnum.WorkSheet


def survey_and_cells(path: str, wanted: str | int | None, point: str) -> Iterator[tuple[SheetSurvey, ...] | Cells]:
    """First the sheets that hold cells, then the cells of the one that `choose_sheet` takes."""
    with _opened(path) as book:
        sheets = tuple(_survey(book, sheet) for sheet in book.sheets_metadata if sheet.typ == _WORKSHEET)
        yield sheets
        yield from _cells(book, sheets[choose_sheet(sheets, wanted)[0]].name, point)


def cells(path: str, name: str, point: str) -> Iterator[Cells]:
    """The filled cells of a sheet in portions of whole rows."""
    with _opened(path) as book:
        yield from _cells(book, name, point)


def _survey(book: calamine.CalamineWorkbook, sheet: calamine.SheetMetadata) -> SheetSurvey:
    found = book.get_sheet_by_name(sheet.name)
    rows = sum(any(value != "" for value in row) for row in found.iter_rows())
    visible = sheet.visible == calamine.SheetVisibleEnum.Visible
    return SheetSurvey(sheet.name, rows, visible, merged=len(found.merged_cell_ranges or ()))


def _cells(book: calamine.CalamineWorkbook, name: str, point: str) -> Iterator[Cells]:
    sheet = book.get_sheet_by_name(name)
    first_col = sheet.start[1] if sheet.start else 0  # rows come from the sheet's first one on, columns don't
    portion = _Portion(point)
    for number, row in enumerate(sheet.iter_rows(), 1):
        portion.add(number, first_col, row)
        if portion.is_full:
            yield portion.cells(number)
            portion = _Portion(point)
    yield portion.cells(sheet.end[0] + 1 if sheet.end else 0)


@contextmanager
def _opened(path: str) -> Generator[calamine.CalamineWorkbook]:
    try:
        # its stubs leave the type of a path's text open
        with calamine.CalamineWorkbook.from_path(path) as book:  # pyright: ignore[reportUnknownMemberType] (bare PathLike)
            yield book
    except calamine.PasswordError as error:
        raise password_protected() from error
    except calamine.CalamineError as error:
        # calamine refuses a range of more than a hundred million cells by itself
        raise (too_large if "limit exceeded" in str(error) else corrupt)(f"{error}.") from error


class _Portion:
    def __init__(self, point: str) -> None:
        self._point = point
        self._rows: list[int] = []
        self._cols: list[int] = []
        self._texts: list[str] = []
        self._size = 0

    def add(self, number: int, first_col: int, row: list[Value]) -> None:
        for col, value in enumerate(row, first_col):
            if value != "":
                text = _text(value, self._point)
                self._rows.append(number)
                self._cols.append(col)
                self._texts.append(text)
                self._size += len(text)

    @property
    def is_full(self) -> bool:
        return self._size > PORTION or len(self._texts) > _PORTION_CELLS

    def cells(self, last: int) -> Cells:
        texts = pl.Series(self._texts, dtype=pl.String)
        sizes = texts.str.len_bytes().to_numpy().astype(np.int64)
        return Cells(np.array(self._rows, np.int64), np.array(self._cols, np.int64), texts, sizes, last)


def _text(value: Value, point: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value).replace(".", point)
    if isinstance(value, dt.timedelta):
        return duration_text(round(value / dt.timedelta(milliseconds=1)))
    if isinstance(value, dt.datetime | dt.time):
        return value.isoformat(timespec="milliseconds" if value.microsecond >= 1_000 else "seconds")
    return str(value)
