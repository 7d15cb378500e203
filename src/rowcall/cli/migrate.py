"""`rowcall migrate`: the tables of Rowcall and of the packs, up to date."""

from rich.markup import escape as literal

from rowcall.cli.screen import screen
from rowcall.config import settings_from
from rowcall.importer.registry import load_registry
from rowcall.store import migrate as store
from rowcall.store.db import reach_database
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
