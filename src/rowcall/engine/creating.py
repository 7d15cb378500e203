"""Rows of other tables that a batch needs and that are not there: created in the transaction that needs them.

Whoever else creates the same at the same moment is waited for; the table keeps it unique. So it is there once, and
only if a row that refers to it is.
"""

from typing import Any

import polars as pl
import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composed, Identifier, Literal

from rowcall.engine.judge import OUTCOMES, failures
from rowcall.engine.refusals import is_refusal
from rowcall.engine.resolve import TO_CREATE, keys_of
from rowcall.engine.work import Work
from rowcall.importer import Lookup
from rowcall.model import Code
from rowcall.store.targets import find_table


def create_missing(connection: Connection[Any], work: Work, good: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with the keys of what was created for them, and outcomes of those for which nothing could be."""
    failed = [pl.DataFrame(schema=OUTCOMES)]
    for name in work.creating:  # scopes come first
        wanted = good.filter(pl.col(name).str.starts_with(TO_CREATE))
        if not wanted.height:
            continue
        lookup = work.lookups[name]
        keys = _created(connection, lookup, _asked(wanted, name, lookup))
        named = wanted.select("number", _asked_columns(name, lookup)).unnest("_asked")
        named = named.join(keys, on=["_text", "_scope"], how="left", maintain_order="left")
        found = named.filter(pl.col("_keys") == 1)
        good = good.update(found.select("number", pl.col("_key").alias(name)), on="number")
        lost = named.filter(pl.col("_keys").fill_null(0) != 1)
        good = good.filter(~pl.col("number").is_in(lost["number"].implode()))
        failed.append(failures(_issues(lost, name, lookup), work.lookups))
    return good, pl.concat(failed)


def _asked_columns(name: str, lookup: Lookup) -> pl.Expr:
    """The text that is yet to stand for a row, and the key that it is to be within."""
    scope = pl.col(lookup.within).cast(pl.String).fill_null("") if lookup.within else pl.lit("")
    text = pl.col(name).str.strip_prefix(TO_CREATE).str.splitn("\x1f", 2).struct.field("field_1")
    return pl.struct(text.alias("_text"), scope.alias("_scope")).alias("_asked")


def _asked(wanted: pl.DataFrame, name: str, lookup: Lookup) -> pl.DataFrame:
    # in one order everywhere: two batches that create the same wait for each other only one way
    return wanted.select(_asked_columns(name, lookup)).unnest("_asked").unique().sort("_text", "_scope")


def _created(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame) -> pl.DataFrame:
    try:
        with connection.transaction():
            connection.execute(_insert(connection, lookup, asked))
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        for place in range(asked.height):
            _try_one(connection, lookup, asked[place])
    return keys_of(connection, lookup, asked, "_text")


def _try_one(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame) -> None:
    try:
        with connection.transaction():
            connection.execute(_insert(connection, lookup, asked))
    except psycopg.Error as error:
        if not is_refusal(error):
            raise


def _insert(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame) -> Composed:
    table = find_table(connection, lookup.table)
    takes = table.columns[lookup.creates or lookup.shown]
    columns, values = [Identifier(takes.name)], [SQL("g.text::{}").format(SQL(takes.type))]  # pyright: ignore[reportArgumentType] (a name from the catalog)
    if lookup.within:
        scope = table.columns[lookup.within]
        columns.append(Identifier(scope.name))
        values.append(SQL("nullif(g.scope, '')::{}").format(SQL(scope.type)))  # pyright: ignore[reportArgumentType] (as above)
    return SQL(
        "INSERT INTO {} ({}) SELECT {} FROM unnest({}::text[], {}::text[]) g (text, scope) ON CONFLICT DO NOTHING"
    ).format(
        table.identifier,
        SQL(", ").join(columns),
        SQL(", ").join(values),
        Literal(asked["_text"].to_list()),
        Literal(asked["_scope"].to_list()),
    )


def _issues(lost: pl.DataFrame, name: str, lookup: Lookup) -> pl.DataFrame:
    told = pl.format("'{}' is not found in {}, which refuses to have it created.", "value", pl.lit(lookup.table))
    return lost.select("number", value=pl.col("_text").str.head(200)).select(
        "number",
        pl.lit(Code.NOT_FOUND.value).alias("code"),
        pl.lit(name).alias("field"),
        "value",
        told.alias("message"),
    )
