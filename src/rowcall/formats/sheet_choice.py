"""Which sheet of a workbook is read."""

from collections.abc import Sequence

from rowcall.errors import FileRefused
from rowcall.formats.sheet_cells import SheetSurvey
from rowcall.model import Code


def choose_sheet(sheets: Sequence[SheetSurvey], wanted: str | int | None) -> tuple[int, str]:
    """The sheet that was asked for, else the first visible one with rows."""
    if wanted is not None:
        return _named(sheets, wanted)
    for index, sheet in enumerate(sheets):
        if sheet.visible and sheet.rows:
            others = f", one of {len(sheets)} sheets" if len(sheets) > 1 else ", the only sheet"
            return index, f"the first visible sheet with rows{others}"
    raise FileRefused(
        Code.NO_RECORDS,
        f"No visible sheet of the workbook holds a row; it has {sheet_names(sheets)}.",
        hint="To read a hidden sheet, choose it by name.",
    )


def _named(sheets: Sequence[SheetSurvey], wanted: str | int) -> tuple[int, str]:
    if isinstance(wanted, int):
        if 1 <= wanted <= len(sheets):
            return wanted - 1, f"given by its position, {wanted}"
    else:
        exact = [i for i, sheet in enumerate(sheets) if sheet.name == wanted]
        alike = [i for i, sheet in enumerate(sheets) if sheet.name.casefold() == wanted.casefold()]
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
    return ", ".join(f"{sheet.name!r} ({sheet.rows:,} rows)" for sheet in sheets[:most]) + more
