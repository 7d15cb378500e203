"""What rows of a file change in the target, in columns by which others are found: before and after, side by side."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from psycopg import Connection
from psycopg.errors import ProgramLimitExceeded
from psycopg.sql import SQL, Composable, Composed, Identifier

from rowcall.store.layout import Layout
from rowcall.store.matching import new_value
from rowcall.store.staging import MATCH, STAGE
from rowcall.store.targets import Target

_NAME = "rowcall_changing"
_CHANGING = Identifier("pg_temp", _NAME)


def changing(target: Target) -> Target:
    """The temporary table, to be looked into like the target: some of its columns, and `rowcall_number`."""
    return replace(target, schema="pg_temp", name=_NAME)


def prepare(connection: Connection[Any], target: Target, columns: Sequence[str]) -> None:
    """Make the temporary table with these columns of the target: their types, their collations."""
    drop(connection)
    connection.execute(
        SQL("CREATE TEMPORARY TABLE {} AS SELECT NULL::bigint AS rowcall_number, {} FROM {} WITH NO DATA").format(
            Identifier(_NAME), SQL(", ").join(map(Identifier, columns)), target.identifier
        )
    )


def drop(connection: Connection[Any]) -> None:
    """Take the temporary table away."""
    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(_CHANGING))


def add(connection: Connection[Any], layout: Layout, columns: Sequence[str]) -> None:
    """Add what the staged rows, which are matched, create and change."""
    created = SQL(", ").join(_created(layout, name) for name in columns)
    connection.execute(
        SQL(
            "INSERT INTO {} SELECT s.rowcall_number, {} FROM {} s LEFT JOIN {} m ON m.number = s.rowcall_number "
            "WHERE m.number IS NULL OR {}"
        ).format(_CHANGING, created, STAGE, MATCH, SQL("true" if layout.on_match == "version" else "false"))
    )
    if layout.on_match == "update" and layout.compared:
        connection.execute(_changed(layout, columns))


def _changed(layout: Layout, columns: Sequence[str]) -> Composed:
    before = [SQL("t.{}").format(Identifier(name)) for name in columns]
    after = [
        new_value(layout, name) if name in layout.compared else old for name, old in zip(columns, before, strict=True)
    ]
    return SQL(
        "INSERT INTO {changing} SELECT s.rowcall_number, each.* FROM {match} m "
        "JOIN {stage} s ON s.rowcall_number = m.number "
        "JOIN {target} t ON t.ctid = m.tid AND t.tableoid = m.part "
        "CROSS JOIN LATERAL (VALUES ({before}), ({after})) each WHERE m.changed"
    ).format(
        changing=_CHANGING,
        match=MATCH,
        stage=STAGE,
        target=layout.target.identifier,
        before=SQL(", ").join(before),
        after=SQL(", ").join(after),
    )


def _created(layout: Layout, name: str) -> Composable:
    """The value of a row that is created; numbers are not drawn for this."""
    column = layout.target.columns[name]
    brought = name in layout.columns
    if column.default is None or column.sequence or (brought and not column.not_null):
        return SQL("s.{}").format(Identifier(name)) if brought else SQL("NULL")
    default = SQL("({})").format(SQL(column.default))  # pyright: ignore[reportArgumentType] (the catalog's own expression)
    return SQL("COALESCE(s.{}, {})").format(Identifier(name), default) if brought else default


def index(connection: Connection[Any], columns: Iterable[str]) -> bool:
    """Have rows found by these columns. Whether there are any."""
    row = connection.execute(SQL("SELECT EXISTS (SELECT FROM {})").format(_CHANGING)).fetchone()
    if not row or not row[0]:
        return False
    for name in columns:
        # an index takes no texts of several thousand letters; one by hash does, but not many rows with the same one
        with suppress(ProgramLimitExceeded), connection.transaction():
            connection.execute(SQL("CREATE INDEX ON {} ({})").format(_CHANGING, Identifier(name)))
    connection.execute(SQL("ANALYZE {}").format(_CHANGING))
    return True
