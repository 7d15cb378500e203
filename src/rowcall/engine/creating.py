"""Rows of other tables that a batch needs and that are not there: created in the transaction that needs them.

Whoever else creates the same at the same moment is waited for; the table keeps it unique. So it is there once, and
only if a row that refers to it is: what turns out to be created for rows that aren't written is undone (commit).
"""

from collections.abc import Sequence
from dataclasses import dataclass
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

_FOR = {"number": pl.Int64, "field": pl.String, "_key": pl.String}


@dataclass(frozen=True, slots=True)
class Created:
    """The rows of a batch, now that what they need is there."""

    good: pl.DataFrame
    """With the keys of what was created for them."""
    failed: pl.DataFrame
    """Outcomes of those for which nothing could be."""
    made_for: pl.DataFrame
    """The `number` of each row that has something new in a `field`, with its key if that could be told."""

    def in_vain(self, unwritten: pl.Series) -> pl.Series:
        """The numbers of unwritten rows that have something new which no written row has."""
        idle = pl.col("number").is_in(unwritten.implode())
        used = self.made_for.filter(~idle).select("field", "_key")
        return self.made_for.filter(idle).join(used, on=["field", "_key"], how="anti")["number"].unique()


def create_missing(connection: Connection[Any], work: Work, good: pl.DataFrame) -> Created:
    """Create what rows name and is not there."""
    failed, made_for = [pl.DataFrame(schema=OUTCOMES)], [pl.DataFrame(schema=_FOR)]
    for name in work.creating:  # scopes come first
        wanted = good.filter(pl.col(name).str.starts_with(TO_CREATE))
        if not wanted.height:
            continue
        lookup = work.lookups[name]
        asked = wanted.select("number", _asked_columns(wanted, name, lookup)).unnest("_asked")
        keys, made = _created(connection, lookup, _once(asked, lookup))
        named = asked.join(keys, on=["_text", "_scope"], how="left", maintain_order="left")
        is_found = pl.col("_keys").fill_null(0) == 1
        found, lost = named.filter(is_found), named.filter(~is_found)
        good = good.update(found.select("number", pl.col("_key").alias(name)), on="number")
        good = good.filter(~pl.col("number").is_in(lost["number"].implode()))
        failed.append(failures(_issues(lost, name, lookup), work.lookups))
        made_for.append(_made_for(found, lost, made).select("number", pl.lit(name).alias("field"), "_key"))
    return Created(good, pl.concat(failed), pl.concat(made_for))


def _made_for(found: pl.DataFrame, lost: pl.DataFrame, made: Sequence[str]) -> pl.DataFrame:
    new = found.filter(pl.col("_key").is_in(made))
    # a trigger that changes the text has it created so that nobody finds it
    return new if new["_key"].n_unique() == len(made) else pl.concat([new, lost])


def _asked_columns(wanted: pl.DataFrame, name: str, lookup: Lookup) -> pl.Expr:
    """The text that is yet to stand for a row, and the key that it is to be within."""
    is_given = lookup.within in wanted.columns
    scope = pl.col(lookup.within or "").cast(pl.String).fill_null("") if is_given else pl.lit("")
    text = pl.col(name).str.strip_prefix(TO_CREATE).str.splitn("\x1f", 2).struct.field("field_1")
    return pl.struct(text.alias("_text"), scope.alias("_scope")).alias("_asked")


def _once(asked: pl.DataFrame, lookup: Lookup) -> pl.DataFrame:
    """What is to be created. Without the scope that it is to be within, nobody would find it."""
    asked = asked.filter(pl.col("_scope") != "") if lookup.within else asked
    # in one order everywhere: two batches that create the same wait for each other only one way
    return asked.select("_text", "_scope").unique().sort("_text", "_scope")


def _created(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The keys of what is there now, and those that are new."""
    made = _inserted(connection, lookup, asked) if asked.height else []
    if made is None:
        each = [_inserted(connection, lookup, asked[place]) for place in range(asked.height)]
        made = [key for keys in each for key in keys or ()]
    return keys_of(connection, lookup, asked, "_text"), made


def _inserted(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame) -> list[str] | None:
    """The keys of the rows that this created; None if the table refuses some of them."""
    try:
        with connection.transaction():
            return [key for (key,) in connection.execute(_insert(connection, lookup, asked))]
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
    return None


def _insert(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame) -> Composed:
    table = find_table(connection, lookup.table)
    takes = table.columns[lookup.creates or lookup.shown]
    columns, values = [Identifier(takes.name)], [SQL("g.text::{}").format(SQL(takes.type))]  # pyright: ignore[reportArgumentType] (a name from the catalog)
    if lookup.within:
        scope = table.columns[lookup.within]
        columns.append(Identifier(scope.name))
        values.append(SQL("g.scope::{}").format(SQL(scope.type)))  # pyright: ignore[reportArgumentType] (as above)
    return SQL(
        "INSERT INTO {} ({}) SELECT {} FROM unnest({}::text[], {}::text[]) g (text, scope) ON CONFLICT DO NOTHING "
        "RETURNING {}::text"
    ).format(
        table.identifier,
        SQL(", ").join(columns),
        SQL(", ").join(values),
        Literal(asked["_text"].to_list()),
        Literal(asked["_scope"].to_list()),
        Identifier(lookup.to),
    )


def _issues(lost: pl.DataFrame, name: str, lookup: Lookup) -> pl.DataFrame:
    refused = pl.format("'{}' is not found in {}, which refuses to have it created.", "value", pl.lit(lookup.table))
    nowhere = pl.format(
        "'{}' is not found in {}, and is not created without {}, which is blank.",
        *("value", pl.lit(lookup.table), pl.lit(lookup.within)),
    )
    is_blank = (pl.col("_scope") == "") & pl.lit(lookup.within is not None)
    return lost.select("number", "_scope", value=pl.col("_text").str.head(200)).select(
        "number",
        pl.lit(Code.NOT_FOUND.value).alias("code"),
        pl.lit(name).alias("field"),
        "value",
        pl.when(is_blank).then(nowhere).otherwise(refused).alias("message"),
    )
