"""What a person should know of a job's columns before they confirm them.

Values are read by the fields themselves, as when rows are verified: of all rows, or of many from all over a large file.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl
from psycopg import Connection

from rowcall.engine.columns.readings import readings_of, with_reading
from rowcall.engine.columns.templates import Drift, drift_of, template_of
from rowcall.engine.verify import verify
from rowcall.errors import Final
from rowcall.importer import Importer, Lookup
from rowcall.importer.fields import ColumnLimits
from rowcall.model import Code
from rowcall.store.edits import has_edits
from rowcall.store.jobs import Job
from rowcall.store.mappings import ColumnMapping, columns_of, sources_of
from rowcall.store.rows import PROBLEMS, RowBatch, Sources, all_batches, read_rows
from rowcall.words import counted

_LOOKED_AT = 50_000
"""Rows that are looked at in a larger file."""
_SAMPLE_ROWS = 10_000
_EXAMPLES = 3
Kind = Literal["twoColumns", "partlyFilled", "unreadable", "ambiguous", "lost", "drifted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWarning:
    """Something that may not be as it was meant."""

    kind: Kind
    message: str
    positions: Sequence[int] = ()
    """The columns that it is about."""
    field: str | None = None
    code: str | None = None
    """What an affected row would be told."""
    count: int | None = None
    """How many of the rows that were looked at."""
    examples: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWarnings:
    """All of them. `looked_at` of the job's `rows` were looked at."""

    rows: int
    looked_at: int
    warnings: list[ColumnWarning]
    parsed: dict[str, int]
    """For each field that gets values, how many can be read as it."""
    drift: Drift | None = None


def warnings_of(
    connection: Connection[Any], job: Job, importer: type[Importer], limits: Mapping[str, ColumnLimits]
) -> ColumnWarnings:
    """What is to be said of a job's columns as they are now. `limits` are those of the target."""
    columns, ambiguous = _with_readings(connection, job, importer)
    counted = _counted(connection, job, importer, columns, limits)
    template = template_of(connection, job)
    drift = (
        drift_of(template, columns) if template and columns else None
    )  # none are kept of a file that can't be mapped
    sources = {name: source.positions for name, source in sources_of(columns).items()}
    warnings = [
        *_rivals(columns),
        *ambiguous,
        *counted.warnings(importer, sources, {warning.field for warning in ambiguous}),
        *_lost(columns),
        *_drifted(drift, template.name if template else ""),
    ]
    return ColumnWarnings(
        rows=job.row_count or 0,
        looked_at=counted.looked_at,
        warnings=warnings,
        parsed=counted.parsed,
        drift=drift,
    )


def _with_readings(
    connection: Connection[Any], job: Job, importer: type[Importer]
) -> tuple[list[ColumnMapping], list[ColumnWarning]]:
    """The columns with how they would be read, and a warning for each of which that isn't clear."""
    columns: list[ColumnMapping] = []
    ambiguous: list[ColumnWarning] = []
    for column in columns_of(connection, job.id):
        try:
            known = column.doubtful is False or column.place
            columns.append(column if known else with_reading(connection, job, importer, column, last=_SAMPLE_ROWS))
        except Final as error:
            columns.append(column)
            about: dict[str, Any] = {
                "positions": [column.position],
                "field": column.target_field,
                "code": error.code,
            }
            ambiguous.append(ColumnWarning(kind="ambiguous", message=error.message, **about))
    return columns, ambiguous


# ------------------------------------------------------------------------------------------------- what values tell


