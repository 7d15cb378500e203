"""`rowcall migrate`: the tables of Rowcall and of the packs, up to date."""

from collections.abc import Generator
from contextlib import contextmanager

from rich.markup import escape as literal

from rowcall.cli.screen import screen
from rowcall.config import Settings, settings_from
from rowcall.importer.registry import load_registry
from rowcall.store import migrate as store
from rowcall.store.db import Database
from rowcall.store.packs import migrate_pack


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


@contextmanager
def reach_database(settings: Settings) -> Generator[Database]:
    """The database of the settings as it is, its tables perhaps not up to date."""
    if settings.database_url:
        yield Database(settings.database_url, settings.patience)
        return
    from rowcall.store.embedded import embedded_server  # needs flock and a wheel that a given address does without

    with embedded_server(settings.data_dir) as server:
        yield Database(server.url, settings.patience, server.ensure_running)
