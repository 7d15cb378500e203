"""Tries a rule when its class is created: what it gives must be true or false, for each row by itself.

Which rows come together in a batch is nobody's decision. A rule that looks at other rows would answer otherwise with
other batches; so it is asked about rows alone, together, and in another order.
"""

import datetime as dt
import random
import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl
from polars.exceptions import PanicException, PolarsError

from rowcall.importer.fields import Field
from rowcall.importer.texts import Choice

_ROWS, _TWICE = 24, 8
_QUOTED = re.compile(r'"([^"]*)"')
_TEXTS = ("1", "2", "1000000", "a", "b", "Ab cd", "", "2024-01-31", '{"a": 1}', "a much longer text, with more words")
_NUMBERS = (-1_000_000, -1, 0, 1, 2, 7, 100, 5_000, 10**9)
_DAYS = tuple(dt.date(year, 1, 31) for year in (1, 1999, 2024, 2025, 9999))
_LISTS: tuple[list[str], ...] = ([], ["a"], ["a", "a"], ["a", "b"], ["1", "2", "3"])


def trial_mistakes(fields: Mapping[str, Field], expression: pl.Expr) -> Iterator[str]:
    """What is wrong with what a rule gives for rows of these fields."""
    blank = {name: pl.Series([None, None], dtype=field.dtype) for name, field in fields.items()}
    try:
        given = pl.DataFrame(blank).select(expression).to_series()
    except PolarsError as error:
        yield f" doesn't fit its fields: {str(error).partition(chr(10))[0]}"
        return
    if given.dtype != pl.Boolean:
        yield f" gives {given.dtype}, not true or false."
    elif len(given) != 2:
        yield " gives one answer for all rows; each row needs its own."
    elif _looks_across(_rows(fields, expression), expression):
        yield (
            " looks across rows: a row by itself gets another answer than among others, so that the outcome would "
            "depend on the batches. A rule sees one row at a time; WholeFileImporter is for logic across rows."
        )


def _rows(fields: Mapping[str, Field], expression: pl.Expr) -> pl.DataFrame:
    """Rows in which values repeat, each beside several of the others, some are missing, and some rows come twice."""
    named = _QUOTED.findall(str(expression))  # texts that it compares with, among others
    values = {name: _drawn(name, field, named) for name, field in fields.items()}
    rows = pl.DataFrame(values)
    return pl.concat([rows, rows.head(_TWICE)])


def _drawn(name: str, field: Field, named: Sequence[str]) -> pl.Series:
    draw = random.Random(name)  # noqa: S311 (the same rows each time)
    choices = _values(field, named)
    drawn = [None if draw.random() < 0.15 else draw.choice(choices) for _ in range(_ROWS)]
    return pl.Series(name, drawn, strict=False).cast(field.dtype, strict=False)


def _values(field: Field, named: Sequence[str]) -> Sequence[object]:
    dtype = field.dtype
    if isinstance(field, Choice):
        return field.values
    if dtype == pl.Boolean:
        return (True, False)
    if dtype == pl.List:
        return _LISTS
    if dtype == pl.Date:
        return _DAYS
    if dtype == pl.Datetime:
        return [dt.datetime(day.year, 1, 31, 12, tzinfo=dt.UTC) for day in _DAYS]
    return (*_TEXTS, *named) if dtype == pl.String else _NUMBERS


def _looks_across(rows: pl.DataFrame, expression: pl.Expr) -> bool:
    """Whether rows get other answers together than alone. Those that it can't answer say nothing of that."""
    alone = [_answers(rows.slice(at, 1), expression) for at in range(rows.height)]
    answered = [at for at, answers in enumerate(alone) if answers is not None]
    answers = [one for at in answered for one in alone[at] or ()]
    together = rows[answered]
    return _answers(together, expression) != answers or _answers(together.reverse(), expression) != answers[::-1]


def _answers(rows: pl.DataFrame, expression: pl.Expr) -> list[bool | None] | None:
    """What a rule gives, or None where it raises: not every text is what it will meet."""
    try:
        return rows.select(expression).to_series().to_list()
    except (Exception, PanicException):
        return None
