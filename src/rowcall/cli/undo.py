"""`rowcall undo`: what it would do, and then to do it."""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.desk import Desk, Server, desk
from rowcall.cli.ended import failing
from rowcall.cli.options import AsJson, one_of
from rowcall.cli.receipt import show_dependents, show_undo
from rowcall.cli.screen import screen, short, table, tell
from rowcall.client.answers import UndoPreview, UndoReceipt, UndoSample, View
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.words import counted

_SHOWN = 10


def undo(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask; needed where nobody can be asked.")] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Of an import that is all or nothing: also if some rows have to stay.")
    ] = False,
    status: Annotated[str | None, typer.Option(help="Only rows that were created, or updated.")] = None,
    code: Annotated[str | None, typer.Option(help="Only rows with an issue of this code.")] = None,
    field: Annotated[str | None, typer.Option(help="Only rows with an issue in this field.")] = None,
    text: Annotated[str | None, typer.Option(help="Only rows with this somewhere in a cell.")] = None,
    rows: Annotated[list[int] | None, typer.Option("--row", min=1, help="Only this row. May be given again.")] = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Take back what a job wrote: created rows are deleted, updated ones restored. It tells first what that would be.

    Rows that somebody changed since, that others refer to or that the database refuses to change are kept. The exit
    code is 2 if some were, and 1 if nothing can be taken back, also with --dry-run.
    """
    statuses = (status,) if one_of("--status", status, ("created", "updated")) and status else ()
    view = View(statuses=statuses, code=code, field=field, text=text)
    done: UndoReceipt | None = None
    with failing(as_json=as_json), desk(server) as at:
        seen = at.preview_undo(job, view, rows=rows or None, partial=partial)
        if not as_json and (seen.possible or seen.kept):
            _show(screen(), seen)
        if not dry_run or not (as_json or seen.kept):  # then there is nothing else to tell
            _require_possible(seen)
        if not dry_run:
            _require_consent(seen, yes=yes, as_json=as_json)
            now = at.undo(job, view, rows=rows or None, partial=partial)
            done = _ended(at, now.number)
    if done is None:
        _told(seen, as_json=as_json)
        raise typer.Exit(1 if not seen.possible else 2 if seen.kept else 0)
    _told(done, as_json=as_json)
    if not as_json:
        screen().print(f"Job {done.job_number} is {done.state}.")
        show_undo(screen(), done)
    raise typer.Exit(2 if done.kept else 0)


def _ended(at: Desk, job: str) -> UndoReceipt:
    """What the undo did, when it is through."""
    now = at.wait(job)
    if now.error:
        raise now.error.failure()
    return at.undo_receipt(job)


def _told(found: UndoPreview | UndoReceipt, *, as_json: bool) -> None:
    if as_json:
        tell(found)


def _require_possible(seen: UndoPreview) -> None:
    if not seen.possible and seen.kept:
        raise Final(
            Code.UNDO_INCOMPLETE, seen.reason or "Some rows have to stay.", hint="Take back the others with --partial."
        )
    if not seen.possible:
        raise Final(Code.UNDO_NOT_POSSIBLE, seen.reason or "It can't be taken back.")


def _require_consent(seen: UndoPreview, *, yes: bool, as_json: bool) -> None:
    if yes:
        return
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        told = "Nobody can be asked here whether that is meant."
        raise Final(Code.BAD_OPTION, told, hint="Say --yes to do it, or --dry-run to look.")
    if not typer.confirm(f"Delete {counted(seen.to_delete, 'row')} and restore {seen.to_restore:,}?"):
        raise Final(Code.INTERRUPTED, "Nothing was taken back.")


def _show(console: Console, seen: UndoPreview) -> None:
    deleted = counted(seen.to_delete, "row")
    console.print(f"[bold]{deleted}[/] would be deleted, [bold]{seen.to_restore:,}[/] restored")
    if seen.fields:
        told = ", ".join(f"{name} in {count:,}" for name, count in seen.fields.items())
        console.print(f"[dim]restored: {literal(told)}[/]")
    if seen.not_restored:
        told = ", ".join(f"{name} in {count:,}" for name, count in seen.not_restored.items())
        console.print(f"[yellow]not as before, as a trigger writes them: {literal(told)}[/]")
    kept = (
        (seen.changed, "was changed since", "were changed since"),
        (seen.blocked, "is referred to by others", "are referred to by others"),
        (seen.refused, "would be refused by the database", "would be refused by the database"),
    )
    for count, one, several in kept:
        if count:
            console.print(f"[yellow]{counted(count, one, several)}, and kept[/]")
    show_dependents(console, seen.blocked_by)
    if seen.gone:
        console.print(f"[dim]{counted(seen.gone, 'is', 'are')} no longer there[/]")
    if seen.reverted:
        console.print(f"[dim]{counted(seen.reverted, 'was', 'were')} taken back already[/]")
    if seen.samples:
        lines = [_line(sample) for sample in seen.samples[:_SHOWN]]
        console.print(table(("row", "key", "why", "before", "now"), lines, whole=3, width=console.width))
    if seen.until:
        console.print(f"[dim]It can be taken back until {seen.until:%Y-%m-%d %H:%M} UTC.[/]")
    if seen.reason:
        console.print(f"[red]{literal(seen.reason)}[/]")


def _line(sample: UndoSample) -> tuple[str, ...]:
    before = ", ".join(f"{field.name}={field.before}" for field in sample.fields) if sample.status == "updated" else ""
    now = ", ".join(f"{field.name}={field.now}" for field in sample.fields)
    key = ", ".join(sample.target_key or ())
    return str(sample.row), literal(key), sample.issue.code, literal(short(before, 200)), literal(short(now, 200))
