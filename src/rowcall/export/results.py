"""What became of a job's rows, to be exported: what the grid shows, row for row and cell for cell."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC
from itertools import islice
from typing import Any, Literal
from uuid import UUID

import msgspec
import polars as pl
import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.engine.documents import original_of
from rowcall.export.rows import SETTINGS
from rowcall.formats import WriteColumn
from rowcall.store.db import translated
from rowcall.store.grid import RowResult, Wanted, results_of
from rowcall.store.jobs import Job
from rowcall.store.mappings import columns_of
from rowcall.store.queries import query

_FRAME_CELLS = 200_000
_MOST_BEYOND = 100
# Not just `status`: that is a common header, and an export that is corrected and imported again would set it.
_BEFORE: dict[str, Literal["number", "text"]] = {
    "rowcall_row": "number",
    "rowcall_line": "number",
    "rowcall_status": "text",
}
_BEHIND: dict[str, Literal["json", "number", "datetime"]] = {
    "rowcall_issues": "json",
    "rowcall_original": "json",
    "rowcall_target_key": "json",
    "rowcall_attempt": "number",
    "rowcall_at": "datetime",
}
_OURS = (*_BEFORE, *_BEHIND)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResults:
    """Rows of a job with what became of each."""

    job_id: UUID
    wanted: Wanted
    cells: tuple[str, ...]
    """The names of the file's columns; records with more cells than the header has add some."""
    has_rest: bool = False
    """Whether the last of them has all further cells, as JSON: one bad record may have thousands."""

    @property
    def write_columns(self) -> list[WriteColumn]:
        """The columns as a writer takes them."""
        return [
            *(WriteColumn(name=name, native=native) for name, native in _BEFORE.items()),
            *(WriteColumn(name=name, native="text") for name in self.cells),
            *(WriteColumn(name=name, native=native) for name, native in _BEHIND.items()),
        ]

    @property
    def optional_texts(self) -> list[str]:
        """The columns of text that may be null."""
        return list(self.cells)


def select_results(connection: Connection[Any], job: Job, wanted: Wanted) -> JobResults:
    """What became of the rows of a job that are wanted."""
    try:
        headers = [column.header for column in columns_of(connection, job.id)]
        cursor = connection.cursor(row_factory=scalar_row)
        width: int = cursor.execute(query("widest_row"), {"id": job.id}).fetchone() or 0
    except psycopg.Error as error:
        raise translated(error) from error
    beyond = [f"column {place + 1}" for place in range(len(headers), width)]
    has_rest = len(beyond) > _MOST_BEYOND
    if has_rest:
        beyond = [*beyond[:_MOST_BEYOND], f"{beyond[_MOST_BEYOND]} and beyond"]
    return JobResults(job_id=job.id, wanted=wanted, cells=tuple(_apart([*headers, *beyond])), has_rest=has_rest)


def _apart(names: Sequence[str]) -> Iterator[str]:
    """The names, changed where they are ours or stood before."""
    taken = set(_OURS)
    for name in names:
        while name in taken:
            name += " (file)"
        taken.add(name)
        yield name


def result_frames(connection: Connection[Any], chosen: JobResults) -> Generator[pl.DataFrame]:
    """The rows in their order, in frames of bounded size, at least one."""
    try:
        with connection.transaction():
            connection.execute(SETTINGS)
            with closing(_pages(connection, chosen)) as pages:
                yield from (_frame(page, chosen) for page in pages)
    except psycopg.Error as error:
        raise translated(error) from error


def _pages(connection: Connection[Any], chosen: JobResults) -> Generator[list[RowResult]]:
    results = iter(results_of(connection, chosen.job_id, chosen.wanted))
    height = max(1, _FRAME_CELLS // len(chosen.write_columns))
    page = list(islice(results, height))
    yield page
    while page := list(islice(results, height)):
        yield page


def _frame(page: Iterable[RowResult], chosen: JobResults) -> pl.DataFrame:
    schema = {name: _dtype(native) for name, native in _BEFORE.items()}
    schema |= dict.fromkeys(chosen.cells, pl.String())
    schema |= {name: _dtype(native) for name, native in _BEHIND.items()}
    rows = [
        (
            *(result.row, result.line, result.status),
            *_cells(result.cells, chosen),
            _json(result.issues or []),
            _original(result, chosen),
            None if result.target_key is None else _json(result.target_key),
            result.attempt,
            result.at and result.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        )
        for result in page
    ]
    return pl.DataFrame(rows, schema, orient="row")


def _dtype(native: str) -> pl.DataType:
    return pl.Int64() if native == "number" else pl.String()


def _cells(cells: list[str | None], chosen: JobResults) -> list[str | None]:
    width = len(chosen.cells) - chosen.has_rest
    there = [*cells[:width], *[None] * (width - len(cells))]
    if chosen.has_rest:
        there.append(_json(cells[width:]) if len(cells) > width else None)
    return there


def _original(result: RowResult, chosen: JobResults) -> str | None:
    """What the file has in cells that were corrected since."""
    original = original_of(result, chosen.cells)
    return None if original is None else _json(original)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
