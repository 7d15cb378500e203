"""`rowcall pause`, `cancel`, `reprocess`: what can be asked of a job, also of one that another process works on."""

from typing import Annotated

import typer

from rowcall.cli.desk import Server, desk
from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen
from rowcall.client.answers import Job, View
from rowcall.model import WORKING
from rowcall.words import counted

_Job = Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")]


def pause(job: _Job, as_json: AsJson = False, server: Server = None) -> None:
    """Have a job stop for now: the batches under way end, and `rowcall resume` goes on from there."""
    with desk(server) as at:
        tell_job(at.pause(job), as_json=as_json)


def cancel(job: _Job, as_json: AsJson = False, server: Server = None) -> None:
    """Have a job stop for good: the batches under way end, what is done stays, the other rows are cancelled."""
    with desk(server) as at:
        tell_job(at.cancel(job), as_json=as_json)


def reprocess(
    job: _Job,
    status: Annotated[
        str | None,
        typer.Option(help="Rows that are failed, or skipped; failed if nothing is said, both with --row or --edited."),
    ] = None,
    code: Annotated[str | None, typer.Option(help="Only rows with an issue of this code.")] = None,
    field: Annotated[str | None, typer.Option(help="Only rows with an issue in this field.")] = None,
    text: Annotated[str | None, typer.Option(help="Only rows with this somewhere in a cell.")] = None,
    rows: Annotated[list[int] | None, typer.Option("--row", min=1, help="Only this row. May be given again.")] = None,
    edited: Annotated[bool, typer.Option("--edited", help="Only rows with corrections.")] = False,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Try rows again that failed or were skipped. Nothing else of the job runs."""
    with desk(server) as at:
        view = View(statuses=(status,) if status else (), code=code, field=field, text=text, edited=edited)
        done = at.reprocess(job, view, rows=rows or None)
    if as_json:
        typer.echo(document(done))
        return
    screen().print(f"{counted(done.rows, 'row is', 'rows are')} tried again.")
    tell_job(done.job)


def tell_job(now: Job, *, as_json: bool = False) -> None:
    """Tell where a job is, and how it goes on."""
    if as_json:
        typer.echo(document(now))
    elif now.wish:
        screen().print(f"Job {now.number} is {now.state}; it is to {now.wish}, as soon as its batches under way end.")
    elif now.state in WORKING and not now.background:
        screen().print(f"Job {now.number} is {now.state}. Go on with: rowcall resume {now.number}")
    else:
        screen().print(f"Job {now.number} is {now.state}.")
