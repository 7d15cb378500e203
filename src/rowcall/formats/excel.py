"""Opens workbooks (XLSX, XLSM, XLS, XLSB, ODS): which sheet, which header, which columns, and then its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from rowcall.errors import FileRefused
from rowcall.formats.columns import check_width, columns_of
from rowcall.formats.guard import guarded
from rowcall.formats.reading import (
    MIB,
    Batch,
    Detected,
    Fact,
    Format,
    Limits,
    LocalFile,
    Note,
    Reading,
    ReadOptions,
    Sheet,
)
from rowcall.formats.sheet_batches import sheet_batches
from rowcall.formats.sheet_cells import Cells, SheetSurvey, Workbook
from rowcall.formats.sheet_table import find_table
from rowcall.formats.xlsx import XlsxWorkbook
from rowcall.formats.xlsx_zip import Package, password_protected
from rowcall.model import Code

_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def open_workbook(file: LocalFile, options: ReadOptions, base: Detected) -> Reading:
    """Open a workbook and find the table in it."""
    workbook = _workbook(file, Format(base.format.value), options.limits)
    try:
        return _reading(workbook, file, options, base)
    except BaseException:
        workbook.close()
        raise


def _workbook(file: LocalFile, kind: Format, limits: Limits) -> Workbook:
    with file.path.open("rb") as opened:
        is_compound = opened.read(len(_COMPOUND_FILE)) == _COMPOUND_FILE
    if is_compound:
        _check_encrypted(file)
    elif kind is Format.XLSX:
        return XlsxWorkbook(file, limits)
    else:
        Package(file.path, limits).close()
    return _GuardedWorkbook(file, limits)


def _check_encrypted(file: LocalFile) -> None:
    """Excel packs a workbook with a password into a compound file, like an XLS."""
    with file.path.open("rb") as opened:
        seam = b""
        while piece := opened.read(MIB):
            if _ENCRYPTED in seam + piece:
                raise password_protected()
            seam = piece[-len(_ENCRYPTED) :]


class _GuardedWorkbook:
    """A workbook that is read in a child process with a limit on its memory."""

    def __init__(self, file: LocalFile, limits: Limits) -> None:
        self._file, self._memory = file, limits.child_memory
        self.sheets = tuple(cast("Iterator[SheetSurvey]", self._run("survey")))
        self.position = 0

    def cells(self, sheet: int) -> Iterator[Cells]:
        self.position = 0
        yield from cast("Iterator[Cells]", self._run("cells", self.sheets[sheet].name))
        self.position = self._file.size

    def close(self) -> None:
        """Nothing stays open between two readings."""

    def _run(self, task: str, *args: object) -> Iterator[object]:
        task = f"rowcall.formats.workbook_child:{task}"
        return guarded(task, str(self._file.path), *args, memory=self._memory)


def _reading(workbook: Workbook, file: LocalFile, options: ReadOptions, base: Detected) -> Reading:
    chosen, why = _choose(workbook.sheets, options.sheet)
    sheet = workbook.sheets[chosen]
    table = find_table(sheet.name, workbook.cells(chosen), options.header, options.limits)
    check_width(table.width, options.limits)
    columns, header_notes = columns_of(table.header, options.limits)
    names = [column.name for column in columns]
    detected = replace(
        base,
        sheet=Fact(sheet.name, why),
        sheets=tuple(Sheet(found.name, found.rows, found.visible) for found in workbook.sheets),
        header=table.why,
        preamble=table.preamble,
        notes=(*base.notes, *_notes(workbook.sheets, sheet), *(header_notes if table.header_row else ())),
    )

    def batches() -> Iterator[Batch]:
        return sheet_batches(workbook.cells(chosen), table, names, options.limits.record_bytes)

    return Reading(file, detected, columns, batches, position=lambda: workbook.position, close=workbook.close)


def _choose(sheets: Sequence[SheetSurvey], wanted: str | int | None) -> tuple[int, str]:
    """The sheet that was asked for, else the first visible one with rows."""
    if wanted is not None:
        return _named(sheets, wanted)
    for index, sheet in enumerate(sheets):
        if sheet.visible and sheet.rows:
            others = f", one of {len(sheets)} sheets" if len(sheets) > 1 else ", the only sheet"
            return index, f"the first visible sheet with rows{others}"
    raise FileRefused(
        Code.NO_RECORDS,
        f"No visible sheet of the workbook holds a row; it has {_listed(sheets)}.",
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
        f"There is no sheet {wanted!r}; the workbook has {_listed(sheets)}.",
        hint="Choose a sheet by its name, or by its position from 1.",
    )


def _listed(sheets: Sequence[SheetSurvey], most: int = 20) -> str:
    if not sheets:
        return "none"
    more = f" and {len(sheets) - most} more" if len(sheets) > most else ""
    return ", ".join(f"{sheet.name!r} ({sheet.rows:,} rows)" for sheet in sheets[:most]) + more


def _notes(sheets: Sequence[SheetSurvey], chosen: SheetSurvey) -> list[Note]:
    hidden = [sheet for sheet in sheets if not sheet.visible]
    notes: list[Note] = []
    if hidden:
        notes.append(Note(Code.HIDDEN_SHEETS, f"Hidden sheets: {_listed(hidden)}."))
    if chosen.hidden_rows:
        notes.append(Note(Code.HIDDEN_ROWS, f"Hidden rows in {chosen.name!r}: {chosen.hidden_rows:,}. They are read."))
    if chosen.merged:
        message = f"Merged ranges in {chosen.name!r}: {chosen.merged:,}. The value stands in the first cell of each."
        notes.append(Note(Code.MERGED_CELLS, message))
    return notes
