"""The rejects workbook, corrected and brought back: its cells are laid over the rows that it has keys of.

Only rows whose cells were changed run again; the same workbook twice changes nothing the second time. All of it is one
transaction: the corrections, the rows to try, the job's move.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from psycopg import Connection
from psycopg.sql import Identifier

from rowcall.engine.corrections.edit import OPEN, lock_for_edit, plan_again
from rowcall.errors import FileRefused, Final
from rowcall.formats import Batch, Limits, Reading, open_rows
from rowcall.formats.reading import PointedOptions
from rowcall.importer import Importer
from rowcall.model import Code, State
from rowcall.store import jobs
from rowcall.store.copying import cells_text, copy_in
from rowcall.store.edits import Laid, lay_over
from rowcall.store.jobs import Job
from rowcall.store.mappings import columns_of
from rowcall.store.queries import query

KEY, PROBLEMS = "rowcall_key", "rowcall_problems"
"""Our own columns of the workbook."""
LONGEST = 16_000
"""Characters that are shown of a text that is too long for a cell of a workbook."""
_TOLD = 1_000
_SHEETS = (b"PK", b"\xd0\xcf")
_POINT = "\ue000"
"""Stands in numbers that a workbook has as such until it is known which mark their column has."""


@dataclass(frozen=True, slots=True)
class NotMerged:
    """A row of the workbook that was left alone, and why."""

    line: int
    row: int | None
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a workbook that was brought back."""

    job: Job
    rows: int
    """Rows in it."""
    laid: Laid
    refused: int
    first_refused: list[NotMerged]
    ignored: list[str]
    """Its columns that the file doesn't have."""


def titles_of(headers: Sequence[str]) -> list[str]:
    """What the columns of a file are called in the workbook: each differs from the others, and from ours."""
    taken, titles = {KEY, PROBLEMS}, list[str]()
    for place, header in enumerate(headers):
        title = header.strip() or f"column {place + 1}"
        while title in taken:
            title += " (file)"
        taken.add(title)
        titles.append(title)
    return titles


def open_returned(path: Path, name: str, limits: Limits) -> Reading:
    """A workbook, or a CSV file of it, that is brought back: the first sheet, its header in the first line."""
    try:
        with path.open("rb") as file:
            sheet = 1 if file.read(2) in _SHEETS else None
    except OSError as error:
        told = f"{str(path)!r} can't be opened: {error.strerror}."
        raise FileRefused(Code.FILE_NOT_FOUND, told, hint="Check the path.") from error
    return open_rows(path, PointedOptions(header=1, sheet=sheet, ragged="pad", point=_POINT, limits=limits), name=name)


def merge_rejects(
    connection: Connection[Any], job: Job, importer: type[Importer], reading: Reading, *, who: str
) -> Merged:
    """Lay what was changed over the rows it belongs to, and have just these run again. Called in a transaction."""
    job = lock_for_edit(connection, job, importer)
    columns = columns_of(connection, job.id)
    titles = titles_of([column.header for column in columns])
    ignored = _returned(connection, reading, titles, [column.decimal_mark or "." for column in columns])
    waits = job.state is State.VALIDATED
    given = {"id": job.id, "job": job.number, "open": [] if waits else OPEN}
    connection.execute(query("judge_returned"), given)
    there = [title for title in titles if title in {column.header.strip() for column in reading.columns}]
    positions = [titles.index(title) for title in there]
    connection.execute(query("find_returned"), {"id": job.id, "positions": positions, "most": LONGEST})
    connection.execute(query("refuse_returned"))
    connection.execute("ANALYZE pg_temp.rowcall_wanted")
    laid = lay_over(connection, job.id, "pg_temp.rowcall_wanted", who)
    if laid.rows and waits:
        job = plan_again(connection, job)
    elif laid.rows:
        connection.execute(query("retry_returned"), {"id": job.id})
        job = jobs.move(connection, job, State.PROCESSING)
    rows, refused = connection.execute(query("count_returned")).fetchone() or (0, 0)
    first = [
        NotMerged(line, row, code, _MESSAGES.get(code, "A cell of it can't be read."))
        for line, row, code in connection.execute(query("returned_refused"), {"most": _TOLD})
    ]
    return Merged(job, rows, laid, refused, first, ignored)


_MESSAGES = {
    Code.NO_ROW_KEY: f"It has no key in the column {KEY}.",
    Code.FOREIGN_ROW_KEY: "Its key is of another job.",
    Code.BAD_ROW_KEY: "Its key is none of this job's, or was changed.",
    Code.DUPLICATE_ROW_KEY: "An earlier row has the same key.",
    Code.STALE_ROW_KEY: "The row was corrected or tried since this workbook was written. Get a new one.",
    Code.ROW_DONE: "The row neither failed nor was skipped: it is written.",
}


def _returned(connection: Connection[Any], reading: Reading, titles: Sequence[str], marks: Sequence[str]) -> list[str]:
    """Bring the rows to where they can be compared; the names of columns that are none of the file's.

    Numbers are written with the decimal marks of their columns: 1.234 under a comma would be more than a thousand.
    """
    places = {column.header.strip(): column.index for column in reversed(reading.columns)}
    if KEY not in places:
        told = f"The file has no column {KEY}: it is no rejects workbook, or its keys were deleted."
        raise Final(
            Code.NO_ROW_KEY, told, hint="Get the workbook again; its last column, which is hidden, has the keys."
        )
    connection.execute(
        "CREATE TEMPORARY TABLE rowcall_returned (line bigint, key text, cells text[], problem text) ON COMMIT DROP"
    )
    wanted = {places[title]: mark for title, mark in zip(titles, marks, strict=True) if title in places}
    for batch in reading:
        copy_in(connection, Identifier("pg_temp", "rowcall_returned"), _rows(batch, places[KEY], wanted))
    return [column.header for column in reading.columns if column.header.strip() not in {*titles, KEY, PROBLEMS}]


def _rows(batch: Batch, key: int, wanted: Mapping[int, str]) -> pl.DataFrame:
    frame = batch.frame
    none = pl.repeat(None, frame.height, dtype=pl.String, eager=True)
    columns = {
        str(place): frame.to_series(place).str.replace(_POINT, mark, literal=True) if place < frame.width else none
        for place, mark in wanted.items()
    }
    good = pl.DataFrame(
        {
            "line": batch.lines,
            "key": frame.to_series(key) if key < frame.width else none,
            "cells": cells_text(pl.DataFrame(columns)) if columns else pl.repeat("{}", frame.height, eager=True),
        }
    )
    issues = {issue.line: issue.code.value for issue in batch.issues if issue.column in wanted}
    problems = pl.DataFrame(
        {"line": list(issues), "problem": list(issues.values())}, schema={"line": pl.Int64, "problem": pl.String}
    )
    good = good.join(problems, on="line", how="left", maintain_order="left")
    bad = [{"line": record.line, "key": None, "cells": "{}", "problem": record.code.value} for record in batch.bad]
    return pl.concat([good, pl.DataFrame(bad, schema=good.schema)])
