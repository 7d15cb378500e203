"""`rowcall rows`: what became of the rows of a job."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape as literal
from rich.table import Table

from rowcall.cli.options import one_of
from rowcall.cli.screen import screen, short, table, visible
from rowcall.config import settings_from
from rowcall.engine.documents import row_document, values_of
from rowcall.store.db import open_database
from rowcall.store.grid import STATUSES, RowResult, Wanted, results_of
from rowcall.store.jobs import get_job
from rowcall.store.mappings import columns_of

_SHOWN = 50
_VALUE_SHOWN = 24
COLOURS = {
    "created": "green",
    "updated": "cyan",
    "unchanged": "dim",
    "skipped": "dim",
    "failed": "red",
    "pending": "yellow",
    "cancelled": "dim",
}


def rows(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")],
    status: Annotated[str | None, typer.Option(help=f"Only rows that are {', '.join(STATUSES)}.")] = None,
    code: Annotated[str | None, typer.Option(help="Only rows with an issue of this code.")] = None,
    field: Annotated[str | None, typer.Option(help="Only rows with an issue in this field.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many rows; else 50, and all of them with --json.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object per row, one on each line.")] = False,
) -> None:
    """Tell what became of each row: its status, what is wrong with it, and its cells as they came in."""
    one_of("--status", status, STATUSES)
    wanted = Wanted(
        statuses=(status,) if status else (),
        code=code,
        field=field,
        most=limit if as_json else (limit or _SHOWN) + 1,
    )
    with open_database(settings_from()) as database, database.connect("rows") as connection:
        found = get_job(connection, job)
        headers = [column.header for column in columns_of(connection, found.id)]
        results = results_of(connection, found.id, wanted)
        if as_json:
            for result in results:
                sys.stdout.buffer.write(msgspec.json.encode(row_document(result, headers)) + b"\n")
        else:
            _show(screen(), list(results), headers, limit or _SHOWN)


def _show(console: Console, results: Sequence[RowResult], headers: Sequence[str], most: int) -> None:
    if not results:
        console.print("No such rows.")
        return
    lines = [line for result in results[:most] for line in _lines(result, headers)]
    console.print(table(("row", "line", "status", "values, and what is wrong"), lines, whole=3, width=console.width))
    if len(results) > most:
        console.print(f"[dim]There are more; --limit {10 * most} shows more of them, --json all.[/]")


def _lines(result: RowResult, headers: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A row as it came in and, below it, a line for each of its issues."""
    cells = " · ".join(short(cell or "", 40) for cell in values_of(result, headers).values())
    yield f"{result.row:,}", f"{result.line:,}", f"[{COLOURS[result.status]}]{result.status}[/]", literal(cells)
    for issue in result.issues or ():
        where = f"{issue['field']}: " if issue.get("field") else ""
        said = visible(f"{where}{issue['code']} {issue.get('message') or ''}")
        yield "", "", "", f"  [yellow]{literal(said)}[/]"


def issues_table(results: Sequence[RowResult], width: int) -> Table:
    """What is wrong with rows, an issue on each line."""
    lines = [
        (
            f"{result.row:,}",
            f"{result.line:,}",
            f"[dim]{literal(issue['code'])}[/]",
            literal(issue.get("field") or ""),
            literal(visible(issue.get("message") or "")),
            literal(short(issue.get("value") or "", _VALUE_SHOWN)),
        )
        for result in results
        for issue in result.issues or ()
    ]
    return table(("row", "line", "code", "field", "message", "value"), lines, whole=4, width=width)
