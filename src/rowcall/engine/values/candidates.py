"""What a value could stand for, searched by a person: a few rows of a table, the best first.

A table of some thousand rows is compared as a whole, without case and accents and by likeness. In a larger one
PostgreSQL searches for the text.
"""

from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from psycopg import Connection
from psycopg.sql import SQL, Identifier, Literal

from rowcall.engine.values.known import ENTRIES, SHOWN, Known, LookedUp, in_scope, known_of, scope_labels
from rowcall.engine.values.similar import similar, words
from rowcall.errors import Final
from rowcall.importer import Choice, Importer, Lookup, folded_values
from rowcall.importer.declaration import did_you_mean
from rowcall.model import Code
from rowcall.store.targets import find_table

_COMPARED = 20_000
_PATIENCE = "10s"


Place = tuple[int, str, str]
"""Where a page ended: score, label as it is sorted, key."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that a value could stand for."""

    key: str
    label: str
    score: int
    """Of a hundred; 100 is the same."""
    scope: tuple[str, str] | None = None
    """What it is in, where there are scopes: key and label."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best candidates behind a place, and the place behind them if there are more."""

    items: list[Candidate]
    last: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What is searched for."""

    text: str = ""
    """Without one, the first by name."""
    scope: str | None = None
    """Only within it."""
    after: Place | None = None
    most: int = 20


def candidates(connection: Connection[Any], importer: type[Importer], name: str, sought: Sought) -> Found:
    """Search for what values of a field can stand for, the best first."""
    require_askable(importer, name)
    known = known_of(importer, name)
    sought = replace(sought, scope=(sought.scope or None) if known.scoped else None)
    if not isinstance(known, LookedUp):
        return _compared(connection, known, sought)
    if _is_large(connection, known.lookup, sought.scope):
        found = _searched(connection, known.lookup, sought)
    else:
        found = _compared(connection, known, sought)
    scopes = known.scopes(connection, [each.key for each in found.items])
    labels = scope_labels(connection, importer, name, list({*scopes.values()})) if scopes else {}
    named = {key: (scope, labels.get(scope, scope)) for key, scope in scopes.items() if scope}
    return replace(found, items=[replace(each, scope=named.get(each.key)) for each in found.items])


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


def _compared(connection: Connection[Any], known: Known, sought: Sought) -> Found:
    entries = pl.concat([*known.entries(connection, sought.scope)] or [pl.DataFrame(schema=ENTRIES)])
    entries = entries.with_columns(folded_values(pl.col("text")).alias("folded"), pl.lit("").alias("scope"))
    if not sought.text.strip():
        return _page(entries.with_columns(score=pl.lit(0, pl.Int64)).select("key", "label", "score"), sought)
    entries = entries.with_columns(words(pl.col("folded")).alias("words"))
    value = pl.DataFrame({"id": [0], "scope": [""], "value": [sought.text]}).with_columns(
        folded_values(pl.col("value")).alias("folded")
    )
    value = value.with_columns(words(pl.col("folded")).alias("words"))
    folded = value.item(0, "folded")
    place = pl.col("folded").str.find(folded, literal=True)
    score = pl.when(pl.col("folded") == folded).then(100).when(place == 0).then(95).when(place > 0).then(90)
    holding = entries.with_columns(score.cast(pl.Int64).alias("score")).drop_nulls("score")
    alike = similar(value, entries).select("key", "label", "score")
    return _page(pl.concat([holding.select("key", "label", "score"), alike]), sought)


def _page(found: pl.DataFrame, sought: Sought) -> Found:
    """Some of what was found: each once, the best first, behind where the page before ended."""
    found = found.with_columns(pl.col("label").str.to_lowercase().alias("sorted"))
    ranked = found.sort("score", "sorted", "key", descending=[True, False, False])
    ranked = ranked.unique("key", keep="first", maintain_order=True)
    if sought.after is not None:
        score, label, key = sought.after
        same, name = pl.col("score") == score, pl.col("sorted")
        ranked = ranked.filter(
            (pl.col("score") < score) | (same & ((name > label) | ((name == label) & (pl.col("key") > key))))
        )
    rows = ranked.head(sought.most).select("score", "sorted", "key", "label").rows()
    last = rows[-1][:3] if ranked.height > sought.most else None
    return Found([Candidate(key, label, score) for score, _, key, label in rows], last)


# ------------------------------------------------------------------------------------------------- left to PostgreSQL


def _searched(connection: Connection[Any], lookup: Lookup, sought: Sought) -> Found:
    text = sought.text
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
    behind = SQL("true")
    if sought.after is not None:
        score_then, *rest = sought.after
        behind = SQL("(-score, label, key) > ({}, {}, {})").format(Literal(-score_then), *map(Literal, rest))
    select = SQL(
        "SELECT score, label, key FROM ("
        "SELECT {key}::text AS key, left(coalesce({label}::text, {key}::text), {shown}) AS label, {score} AS score "
        "FROM {table} WHERE ({held}) AND {within}) found WHERE {behind} ORDER BY -score, label, key LIMIT {most}"
    ).format(
        key=key,
        label=label,
        shown=Literal(SHOWN),
        score=score if text.strip() else SQL("0"),
        table=table.identifier,
        held=held if text.strip() else SQL("true"),
        within=in_scope(lookup, sought.scope),
        behind=behind,
        most=Literal(sought.most + 1),
    )
    with connection.transaction():
        connection.execute(SQL("SET LOCAL statement_timeout = {}").format(Literal(_PATIENCE)))
        rows = connection.execute(select).fetchall()
    last = rows[sought.most - 1] if len(rows) > sought.most else None
    return Found([Candidate(key, label, score) for score, label, key in rows[: sought.most]], last)


def escaped(text: str) -> str:
    """A text in which no character stands for others."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
