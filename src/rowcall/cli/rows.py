"""`rowcall rows`: what became of the rows of a job."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape as literal
from rich.table import Table

from rowcall.cli.desk import Server, desk
from rowcall.cli.options import one_of
from rowcall.cli.screen import screen, short, table, visible
from rowcall.client.answers import Item, View
from rowcall.model import ROW_STATUSES

_SHOWN = 50
_VALUE_SHOWN = 24
COLOURS = {
    "created": "green",
    "updated": "cyan",
    "unchanged": "dim",
    "skipped": "dim",
    "failed": "red",
    "pending": "yellow",
    "reverted": "dim",
    "cancelled": "dim",
}


def rows(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")],
    status: Annotated[str | None, typer.Option(help=f"Only rows that are {', '.join(ROW_STATUSES)}.")] = None,
    code: Annotated[str | None, typer.Option(help="Only rows with an issue of this code.")] = None,
    field: Annotated[str | None, typer.Option(help="Only rows with an issue in this field.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many rows; else 50, and all of them with --json.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object per row, one on each line.")] = False,
    server: Server = None,
) -> None:
    """Tell what became of each row: its status, what is wrong with it, and its cells as they came in."""
    one_of("--status", status, ROW_STATUSES)
    view = View(statuses=(status,) if status else (), code=code, field=field)
    with desk(server) as at:
        items = at.items(job, view, most=limit if as_json else (limit or _SHOWN) + 1)
        if as_json:
            for item in items:
                sys.stdout.buffer.write(msgspec.json.encode(item) + b"\n")
        else:
            _show(screen(), list(items), limit or _SHOWN)


def _show(console: Console, items: Sequence[Item], most: int) -> None:
    if not items:
        console.print("No such rows.")
        return
    lines = [line for item in items[:most] for line in _lines(item)]
    console.print(table(("row", "line", "status", "values, and what is wrong"), lines, whole=3, width=console.width))
    if len(items) > most:
        console.print(f"[dim]There are more; --limit {10 * most} shows more of them, --json all.[/]")


def _lines(item: Item) -> Iterator[tuple[str, ...]]:
    """A row as it came in and, below it, a line for each of its issues."""
    cells = " · ".join(short(cell or "", 40) for cell in item.values.values())
    status = f"[{COLOURS.get(item.status, 'yellow')}]{item.status}[/]"
    yield f"{item.row:,}", f"{item.line:,}", status, literal(cells)
    for issue in item.issues:
        where = f"{issue.field}: " if issue.field else ""
        yield "", "", "", f"  [yellow]{literal(visible(f'{where}{issue.code} {issue.message}'))}[/]"


def issues_table(items: Sequence[Item], width: int) -> Table:
    """What is wrong with rows, an issue on each line."""
    lines = [
        (
            f"{item.row:,}",
            f"{item.line:,}",
            f"[dim]{literal(issue.code)}[/]",
            literal(issue.field or ""),
            literal(visible(issue.message)),
            literal(short(issue.value or "", _VALUE_SHOWN)),
        )
        for item in items
        for issue in item.issues
    ]
    return table(("row", "line", "code", "field", "message", "value"), lines, whole=4, width=width)
