"""Which rows PostgreSQL takes for the same, where only it can tell: `citext`, collations, indexes on expressions."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from psycopg import Connection
from psycopg.sql import SQL, Identifier

from rowcall.store.copying import copy_taken
from rowcall.store.targets import Sameness, Target

_KEYS = Identifier("pg_temp", "rowcall_keys")
_AT_ONCE = 20_000
_FOUND = {"number": pl.Int64, "alike": pl.Int64}


def prepare(connection: Connection[Any], target: Target, columns: Sequence[str]) -> None:
    """Make a temporary table with these columns of the target: their types, their collations."""
    drop(connection)
    connection.execute(
        SQL(
            "CREATE TEMPORARY TABLE rowcall_keys AS SELECT NULL::bigint AS rowcall_number, {} FROM {} WITH NO DATA"
        ).format(SQL(", ").join(map(Identifier, columns)), target.identifier)
    )


def drop(connection: Connection[Any]) -> None:
    """Take the temporary table away."""
    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(_KEYS))


def add(connection: Connection[Any], rows: pl.DataFrame) -> None:
    """Add rows: `rowcall_number` and the columns. Those that PostgreSQL can't read are like no other."""
    copy_taken(connection, _KEYS, rows)


def repeated(connection: Connection[Any], same: Sameness) -> Iterator[pl.DataFrame]:
    """The rows that are not the only ones of their kind: `number`, and `alike`, which rows of a kind share."""
    parts = [SQL("({})").format(SQL(part)) for part in same.parts]  # pyright: ignore[reportArgumentType] (the catalog's own words)
    known = [] if same.nulls_equal else [SQL("{} IS NOT NULL").format(part) for part in parts]
    only = [SQL("({})").format(SQL(same.condition))] if same.condition else []  # pyright: ignore[reportArgumentType] (likewise)
    select = SQL(
        "SELECT rowcall_number, alike FROM (SELECT rowcall_number, dense_rank() OVER (ORDER BY {by}) AS alike, "
        "count(*) OVER (PARTITION BY {by}) AS many FROM {keys} WHERE {only}) each "
        "WHERE many > 1 ORDER BY alike, rowcall_number"
    ).format(by=SQL(", ").join(parts), keys=_KEYS, only=SQL(" AND ").join([SQL("true"), *known, *only]))
    rest = pl.DataFrame(schema=_FOUND)
    with connection.transaction(), connection.cursor("rowcall_repeated") as cursor:
        cursor.execute(select)
        while rows := cursor.fetchmany(_AT_ONCE):
            found = pl.concat([rest, pl.DataFrame(rows, schema=_FOUND, orient="row")])
            last = found["alike"] == found["alike"][-1]  # of these there may be more
            rest = found.filter(last)
            yield found.filter(~last)
        yield rest
