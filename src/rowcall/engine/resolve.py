"""Look-ups: the texts of a column to keys of another table, one query per column and batch."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from rowcall.importer import Lookup
from rowcall.model import Code
from rowcall.store.targets import Target, describe

_HEX = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
_WHOLE = "^[+-]?[0-9]{1,100}$"
_FITS = {
    "uuid": rf"^(?:{_HEX}|\{{{_HEX}\}})$",
    "int2": _WHOLE,
    "int4": _WHOLE,
    "int8": _WHOLE,
    "numeric": _WHOLE,
}
"""Texts that can be cast to a type without an error; of other types the column's text is compared."""
_ENDS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
_TEXTS = frozenset({"text", "varchar", "bpchar", "citext", "name"})
ISSUES = {"number": pl.Int64, "code": pl.String, "field": pl.String, "value": pl.String, "message": pl.String}


def resolve(
    connection: Connection[Any], lookups: dict[str, Lookup], rows: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with keys in place of texts, and an issue for each text that has no key or more than one."""
    issues: list[pl.DataFrame] = []
    for name, lookup in _scopes_first(lookups).items():
        rows, found = _resolved(connection, name, lookup, rows)
        issues.append(found)
    return rows, pl.concat(issues) if issues else pl.DataFrame(schema=ISSUES)


def _scopes_first(lookups: dict[str, Lookup]) -> dict[str, Lookup]:
    """Those that others are looked up within come before them: they are compared by key."""
    ordered: dict[str, Lookup] = {}
    for name in lookups:
        chain = [name]
        while (scope := lookups[chain[-1]].within) in lookups and scope not in chain:
            chain.append(scope)
        ordered |= {one: lookups[one] for one in reversed(chain)}
    return ordered


def with_scopes(lookups: Mapping[str, Lookup], names: set[str]) -> set[str]:
    """The fields, and all fields that they are looked up within."""
    scopes = {scope for name in names if name in lookups and (scope := lookups[name].within)}
    return names if scopes <= names else with_scopes(lookups, names | scopes)


def _resolved(
    connection: Connection[Any], name: str, lookup: Lookup, rows: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    rows = _asking(name, lookup, rows)
    asked = rows.select(name, "_scope").drop_nulls(name).unique()
    keys = _keys(connection, lookup, asked, name)
    joined = rows.join(keys, on=[name, "_scope"], how="left", maintain_order="left")
    issues = _issues(joined, name, lookup)
    key = pl.when(pl.col("_keys") == 1).then(pl.col("_key")).alias(name)
    return joined.with_columns(key).drop("_key", "_keys", "_scope"), issues


def _asking(name: str, lookup: Lookup, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with what is asked for: the text, and the `_scope` that it is looked up within."""
    scope = pl.col(lookup.within).str.strip_chars() if lookup.within in rows.columns else pl.lit(None, pl.String)
    return rows.with_columns(lookup.clean().alias(name), scope.fill_null("").alias("_scope"))


def _keys(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame, name: str) -> pl.DataFrame:
    """Text to key for what was found; a column that is looked by later is only asked what the earlier left open."""
    found = pl.DataFrame(schema=_found_as(name))
    if not asked.height:
        return found
    table = describe(connection, lookup.table)
    for by in lookup.by:
        left = asked.join(found, on=[name, "_scope"], how="anti")
        left = left.filter(_castable(pl.col(name), table.columns[by].base))
        if left.height:
            candidates = _candidates(table, lookup, by, left, name, key=lookup.to)
            found = pl.concat([found, _asked(connection, _EXACT_FIRST.format(candidates), name)])
    return found


def may_find(connection: Connection[Any], table: Target, name: str, lookup: Lookup, rows: pl.DataFrame) -> pl.DataFrame:
    """What texts could come to find once the rows of a table count: by whichever column, exactly or in small letters.

    `number`, and of those rows the `rowcall_number` of one as `_key`; `_keys` is above 1 if there are others.
    """
    rows = _asking(name, lookup, rows)
    asked = rows.select(name, "_scope").drop_nulls(name).unique()
    found = pl.DataFrame(schema=_found_as(name))
    for by in lookup.by:
        fitting = asked.filter(_castable(pl.col(name), table.columns[by].base))
        if fitting.height:
            candidates = _candidates(table, lookup, by, fitting, name, key="rowcall_number")
            found = pl.concat([found, _asked(connection, _WHICHEVER.format(candidates), name)])
    keys = pl.max_horizontal(pl.col("_keys").max(), pl.col("_key").n_unique()).alias("_keys")
    found = found.group_by(name, "_scope").agg(pl.col("_key").first().cast(pl.Int64), keys)
    return rows.join(found, on=[name, "_scope"]).select("number", "_key", "_keys")


def compared_as_stored(base: str) -> bool:
    """Whether values of this type are compared by its own equality, for which there are indexes, not as texts."""
    return base in _TEXTS or base in _FITS


def _castable(text: pl.Expr, base: str) -> pl.Expr:
    fits = text.str.contains(_FITS[base]) if base in _FITS else pl.lit(True)
    most = _ENDS.get(base)
    return fits & text.str.strip_prefix("+").cast(pl.Int64, strict=False).is_between(-most, most - 1) if most else fits


def _candidates(table: Target, lookup: Lookup, by: str, asked: pl.DataFrame, name: str, *, key: str) -> Composed:
    """The rows of a table that a text may mean: text, scope, the row's key, and whether it is there exactly so."""
    column = table.columns[by]
    same: Composable = SQL("t.{} = v.text::{}").format(Identifier(by), SQL(column.base))  # pyright: ignore[reportArgumentType] (a name from the catalog)
    asked_as = SQL("SELECT text, scope, text AS sought FROM given")
    if column.base in _TEXTS:  # each in its own row: an OR could not be hashed
        like = SQL("::{}").format(SQL(column.type)) if column.base == "citext" else SQL("")  # pyright: ignore[reportArgumentType] (a name from the catalog)
        same = SQL("t.{} = v.sought{}").format(Identifier(by), like)
        asked_as = SQL("SELECT text, scope, text AS sought FROM given UNION SELECT text, scope, lower(text) FROM given")
    elif column.base not in _FITS:
        same = SQL("t.{}::text = v.text").format(Identifier(by))
    if lookup.within:
        same = SQL("{} AND t.{}::text = v.scope").format(same, Identifier(lookup.within))
    exact = SQL("t.{}::text = v.text").format(Identifier(by)) if column.base in _TEXTS else SQL("true")
    # no parameters: a percent sign in a name would be taken for one
    return SQL(
        "WITH given AS (SELECT * FROM unnest({texts}::text[], {scopes}::text[]) AS given (text, scope)) "
        "SELECT v.text, v.scope, t.{key}::text AS key, {exact} AS exact FROM ({asked}) v JOIN {table} t ON {same}"
    ).format(
        key=Identifier(key),
        exact=exact,
        texts=Literal(asked[name].to_list()),
        scopes=Literal(asked["_scope"].to_list()),
        table=table.identifier,
        same=same,
        asked=asked_as,
    )


_EXACT_FIRST = SQL(
    "SELECT text, scope, min(key), count(DISTINCT key) FROM ("
    "SELECT *, bool_or(exact) OVER (PARTITION BY text, scope) AS any_exact FROM ({}) candidates) found "
    "WHERE exact OR NOT any_exact GROUP BY text, scope"
)
_WHICHEVER = SQL("SELECT text, scope, min(key), count(DISTINCT key) FROM ({}) candidates GROUP BY text, scope")


def _found_as(name: str) -> dict[str, Any]:
    return {name: pl.String, "_scope": pl.String, "_key": pl.String, "_keys": pl.Int64}


def _asked(connection: Connection[Any], select: Composed, name: str) -> pl.DataFrame:
    return pl.DataFrame(connection.execute(select).fetchall(), schema=_found_as(name), orient="row")


def _issues(joined: pl.DataFrame, name: str, lookup: Lookup) -> pl.DataFrame:
    bad = joined.filter(pl.col(name).is_not_null() & (pl.col("_keys").fill_null(0) != 1))
    by = " or ".join(lookup.by)
    several = pl.col("_keys").fill_null(0) > 1
    none = pl.format("{} is not found in {} (by {}).", _quoted(name), pl.lit(lookup.table), pl.lit(by))
    many = pl.format("{} fits {} rows of {} (by {}).", _quoted(name), pl.col("_keys"), pl.lit(lookup.table), pl.lit(by))
    return bad.select(
        "number",
        pl.when(several).then(pl.lit(Code.NOT_UNIQUE.value)).otherwise(pl.lit(Code.NOT_FOUND.value)).alias("code"),
        pl.lit(name).alias("field"),
        pl.col(name).str.head(200).alias("value"),
        pl.when(several).then(many).otherwise(none).alias("message"),
    )


def _quoted(name: str) -> pl.Expr:
    return pl.concat_str(pl.lit("'"), pl.col(name).str.head(200), pl.lit("'"))
