"""The target's rows that staged rows mean, and whether they would change them."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.store.images import image_of
from rowcall.store.layout import Layout
from rowcall.store.staging import MATCH, STAGE, load


def match(
    connection: Connection[Any], layout: Layout, full: Set[str] = frozenset(), *, only_changes: bool = False
) -> None:
    """Find the target's row for each staged one, and whether it would change.

    The columns of `full` have a value in every row: where that is a whole key, none is looked for by a later one.
    `only_changes`: nobody will ask for the keys of rows that stay as they are.
    """
    for place, key in enumerate(layout.keys):
        connection.execute(_match_statement(layout, key, layout.keys[:place], only_changes=only_changes))
        if full >= set(key):
            return


def matched_meanwhile(connection: Connection[Any], layout: Layout, numbers: Sequence[Sequence[int]]) -> int:
    """How many staged rows had no match and have one by now: somebody else created it.

    `numbers` are the rows in question, for each key those that are matched by it.
    """
    count = 0
    for key, asked in zip(layout.keys, numbers, strict=True):
        select = SQL(
            "SELECT count(*) FROM unnest({numbers}::bigint[]) AS asked (number) "
            "JOIN {stage} s ON s.rowcall_number = asked.number "
            "CROSS JOIN {found} WHERE NOT EXISTS (SELECT FROM {match} m WHERE m.number = s.rowcall_number) "
            # what another staged row matched was there before
            "AND {unmatched}"
        ).format(
            numbers=Value(list(asked)),
            stage=STAGE,
            found=found_by(layout, key),
            match=MATCH,
            unmatched=_UNMATCHED,
        )
        row = connection.execute(select).fetchone()
        count += row[0] if row else 0
    return count


def keys_by(connection: Connection[Any], layout: Layout, rows: pl.DataFrame) -> pl.DataFrame:
    """The first key, as texts, of the target's rows that have the values of the second: by `rowcall_number`."""
    key, natural = layout.keys
    values = [SQL("t.{}::text").format(Identifier(name)) for name in key]
    select = SQL("SELECT DISTINCT s.rowcall_number, {} FROM {} s CROSS JOIN {}").format(
        SQL(", ").join(values), STAGE, found_by(layout, natural, latest=layout.version)
    )
    with connection.transaction():
        load(connection, layout, rows)
        found = connection.execute(select).fetchall()
    return pl.DataFrame(found, schema={"rowcall_number": pl.Int64, **dict.fromkeys(key, pl.String)}, orient="row")


@dataclass(frozen=True, slots=True)
class Pair:
    """A value of a staged row beside that of the target's row with the same key."""

    number: int
    key: list[str]
    column: str
    found: str
    expected: str
    equal: bool
    """As PostgreSQL sees it."""


def pairs_by(
    connection: Connection[Any], layout: Layout, key: tuple[str, ...], columns: Sequence[str], rows: pl.DataFrame
) -> list[Pair]:
    """The values of rows beside those of the target's rows with the same key, where both have one."""
    each = SQL(" UNION ALL ").join(
        SQL(
            "SELECT s.rowcall_number, {key}, {name}, s.{column}::text, t.{column}::text, "
            "s.{column}{as_} = t.{column}{as_} "
            "FROM {stage} s CROSS JOIN {found} WHERE s.{column} IS NOT NULL AND t.{column} IS NOT NULL"
        ).format(
            key=key_of(layout, "t"),
            name=Value(column),
            column=Identifier(column),
            as_=_comparable(layout, column),
            stage=STAGE,
            found=found_by(layout, key, latest=layout.version),
        )
        for column in columns
    )
    with connection.transaction():
        load(connection, layout, rows)
        return [Pair(*found) for found in connection.execute(each)]


_NOTHING_MORE = SQL("")
_UNMATCHED = SQL("NOT EXISTS (SELECT FROM {} m WHERE m.tid = t.ctid AND m.part = t.tableoid)").format(MATCH)


