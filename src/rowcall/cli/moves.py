"""`rowcall pause`, `cancel`, `reprocess`: what can be asked of a job, also of one that another process works on."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from psycopg import Connection

from rowcall.cli.screen import screen
from rowcall.config import settings_from
from rowcall.engine import moves
from rowcall.importer.registry import load_registry
from rowcall.model import WORKING
from rowcall.store import jobs
from rowcall.store.db import open_database
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job
from rowcall.worker.queue import migrate_queue, nudge

_Job = Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")]


def pause(job: _Job) -> None:
    """Have a job stop for now: the batches under way end, and `rowcall resume` goes on from there."""
    _moved(job, moves.pause)


def cancel(job: _Job) -> None:
    """Have a job stop for good: the batches under way end, what is done stays, the other rows are cancelled."""
    _moved(job, moves.cancel)


def reprocess(
    job: _Job,
    status: Annotated[str, typer.Option(help="Rows that are failed, or skipped.")] = "failed",
    code: Annotated[str | None, typer.Option(help="Only rows with an issue of this code.")] = None,
    field: Annotated[str | None, typer.Option(help="Only rows with an issue in this field.")] = None,
    rows: Annotated[list[int] | None, typer.Option("--row", min=1, help="Only this row. May be given again.")] = None,
) -> None:
    """Try rows again that failed or were skipped. Nothing else of the job runs."""
    wanted = Wanted(statuses=(status,), code=code, field=field, rows=tuple(rows) if rows else None)
    registry = load_registry()

    def again(connection: Connection[Any], found: Job) -> Job:
        now, count = moves.reprocess(connection, found, registry.importer(found.importer), wanted)
        screen().print(f"{count:,} rows are tried again.")
        return now

    _moved(job, again)


def _moved(job: str, move: Callable[[Connection[Any], Job], Job]) -> None:
    with open_database(settings_from()) as database, database.connect("move") as connection:
        migrate_queue(connection)
        with connection.transaction():
            now = move(connection, jobs.get_job(connection, job))
            if now.background and now.state in WORKING:
                nudge(connection, now.id)
    if now.wish:
        screen().print(f"Job {now.number} is {now.state}; it is to {now.wish}, as soon as its batches under way end.")
    elif now.state in WORKING and not now.background:
        screen().print(f"Job {now.number} is {now.state}. Go on with: rowcall resume {now.number}")
    else:
        screen().print(f"Job {now.number} is {now.state}.")
