"""What a value could stand for, searched by a person: a few rows of a table, the best first.

A table of some thousand rows is compared as a whole, without case and accents and by likeness. In a larger one
PostgreSQL searches for the text.
"""

from dataclasses import dataclass
from typing import Any

import polars as pl
from psycopg import Connection
from psycopg.sql import SQL, Identifier, Literal

from rowcall.engine.values.known import ENTRIES, Known, LookedUp, in_scope, known_of
from rowcall.engine.values.similar import similar, words
from rowcall.errors import Final
from rowcall.importer import Choice, Importer, Lookup, folded_values
from rowcall.importer.declaration import did_you_mean
from rowcall.model import Code
from rowcall.store.targets import find_table

_COMPARED = 20_000
_PATIENCE = "10s"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that a value could stand for."""

    key: str
    label: str
    score: int
    """Of a hundred; 100 is the same."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best candidates, and whether there are more."""

    items: list[Candidate]
    more: bool


def candidates(
    connection: Connection[Any], importer: type[Importer], name: str, text: str, *, scope: str | None, most: int
) -> Found:
    """Search for what values of a field can stand for; without a text, the first by name. `scope`: only within it."""
    require_askable(importer, name)
    known = known_of(importer, name)
    scope = (scope or None) if known.scoped else None
    if isinstance(known, LookedUp) and _is_large(connection, known.lookup, scope):
        return _searched(connection, known.lookup, text, scope, most)
    return _compared(connection, known, text, scope, most)


def require_askable(importer: type[Importer], name: str) -> None:
    """Refuse a field that has no values that stand for something."""
    askable = [each for each, field in importer.fields.items() if isinstance(field, (Lookup, Choice))]
    if name not in askable:
        told = f"{importer.name} has no field {name!r} that is looked up or chosen."
        raise Final(Code.BAD_MAPPING, told, hint=did_you_mean(name, askable))


def _is_large(connection: Connection[Any], lookup: Lookup, scope: str | None) -> bool:
    table = find_table(connection, lookup.table)
    select = SQL("SELECT count(*) > {} FROM (SELECT FROM {} WHERE {} LIMIT {}) found")
    asked = select.format(Literal(_COMPARED), table.identifier, in_scope(lookup, scope), Literal(_COMPARED + 1))
    return connection.execute(asked).fetchone() == (True,)


# ------------------------------------------------------------------------------------------------- compared as a whole


def _compared(connection: Connection[Any], known: Known, text: str, scope: str | None, most: int) -> Found:
    entries = pl.concat([*known.entries(connection, scope)] or [pl.DataFrame(schema=ENTRIES)])
    entries = entries.with_columns(folded_values(pl.col("text")).alias("folded"), pl.lit("").alias("scope"))
    if not text.strip():
        found = entries.unique("key", keep="first", maintain_order=True).sort(pl.col("label").str.to_lowercase(), "key")
        return _found(found.with_columns(score=pl.lit(0, pl.Int64)), most)
    entries = entries.with_columns(words(pl.col("folded")).alias("words"))
    sought = pl.DataFrame({"id": [0], "scope": [""], "value": [text]}).with_columns(
        folded_values(pl.col("value")).alias("folded")
    )
    sought = sought.with_columns(words(pl.col("folded")).alias("words"))
    folded = sought.item(0, "folded")
    place = pl.col("folded").str.find(folded, literal=True)
    score = pl.when(pl.col("folded") == folded).then(100).when(place == 0).then(95).when(place > 0).then(90)
    holding = entries.with_columns(score.cast(pl.Int64).alias("score")).drop_nulls("score")
    alike = similar(sought, entries).select("key", "label", "score")
    found = pl.concat([holding.select("key", "label", "score"), alike])
    ranked = found.sort(pl.col("score"), pl.col("label").str.to_lowercase(), "key", descending=[True, False, False])
    return _found(ranked.unique("key", keep="first", maintain_order=True), most)


def _found(ranked: pl.DataFrame, most: int) -> Found:
    rows = ranked.head(most).select("key", "label", "score").iter_rows()
    return Found([Candidate(*row) for row in rows], ranked.height > most)


# ------------------------------------------------------------------------------------------------- left to PostgreSQL


def _searched(connection: Connection[Any], lookup: Lookup, text: str, scope: str | None, most: int) -> Found:
    table = find_table(connection, lookup.table)
    key, label = Identifier(lookup.to), Identifier(lookup.shown)
    held = SQL(" OR ").join(
        SQL("{}::text ILIKE {}").format(Identifier(column), Literal(f"%{escaped(text)}%"))
        for column in dict.fromkeys([lookup.shown, *lookup.by])
    )
    score = SQL(
        "CASE WHEN lower({label}::text) = lower({text}) OR {key}::text = {text} THEN 100 "
        "WHEN {label}::text ILIKE {begins} THEN 95 ELSE 90 END"
    ).format(label=label, key=key, text=Literal(text), begins=Literal(f"{escaped(text)}%"))
    select = SQL(
        "SELECT {key}::text, coalesce({label}::text, {key}::text), {score} FROM {table} WHERE ({held}) AND {within} "
        "ORDER BY 3 DESC, 2, 1 LIMIT {most}"
    ).format(
        key=key,
        label=label,
        score=score,
        table=table.identifier,
        held=held if text.strip() else SQL("true"),
        within=in_scope(lookup, scope),
        most=Literal(most + 1),
    )
    with connection.transaction():
        connection.execute(SQL("SET LOCAL statement_timeout = {}").format(Literal(_PATIENCE)))
        rows = connection.execute(select).fetchall()
    return Found([Candidate(each, told[:200], score) for each, told, score in rows[:most]], len(rows) > most)


def escaped(text: str) -> str:
    """A text in which no character stands for others."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
