"""Look-ups: the texts of a column to keys of another table, one query per column and batch."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from psycopg import Connection
from psycopg.sql import SQL, Composable, Identifier

from rowcall.importer import Importer, Lookup
from rowcall.model import Code
from rowcall.store.targets import Target, describe

_FITS = {
    "uuid": r"^\{?[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}\}?$",
    "int2": r"^[+-]?\d{1,4}$",
    "int4": r"^[+-]?\d{1,9}$",
    "int8": r"^[+-]?\d{1,18}$",
    "numeric": r"^[+-]?\d{1,100}$",
}
"""Texts that can be cast to a type without an error; of other types the column's text is compared."""
_TEXTS = frozenset({"text", "varchar", "bpchar", "citext", "name"})
ISSUES = {"number": pl.Int64, "code": pl.String, "field": pl.String, "value": pl.String, "message": pl.String}


def lookups_of(importer: type[Importer], names: Sequence[str]) -> dict[str, Lookup]:
    """The look-up fields among these."""
    return {name: field for name in names if isinstance(field := importer.fields[name], Lookup)}


def resolve(
    connection: Connection[Any], lookups: dict[str, Lookup], rows: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with keys in place of texts, and an issue for each text that has no key or more than one."""
    issues: list[pl.DataFrame] = []
    for name, lookup in lookups.items():
        rows, found = _resolved(connection, name, lookup, rows)
        issues.append(found)
    return rows, pl.concat(issues) if issues else pl.DataFrame(schema=ISSUES)


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
        fits = _FITS.get(table.columns[by].base)
        if fits:
            left = left.filter(pl.col(name).str.contains(fits))
        if left.height:
            found = pl.concat([found, _looked_up(connection, table, lookup, by, left, name)])
    return found


def _looked_up(
    connection: Connection[Any], table: Target, lookup: Lookup, by: str, asked: pl.DataFrame, name: str
) -> pl.DataFrame:
    column = table.columns[by]
    same: Composable = SQL("t.{} = v.text::{}").format(Identifier(by), SQL(column.base))  # pyright: ignore[reportArgumentType] (a name from the catalog)
    if column.base in _TEXTS:
        same = SQL("t.{} IN (v.text, lower(v.text))").format(Identifier(by))
    elif column.base not in _FITS:
        same = SQL("t.{}::text = v.text").format(Identifier(by))
    if lookup.within:
        same = SQL("{} AND t.{}::text = v.scope").format(same, Identifier(lookup.within))
    select = SQL(
        "SELECT v.text, v.scope, min(t.{to}::text), count(DISTINCT t.{to}) "
        "FROM unnest(%s::text[], %s::text[]) AS v (text, scope) JOIN {table} t ON {same} GROUP BY v.text, v.scope"
    ).format(to=Identifier(lookup.to), table=table.identifier, same=same)
    rows = connection.execute(select, [asked[name].to_list(), asked["_scope"].to_list()]).fetchall()
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
