"""`rowcall jobs`: the latest jobs and how far they are."""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.options import AsJson, one_of
from rowcall.cli.screen import document, screen, table
from rowcall.config import settings_from
from rowcall.engine.documents import job_document, rows_of
from rowcall.model import State
from rowcall.store.db import open_database
from rowcall.store.jobs import Job, JobCounts, list_jobs
from rowcall.store.results import counts_of_jobs

_WIDE = 110  # columns; narrower screens show less of a job


def jobs(
    state: Annotated[str | None, typer.Option(help="Only jobs in this state, such as PROCESSING.")] = None,
    importer: Annotated[str | None, typer.Option(help="Only jobs of this importer.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the latest jobs: state, importer, file, and what became of the rows so far."""
    wanted = one_of("--state", state.upper() if state else None, list(State))
    with open_database(settings_from()) as database, database.connect("jobs") as connection:
        found = list_jobs(connection, state=wanted, importer=importer, most=limit)
        counted = counts_of_jobs(connection, found)
    each = [(job, counted[job.id]) for job in found]
    if as_json:
        sys.stdout.write(document([job_document(job, counts) for job, counts in each]) + "\n")
    else:
        _show(screen(), each)


def coloured(job: Job, failed: int) -> str:
    """A job's state; partial success is not green."""
    return f"[{_colour(job.state, failed)}]{job.state}[/]"


def _colour(state: State, failed: int) -> str:
    match state:
        case State.FAILED | State.INVALID:
            return "bold red"
        case State.COMPLETED | State.VALIDATED:
            return "bold yellow" if failed else "bold green"
        case _:
            return "bold yellow"


def _show(console: Console, each: list[tuple[Job, JobCounts]]) -> None:
    if not each:
        console.print("No jobs.")
        return
    columns: dict[str, list[str]] = {
        "job": [job.number for job, _ in each],
        "state": [
            coloured(job, counts.failed) + (" [dim]dry[/]" if job.config.dry_run else "") for job, counts in each
        ],
        "rows": [f"{rows_of(job, counts):,}" for job, counts in each],
        "began": [f"{job.created_at.astimezone():%d %b %H:%M}" for job, _ in each],
        "what became of them": [_outcomes(job, counts) for job, counts in each],
        "into": [literal(job.importer) for job, _ in each],
        "file": [literal(job.file_name) for job, _ in each],
    }
    for name in ("rows", "began", "into") if console.width < _WIDE else ():
        del columns[name]
    lines = list(zip(*columns.values(), strict=True))
    wrapped = list(columns).index("what became of them")
    console.print(table(list(columns), lines, whole=wrapped, wrapped=wrapped, width=console.width))


def _outcomes(job: Job, counts: JobCounts) -> str:
    if job.state is State.FAILED and job.last_error:
        return f"[red]{literal(job.last_error['code'])}[/]"
    parts = ("created", "updated", "unchanged", "skipped")
    told = [f"{getattr(counts, part):,} {part}" for part in parts if getattr(counts, part)]
    return " + ".join([*told, *([f"[red]{counts.failed:,} failed[/]"] if counts.failed else [])])
