"""Brings the tables up to date: plain SQL files, by name, each in one transaction together with its own mark."""

from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Identifier

from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.grants import to_change_tables

MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x726F7763616C6C  # "rowcall", for pg_advisory_lock


def migrate(connection: Connection[Any], folder: Path = MIGRATIONS, *, table: str = "migration") -> list[str]:
    """Apply the migrations of a folder that the database lacks; their ids. `table`, in schema rowcall, remembers them.

    Nothing to do costs one query. Several processes may migrate at the same time: they take turns.
    """
    missing = pending(connection, folder, table=table)
    if not missing:
        return []
    try:
        return list(iter(lambda: _apply_next(connection, folder, table), None))
    except psycopg.errors.InsufficientPrivilege as error:
        told = f"The database lacks {_some(missing)}, and role {connection.info.user!r} may not change it"
        hint = f"Run `rowcall migrate` once as the tables' owner, then start again. Or: {to_change_tables(connection)};"
        raise Final(Code.MIGRATIONS_PENDING, f"{told}: {error.diag.message_primary}.", hint=hint) from error


def _some(ids: list[str]) -> str:
    return ", ".join(ids) if len(ids) < 5 else f"{len(ids)} migrations, {ids[0]} to {ids[-1]}"


def pending(connection: Connection[Any], folder: Path = MIGRATIONS, *, table: str = "migration") -> list[str]:
    """The migrations of a folder that the database lacks, in order."""
    return sorted({path.stem for path in folder.glob("*.sql")} - _done(connection, table))


def _done(connection: Connection[Any], table: str) -> set[str]:
    with connection.cursor(row_factory=scalar_row) as cursor:
        try:
            return set(cursor.execute(SQL("SELECT id FROM {}").format(_name(table))))
        except psycopg.errors.UndefinedTable:
            return set()


def _apply_next(connection: Connection[Any], folder: Path, table: str) -> str | None:
    """Apply the first migration that is missing; its id."""
    with connection.transaction():
        take_turns(connection)
        _make_table(connection, table)
        missing = pending(connection, folder, table=table)
        if not missing:
            return None
        _run(connection, missing[0], folder / f"{missing[0]}.sql")
        connection.execute(SQL("INSERT INTO {} VALUES (%s)").format(_name(table)), missing[:1])
        return missing[0]


def take_turns(connection: Connection[Any]) -> None:
    """Wait until no other process changes the tables; until the transaction ends, none will."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def _make_table(connection: Connection[Any], table: str) -> None:
    connection.execute("CREATE SCHEMA IF NOT EXISTS rowcall")
    columns = SQL("id text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now()")
    connection.execute(SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(_name(table), columns))


def _run(connection: Connection[Any], id_: str, path: Path) -> None:
    # The file as a whole: only PostgreSQL itself divides SQL into statements without mistakes.
    text = cast("LiteralString", path.read_text(encoding="utf-8"))  # our own file, as literal as code
    try:
        connection.execute(text)
    except (psycopg.OperationalError, psycopg.errors.InsufficientPrivilege):  # not the migration's own trouble
        raise
    except psycopg.Error as error:
        raise Final(
            Code.MIGRATION_FAILED,
            f"Migration {id_} failed and was rolled back: {error.diag.message_primary or error}.",
            hint=f"The database is as it was before it. See {path}.",
        ) from error


def _name(table: str) -> Identifier:
    return Identifier("rowcall", table)
