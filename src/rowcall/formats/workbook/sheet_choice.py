"""Which sheet of a workbook is read."""

from collections.abc import Sequence

from rowcall.errors import FileRefused
from rowcall.formats.workbook.sheet_cells import SheetSurvey
from rowcall.model import Code
from rowcall.words import counted


def choose_sheet(sheets: Sequence[SheetSurvey], wanted: str | int | None) -> tuple[int, str]:
    """The sheet that was asked for, else the first visible one that may hold a table: a header and a row."""
    if wanted is not None:
        return _named(sheets, wanted)
    others = f", one of {len(sheets)} sheets" if len(sheets) > 1 else ", the only sheet"
    for least in (2, 1):
        for index, sheet in enumerate(sheets):
            if sheet.visible and sheet.rows >= least:
                return index, f"the first visible sheet with rows{others}"
    raise FileRefused(
        Code.NO_RECORDS,
        f"No visible sheet of the workbook holds a row; it has {sheet_names(sheets)}.",
        hint="To read a hidden sheet, choose it by name.",
    )


def _named(sheets: Sequence[SheetSurvey], wanted: str | int) -> tuple[int, str]:
    if isinstance(wanted, int) and 1 <= wanted <= len(sheets):
        return wanted - 1, f"given by its position, {wanted}"
    name = str(wanted)  # a number beyond the last sheet may be a name: 2024
    exact = [i for i, sheet in enumerate(sheets) if sheet.name == name]
    alike = [i for i, sheet in enumerate(sheets) if sheet.name.casefold() == name.casefold()]
    if exact or alike:
        return (exact or alike)[0], "given by name"
    raise FileRefused(
        Code.SHEET_NOT_FOUND,
        f"There is no sheet {wanted!r}; the workbook has {sheet_names(sheets)}.",
        hint="Choose a sheet by its name, or by its position from 1.",
    )


def sheet_names(sheets: Sequence[SheetSurvey], most: int = 20) -> str:
    """The sheets' names and sizes, as part of a sentence."""
    if not sheets:
        return "none"
    more = f" and {len(sheets) - most} more" if len(sheets) > most else ""
    return ", ".join(f"{sheet.name!r} ({counted(sheet.rows, 'row')})" for sheet in sheets[:most]) + more
