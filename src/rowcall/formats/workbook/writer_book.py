"""The workbook around the rows: styles, widths, comments, drop-downs. All that XlsxWriter does for us."""

import io
import shutil
from collections.abc import Mapping
from functools import cache
from itertools import zip_longest
from typing import IO, Any, TextIO, cast
from zipfile import ZIP_DEFLATED, ZipFile

import polars as pl
from xlsxwriter import Workbook
from xlsxwriter.exceptions import XlsxInputError
from xlsxwriter.format import Format
from xlsxwriter.utility import xl_range, xl_range_abs
from xlsxwriter.worksheet import Worksheet

from rowcall.errors import FileRefused
from rowcall.formats.output import OutputFile
from rowcall.formats.reading import GIB, MIB
from rowcall.formats.workbook.writer_rows import SheetRows, Styles
from rowcall.formats.writing import WriteColumn
from rowcall.model import Code

MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
_MAX_LIST = 255
_CHOICES = "_choices"
_COMMENT_BOX = {"width": 280, "height": 90}
_NO_ROWS = b"<sheetData/>"
_SHEET = "xl/worksheets/sheet{}.xml"
# 6, the usual one, makes files 7% smaller in three times the time
_LEVEL = 3
_MARK = {"num_format": "@", "bg_color": "#FDE9D9", "border": 1, "border_color": "#C55A11"}
_HEADER = {"bold": True, "bg_color": "#E7EBF0", "bottom": 1, "num_format": "@"}


class _Sheet(Worksheet):
    """A sheet that leaves its rows out."""

    def cover(self, rows: int, columns: int) -> None:
        """Say which cells are in use; XlsxWriter knows it only of cells that it wrote itself."""
        self.dim_rowmin, self.dim_colmin = 0, 0
        self.dim_rowmax, self.dim_colmax = max(1, rows) - 1, columns - 1

    def _write_sheet_data(self) -> None:
        cast("TextIO", self.fh).write(_NO_ROWS.decode())


