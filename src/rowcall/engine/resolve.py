"""Look-ups: the texts of a column to keys of another table, one query per column and batch.

A text that nothing matches is what its look-up says of such texts: an issue, nothing, a row to skip, one to create, or
a question. What people decided comes before all of that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from rowcall.engine.values.answers import QUESTIONS, Answers
from rowcall.importer import Lookup, folded_values
from rowcall.model import Code
from rowcall.store.copying import text_array
from rowcall.store.targets import Table, find_table

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
NO_ISSUES = pl.DataFrame(schema=ISSUES)
NO_QUESTIONS = pl.DataFrame(schema=QUESTIONS)
TO_CREATE = "\x01rowcall creates\x1f"
"""Stands in place of the key of a row that is yet to be created, before its scope, `\x1f` and its text."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Rows with keys in place of texts."""

    rows: pl.DataFrame
    issues: pl.DataFrame
    """An issue for each text that has no key or more than one."""
    skipped: pl.DataFrame
    """The same, of rows that are to be skipped for it."""
    questions: pl.DataFrame
    """Texts that somebody has to be asked about."""
    late: frozenset[int] = frozenset()
    """The rows with texts of which somebody said something since the plan of the job was agreed to."""


def resolve(
    connection: Connection[Any], lookups: Mapping[str, Lookup], rows: pl.DataFrame, answers: Answers
) -> Resolved:
    """The rows with keys in place of texts, and what is to be said of those that have none."""
    found: list[Resolved] = []
    for name, lookup in _scopes_first(lookups).items():
        found.append(_resolved(connection, name, lookup, rows, answers))
        rows = found[-1].rows
    return together(rows, found)


def together(rows: pl.DataFrame, found: Sequence[Resolved]) -> Resolved:
    """Several fields of the same rows."""
    return Resolved(
        rows,
        pl.concat([NO_ISSUES, *(one.issues for one in found)]),
        pl.concat([NO_ISSUES, *(one.skipped for one in found)]),
        pl.concat([NO_QUESTIONS, *(one.questions for one in found)]),
        frozenset[int]().union(*(one.late for one in found)),
    )


def _scopes_first(lookups: Mapping[str, Lookup]) -> dict[str, Lookup]:
    """Those that others are looked up within come before them: they are compared by key."""
    ordered: dict[str, Lookup] = {}
    for name in lookups:
        chain = [name]
        while (scope := lookups[chain[-1]].within or "") in lookups and scope not in chain:
            chain.append(scope)
        ordered |= {one: lookups[one] for one in reversed(chain)}
    return ordered


def with_scopes(lookups: Mapping[str, Lookup], names: set[str]) -> set[str]:
    """The fields, and all fields that they are looked up within."""
    scopes = {scope for name in names if name in lookups and (scope := lookups[name].within)}
    return names if scopes <= names else with_scopes(lookups, names | scopes)


def _resolved(connection: Connection[Any], name: str, lookup: Lookup, rows: pl.DataFrame, answers: Answers) -> Resolved:
    rows = asking(name, lookup, rows)
    asked = rows.select(name, "_scope").drop_nulls(name).unique()
    said = _still_so(connection, lookup, answers.of(connection, name, asked.rename({name: "value", "_scope": "scope"})))
    said = said.rename({"value": name, "scope": "_scope", "action": "_action", "target": "_target", "late": "_late"})
    if said.height:
        asked = asked.join(said, on=[name, "_scope"], how="anti")
    keys = keys_of(connection, lookup, asked, name)
    joined = rows.join(keys, on=[name, "_scope"], how="left", maintain_order="left")
    if not said.height and lookup.on_missing == "fail":
        key = pl.when(pl.col("_keys") == 1).then(pl.col("_key")).alias(name)
        bad = joined.filter(_is_open(name))
        return Resolved(joined.with_columns(key).drop(_BESIDE), _issues(bad, name, lookup), NO_ISSUES, NO_QUESTIONS)
    joined = joined.join(said, on=[name, "_scope"], how="left", maintain_order="left")
    return _by_policy(joined, name, lookup)


_BESIDE = ["_key", "_keys", "_exact", "_scope"]


def _is_open(name: str) -> pl.Expr:
    """Where a text has no key, or more than one."""
    return pl.col(name).is_not_null() & (pl.col("_keys").fill_null(0) != 1)


