"""Brings the tables up to date: plain SQL files, in order, each in one transaction together with its own mark.

yoyo reads the files and puts them in order. It doesn't apply them, because it marks a migration on another connection
than it ran on: a kill in between would leave one that is done, not marked, and can't be done again. For the same
reason its lock, a row in a table, is replaced by one that ends with the session.
"""

from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Identifier

from rowcall.errors import Final
from rowcall.model import Code

MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x726F7763616C6C  # "rowcall", for pg_advisory_lock


def migrate(connection: Connection[Any], folder: Path = MIGRATIONS, *, table: str = "migration") -> list[str]:
    """Apply the migrations of a folder that the database lacks; their ids. `table`, in schema rowcall, remembers them.

    Nothing to do costs one query. Several processes may migrate at the same time: they take turns.
    """
    if not pending(connection, folder, table=table):
        return []
    ordered = _in_order(folder)
    return list(iter(lambda: _apply_next(connection, ordered, table), None))


def pending(connection: Connection[Any], folder: Path = MIGRATIONS, *, table: str = "migration") -> list[str]:
    """The migrations of a folder that the database lacks."""
    names = {path.stem for path in folder.glob("*.sql") if not path.name.endswith(".rollback.sql")}
    return sorted(names - _done(connection, table))


def _done(connection: Connection[Any], table: str) -> set[str]:
    with connection.cursor(row_factory=scalar_row) as cursor:
        try:
            return set(cursor.execute(SQL("SELECT id FROM {}").format(_name(table))))
        except psycopg.errors.UndefinedTable:
            return set()


def _apply_next(connection: Connection[Any], ordered: list[tuple[str, Path]], table: str) -> str | None:
    """Apply the first migration that is missing; its id."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        _make_table(connection, table)
        done = _done(connection, table)
        for id_, path in ordered:
            if id_ not in done:
                _run(connection, id_, path)
                connection.execute(SQL("INSERT INTO {} VALUES (%s)").format(_name(table)), [id_])
                return id_
        return None


def _make_table(connection: Connection[Any], table: str) -> None:
    connection.execute("CREATE SCHEMA IF NOT EXISTS rowcall")
    columns = SQL("id text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now()")
    connection.execute(SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(_name(table), columns))


def _in_order(folder: Path) -> list[tuple[str, Path]]:
    """The folder's migrations, those that others depend on first."""
    from yoyo import migrations  # slow to import, and rarely needed

    found = migrations.read_migrations(str(folder))  # pyright: ignore[reportUnknownMemberType] (untyped)
    ordered: list[Any] = list(migrations.topological_sort(found))
    return [(migration.id, Path(migration.path)) for migration in ordered]


def _run(connection: Connection[Any], id_: str, path: Path) -> None:
    # The file as a whole: only PostgreSQL itself divides SQL into statements without mistakes.
    text = cast("LiteralString", path.read_text(encoding="utf-8"))  # our own file, as literal as code
    try:
        connection.execute(text)
    except psycopg.OperationalError:  # the server's trouble, not the migration's
        raise
    except psycopg.Error as error:
        raise Final(
            Code.MIGRATION_FAILED,
            f"Migration {id_} failed and was rolled back: {error.diag.message_primary or error}.",
            hint=f"The database is as it was before it. See {path}.",
        ) from error


def _name(table: str) -> Identifier:
    return Identifier("rowcall", table)