@dataclass(slots=True)
class _Counted:
    """How often what is wrong, of the rows that were looked at."""

    looked_at: int = 0
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By field and code."""
    examples: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])
    filled: Counter[str] = field(default_factory=Counter[str])
    unread: Counter[str] = field(default_factory=Counter[str])

    @property
    def parsed(self) -> dict[str, int]:
        return {name: count - self.unread[name] for name, count in self.filled.items()}

    def warnings(
        self, importer: type[Importer], sources: Mapping[str, Sequence[int]], unclear: set[str | None]
    ) -> Iterator[ColumnWarning]:
        for (name, code), count in sorted(
            self.wrong.items(), key=lambda each: (list(importer.fields).index(each[0][0]), each)
        ):
            about: dict[str, Any] = {"positions": sources.get(name, ()), "field": name, "code": code, "count": count}
            of = f"{count:,} of {self.looked_at:,} rows"
            if code == Code.REQUIRED:
                yield ColumnWarning(kind="partlyFilled", message=f"{name} is required, and {of} have none.", **about)
            elif name not in unclear:
                examples = self.examples.get((name, code), [])
                shown = f", such as {examples[0]!r}" if examples else ""
                told = f"{of} have a value that doesn't fit {name}{shown}."
                yield ColumnWarning(kind="unreadable", message=told, examples=examples, **about)


def _counted(
    connection: Connection[Any],
    job: Job,
    importer: type[Importer],
    columns: Sequence[ColumnMapping],
    limits: Mapping[str, ColumnLimits],
) -> _Counted:
    counted, sources, readings = _Counted(), sources_of(columns), readings_of(columns)
    edited = has_edits(connection, job.id)
    rules = {rule.code for rule in importer.rules}
    given = {*sources, *job.config.constants}
    lookups = [name for name in given if isinstance(importer.fields[name], Lookup)]
    for first, last in _places(all_batches(connection, job.id)):
        texts = _texts(connection, job, sources, first, last, edited=edited)
        if not texts.height:
            continue
        issues = verify(importer, texts, readings=readings, limits=limits).issues.filter(
            pl.col("field").is_in(list(given)),
            ~pl.col("code").is_in(list(rules)),
            # whether there is such a thing is a question of values
            ~pl.col("field").is_in(lookups) | (pl.col("code") == Code.REQUIRED.value),
        )
        _add(counted, importer, texts, issues, given)
    return counted


def _texts(
    connection: Connection[Any], job: Job, sources: Sources, first: int, last: int, *, edited: bool
) -> pl.DataFrame:
    """Rows that could be read, with the texts that are the same for all."""
    rows = read_rows(connection, job.id, sources, first=first, last=last, edited=edited)
    constants = job.config.constants.items()
    good = rows.filter(pl.col(PROBLEMS).is_null()).drop(PROBLEMS)
    return good.with_columns(pl.lit(text).alias(name) for name, text in constants)


def _add(
    counted: _Counted, importer: type[Importer], texts: pl.DataFrame, issues: pl.DataFrame, given: set[str]
) -> None:
    counted.looked_at += texts.height
    filled = texts.select(importer.fields[name].clean().is_not_null().sum().alias(name) for name in given)
    counted.filled.update(filled.row(0, named=True) if given else {})
    found = issues.group_by("field", "code").agg(
        pl.col("number").n_unique().alias("count"),
        pl.col("value").drop_nulls().unique(maintain_order=True).head(_EXAMPLES),
    )
    for name, code, count, values in found.iter_rows():
        counted.wrong[name, code] += count
        counted.examples[name, code] = list(dict.fromkeys([*counted.examples.get((name, code), []), *values]))[
            :_EXAMPLES
        ]
    unread = issues.filter(pl.col("code") != Code.REQUIRED.value).group_by("field").agg(pl.col("number").n_unique())
    counted.unread.update(dict(unread.iter_rows()))


def _places(batches: Sequence[RowBatch]) -> list[tuple[int, int]]:
    """First and last row of the pieces to look at: all of a small file, pieces from all over a large one."""
    total = sum(map(len, batches))
    if total <= _LOOKED_AT:
        return [(batch.first_row, batch.last_row) for batch in batches]
    number = max(1, min(len(batches), _LOOKED_AT * len(batches) // total))
    most = _LOOKED_AT // number
    chosen = [batches[place * len(batches) // number] for place in range(number)]
    return [(batch.first_row, min(batch.last_row, batch.first_row + most - 1)) for batch in chosen]


# ------------------------------------------------------------------------------------------------ what columns tell


def _rivals(columns: Sequence[ColumnMapping]) -> Iterator[ColumnWarning]:
    """Fields that several columns could be: nobody chose yet."""
    taken = {column.target_field: column for column in columns if column.target_field and not column.place}
    wanted: dict[str, list[ColumnMapping]] = {}
    for column in columns:
        if column.status == "UNRESOLVED" and column.target_field is None and column.others:
            wanted.setdefault(column.others[0][0], []).append(column)
    for name, rivals in wanted.items():
        both = [*([taken[name]] if name in taken else []), *rivals]
        if len(both) > 1:
            listed = " and ".join(repr(column.header) for column in both)
            told = f"Columns {listed} could each be {name}."
            yield ColumnWarning(kind="twoColumns", message=told, positions=[c.position for c in both], field=name)


def _lost(columns: Sequence[ColumnMapping]) -> Iterator[ColumnWarning]:
    for column in columns:
        if column.target_field is None and column.filled != 0:
            several, many = "values that go", column.filled
            go = several if many is None else counted(many, "value that goes", several)
            told = f"Column {column.header!r} has {go} nowhere."
            yield ColumnWarning(
                kind="lost",
                message=told,
                positions=[column.position],
                count=column.filled,
                examples=[sample for sample in column.samples if sample],
            )


def _drifted(drift: Drift | None, name: str) -> Iterator[ColumnWarning]:
    for what, headers in (
        ("has no column", drift.missing if drift else []),
        ("has a new column", drift.new if drift else []),
        ("has in another place", drift.moved if drift else []),
    ):
        if headers:
            told = f"Unlike the files of template {name}, this one {what} {', '.join(map(repr, headers))}."
            yield ColumnWarning(kind="drifted", message=told, examples=headers)