class Book:
    """A workbook with one sheet of rows, which are put in at the end."""

    def __init__(self, sheet: str, *, guard_formulas: bool) -> None:
        self._frame = io.BytesIO()
        # XlsxWriter's annotations are partial
        self._book = cast("Any", Workbook(self._frame, {"in_memory": True}))
        self._sheet = self._add_sheet(sheet)
        self._text: Format = self._book.add_format({"num_format": "@"})
        self._choices: list[tuple[str, ...]] = []
        self.styles = self._styles(guard_formulas=guard_formulas)

    def set_column(self, place: int, width: int, *, text: bool, hidden: bool) -> None:
        """Shape a column; as text, it keeps what is typed into it later as it is typed."""
        self._sheet.set_column(place, place, width, self._text if text else None, {"hidden": hidden})

    def comment(self, row: int, place: int, text: str) -> None:
        self._sheet.write_comment(row, place, text, _COMMENT_BOX)

    def offer(self, place: int, first_row: int, choices: tuple[str, ...], *, strict: bool) -> None:
        """Let the cells of a column, from a row on, be picked from a list; if it is `strict`, from nowhere else."""
        rule = {
            "validate": "list",
            "source": list(choices) if _fits_inline(choices) else self._listed(choices),
            "error_title": "Not in the list",
            "error_message": "Pick one of the values of the list.",
            "show_error": strict,
        }
        self._sheet.data_validation(first_row, place, MAX_ROWS - 1, place, rule)

    def freeze_header(self, rows: int, columns: int) -> None:
        self._sheet.freeze_panes(1, 0)
        self._sheet.autofilter(0, 0, rows - 1, columns - 1)

    def write(self, sink: OutputFile, rows: IO[bytes], used: int, columns: int) -> None:
        """Write the workbook with these rows, which cover this many rows and columns of the sheet."""
        self._sheet.cover(used, columns)
        self._sheet.ignore_errors({"number_stored_as_text": xl_range(0, 0, max(1, used) - 1, columns - 1)})
        sheets = {_SHEET.format(1): rows}
        if self._choices:
            sheets[_SHEET.format(2)] = self._choice_rows()
        self._book.close()
        _fill(self._frame, sheets, sink)

    def _listed(self, choices: tuple[str, ...]) -> str:
        place = len(self._choices)
        self._choices.append(choices)
        return f"={_CHOICES}!{xl_range_abs(0, place, len(choices) - 1, place)}"

    def _choice_rows(self) -> IO[bytes]:
        """A hidden sheet with a column for each list that is too long, or not plain enough, for a rule."""
        sheet = self._add_sheet(_CHOICES)
        sheet.hide()
        names = [str(place) for place in range(len(self._choices))]
        frame = pl.DataFrame(list(zip_longest(*self._choices)), dict.fromkeys(names, pl.String), orient="row")
        sheet.cover(frame.height, frame.width)
        rows = SheetRows([WriteColumn(name=name) for name in names], self.styles)
        return io.BytesIO(rows.body(frame, frame, 1))

    def _add_sheet(self, name: str) -> _Sheet:
        try:
            return self._book.add_worksheet(name, _Sheet)
        except XlsxInputError as error:
            raise FileRefused(
                Code.BAD_OPTION,
                f"A sheet can't be named {name!r}: {error}",
                hint=f"Use at most 31 characters, none of []:*?/\\, no apostrophe at the ends, and not {_CHOICES!r}.",
            ) from error

    def _styles(self, *, guard_formulas: bool) -> Styles:
        guarded = self._book.add_format({"num_format": "@", "quote_prefix": True})

        @cache
        def of_format(number_format: str) -> int:
            return 0 if number_format == "General" else _index(self._book.add_format({"num_format": number_format}))

        return Styles(
            of_format=of_format,
            text=_index(self._text),
            header=_index(self._book.add_format(_HEADER)),
            formula=_index(guarded) if guard_formulas else None,
            marked=_index(self._book.add_format(_MARK)),
            marked_formula=_index(self._book.add_format({**_MARK, "quote_prefix": True})),
        )


def _fill(frame: IO[bytes], sheets: Mapping[str, IO[bytes]], sink: OutputFile) -> None:
    """Copy a workbook, and put rows into its sheets."""
    target = cast("IO[bytes]", sink)  # writing in one direction is all that ZipFile needs
    with ZipFile(frame) as source, ZipFile(target, "w", ZIP_DEFLATED, compresslevel=_LEVEL) as result:
        try:
            for part in source.namelist():
                _copy(source, part, sheets.get(part, io.BytesIO()), result)
        except BaseException:
            sink.close()  # leaving the ZipFile would end the archive as if it were complete
            raise


def _copy(source: ZipFile, part: str, rows: IO[bytes], result: ZipFile) -> None:
    before, found, behind = source.read(part).partition(_NO_ROWS)
    large = rows.seek(0, io.SEEK_END) > GIB
    rows.seek(0)
    with result.open(part, "w", force_zip64=large) as out:
        out.write(before)
        if found:
            out.write(b"<sheetData>")
            shutil.copyfileobj(rows, out, MIB)
            out.write(b"</sheetData>")
        out.write(behind)


def _index(form: Format) -> int:
    """The number by which cells refer to the format; XlsxWriter gives it when first asked."""
    return cast("int", form._get_xf_index())  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType] (no public way)


def _fits_inline(choices: tuple[str, ...]) -> bool:
    """Whether a rule itself can hold the list: short, and nothing in it that separates, quotes or is trimmed."""
    length = len(",".join(choices).encode("utf-16-le")) // 2
    plain = all(choice.isprintable() and choice == choice.strip() and choice for choice in choices)
    return plain and length <= _MAX_LIST and not any(mark in choice for choice in choices for mark in ',"')
