"""`rowcall migrate`: the tables of Rowcall and of the packs, up to date."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection
from rich.markup import escape as literal

from rowcall.cli.screen import screen
from rowcall.config import Settings, settings_from
from rowcall.importer.registry import Pack, load_registry
from rowcall.store import migrate as store
from rowcall.store.db import Database


def migrate() -> None:
    """Apply the migrations that the database lacks, those of Rowcall itself and those of every pack."""
    registry = load_registry()
    with reach_database(settings_from()) as database, database.connect("migrate") as connection:
        done = {"rowcall": store.migrate(connection)}
        done |= {f"pack {pack.name}": migrate_pack(connection, pack) for pack in registry.packs if pack.migrations}
    console = screen()
    for whose, ids in done.items():
        told = f"applied {', '.join(ids)}" if ids else "[dim]up to date[/]"
        console.print(f"{literal(whose)}: {told}")


def migrate_pack(connection: Connection[Any], pack: Pack) -> list[str]:
    """Bring the tables of a pack up to date; what was applied."""
    return store.migrate(connection, pack.migrations, table=migration_table(pack)) if pack.migrations else []


def migration_table(pack: Pack) -> str:
    """The table, in schema rowcall, that remembers a pack's migrations."""
    return f"{pack.name}_migration"


@contextmanager
def reach_database(settings: Settings) -> Generator[Database]:
    """The database of the settings as it is, its tables perhaps not up to date."""
    if settings.database_url:
        yield Database(settings.database_url, settings.patience)
        return
    from rowcall.store.embedded import embedded_server  # needs flock and a wheel that a given address does without

    with embedded_server(settings.data_dir) as server:
        yield Database(server.url, settings.patience, server.ensure_running)
