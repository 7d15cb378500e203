"""Look-ups: the texts of a column to keys of another table, one query per column and batch."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from psycopg import Connection
from psycopg.sql import SQL, Composable, Identifier, Literal

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
    scope = pl.col(lookup.within).str.strip_chars() if lookup.within in rows.columns else pl.lit(None, pl.String)
    rows = rows.with_columns(lookup.clean().alias(name), scope.fill_null("").alias("_scope"))
    asked = rows.select(name, "_scope").drop_nulls(name).unique()
    keys = _keys(connection, lookup, asked, name)
    joined = rows.join(keys, on=[name, "_scope"], how="left", maintain_order="left")
    issues = _issues(joined, name, lookup)
    key = pl.when(pl.col("_keys") == 1).then(pl.col("_key")).alias(name)
    return joined.with_columns(key).drop("_key", "_keys", "_scope"), issues


def _keys(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame, name: str) -> pl.DataFrame:
    """Text to key for what was found; a column that is looked by later is only asked what the earlier left open."""
    found = pl.DataFrame(schema={name: pl.String, "_scope": pl.String, "_key": pl.String, "_keys": pl.Int64})
    if not asked.height:
        return found
    table = describe(connection, lookup.table)
    for by in lookup.by:
        left = asked.join(found, on=[name, "_scope"], how="anti")
        left = left.filter(_castable(pl.col(name), table.columns[by].base))
        if left.height:
            found = pl.concat([found, _looked_up(connection, table, lookup, by, left, name)])
    return found


def _castable(text: pl.Expr, base: str) -> pl.Expr:
    fits = text.str.contains(_FITS[base]) if base in _FITS else pl.lit(True)
    most = _ENDS.get(base)
    return fits & text.str.strip_prefix("+").cast(pl.Int64, strict=False).is_between(-most, most - 1) if most else fits


def _looked_up(
    connection: Connection[Any], table: Target, lookup: Lookup, by: str, asked: pl.DataFrame, name: str
) -> pl.DataFrame:
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
    select = SQL(
        "WITH given AS (SELECT * FROM unnest({texts}::text[], {scopes}::text[]) AS given (text, scope)) "
        "SELECT text, scope, min(key), count(DISTINCT key) FROM ("
        "SELECT v.text, v.scope, t.{to}::text AS key, {exact} AS exact, bool_or({exact}) OVER asked AS any_exact "
        "FROM ({asked}) v JOIN {table} t ON {same} "
        "WINDOW asked AS (PARTITION BY v.text, v.scope)) found WHERE exact OR NOT any_exact GROUP BY text, scope"
    ).format(
        to=Identifier(lookup.to),
        exact=exact,
        texts=Literal(asked[name].to_list()),
        scopes=Literal(asked["_scope"].to_list()),
        table=table.identifier,
        same=same,
        asked=asked_as,
    )
    rows = connection.execute(select).fetchall()
    schema = {name: pl.String, "_scope": pl.String, "_key": pl.String, "_keys": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


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
