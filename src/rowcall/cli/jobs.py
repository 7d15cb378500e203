"""`rowcall jobs`: the latest jobs and how far they are."""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.desk import Server, desk
from rowcall.cli.options import AsJson, one_of
from rowcall.cli.screen import document, screen, table, visible
from rowcall.client.answers import Job
from rowcall.model import State

_WIDE = 110  # columns; narrower screens show less of a job


def jobs(
    state: Annotated[str | None, typer.Option(help="Only jobs in this state, such as PROCESSING.")] = None,
    importer: Annotated[str | None, typer.Option(help="Only jobs of this importer.")] = None,
    scope: Annotated[str | None, typer.Option(help="Only jobs with this scope.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest first.")] = 50,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """List the latest jobs: state, importer, file, and what became of the rows so far."""
    wanted = one_of("--state", state.upper() if state else None, list(State))
    with desk(server) as at:
        found = list(at.jobs(state=wanted, importer=importer, scope=scope, most=limit))
    if as_json:
        sys.stdout.write(document(found) + "\n")
    else:
        _show(screen(), found)


def coloured(state: str, failed: int) -> str:
    """A job's state; partial success is not green."""
    return f"[{_colour(state, failed)}]{state}[/]"


def _colour(state: str, failed: int) -> str:
    match state:
        case State.FAILED | State.INVALID:
            return "bold red"
        case State.COMPLETED | State.VALIDATED:
            return "bold yellow" if failed else "bold green"
        case _:
            return "bold yellow"


def _show(console: Console, found: list[Job]) -> None:
    if not found:
        console.print("No jobs.")
        return
    columns: dict[str, list[str]] = {
        "job": [job.number for job in found],
        "state": [coloured(job.state, job.counts.failed) + (" [dim]dry[/]" if job.dry_run else "") for job in found],
        "rows": [f"{job.counts.rows:,}" for job in found],
        "began": [f"{job.created_at.astimezone():%d %b %H:%M}" for job in found],
        "what became of them": [_outcomes(job) for job in found],
        "into": [literal(job.importer) for job in found],
        "file": [literal(visible(job.file.name)) for job in found],
    }
    for name in ("rows", "began", "into") if console.width < _WIDE else ():
        del columns[name]
    lines = list(zip(*columns.values(), strict=True))
    wrapped = list(columns).index("what became of them")
    console.print(table(list(columns), lines, whole=wrapped, wrapped=wrapped, width=console.width))


def _outcomes(job: Job) -> str:
    if job.state == State.FAILED and job.error:
        return f"[red]{literal(job.error.code)}[/]"
    counts = job.counts
    parts = ("created", "updated", "unchanged", "skipped", "reverted")
    told = [f"{getattr(counts, part):,} {part}" for part in parts if getattr(counts, part)]
    return " + ".join([*told, *([f"[red]{counts.failed:,} failed[/]"] if counts.failed else [])])
