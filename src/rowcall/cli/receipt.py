"""`rowcall receipt`: a job on one page, to keep."""

import sys
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape as literal
from rich.table import Table

from rowcall.cli.jobs import coloured
from rowcall.cli.options import AsJson
from rowcall.cli.screen import WIDTH, document, screen, table, visible
from rowcall.config import settings_from
from rowcall.engine.documents import receipt_document
from rowcall.engine.receipt import Receipt, receipt_of
from rowcall.importer.registry import load_registry
from rowcall.model import State
from rowcall.store.db import open_database
from rowcall.store.jobs import get_job
from rowcall.store.mappings import ColumnMapping

_PARTS = ("created", "updated", "unchanged", "skipped", "failed")


def receipt(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; else standard output.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the receipt of a job: its file, how it was read, what became of its rows, who had it done and when."""
    declared = load_registry().by_name()
    with open_database(settings_from()) as database, database.connect("receipt") as connection:
        found = get_job(connection, job)
        made = receipt_of(connection, found, declared.get(found.importer))
    if as_json:
        _write(document(receipt_document(made)) + "\n", out)
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
        out.write_text(text, encoding="utf-8")


# ------------------------------------------------------------------------------------------------------- for a person


def show(console: Console, made: Receipt) -> None:
    """The receipt as a page to read."""
    job = made.job
    console.print(f"[bold]Receipt of job {job.number}[/]  {coloured(job, made.balance.failed)}")
    console.print(_facts(made))
    console.print(f"\n[bold]{_balance(made)}[/]")
    beside = f"{job.header_lines:,} header, {job.blank_lines:,} blank, {job.other_lines:,} other"
    console.print(f"[dim]lines beside the rows: {beside}[/]")
    if job.last_error:
        console.print(f"[red]{job.last_error['code']}[/] {literal(job.last_error['message'])}")
    if made.columns:
        lines = [(literal(visible(c.header)), literal(c.target_field or "-"), *_reading(c)) for c in made.columns]
        console.print(table(("column", "field", "read as", "because"), lines, whole=0, width=console.width))
    if made.issues:
        issues = [(f"{i.count:,}", i.status, literal(i.code), literal(i.field or "")) for i in made.issues]
        console.print(table(("rows", "status", "issue", "field"), issues, whole=2, width=console.width))


def _facts(made: Receipt) -> Table:
    job = made.job
    dry = ", dry run: nothing was changed" if job.config.dry_run else ""
    facts = Table.grid(padding=(0, 2))
    facts.add_row("[dim]id[/]", str(job.id))
    size = "not there yet" if job.file_size is None else f"{job.file_size:,} bytes"
    facts.add_row("[dim]file[/]", f"{literal(job.file_name)}, {size}")
    facts.add_row("[dim]SHA-256[/]", job.file_sha256)
    facts.add_row("[dim]importer[/]", f"{literal(job.importer)} into table {literal(made.target or 'unknown')}")
    facts.add_row("[dim]mode[/]", f"{made.mode or 'unknown'}{dry}")
    for field, value in job.config.constants.items():
        facts.add_row("[dim]constant[/]", f"{literal(field)} = {literal(visible(value))}")
    facts.add_row("[dim]by[/]", literal(job.account))
    facts.add_row("[dim]created[/]", _moment(job.created_at))
    facts.add_row("[dim]started[/]", _moment(job.processing_started_at))
    facts.add_row("[dim]ended[/]", _ended(made))
    rate = f", {made.rows_per_second:,} rows/s" if made.rows_per_second else ""
    facts.add_row("[dim]took[/]", f"{made.milliseconds / 1000:,.1f} s from creation to end, with any pauses{rate}")
    return facts


def _ended(made: Receipt) -> str:
    if made.job.state is not State.VALIDATED:
        return _moment(made.job.completed_at)
    if made.job.config.dry_run:
        return _moment(made.last_sign)
    return f"[dim]not yet: it waits for rowcall resume {made.job.number}[/]"


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "[dim]not yet[/]"


def _balance(made: Receipt) -> str:
    parts = " + ".join(f"{getattr(made.balance, part):,} {part}" for part in _PARTS)
    waiting = made.balance.rows - made.balance.outcomes
    return f"{made.balance.rows:,} rows = {parts}" + (f" + {waiting:,} without outcome" if waiting else "")


def _reading(column: ColumnMapping) -> tuple[str, str]:
    marks = {".": "decimal point", ",": "decimal comma"}
    return column.date_order or marks.get(column.decimal_mark or "", ""), literal(column.reason)
