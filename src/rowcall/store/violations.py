"""What the constraints of a target would refuse of the staged rows, asked of each constraint set-wise."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.store.images import imaged
from rowcall.store.layout import Layout
from rowcall.store.matching import found_by
from rowcall.store.staging import MATCH, STAGE
from rowcall.store.targets import Check, ForeignKey, UniqueIndex

Kind = Literal["unique", "foreign", "check", "missing"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A constraint of the target, with the rows that it would refuse."""

    numbers: list[int]
    kind: Kind
    constraint: str
    columns: list[str]
    table: str = ""


_MATCHED = SQL("EXISTS (SELECT FROM {} m WHERE m.number = s.rowcall_number)").format(MATCH)
_Asking = Callable[[Connection[Any], Composed], list[int]]


def violations(
    connection: Connection[Any], layout: Layout, full: Set[str] = frozenset(), *, sure: bool = False
) -> list[Violation]:
    """What the target's constraints would refuse, found set-wise; those that can't tell are left out, unless `sure`.

    Nor is one asked about values that a trigger may change before. The columns of `full` have a value in every row.
    """
    ask, meddled = _all_numbers if sure else _numbers, layout.target.meddled
    found = [
        *_missing(connection, layout, full),
        *(
            _foreign(connection, ask, layout, key)
            for key in layout.target.foreign
            if key.seen and set(key.columns) <= set(layout.columns) and meddled.isdisjoint(key.columns)
        ),
        *(
            _unique(connection, ask, layout, index)
            for index in layout.target.unique
            # of one that is checked in the end, rows may change places
            if index.immediate and set(index.columns) <= set(layout.staged) and meddled.isdisjoint(index.columns)
            if not _matched_by(layout, index)
        ),
        *(
            _check(connection, ask, layout, check)
            for check in layout.target.checks
            if check.columns and set(check.columns) <= set(layout.staged) and meddled.isdisjoint(check.columns)
        ),
    ]
    return [violation for violation in found if violation.numbers]


def may_be_asked(layout: Layout) -> list[Violation]:
    """The constraints over columns that rows bring, each as it would be told."""
    target, staged = layout.target, set(layout.staged)
    each = [
        *(Violation([], "foreign", key.name, key.columns, key.table_name) for key in target.foreign),
        *(Violation([], "unique", index.name, index.columns) for index in target.unique),
        *(Violation([], "check", check.name, check.columns) for check in target.checks if check.columns),
    ]
    return [one for one in each if set(one.columns) <= staged]


def _matched_by(layout: Layout, index: UniqueIndex) -> bool:
    """Whether every row was looked for by these columns: what was not found breaks no index over them."""
    return bool(layout.keys) and not layout.version and set(layout.keys[0]) == set(index.columns)


def _numbers(connection: Connection[Any], select: Composed) -> list[int]:
    """The rows that a query finds; none if it fails on their values, as a check may that divides by one of them."""
    try:
        with connection.transaction():
            return [number for (number,) in connection.execute(select)]
    except (psycopg.DataError, psycopg.errors.RaiseException):
        return []


def _all_numbers(connection: Connection[Any], select: Composed) -> list[int]:
    return [number for (number,) in connection.execute(select)]


def _written(layout: Layout, columns: list[str]) -> Composed:
    """Whether a staged row will be written with its values of these columns: as a new row, or over its match."""
    return SQL("NOT EXISTS (SELECT FROM {} m WHERE m.number = s.rowcall_number{})").format(
        MATCH, SQL(" AND NOT m.changed" if _overwritten(layout, columns) else "")
    )


def _overwritten(layout: Layout, columns: list[str]) -> bool:
    """Whether a match that changes has the staged row's values of these columns then."""
    known = {*layout.compared, *(layout.keys[0] if layout.keys else ())}
    return bool(layout.version) or set(columns) <= known


def _missing(connection: Connection[Any], layout: Layout, full: Set[str]) -> list[Violation]:
    """New rows without values that they need. Where those that are there need them, too, that was seen to before."""
    needed = [column.name for column in layout.target.columns.values() if column.needed and not column.generated]
    asked = [name for name in needed if name not in {*full, *layout.target.meddled, layout.version}]
    if not asked:
        return []
    lacking = [SQL("s.{} IS NULL").format(Identifier(name)) if name in layout.staged else SQL("true") for name in asked]
    named = [
        SQL("CASE WHEN {} THEN {} END").format(lacks, Value(name)) for lacks, name in zip(lacking, asked, strict=True)
    ]
    select = SQL(
        "SELECT array_agg(s.rowcall_number), array_remove(ARRAY[{}]::text[], NULL) AS lacking FROM {} s "
        "WHERE NOT {} AND ({}) GROUP BY lacking"
    ).format(SQL(", ").join(named), STAGE, _MATCHED, SQL(" OR ").join(lacking))
    return [Violation(numbers, "missing", "", columns) for numbers, columns in connection.execute(select)]


