"""`rowcall preview` and `rowcall submit`: what a job would do, and the word to do it."""

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.desk import Server, client_of, desk, only_here
from rowcall.cli.ended import failing
from rowcall.cli.jobs import coloured
from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen, table, there
from rowcall.client.answers import Preview
from rowcall.model import State
from rowcall.words import counted

_Job = Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")]
_PARTS = ("created", "updated", "unchanged", "skipped", "failed")


def preview(job: _Job, as_json: AsJson = False, server: Server = None) -> None:
    """Show what a job would do: how many rows it creates and updates, which fields change, what is wrong."""
    with desk(server) as at:
        made = at.preview(job)
    if as_json:
        typer.echo(document(made))
    else:
        show_plan(screen(), made)
        if made.state == State.VALIDATED:
            how = f"rowcall submit {made.number} --plan {made.digest}{there(server)}"
            screen().print(f"Commit it with: [bold]{how}[/]", soft_wrap=True)


def submit(
    job: _Job,
    plan: Annotated[
        str | None,
        typer.Option(metavar="DIGEST", help="Only if the plan is still this one; else whatever it is now."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="How many threads commit; else ROWCALL_WORKERS.")] = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Commit a job that waits after its preview: exactly what that said.

    Rows whose target was changed by others since then are left alone, and fail as DRIFTED.
    Exit code 0: every row is in; 2: some rows failed; 1: the import failed.
    """
    with failing(as_json=as_json):
        if client := client_of(server):
            only_here(client, workers=workers)
    if client:
        from rowcall.cli.import_there import submit_there

        submit_there(client, job, plan, as_json=as_json)
    from rowcall.cli.import_here import submit_here

    submit_here(job, plan, workers=workers, as_json=as_json)


def show_plan(console: Console, made: Preview) -> None:
    """The plan for a person: the balance first."""
    counts = made.counts
    console.print(f"[bold]Plan of job {made.number}[/]  {coloured(made.state, counts.failed)}")
    balance = " + ".join(f"{getattr(counts, part):,} {part}" for part in _PARTS)
    console.print(f"[bold]{counted(counts.rows, 'row')}[/] = {balance}")
    if made.drifted:
        drifted = counted(made.drifted, "row was", "rows were")
        console.print(f"[yellow]{drifted} planned otherwise when it was submitted before.[/]")
    if made.fields:
        changed = [(f"{field.rows:,}", literal(field.field)) for field in made.fields]
        console.print(table(("rows", "changed field"), changed, whole=1, width=console.width))
    if made.problems:
        problems = [(f"{p.count:,}", p.status, literal(p.code), literal(p.field or "")) for p in made.problems]
        console.print(table(("rows", "status", "issue", "field"), problems, whole=2, width=console.width))
    console.print(f"[dim]as of {made.as_of:%Y-%m-%d %H:%M:%S} UTC, plan {made.digest}[/]")
