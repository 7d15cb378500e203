"""`rowcall migrate`: the tables of Rowcall and of the packs, up to date."""

import sys
from typing import Annotated, Any

import typer
from psycopg import Connection
from rich.markup import escape as literal

from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen
from rowcall.config import settings_from
from rowcall.errors import Final
from rowcall.importer.registry import load_registry
from rowcall.store import migrate as store
from rowcall.store.db import reach_database
from rowcall.store.files.filestore import file_store
from rowcall.store.files.marks import adopt_store
from rowcall.store.grants import require_grants
from rowcall.store.packs import migrate_pack
from rowcall.store.tenancy import open_to_api
from rowcall.worker.queue import migrate_queue


def migrate(
    new_file_store: Annotated[
        bool, typer.Option("--new-file-store", help="From now on the files are in the file store of the settings.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Apply the migrations that the database lacks, those of Rowcall itself and those of every pack.

    Also what `rowcall serve` needs: the tables of the queue, and the role that requests run under.
    """
    registry, settings = load_registry(), settings_from()
    with reach_database(settings) as database, database.connect("migrate") as connection:
        require_grants(connection, "rowcall")
        done = {"rowcall": store.migrate(connection)}
        done |= {f"pack {pack.name}": migrate_pack(connection, pack) for pack in registry.packs if pack.migrations}
        queue = migrate_queue(connection)
        lacking = _lacking(connection)
        if new_file_store:
            adopt_store(connection, file_store(settings))
    if as_json:
        where = file_store(settings).where
        sys.stdout.write(document({"applied": done | {"queue": queue}, "apiRole": lacking, "fileStore": where}) + "\n")
        return
    console = screen()
    for whose, ids in done.items():
        told = f"applied {', '.join(ids)}" if ids else "[dim]up to date[/]"
        console.print(f"{literal(whose)}: {told}")
    console.print(f"queue: applied {len(queue)} migrations" if queue else "queue: [dim]up to date[/]")
    role = f"[yellow]not ready, which only `rowcall serve` needs.[/] {literal(lacking)}" if lacking else "[dim]ready[/]"
    console.print(f"role rowcall_api: {role}", soft_wrap=True)
    if new_file_store:
        console.print(f"file store: {literal(file_store(settings).where)}", soft_wrap=True)


def _lacking(connection: Connection[Any]) -> str:
    """What is left to do before the service can be started; all else goes without."""
    try:
        open_to_api(connection)
    except Final as error:
        return error.hint
    return ""
