"""The tables of packs, which come with migrations of their own."""

from pathlib import Path
from typing import Any

from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Identifier

from rowcall.importer.registry import Pack
from rowcall.store.migrate import MIGRATIONS, migrate


def migrate_pack(connection: Connection[Any], pack: Pack) -> list[str]:
    """Bring the tables of a pack up to date; what was applied."""
    return migrate(connection, pack.migrations, table=_table(pack)) if pack.migrations else []


def pending_of_pack(connection: Connection[Any], pack: Pack) -> list[str]:
    """The migrations of a pack that the database lacks."""
    return _pending(connection, pack.migrations, _table(pack)) if pack.migrations else []


def pending_of_rowcall(connection: Connection[Any]) -> list[str]:
    """The migrations of Rowcall itself that the database lacks."""
    return _pending(connection, MIGRATIONS, "migration")


def _table(pack: Pack) -> str:
    """The table, in schema rowcall, that remembers a pack's migrations."""
    return f"{pack.name}_migration"


def _pending(connection: Connection[Any], folder: Path, table: str) -> list[str]:
    names = {path.stem for path in folder.glob("*.sql") if not path.name.endswith(".rollback.sql")}
    name = Identifier("rowcall", table)
    there = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [name.as_string()]).fetchone()
    if not there or not there[0]:
        return sorted(names)
    with connection.cursor(row_factory=scalar_row) as cursor:
        return sorted(names - set(cursor.execute(SQL("SELECT id FROM {}").format(name))))
