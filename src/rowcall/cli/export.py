"""`rowcall export`: the rows of a resource or a table into a file."""

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from rowcall.cli.options import write_format, write_options
from rowcall.config import settings_from
from rowcall.export import Filter, declared, export_to, find_resource, select_rows
from rowcall.importer.registry import load_registry
from rowcall.store.db import open_database


def export(
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help="A resource, or a table of the database.")],
    out: Annotated[str, typer.Option(help="The file to write; - for standard output.")] = "-",
    format: Annotated[  # noqa: A002 (the product's word)
        str | None,
        typer.Option(help="csv, ndjson, json, xlsx or parquet; else by the name of --out; csv for standard output."),
    ] = None,
    filter: Annotated[  # noqa: A002 (the product's word)
        list[str] | None,
        typer.Option(
            help="Only rows that meet it: field=value, or != >= <= > <; field=null for none. Repeat it to narrow down; "
            "several = on one field are alternatives."
        ),
    ] = None,
    fields: Annotated[str | None, typer.Option(help="Fields to write, in order, with commas between.")] = None,
    bom: Annotated[bool, typer.Option(help="Begin a CSV file with a byte order mark, for Excel.")] = False,
    formulas: Annotated[
        str, typer.Option(help="Texts that look like formulas in CSV and XLSX: protect, or keep as they are.")
    ] = "protect",
) -> None:
    """Write the rows of a resource or a table, as they are at one moment, into a file that is whole or not there."""
    # Polars has one of its own, which interrupts twice: the second time in the middle of cleaning up.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)
    kind = write_format(out, "--format", format)
    filters = [Filter.parse(text) for text in filter or ()]
    chosen = [name.strip() for name in (fields or "").split(",") if name.strip()]
    writing = write_options(out, bom=bom, formulas=formulas)
    resources = declared(thing for pack in load_registry().packs for thing in pack.resources)
    with open_database(settings_from()) as database, database.connect("export") as connection:
        found = find_resource(connection, resource, resources)
        selection = select_rows(connection, found, fields=chosen, filters=filters)
        target = sys.stdout.buffer if out == "-" else Path(out)
        told: list[str] = []
        with _progress(resource) as progress:
            rows = export_to(connection, selection, target, kind, options=writing, progress=progress, tell=told.append)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in [*told, f"{rows:,} rows written"]:
        console.print(line, markup=False)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    """End by an exception, so that no part of a file stays."""
    sys.exit(128 + number)


@contextmanager
def _progress(resource: str) -> Generator[Callable[[int], None]]:
    """Rows and rows per second on a terminal; nothing elsewhere."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.completed:,.0f} rows"),
        TextColumn("{task.fields[rate]:,.0f} rows/s"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(f"exporting {resource}", total=None, rate=0)

        def update(rows: int) -> None:
            elapsed = progress.tasks[0].elapsed or 0
            progress.update(task, completed=rows, rate=rows / elapsed if elapsed else 0)

        yield update
