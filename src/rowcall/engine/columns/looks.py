"""What the values of columns look like: how many of them each field could read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as attributes
from typing import Literal

import numpy as np
import polars as pl

from rowcall.engine.columns.assign import Matrix
from rowcall.importer import Boolean, Choice, Date, DateTime, Decimal, Email, Field, Integer, Text, Uuid
from rowcall.importer.fields import ColumnReading

_VALUES = 60
"""Different values of a column that are tried: enough to tell a share."""
_LONGEST = 400
_ORDERS: tuple[Literal["ymd", "dmy", "mdy"], ...] = ("ymd", "dmy", "mdy")
_MARKS: tuple[Literal[".", ","], ...] = (".", ",")
_ELSEWHERE = frozenset({"name", "aliases", "help", "column", "required", "default"})
"""What a field has that doesn't change how it reads."""


def shares(fields: Mapping[str, Field], columns: Sequence[Sequence[str | None]]) -> Matrix:
    """For each column and field the share of values that it reads, in the best way; NaN where there are no values."""
    stacked = _stacked(columns)
    found: dict[object, Matrix] = {}
    for field in fields.values():
        key = _key(field)
        if key not in found:
            tried = [_share(twin, stacked, len(columns)) for twin in _ways(field)]
            found[key] = np.fmax.reduce(tried)
    told = [found[_key(field)] for field in fields.values()]
    return np.stack(told, axis=1) if told else np.empty((len(columns), 0))


def told_by_values(field: Field) -> tuple[str, float]:
    """What a column of this field looks like, and how much that says by itself: 0 to 1."""
    match field:
        case Email():
            return "e-mail addresses", 1.0
        case Uuid():
            return "UUIDs", 1.0
        case Choice():
            return f"{', '.join(field.values[:3])}", 0.95
        case Text() if field.pattern is not None:
            return f"the pattern {field.pattern}", 0.8
        case Date() | DateTime():
            return "dates", 0.6
        case Boolean():
            return "yes or no", 0.5
        case Integer() | Decimal():
            return "numbers", 0.3
        case _:
            return "texts", 0.0


def _stacked(columns: Sequence[Sequence[str | None]]) -> pl.DataFrame:
    """Some different values of all columns, one below the other, so that each field reads them in one go."""
    kept = [list(_some(values)) for values in columns]
    place = np.repeat(np.arange(len(kept)), [len(values) for values in kept])
    texts = [value for values in kept for value in values]
    return pl.DataFrame({"column": place, "text": pl.Series(texts, dtype=pl.String)})


def _some(values: Sequence[str | None]) -> Iterator[str]:
    different = dict.fromkeys(value[:_LONGEST] for value in values if value and value.strip())
    for value, _ in zip(different, range(_VALUES), strict=False):
        yield value


def _key(field: Field) -> object:
    kept = (each.name for each in attributes(field) if each.name not in _ELSEWHERE)
    return type(field), *(repr(getattr(field, name)) for name in kept)


def _ways(field: Field) -> Iterator[Field]:
    """The field for each way in which a column may write dates or numbers."""
    if isinstance(field, Date | DateTime):
        yield from (field.read_as(ColumnReading(date_order=order), field.limits) for order in _ORDERS)
    elif isinstance(field, Decimal | Integer):
        yield from (field.read_as(ColumnReading(decimal=mark), field.limits) for mark in _MARKS)
    else:
        yield field


def _share(field: Field, stacked: pl.DataFrame, columns: int) -> Matrix:
    texts = stacked.select(pl.col("text").alias(field.name)).select(field.clean()).to_series()
    values = field.read(texts).alias(field.name)
    good = values.is_not_null()
    for check in field.checks():
        good &= ~values.to_frame().select(check.failing.fill_null(False)).to_series()
    place, filled = stacked["column"].to_numpy(), texts.is_not_null().to_numpy()
    tried = np.bincount(place[filled], minlength=columns).astype(np.float64)
    read = np.bincount(place[filled & good.to_numpy()], minlength=columns)
    return np.divide(read, tried, out=np.full(columns, np.nan), where=tried > 0)
