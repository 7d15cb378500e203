"""`rowcall retention`: old jobs go, with their rows and files."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.options import AsJson
from rowcall.cli.screen import screen, table, tell
from rowcall.config import settings_from
from rowcall.engine.retention import Removed, find_due, policy_of, remove_due
from rowcall.importer.registry import load_registry
from rowcall.store.db import open_database
from rowcall.store.files.filestore import file_store
from rowcall.store.files.marks import bind
from rowcall.store.retention import Due
from rowcall.words import counted

_SHOWN = 20


def retention(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would go, and remove nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove jobs that ended or were abandoned long ago, with their rows and files; workers do so every night.

    A job that is PROCESSING, or that somebody works on, stays. Exit code 1: some could not be removed.
    """
    settings, registry = settings_from(), load_registry()
    policy = policy_of(settings, registry)
    with open_database(settings) as database:
        if dry_run:
            _tell_due(find_due(database, policy), as_json=as_json)
            return
        with database.connect() as connection:
            bind(connection, file_store(settings))
        removed = remove_due(database, settings, policy, stop=lambda: False)
    if as_json:
        tell(_document(removed))
    else:
        _show(screen(), removed)
    if removed.failed:
        raise typer.Exit(1)


def _tell_due(due: Sequence[Due], *, as_json: bool) -> None:
    if as_json:
        rows = sum(job.rows for job in due)
        told = {"jobs": [_job(job) for job in due], "rows": rows, "bytes": sum(job.bytes for job in due)}
        tell({"dryRun": True, **told})
        return
    console = screen()
    if not due:
        console.print("No job is due to go.")
        return
    headers = ["job", "state", "why", "rows", "importer"]
    lines = [[job.number, job.state, job.reason, f"{job.rows:,}", literal(job.importer)] for job in due[:_SHOWN]]
    console.print(table(headers, lines, whole=4, width=console.width))
    more = f" ({len(due) - _SHOWN:,} more are not shown)" if len(due) > _SHOWN else ""
    console.print(f"{counted(len(due), 'job')} with {counted(sum(job.rows for job in due), 'row')} would go{more}.")


def _show(console: Console, removed: Removed) -> None:
    if removed.elsewhere:
        console.print("Another process is removing jobs just now.")
        return
    console.print(
        f"{counted(len(removed.jobs), 'job')} with {counted(removed.rows, 'row')} and {counted(removed.files, 'file')} "
        f"({counted(removed.bytes, 'byte')}) went, and {counted(removed.leftovers, 'leftover')} of dead processes."
    )
    if removed.busy:
        console.print(f"Left alone, as somebody works on them: {', '.join(removed.busy)}")
    for number, why in removed.failed.items():
        console.print(f"[bold red]Not removed[/] {number}: {literal(why)}", soft_wrap=True)


def _document(removed: Removed) -> dict[str, Any]:
    return {
        "dryRun": False,
        "jobs": [_job(job) for job in removed.jobs],
        "rows": removed.rows,
        "files": removed.files,
        "bytes": removed.bytes,
        "leftovers": removed.leftovers,
        "busy": removed.busy,
        "failed": removed.failed,
        "elsewhere": removed.elsewhere,
    }


def _job(job: Due) -> dict[str, Any]:
    about = {"id": str(job.id), "number": job.number, "importer": job.importer, "state": job.state}
    return {**about, "reason": job.reason, "rows": job.rows, "bytes": job.bytes}
