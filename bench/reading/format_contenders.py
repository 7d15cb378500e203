"""Readers of the other formats, each the natural peer of Rowcall for one of them."""

import json
from pathlib import Path
from typing import Any, cast

from reading.trial import Run, Tally


def polars_ndjson(path: Path) -> Run:
    import polars as pl

    return lambda: Tally(pl.read_ndjson(path).height)


def stdlib_ndjson(path: Path) -> Run:
    def run() -> Tally:
        with path.open("rb") as lines:
            return Tally(sum(1 for _ in map(json.loads, lines)))

    return run


def polars_json(path: Path) -> Run:
    import polars as pl

    return lambda: Tally(pl.read_json(path).height)


def stdlib_json(path: Path) -> Run:
    def run() -> Tally:
        with path.open("rb") as document:
            return Tally(len(json.load(document)))

    return run


def pyarrow_parquet(path: Path) -> Run:
    import pyarrow.parquet

    parquet: Any = pyarrow.parquet  # it has no annotations
    return lambda: Tally(sum(batch.num_rows for batch in parquet.ParquetFile(path).iter_batches()))


def calamine(path: Path) -> Run:
    import python_calamine

    def run() -> Tally:
        with python_calamine.CalamineWorkbook.from_path(path) as book:  # pyright: ignore[reportUnknownMemberType] (bare PathLike)
            return Tally(len(book.get_sheet_by_index(0).to_python()) - 1)

    return run


def openpyxl(path: Path) -> Run:
    import openpyxl

    def run() -> Tally:
        book = cast("Any", openpyxl.load_workbook(path, read_only=True))  # its annotations are partial
        return Tally(sum(1 for _ in book.worksheets[0].iter_rows(values_only=True)) - 1)

    return run
