"""Readers of CSV: as they are for a clean file, and in the most lenient mode that each has for a dirty one.

All give text, no types. Those that can be told the dialect are told it; Rowcall finds it out.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from reading.trial import Run, Tally

_COLUMNS = ("id", "email", "name", "role", "active", "created_at", "updated_at")
_WIDTH = len(_COLUMNS)
_BATCH = 20_000
_DUCKDB = (
    "FROM read_csv($file, auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
    f"columns = {dict.fromkeys(_COLUMNS, 'VARCHAR')}"
)


def rowcall(path: Path) -> Run:
    """Rowcall has one mode, for this and every other format."""
    from rowcall.formats import open_rows

    def run() -> Tally:
        with open_rows(path) as reading:
            for _ in reading:
                pass
            counts = reading.counts
        return Tally(counts.good, counts.bad, counts.blank)

    return run


def pyarrow_stream(path: Path) -> Run:
    arrow = _pyarrow_csv()
    texts = _pyarrow_texts(arrow)
    return lambda: Tally(sum(batch.num_rows for batch in arrow.open_csv(path, convert_options=texts)))


def pyarrow_read(path: Path) -> Run:
    arrow = _pyarrow_csv()
    texts = _pyarrow_texts(arrow)
    return lambda: Tally(arrow.read_csv(path, convert_options=texts).num_rows)


def polars(path: Path) -> Run:
    import polars as pl

    return lambda: Tally(pl.read_csv(path, infer_schema=False).height)


def duckdb(path: Path) -> Run:
    connection = _duckdb_connection()
    return lambda: Tally(connection.sql(f"{_DUCKDB})", params={"file": str(path)}).to_arrow_table().num_rows)


def stdlib(path: Path) -> Run:
    def run() -> Tally:
        with path.open(encoding="utf-8", newline="") as text:
            rows = csv.reader(text)
            next(rows)
            return _tally(rows)

    return run


def stdlib_raw(path: Path) -> Run:
    """What one would write by hand to get what Rowcall gives: batches of records, each with its line and raw text."""

    def run() -> Tally:
        with path.open(encoding="utf-8", newline="\n") as text:
            records = _records(text)
            next(records)
            batches = iter(lambda: list(islice(records, _BATCH)), [])
            return _tally(fields for batch in batches for _, _, fields in batch)

    return run


def pyarrow_stream_lenient(path: Path) -> Run:
    return _pyarrow_lenient(lambda arrow, how: sum(batch.num_rows for batch in arrow.open_csv(path, **how)))


def pyarrow_read_lenient(path: Path) -> Run:
    return _pyarrow_lenient(lambda arrow, how: arrow.read_csv(path, **how).num_rows)


def polars_lenient(path: Path) -> Run:
    import polars as pl

    return lambda: Tally(pl.read_csv(path, infer_schema=False, ignore_errors=True, truncate_ragged_lines=True).height)


def duckdb_lenient(path: Path) -> Run:
    connection = _duckdb_connection()
    query = f"{_DUCKDB}, ignore_errors = true, store_rejects = true)"

    def run() -> Tally:
        good = connection.sql(query, params={"file": str(path)}).to_arrow_table().num_rows
        (bad,) = connection.execute("SELECT count(DISTINCT line) FROM reject_errors").fetchone()
        return Tally(good, bad)

    return run


def _pyarrow_csv() -> Any:
    # pyarrow has no annotations: its objects are Any here
    import pyarrow.csv

    return pyarrow.csv


def _pyarrow_texts(arrow: Any) -> Any:
    return arrow.ConvertOptions(column_types=dict.fromkeys(_COLUMNS, "string"))


def _pyarrow_lenient(read: Callable[[Any, dict[str, Any]], int]) -> Run:
    """pyarrow with a handler that counts and skips each invalid row."""
    arrow = _pyarrow_csv()
    texts = _pyarrow_texts(arrow)

    def run() -> Tally:
        skipped: list[Any] = []

        def skip(row: Any) -> str:
            skipped.append(row)
            return "skip"

        parse = arrow.ParseOptions(invalid_row_handler=skip)
        good = read(arrow, {"parse_options": parse, "convert_options": texts})
        return Tally(good, len(skipped))

    return run


def _duckdb_connection() -> Any:
    import_module("pyarrow")  # duckdb would load it while the clock runs
    return import_module("duckdb").connect()  # installed for the benchmark only


def _records(text: TextIO) -> Iterator[tuple[int, str, Sequence[str]]]:
    """Line, raw text and fields of each record; after a broken one (without fields), on from its second line."""
    line, taken, again = 1, list[str](), deque[str]()

    def lines() -> Iterator[str]:
        while raw := again.popleft() if again else text.readline():
            taken.append(raw)
            yield raw

    while True:
        try:
            for fields in csv.reader(lines(), strict=True):
                yield line, "".join(taken), fields
                line += len(taken)
                taken.clear()
        except csv.Error as error:
            again.extendleft(reversed(taken[1:]))
            yield line, taken[0], (str(error),)
            line += 1
            taken.clear()
        else:
            return


def _tally(rows: Iterable[Sequence[str]]) -> Tally:
    good = bad = blank = 0
    for fields in rows:
        if len(fields) == _WIDTH:
            good += 1
        elif fields:
            bad += 1
        else:
            blank += 1
    return Tally(good, bad, blank)