def _by_policy(joined: pl.DataFrame, name: str, lookup: Lookup) -> Resolved:
    """The rows as people decided, and else as the look-up has it."""
    action, policy = pl.col("_action"), lookup.on_missing
    is_open = _is_open(name) & action.is_null()
    is_missing = is_open & pl.col("_keys").is_null()
    creates = (action == "create").fill_null(False) | (is_missing & pl.lit(policy == "create"))
    within, named = pl.col("_scope").str.replace_all("\x1f", "\x1e"), pl.coalesce("_target", name)
    key = (
        pl.when(pl.col("_keys") == 1)
        .then(pl.col("_key"))
        .when(action == "use")
        .then(pl.col("_target"))
        .when(creates)
        .then(pl.concat_str(pl.lit(TO_CREATE), within, pl.lit("\x1f"), named))
    )
    left_out = joined.filter(action == "skip")
    skipped = [left_out.select("number", *left_out_issue(name))] if left_out.height else []
    open_, questions = joined.filter(is_open), NO_QUESTIONS
    if policy == "ask":
        questions = open_.select("number", pl.lit(name).alias("field"), pl.col("_scope").alias("scope"), value=name)
        open_ = open_.clear()
    elif policy == "skip":
        skipped.append(_issues(open_.filter(pl.col("_keys").is_null()), name, lookup))
    if policy in ("skip", "empty", "create"):
        open_ = open_.filter(pl.col("_keys").is_not_null())
    late = frozenset(joined.filter("_late")["number"])
    rows = joined.with_columns(key.alias(name)).drop(*_BESIDE, "_action", "_target", "_late")
    return Resolved(rows, _issues(open_, name, lookup), pl.concat([NO_ISSUES, *skipped]), questions, late)


def left_out_issue(name: str) -> tuple[pl.Expr, ...]:
    """The columns of an issue that tells why a row is skipped."""
    told = pl.format("Rows with {} are left out, as was decided.", _quoted(name))
    return (
        pl.lit(Code.VALUE_LEFT_OUT.value).alias("code"),
        pl.lit(name).alias("field"),
        pl.col(name).str.head(200).alias("value"),
        told.alias("message"),
    )


def _still_so(connection: Connection[Any], lookup: Lookup, said: pl.DataFrame) -> pl.DataFrame:
    """What was decided, but for values that were to stand for rows that are gone."""
    used = said.filter(pl.col("action") == "use")
    if not used.height:
        return said
    there = keys_there(connection, lookup, used["target"].unique().to_list())
    return said.filter((pl.col("action") != "use") | pl.col("target").is_in(there))


def keys_there(connection: Connection[Any], lookup: Lookup, keys: Sequence[str]) -> list[str]:
    """Those of the keys that there are rows for."""
    table, key = find_table(connection, lookup.table), Identifier(lookup.to)
    where = having_keys(table, lookup, keys)
    found = connection.execute(SQL("SELECT {}::text FROM {} WHERE {}").format(key, table.identifier, where))
    return [key for (key,) in found]


def having_keys(table: Table, lookup: Lookup, keys: Sequence[str]) -> Composed:
    """The condition for rows with these keys, such that an index serves."""
    base = table.columns[lookup.to].base
    given = pl.Series("key", keys, dtype=pl.String).to_frame()
    fitting = text_array(given.filter(_castable(pl.col("key"), base))["key"])
    if compared_as_stored(base):
        of_type = SQL(base)  # pyright: ignore[reportArgumentType] (a name from the catalog)
        return SQL("{} = ANY ({}::text[]::{}[])").format(Identifier(lookup.to), Literal(fitting), of_type)
    return SQL("{}::text = ANY ({}::text[])").format(Identifier(lookup.to), Literal(fitting))


