"""The tables of packs, which come with migrations of their own."""

from typing import Any

from psycopg import Connection

from rowcall.importer.registry import Pack
from rowcall.store.migrate import migrate, pending


def migrate_pack(connection: Connection[Any], pack: Pack) -> list[str]:
    """Bring the tables of a pack up to date; what was applied."""
    return migrate(connection, pack.migrations, table=_table(pack)) if pack.migrations else []


def pending_of_pack(connection: Connection[Any], pack: Pack) -> list[str]:
    """The migrations of a pack that the database lacks."""
    return pending(connection, pack.migrations, table=_table(pack)) if pack.migrations else []


def _table(pack: Pack) -> str:
    """The table, in schema rowcall, that remembers a pack's migrations."""
    return f"{pack.name}_migration"
