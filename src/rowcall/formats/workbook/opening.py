"""Opens workbooks (XLSX, XLSM, XLS, XLSB, ODS): which sheet, which header, which columns, and then its rows."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import cast

from rowcall.formats.columns import columns_of
from rowcall.formats.guard import guarded
from rowcall.formats.reading import (
    MIB,
    Batch,
    Detected,
    Fact,
    Format,
    LocalFile,
    Note,
    Reading,
    ReadOptions,
    Sheet,
    point_of,
)
from rowcall.formats.workbook.sheet_batches import sheet_batches
from rowcall.formats.workbook.sheet_cells import Cells, SheetSurvey, Workbook
from rowcall.formats.workbook.sheet_choice import choose_sheet, sheet_names
from rowcall.formats.workbook.sheet_table import find_table
from rowcall.formats.workbook.xlsx import XlsxWorkbook
from rowcall.formats.workbook.xlsx_zip import Package, password_protected
from rowcall.model import Code

_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def open_workbook(file: LocalFile, options: ReadOptions, base: Detected) -> Reading:
    """Open a workbook and find the table in it."""
    workbook = _workbook(file, Format(base.format.value), options)
    try:
        return _reading(workbook, file, options, base)
    except BaseException:
        workbook.close()
        raise


def _workbook(file: LocalFile, kind: Format, options: ReadOptions) -> Workbook:
    with file.path.open("rb") as opened:
        is_compound = opened.read(len(_COMPOUND_FILE)) == _COMPOUND_FILE
    if is_compound:
        _check_encrypted(file)
    elif kind is Format.XLSX:
        return XlsxWorkbook(file, options.limits, point_of(options))
    else:
        with closing(Package(file.path, options.limits)) as package:
            package.check_names()
    return _GuardedWorkbook(file, options)


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

    def __init__(self, file: LocalFile, options: ReadOptions) -> None:
        self._file, self._memory, self._point = file, options.limits.child_memory, point_of(options)
        self.position = 0
        # starting a child takes half a second, so the first one surveys and goes on to the sheet that will be chosen
        self._first: Iterator[object] | None = self._run("survey_and_cells", options.sheet, self._point)
        self.sheets = cast("tuple[SheetSurvey, ...]", next(self._first))

    def cells(self, sheet: int) -> Generator[Cells]:
        self.position = 0
        stream, self._first = self._first or self._run("cells", self.sheets[sheet].name, self._point), None
        yield from cast("Iterator[Cells]", stream)
        self.position = self._file.size

    def close(self) -> None:
        self._first = None  # ends the child, if it still runs

    def _run(self, task: str, *args: object) -> Iterator[object]:
        task = f"rowcall.formats.workbook.child:{task}"
        return guarded(task, str(self._file.path), *args, memory=self._memory)


def _reading(workbook: Workbook, file: LocalFile, options: ReadOptions, base: Detected) -> Reading:
    chosen, why = choose_sheet(workbook.sheets, options.sheet)
    sheet = workbook.sheets[chosen]
    with closing(workbook.cells(chosen)) as cells:
        table = find_table(sheet.name, cells, options)
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


def _notes(sheets: Sequence[SheetSurvey], chosen: SheetSurvey) -> list[Note]:
    hidden = [sheet for sheet in sheets if not sheet.visible]
    notes: list[Note] = []
    if hidden:
        notes.append(Note(Code.HIDDEN_SHEETS, f"Hidden sheets: {sheet_names(hidden)}."))
    if chosen.hidden_rows:
        notes.append(Note(Code.HIDDEN_ROWS, f"Hidden rows in {chosen.name!r}: {chosen.hidden_rows:,}. They are read."))
    if chosen.merged:
        message = f"Merged ranges in {chosen.name!r}: {chosen.merged:,}. The value stands in the first cell of each."
        notes.append(Note(Code.MERGED_CELLS, message))
    return notes