def asking(name: str, lookup: Lookup, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with what is asked for: the text, and the `_scope` that it is looked up within."""
    scope = pl.col(lookup.within).str.strip_chars() if lookup.within in rows.columns else pl.lit(None, pl.String)
    text = lookup.clean() if name in rows.columns else pl.lit(None, pl.String)
    if (default := lookup.default_text()) is not None:
        text = text.fill_null(pl.lit(default))
    return rows.with_columns(text.alias(name), scope.fill_null("").alias("_scope"))


def keys_of(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame, name: str) -> pl.DataFrame:
    """Text to key for what was found, as it is written (`_exact`), in small letters or by a synonym."""
    found = pl.DataFrame(schema=_found_as(name))
    if not asked.height:
        return found
    found = _by_columns(connection, lookup, asked, name)
    if not lookup.synonyms or found.height == asked.height:
        return found
    meant = synonyms_in(lookup, asked.join(found, on=[name, "_scope"], how="anti"), name)
    if not meant.height:
        return found
    others = _by_columns(connection, lookup, meant.select(pl.col("_meant").alias(name), "_scope").unique(), name)
    others = others.rename({name: "_meant"})
    return pl.concat([found, meant.join(others, on=["_meant", "_scope"]).select(list(_found_as(name)))])


def synonyms_in(lookup: Lookup, asked: pl.DataFrame, name: str) -> pl.DataFrame:
    """Those of the texts that are synonyms, with the text that is `_meant`."""
    words = pl.DataFrame(
        {"_folded": list(lookup.synonyms), "_meant": list(lookup.synonyms.values())},
        schema={"_folded": pl.String, "_meant": pl.String},
    ).with_columns(folded_values(pl.col("_folded")))
    return asked.with_columns(folded_values(pl.col(name)).alias("_folded")).join(words.unique("_folded"), on="_folded")


def _by_columns(connection: Connection[Any], lookup: Lookup, asked: pl.DataFrame, name: str) -> pl.DataFrame:
    """Text to key for what was found; a column that is looked by later is only asked what the earlier left open."""
    found = pl.DataFrame(schema=_found_as(name))
    table = find_table(connection, lookup.table)
    for by in lookup.by:
        left = asked.join(found, on=[name, "_scope"], how="anti")
        left = left.filter(_castable(pl.col(name), table.columns[by].base))
        if left.height:
            candidates = _candidates(table, lookup, by, left, name, key=lookup.to)
            found = pl.concat([found, _asked(connection, _EXACT_FIRST.format(candidates), name)])
    return found


def may_find(connection: Connection[Any], table: Table, name: str, lookup: Lookup, rows: pl.DataFrame) -> pl.DataFrame:
    """What texts could come to find once the rows of a table count: by whichever column, exactly or in small letters.

    `number`, and of those rows the `rowcall_number` of one as `_key`; `_keys` is above 1 if there are others.
    """
    rows = asking(name, lookup, rows)
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


def _candidates(table: Table, lookup: Lookup, by: str, asked: pl.DataFrame, name: str, *, key: str) -> Composed:
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
        texts=Literal(text_array(asked[name])),
        scopes=Literal(text_array(asked["_scope"])),
        table=table.identifier,
        same=same,
        asked=asked_as,
    )


_EXACT_FIRST = SQL(
    "SELECT text, scope, min(key), count(DISTINCT key), bool_or(exact) FROM ("
    "SELECT *, bool_or(exact) OVER (PARTITION BY text, scope) AS any_exact FROM ({}) candidates) found "
    "WHERE exact OR NOT any_exact GROUP BY text, scope"
)
_WHICHEVER = SQL(
    "SELECT text, scope, min(key), count(DISTINCT key), bool_or(exact) FROM ({}) candidates GROUP BY text, scope"
)


def _found_as(name: str) -> dict[str, Any]:
    return {name: pl.String, "_scope": pl.String, "_key": pl.String, "_keys": pl.Int64, "_exact": pl.Boolean}


def _asked(connection: Connection[Any], select: Composed, name: str) -> pl.DataFrame:
    return pl.DataFrame(connection.execute(select).fetchall(), schema=_found_as(name), orient="row")


def _issues(bad: pl.DataFrame, name: str, lookup: Lookup) -> pl.DataFrame:
    by = " or ".join(lookup.by)
    several = pl.col("_keys").fill_null(0) > 1
    where = pl.format("{} (by {}){}", pl.lit(lookup.table), pl.lit(by), _told_scope(lookup))
    none = pl.format("{} is not found in {}.", _quoted(name), where)
    many = pl.format("{} fits {} rows of {}.", _quoted(name), pl.col("_keys"), where)
    return bad.select(
        "number",
        pl.when(several).then(pl.lit(Code.NOT_UNIQUE.value)).otherwise(pl.lit(Code.NOT_FOUND.value)).alias("code"),
        pl.lit(name).alias("field"),
        pl.col(name).str.head(200).alias("value"),
        pl.when(several).then(many).otherwise(none).alias("message"),
    )


def _told_scope(lookup: Lookup) -> pl.Expr:
    """Within what it was looked for: a key, or the text of what is yet to be created."""
    if not lookup.within:
        return pl.lit("")
    within = pl.format(" within {} = {}", pl.lit(lookup.within), pl.col("_scope").str.split("\x1f").list.last())
    return pl.when(pl.col("_scope") == "").then(pl.lit(f" as {lookup.within} has no value")).otherwise(within)


def _quoted(name: str) -> pl.Expr:
    return pl.concat_str(pl.lit("'"), pl.col(name).str.head(200), pl.lit("'"))
