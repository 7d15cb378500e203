"""The rejects workbook: the rows that failed, in the file's own columns, with what is wrong with each cell.

It is made to be corrected and brought back: choices and look-ups can be picked, and a hidden column has the key of each
row, which tells the job, the row, and how often it was tried and corrected when the workbook was written.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Identifier, Literal

from rowcall.engine.corrections.rejects import KEY, LONGEST, PROBLEMS, titles_of
from rowcall.export.rows import SETTINGS
from rowcall.formats import WriteColumn, WriteFormat, WriteOptions, open_writer
from rowcall.importer import Choice, Importer, Lookup
from rowcall.model import Status
from rowcall.store.grid import RowResult, Wanted, results_of
from rowcall.store.jobs import Job
from rowcall.store.mappings import ColumnMapping, columns_of
from rowcall.store.targets import find_table

_FRAME_CELLS = 200_000
_MOST_CHOICES = 1_000
_MAX_CELL = 32_767
_TOO_LONG = (
    "It has {:,} characters, more than a workbook can hold. Left as it is, nothing of it is lost; what you type "
    "instead replaces all of it."
)
_NOTE = "What is wrong with the row. Nothing that stands here is read."


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejects:
    """The failed rows of a job, to be written."""

    job: Job
    columns: list[ColumnMapping]
    titles: list[str]
    choices: dict[int, tuple[str, ...]]
    open_choices: frozenset[int]
    """Positions of columns that also take what can't be picked."""

    @property
    def write_columns(self) -> list[WriteColumn]:
        own = [
            WriteColumn(
                name=title,
                native="text",
                choices=self.choices.get(place, ()),
                strict=place not in self.open_choices,
            )
            for place, title in enumerate(self.titles)
        ]
        return [*own, WriteColumn(name=PROBLEMS, native="text", note=_NOTE), WriteColumn(name=KEY, hidden=True)]


def select_rejects(connection: Connection[Any], job: Job, importer: type[Importer] | None) -> Rejects:
    """What the workbook of a job's failed rows has for columns."""
    columns = columns_of(connection, job.id)
    fields = {c.position: importer.fields.get(c.target_field) for c in columns if importer and c.target_field}
    choices = {place: field.values for place, field in fields.items() if isinstance(field, Choice)}
    lookups = {place: found_by(connection, field) for place, field in fields.items() if isinstance(field, Lookup)}
    return Rejects(
        job=job,
        columns=columns,
        titles=titles_of([column.header for column in columns]),
        choices={place: values for place, values in {**choices, **lookups}.items() if values},
        open_choices=frozenset(lookups),
    )


def found_by(connection: Connection[Any], lookup: Lookup) -> tuple[str, ...]:
    """The first values that a look-up finds something by."""
    select = SQL(
        "SELECT text FROM (SELECT DISTINCT {}::text AS text FROM {}) each WHERE text <> '' ORDER BY text LIMIT {}"
    ).format(Identifier(lookup.by[0]), find_table(connection, lookup.table).identifier, Literal(_MOST_CHOICES))
    return tuple(connection.cursor(row_factory=scalar_row).execute(select).fetchall())


def write_rejects(connection: Connection[Any], chosen: Rejects, target: Path | BinaryIO) -> int:
    """Write the workbook; how many rows it has. Memory doesn't grow with them but for comments, which are limited."""
    connection.execute(SETTINGS)
    options = WriteOptions(sheet="Rejects", mark=True)
    results = iter(results_of(connection, chosen.job.id, Wanted(statuses=(Status.FAILED.value,))))
    height = max(1, _FRAME_CELLS // len(chosen.write_columns))
    with open_writer(target, WriteFormat.XLSX, chosen.write_columns, options) as writer:
        while page := list(islice(results, height)):
            writer.write(_frame(chosen, page), _comments(chosen, page))
        return writer.rows


def key_of(job: Job, row: RowResult) -> str:
    """What names a row, as it is now, of a job. A key that was changed, or is another's, doesn't fit its last part."""
    attempt = row.attempt or 0
    digest = hashlib.sha256(f"{job.id} {row.row} {attempt} {row.revision}".encode()).hexdigest()
    return f"{job.number}.{row.row}.{attempt}.{row.revision}.{digest[:16]}"


def _frame(chosen: Rejects, page: Sequence[RowResult]) -> pl.DataFrame:
    width = len(chosen.titles)
    rows = [
        (
            *(_shown(cell) for cell in row.cells[:width]),
            *(None,) * (width - len(row.cells)),
            "\n".join(_told(issue) for issue in row.issues or ())[: _MAX_CELL // 2],
            key_of(chosen.job, row),
        )
        for row in page
    ]
    return pl.DataFrame(rows, dict.fromkeys([*chosen.titles, PROBLEMS, KEY], pl.String), orient="row")


def _shown(text: str | None) -> str | None:
    if not text:
        return None
    if len(text) + sum(letter > "\uffff" for letter in text) <= _MAX_CELL:
        return text
    return f"{text[:LONGEST]}…"


def _comments(chosen: Rejects, page: Sequence[RowResult]) -> dict[tuple[int, str], str]:
    """What is wrong, on the cells it is wrong with; what is wrong with a row, on its first cell."""
    by_field: dict[str, list[str]] = {}
    for column in chosen.columns:
        by_field.setdefault(column.target_field or "", []).append(chosen.titles[column.position])
    rows = [chosen.titles[0] if chosen.titles else PROBLEMS]
    comments: dict[tuple[int, str], list[str]] = {}
    for place, row in enumerate(page):
        for issue in row.issues or ():
            names = [name for name in (issue.get("field") or "").split(", ") if name]
            for title in [title for name in names for title in by_field.get(name, ())] or rows:
                comments.setdefault((place, title), []).append(f"{issue['code']}: {issue.get('message') or ''}".strip())
        for title, cell in zip(chosen.titles, row.cells, strict=False):
            if cell and _shown(cell) != cell:
                comments.setdefault((place, title), []).append(_TOO_LONG.format(len(cell)))
    return {cell: "\n".join(told) for cell, told in comments.items()}


def _told(issue: dict[str, Any]) -> str:
    where = f"{issue['field']}: " if issue.get("field") else ""
    return f"{where}{issue['code']} {issue.get('message') or ''}".strip()
