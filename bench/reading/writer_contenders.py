"""Writers: a frame of text, already in memory, to a file. Rowcall gets it in batches, as its readers give them."""

from pathlib import Path
from typing import Any, cast

import polars as pl
from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from reading.trial import Run, Tally
from rowcall.formats import WriteColumn, WriteFormat, open_writer

_BATCH = 20_000


def rowcall_csv(path: Path) -> Run:
    return _rowcall(path, WriteFormat.CSV)


def rowcall_ndjson(path: Path) -> Run:
    return _rowcall(path, WriteFormat.NDJSON)


def rowcall_parquet(path: Path) -> Run:
    return _rowcall(path, WriteFormat.PARQUET)


def rowcall_xlsx(path: Path) -> Run:
    return _rowcall(path, WriteFormat.XLSX)


def polars_csv(path: Path) -> Run:
    frame, target = _prepared(path, "csv")

    def run() -> Tally:
        frame.write_csv(target)
        return Tally(frame.height)

    return run


def polars_ndjson(path: Path) -> Run:
    frame, target = _prepared(path, "ndjson")

    def run() -> Tally:
        frame.write_ndjson(target)
        return Tally(frame.height)

    return run


def polars_parquet(path: Path) -> Run:
    frame, target = _prepared(path, "parquet")

    def run() -> Tally:
        frame.write_parquet(target)
        return Tally(frame.height)

    return run


def xlsxwriter_xlsx(path: Path) -> Run:
    frame, target = _prepared(path, "xlsx")

    def run() -> Tally:
        with Workbook(target, {"constant_memory": True}) as book:
            sheet = cast("Worksheet", cast("Any", book).add_worksheet())  # its annotations are partial
            for number, cells in enumerate((frame.columns, *frame.iter_rows())):
                for column, text in enumerate(cells):
                    sheet.write_string(number, column, text)
        return Tally(frame.height)

    return run


def _rowcall(path: Path, kind: WriteFormat) -> Run:
    frame, target = _prepared(path, kind.value)
    columns = [WriteColumn(name=name) for name in frame.columns]

    def run() -> Tally:
        with open_writer(target, kind, columns) as writer:
            for batch in frame.iter_slices(_BATCH):
                writer.write(batch)
        return Tally(writer.rows)

    return run


def _prepared(path: Path, suffix: str) -> tuple[pl.DataFrame, Path]:
    target = path.with_name(f"written.{suffix}")
    target.unlink(missing_ok=True)
    return pl.read_parquet(path), target
