"""Rows that are sent in binary are the same, to the letter, as if they were sent as text."""

from collections.abc import Sequence
from datetime import UTC, date
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.sql import SQL, Identifier

from rowcall.store.binary import NO_TEXTS, binary_rows, text_arrays
from rowcall.store.copying import cells_text, copy_in
from rowcall.store.db import Database

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
MOMENT = st.datetimes()
KINDS: dict[str, tuple[str, str, Any, st.SearchStrategy[Any]]] = {
    "a text": ("text", "text", pl.String, TEXT),
    "short": ("varchar(30)", "varchar", pl.String, TEXT),
    "mood": ("mood", "enum", pl.String, st.sampled_from(["sad", "gl\u00fccklich"])),
    "doc": ("jsonb", "jsonb", pl.String, st.sampled_from(['{"b": 1, "a": [1.50]}', '"x\\ty"', "null", "[]"])),
    "kept": ("json", "json", pl.String, st.sampled_from(['{"b":  1}', "1.0"])),
    "tags": ("text[]", "_text", pl.List(pl.String), st.lists(TEXT | st.none(), max_size=3)),
    "small": ("smallint", "int2", pl.Int64, st.integers(-(2**15), 2**15 - 1)),
    "number": ("integer", "int4", pl.Int64, st.integers(-(2**31), 2**31 - 1)),
    "large": ("bigint", "int8", pl.Int64, st.integers(-(2**63), 2**63 - 1)),
    "found": ("integer", "int4", pl.String, st.integers(-5, 2**31 - 1).map(str)),
    "price": ("numeric", "numeric", pl.Decimal(20, 2), st.decimals(-(10**13), 10**13, places=2)),
    "fine": ("numeric", "numeric", pl.Decimal(38, 9), st.decimals(-(10**6), 10**6, places=9)),
    "rounded": ("numeric(12,1)", "numeric", pl.Decimal(20, 3), st.decimals(-(10**9), 10**9, places=3)),
    "whole": ("numeric", "numeric", pl.Int64, st.integers(-(10**18), 10**18)),
    "yes": ("boolean", "bool", pl.Boolean, st.booleans()),
    "real": ("double precision", "float8", pl.Float64, st.floats(allow_nan=False)),
    "day": ("date", "date", pl.Date, st.dates()),
    "at": ("timestamptz", "timestamptz", pl.Datetime("us", "UTC"), MOMENT.map(lambda at: at.replace(tzinfo=UTC))),
    "local": ("timestamp", "timestamp", pl.Datetime("us"), MOMENT),
    "to the second": ("timestamp(0)", "timestamp", pl.Datetime("us"), MOMENT),
    "id": ("uuid", "uuid", pl.String, st.uuids().map(str)),
}
_SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
TYPES = {name: kind[1] for name, kind in KINDS.items()}


def frame_of(rows: Sequence[Sequence[Any]]) -> pl.DataFrame:
    columns = zip(*rows, strict=True) if rows else [()] * len(KINDS)
    return pl.DataFrame(
        [
            pl.Series(name, list(values), dtype=kind[2])
            for (name, kind), values in zip(KINDS.items(), columns, strict=True)
        ]
    )


@pytest.fixture
def tables(database: Database) -> Database:
    with database.connect() as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'gl\u00fccklich')")
        typed = [SQL("{} {}").format(Identifier(name), SQL(kind[0])) for name, kind in KINDS.items()]  # pyright: ignore[reportArgumentType]
        for table in ("as_text", "as_binary"):
            connection.execute(SQL("CREATE TABLE {} ({})").format(Identifier(table), SQL(", ").join(typed)))
    return database


@settings(max_examples=25, deadline=None, suppress_health_check=_SLOW)
@given(st.lists(st.tuples(*(kind[3] | st.none() for kind in KINDS.values())), max_size=8))
def test_rows_are_the_same_in_binary_and_as_text(tables: Database, rows: list[tuple[Any, ...]]) -> None:
    frame = frame_of(rows)
    assert binary_rows(frame, TYPES) is not None
    with tables.connect() as connection:
        connection.execute("TRUNCATE as_text, as_binary")
        assert copy_in(connection, Identifier("as_text"), frame) == len(rows)
        assert copy_in(connection, Identifier("as_binary"), frame, TYPES) == len(rows)
        one, other = (
            connection.execute(SQL("SELECT t::text FROM {} t").format(Identifier(table))).fetchall()
            for table in ("as_text", "as_binary")
        )
    assert other == one


@settings(max_examples=25, deadline=None, suppress_health_check=_SLOW)
@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[TEXT | st.none()] * width), max_size=6)))
def test_columns_become_the_same_arrays(tables: Database, rows: list[tuple[str | None, ...]]) -> None:
    width = len(rows[0]) if rows else 1
    cells = pl.DataFrame(rows, schema=[(str(place), pl.String) for place in range(width)], orient="row")
    with tables.connect() as connection:
        connection.execute("TRUNCATE as_text, as_binary")
        copy_in(connection, Identifier("as_text"), cells_text(cells).alias("tags").to_frame())
        copy_in(connection, Identifier("as_binary"), text_arrays(cells).alias("tags").to_frame(), TYPES)
        one, other = (
            connection.execute(SQL("SELECT tags FROM {}").format(Identifier(table))).fetchall()
            for table in ("as_text", "as_binary")
        )
    assert other == one == [(list(row),) for row in rows]


def test_an_array_without_texts(tables: Database) -> None:
    with tables.connect() as connection:
        copy_in(connection, Identifier("as_binary"), pl.DataFrame({"tags": [NO_TEXTS]}), TYPES)
        assert connection.execute("SELECT tags FROM as_binary").fetchone() == ([],)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("int2", pl.Series([1, 2**15])),
        ("int4", pl.Series([-(2**31) - 1])),
        ("int4", pl.Series(["1", "x"])),
        ("int4", pl.Series(["99999999999999999999"])),
        ("uuid", pl.Series([str(UUID(int=1)).replace("-", "")])),
        ("uuid", pl.Series([str(UUID(int=2**128 - 1)).upper()])),
        ("uuid", pl.Series(["0000000-00000-0000-0000-000000000000"])),
        ("timestamptz", pl.Series([date(2024, 1, 1)])),  # which moment that is, the session's time zone says
        ("timestamptz", pl.Series([253_402_300_800_000_000]).cast(pl.Datetime("us", "UTC"))),
        ("numeric", pl.Series([Decimal(2**63)], dtype=pl.Decimal(38, 0))),
        ("numeric", pl.Series([Decimal(10**17)], dtype=pl.Decimal(38, 1))),
        ("numeric", pl.Series(["1.5"])),
        ("text", pl.Series([1])),
        ("bpchar", pl.Series(["a"])),
        ("citext", pl.Series(["a"])),
    ],
)
def test_what_does_not_fit_goes_as_text(type_: str, values: pl.Series) -> None:
    assert binary_rows(values.alias("value").to_frame(), {"value": type_}) is None
