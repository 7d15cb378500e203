"""`rowcall receipt`: a job on one page, to keep."""

import sys
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape as literal
from rich.table import Table

from rowcall.cli.desk import Server, desk
from rowcall.cli.jobs import coloured
from rowcall.cli.options import AsJson
from rowcall.cli.screen import WIDTH, document, screen, table, visible
from rowcall.client.answers import Column, Dependents, Fingerprint, Receipt, UndoReceipt
from rowcall.formats.output import write_errors_told
from rowcall.model import State
from rowcall.words import counted

_NAMED = 10
"""Rows of which the numbers are told."""
_PARTS = ("created", "updated", "unchanged", "skipped", "failed")


def receipt(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; else standard output.")] = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Write the receipt of a job: its file, how it was read, what became of its rows, who had it done and when."""
    with desk(server) as at:
        made = at.receipt(job)
    if as_json:
        _write(document(made) + "\n", out)
    elif out is None:
        show(screen(), made)
    else:
        page = StringIO()
        show(Console(file=page, width=WIDTH, highlight=False), made)
        _write(page.getvalue(), out)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
    else:
        with write_errors_told(repr(str(out))):
            out.write_text(text, encoding="utf-8")


# ------------------------------------------------------------------------------------------------------- for a person


def show(console: Console, made: Receipt) -> None:
    """The receipt as a page to read."""
    counts = made.counts
    console.print(f"[bold]Receipt of job {made.number}[/]  {coloured(made.state, counts.failed)}")
    console.print(_facts(made))
    console.print(f"\n[bold]{_balance(made)}[/]")
    beside = f"{counts.header:,} header, {counts.blank:,} blank, {counts.other:,} other"
    console.print(f"[dim]lines beside the rows: {beside}[/]")
    if made.error:
        console.print(f"[red]{literal(made.error.code)}[/] {literal(visible(made.error.message))}")
    if made.columns:
        lines = [(literal(visible(c.header)), literal(c.field or "-"), *_reading(c)) for c in made.columns]
        console.print(table(("column", "field", "read as", "because"), lines, whole=0, width=console.width))
    if made.issues:
        issues = [(f"{i.count:,}", i.status, literal(i.code), literal(i.field or "")) for i in made.issues]
        console.print(table(("rows", "status", "issue", "field"), issues, whole=2, width=console.width))
    for undone in made.undos:
        show_undo(console, undone)


def show_undo(console: Console, done: UndoReceipt) -> None:
    """What an undo did, to be read."""
    ended = _moment(done.completed_at)
    console.print(f"\n[bold]Undo {done.number}[/] by {literal(done.account)}, {ended}  [dim]{done.digest}[/]")
    if done.which:
        console.print(f"[dim]only {literal(visible(_asked(done.which)))}[/]")
    console.print(f"{done.deleted:,} deleted, {done.restored:,} restored, {done.gone:,} were gone")
    if done.kept:
        why = f"{done.changed:,} changed since, {done.blocked:,} referred to, {done.refused:,} refused"
        console.print(f"[yellow]{done.kept:,} kept:[/] {why}")
    show_dependents(console, done.blocked_by)


def _asked(which: dict[str, Any]) -> str:
    """Which rows were to be taken back, in words."""
    numbers: list[int] = which.get("rows", [])
    some = ", ".join(map(str, numbers[:_NAMED])) + (", …" if len(numbers) > _NAMED else "")
    told = [f"{'row' if len(numbers) == 1 else 'rows'} {some}" if numbers else "rows"]
    words = {
        "statuses": "that were {}",
        "code": "with an issue {}",
        "field": "with an issue in {}",
        "text": "with “{}” in a cell",
    }
    for name, words_of in words.items():
        if value := which.get(name):
            told.append(words_of.format(value if isinstance(value, str) else " or ".join(value)))
    return " ".join(told)


def show_dependents(console: Console, found: list[Dependents]) -> None:
    """What refers to rows that therefore stay, or is a later version of them."""
    for each in found:
        if each.constraint is None:
            by = f", written by job {each.job}: take that back first" if each.job else ""
            console.print(f"  [dim]{counted(each.blocked, 'has', 'have')} later versions{literal(by)}[/]")
            continue
        one, several = f"row of {each.table} refers", f"rows of {each.table} refer"
        many = f"an unknown number of {several}" if each.dependents is None else counted(each.dependents, one, several)
        told = f"{many} to {each.blocked:,} of them ({each.constraint})"
        console.print(f"  [dim]{literal(told)}[/]")


def _facts(made: Receipt) -> Table:
    dry = ", dry run: nothing was changed" if made.dry_run else ""
    facts = Table.grid(padding=(0, 2))
    facts.add_row("[dim]id[/]", str(made.id))
    size = "not there yet" if made.file.size is None else f"{made.file.size:,} bytes"
    facts.add_row("[dim]file[/]", f"{literal(visible(made.file.name))}, {size}")
    facts.add_row("[dim]SHA-256[/]", made.file.sha256)
    facts.add_row("[dim]importer[/]", f"{literal(made.importer)} into table {literal(made.target or 'unknown')}")
    facts.add_row("[dim]mode[/]", f"{made.mode or 'unknown'}{dry}")
    for name, value in made.context.items():
        facts.add_row("[dim]context[/]", f"{literal(name)} = {literal(visible(value))}")
    if newer := made.superseded_by:
        facts.add_row("[dim]superseded[/]", f"by job {newer.number} of {literal(newer.account)}")
    if made.fingerprint:
        facts.add_row("[dim]fingerprint[/]", _fingerprint(made.fingerprint))
    for field, value in made.constants.items():
        facts.add_row("[dim]constant[/]", f"{literal(field)} = {literal(visible(value))}")
    facts.add_row("[dim]by[/]", literal(made.account))
    facts.add_row("[dim]created[/]", _moment(made.created_at))
    facts.add_row("[dim]started[/]", _moment(made.started_at))
    facts.add_row("[dim]ended[/]", _ended(made))
    rate = f", {made.rows_per_second:,} rows/s" if made.rows_per_second else ""
    facts.add_row("[dim]took[/]", f"{made.duration_ms / 1000:,.1f} s from creation to end, with any pauses{rate}")
    return facts


def _fingerprint(found: Fingerprint) -> str:
    by = found.acknowledged_by
    seen = f" Acknowledged by {literal(visible(by))}, {_moment(found.acknowledged_at)}." if by else ""
    return f"{found.verdict}: {literal(visible(found.note))}{seen}"


def _ended(made: Receipt) -> str:
    if made.state != State.VALIDATED:
        return _moment(made.ended_at)
    if made.dry_run:
        return _moment(made.created_at + timedelta(milliseconds=made.duration_ms))
    return f"[dim]not yet: it waits for rowcall submit {made.number}[/]"


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "[dim]not yet[/]"


def _balance(made: Receipt) -> str:
    taken_back = ("reverted",) if made.counts.reverted else ()
    parts = " + ".join(f"{getattr(made.counts, part):,} {part}" for part in (*_PARTS, *taken_back))
    waiting = made.counts.rows - made.counts.done
    return f"{counted(made.counts.rows, 'row')} = {parts}" + (f" + {waiting:,} without outcome" if waiting else "")


def _reading(column: Column) -> tuple[str, str]:
    marks = {".": "decimal point", ",": "decimal comma"}
    return column.date_order or marks.get(column.decimal or "", ""), literal(column.reason)