def found_by(
    layout: Layout, key: Sequence[str], *, latest: str | None = None, telling: Composable = _NOTHING_MORE
) -> Composed:
    """The rows `t` of the target that have a staged row's values in unique columns; the one with the latest version.

    One look-up for each row: left to itself, the planner would rather read the whole target for every batch.
    `telling`: what else to tell of the two.
    """
    same = SQL(" AND ").join(
        layout.target.columns[name].equal(Identifier("t", name), Identifier("s", name)) for name in key
    )
    which = SQL("ORDER BY t.{} DESC LIMIT 1").format(Identifier(latest)) if latest else SQL("OFFSET 0")
    # the row as one value by a cast: a column may be called `t`
    return SQL(
        "LATERAL (SELECT t.*, CAST(t.* AS {}) AS rowcall_whole, t.ctid, t.xmin, t.tableoid{} FROM {} t WHERE {} {}) t"
    ).format(layout.target.identifier, telling, layout.target.own_rows, same, which)


def _without(keys: tuple[tuple[str, ...], ...]) -> Composed:
    """Whether a staged row lacks a value of each of these keys."""
    lacking = [
        SQL("({})").format(SQL(" OR ").join(SQL("s.{} IS NULL").format(Identifier(name)) for name in key))
        for key in keys
    ]
    return SQL(" AND ").join([SQL("true"), *lacking])


def _match_statement(
    layout: Layout, key: tuple[str, ...], earlier: tuple[tuple[str, ...], ...], *, only_changes: bool
) -> Composed:
    left = [_without(earlier)]
    if earlier and layout.overwrites:  # a row of the target is written to once, but left as it is any number of times
        left.append(_UNMATCHED)
    changed = SQL(", {} AS rowcall_changed").format(_changed(layout) if layout.overwrites else SQL("false"))
    found = key_of(layout, "t")
    if only_changes and layout.overwrites:
        found = SQL("CASE WHEN t.rowcall_changed THEN {} END").format(found)
    return SQL(
        "INSERT INTO {match} SELECT s.rowcall_number, {key}, t.ctid, t.tableoid, t.xmin, {version}, t.rowcall_changed, "
        "CASE WHEN t.rowcall_changed THEN {image} END FROM {stage} s CROSS JOIN {found} WHERE {only}"
    ).format(
        match=MATCH,
        key=found,
        version=SQL("t.{}").format(Identifier(layout.version)) if layout.version else SQL("NULL"),
        image=image_of(layout.target, SQL("t.rowcall_whole")),
        stage=STAGE,
        found=found_by(layout, key, latest=layout.version, telling=changed),
        only=SQL(" AND ").join(left),
    )


def _changed(layout: Layout) -> Composable:
    """Whether a staged row says something new about its match."""
    pairs = [
        SQL("t.{0}{2} IS DISTINCT FROM {1}{2}").format(
            Identifier(name), new_value(layout, name), _comparable(layout, name)
        )
        for name in layout.compared
    ]
    return SQL("({})").format(SQL(" OR ").join(pairs)) if pairs else SQL("false")


def _comparable(layout: Layout, name: str) -> SQL:
    """What has a column tell all that differs: types may have no equality, or one that takes what differs for equal."""
    return SQL("" if layout.target.columns[name].bitwise else '::text COLLATE "C"')


def new_value(layout: Layout, name: str) -> Composable:
    """A row's new value: where there must be one and none is given, the old one stays."""
    keep = "COALESCE(s.{0}, t.{0})" if layout.target.columns[name].not_null else "s.{0}"
    return SQL(keep).format(Identifier(name))


def key_of(layout: Layout, alias: Literal["s", "t"]) -> Composable:
    """The target's key as an array of texts."""
    parts = [SQL(alias + ".{}::text").format(Identifier(name)) for name in layout.target.primary_key]
    return SQL("ARRAY[{}]::text[]").format(SQL(", ").join(parts)) if parts else SQL("NULL::text[]")
