"""Readers of CSV: first as they are for a clean file, then in the most lenient mode that each has.

All give text, no types, and those that can be told the dialect are told it; Rowcall finds it out.
"""

import csv
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from trial import Run, Tally

_COLUMNS = ("id", "email", "name", "role", "active", "created_at", "updated_at")
_DUCKDB = "read_csv($file, all_varchar = true, header = true, delim = ',', quote = '\"', escape = '\"'"


def rowcall(path: Path) -> Run:
    """Rowcall has one mode; this is also how it reads every other format."""
    from rowcall.formats import open_rows

    def run() -> Tally:
        with open_rows(path) as reading:
            for _ in reading:
                pass
            counts = reading.counts
        return Tally(counts.good, counts.bad, counts.blank)

    return run


def pyarrow_stream(path: Path) -> Run:
    csv, options = _pyarrow()
    return lambda: Tally(sum(batch.num_rows for batch in csv.open_csv(path, **options)))


def pyarrow_read(path: Path) -> Run:
    csv, options = _pyarrow()
    return lambda: Tally(csv.read_csv(path, **options).num_rows)


def polars(path: Path) -> Run:
    import polars as pl

    return lambda: Tally(pl.read_csv(path, infer_schema=False).height)


def duckdb(path: Path) -> Run:
    connection = _duckdb()
    return lambda: Tally(connection.execute(f"FROM {_DUCKDB})", {"file": str(path)}).to_arrow_table().num_rows)


def stdlib(path: Path) -> Run:
    def run() -> Tally:
        with path.open(encoding="utf-8", newline="") as text:
            reader = csv.reader(text)
            width = len(next(reader))
            return _tally((row for row in reader), width)

    return run


def stdlib_raw(path: Path) -> Run:
    """What one would write by hand to get what Rowcall gives: line number and raw text with every record."""

    def run() -> Tally:
        with path.open(encoding="utf-8", newline="\n") as text:
            records = _records(text)
            width = len(next(records)[2])
            return _tally((fields for _, _, fields in records), width)

    return run


def pyarrow_stream_lenient(path: Path) -> Run:
    csv, options = _pyarrow()
    return lambda: _skipping(
        lambda parse: sum(batch.num_rows for batch in csv.open_csv(path, parse_options=parse, **options))
    )
