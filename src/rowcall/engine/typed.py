"""The values of some fields, as they will be written: for what is decided about a file before its rows are judged."""

from collections.abc import Set
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.meaning import meant
from rowcall.engine.resolve import with_scopes
from rowcall.engine.work import Work
from rowcall.importer import DateTime
from rowcall.importer.fields import ColumnLimits
from rowcall.store.rows import PROBLEMS, Sources

_ZONELESS = ("timestamp", "date")
"""Types of columns that keep a time without telling where it is so late."""


def needed_for(work: Work, names: Set[str]) -> Sources:
    """What to read for the values of these fields."""
    needed = with_scopes(work.lookups, set(names))
    return {name: source for name, source in work.sources.items() if name in needed}


def texts_of(work: Work, names: Set[str], rows: pl.DataFrame) -> pl.DataFrame:
    """Rows as `read_rows` gives them, with the texts that are the same for every row."""
    needed = with_scopes(work.lookups, set(names))
    constants = {name: text for name, text in work.job.config.constants.items() if name in needed}
    return rows.drop(PROBLEMS).with_columns(pl.lit(text).alias(name) for name, text in constants.items())


def values_of(connection: Connection[Any], work: Work, names: Set[str], rows: pl.DataFrame) -> pl.DataFrame:
    """`number` and a typed column per field; null where a text can't be read or what it names is not found."""
    needed = with_scopes(work.lookups, set(names))
    texts = meant(connection, work, texts_of(work, names, rows), needed).rows
    return as_written(work, texts.select("number", *(_read(work, texts, name) for name in sorted(names))))


def as_written(work: Work, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with moments as their columns keep them: one without time zone has the time in that of the importer."""
    return rows.with_columns(
        pl.col(name).dt.convert_time_zone(field.timezone).dt.replace_time_zone(None)
        for name, field in work.importer.fields.items()
        if name in rows.columns and isinstance(field, DateTime) and field.timezone != "UTC"
        if field.column in work.target.columns and work.target.columns[field.column].base in _ZONELESS
    )


def _read(work: Work, rows: pl.DataFrame, name: str) -> pl.Series:
    field = work.importer.fields[name]
    if name in work.lookups:
        return rows[name]
    default = field.default_value()
    if name in work.readings:
        field = field.read_as(work.readings[name], work.limits.get(name, ColumnLimits()))
    missing = pl.repeat(None, rows.height, dtype=pl.String, eager=True)
    texts = rows.select(field.clean()).to_series() if name in rows.columns else missing
    values = field.read(texts).alias(name)
    if default is None:
        return values
    return values.to_frame().select(pl.when(texts.is_null()).then(pl.lit(default).first()).otherwise(name)).to_series()