def _foreign(connection: Connection[Any], ask: _Asking, layout: Layout, key: ForeignKey) -> Violation:
    table = Identifier(key.table_schema, key.table_name)
    pairs = zip(key.table_columns, key.columns, strict=True)
    same = SQL(" AND ").join(SQL("r.{} = s.{}").format(Identifier(one), Identifier(other)) for one, other in pairs)
    there = SQL(" AND ").join(SQL("s.{} IS NOT NULL").format(Identifier(name)) for name in key.columns)
    select = SQL(
        "SELECT s.rowcall_number FROM {} s WHERE {} AND NOT EXISTS (SELECT FROM {} r WHERE {} OFFSET 0) AND {}"
    ).format(STAGE, there, table, same, _written(layout, key.columns))
    if (key.table_schema, key.table_name) == (layout.target.schema, layout.target.name):
        numbers = _without_companion(connection, ask, layout, key, select)
    else:
        numbers = ask(connection, select)
    return Violation(numbers, "foreign", key.name, key.columns, key.table_name)


def _without_companion(
    connection: Connection[Any], ask: _Asking, layout: Layout, key: ForeignKey, select: Composed
) -> list[int]:
    """Of rows that refer to none of their table: those that refer to none that comes with them either."""
    if not set(key.table_columns) <= set(layout.staged):
        return ask(connection, select)
    pairs = list(zip(key.table_columns, key.columns, strict=True))
    same = SQL(" AND ").join(SQL("x.{} = s.{}").format(Identifier(one), Identifier(other)) for one, other in pairs)
    lost: list[int] = []
    while True:
        # who refers to a row that doesn't get in doesn't get in
        found = ask(
            connection,
            SQL(
                "SELECT l.rowcall_number FROM ({select}) l JOIN {stage} s ON s.rowcall_number = l.rowcall_number "
                "WHERE l.rowcall_number <> ALL ({lost}::bigint[]) AND NOT EXISTS ("
                "SELECT FROM {stage} x WHERE {same} AND x.rowcall_number <> ALL ({lost}::bigint[]))"
            ).format(select=select, stage=STAGE, same=same, lost=Value(lost)),
        )
        if not found:
            return lost
        lost += found


def _unique(connection: Connection[Any], ask: _Asking, layout: Layout, index: UniqueIndex) -> Violation:
    select = SQL(
        "SELECT s.rowcall_number FROM {stage} s LEFT JOIN {match} m ON m.number = s.rowcall_number "
        "CROSS JOIN {found} WHERE {written} AND (m.number IS NULL OR (m.tid, m.part) <> (t.ctid, t.tableoid))"
    ).format(stage=STAGE, match=MATCH, found=found_by(layout, index.columns), written=_comes(layout, index))
    return Violation(ask(connection, select), "unique", index.name, index.columns)


def _comes(layout: Layout, index: UniqueIndex) -> Composed:
    """Whether a staged row, with its match if any, brings values to an index that its match has not."""
    if not _overwritten(layout, index.columns):
        return SQL("m.number IS NULL").format()
    brings: list[Composable] = [SQL("true")]
    if layout.on_match == "update":
        columns = [layout.target.columns[name] for name in index.columns if name in layout.compared]
        brings = [
            SQL("m.before -> {} IS DISTINCT FROM {}").format(Value(one.name), imaged(one, "s")) for one in columns
        ]
    return SQL("(m.number IS NULL OR m.changed AND ({}))").format(SQL(" OR ").join([SQL("false"), *brings]))


def _check(connection: Connection[Any], ask: _Asking, layout: Layout, check: Check) -> Violation:
    # where a blank leaves the value that is there, PostgreSQL alone can judge
    kept = [name for name in check.columns if layout.target.columns[name].not_null]
    blank = SQL(" OR ").join([SQL("false"), *(SQL("s.{} IS NULL").format(Identifier(name)) for name in kept)])
    select = SQL("SELECT s.rowcall_number FROM {} s WHERE NOT ({}) AND {} AND NOT (({}) AND {})").format(
        STAGE,
        SQL(check.expression),  # pyright: ignore[reportArgumentType] (the catalog's own expression)
        _written(layout, check.columns),
        blank,
        _MATCHED,
    )
    return Violation(ask(connection, select), "check", check.name, check.columns)
