"""`rowcall export`: the rows of a resource or a table, or what became of a job's rows, into a file."""

import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from psycopg import Connection, IsolationLevel
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from rowcall.cli.desk import Server, client_of, only_here
from rowcall.cli.export_there import check_name, export_there, stream_there
from rowcall.cli.options import AsJson, one_of, write_format, write_options
from rowcall.cli.screen import beside, document
from rowcall.client.answers import ExportOrder, View
from rowcall.config import settings_from
from rowcall.errors import Final
from rowcall.export import (
    Filter,
    Selection,
    export_to,
    find_resource,
    known_resources,
    select_results,
    select_rows,
)
from rowcall.formats import WriteFormat
from rowcall.importer.registry import load_registry
from rowcall.model import ROW_STATUSES, Code
from rowcall.store.db import open_database
from rowcall.store.grid import Wanted
from rowcall.store.jobs import get_job
from rowcall.words import counted


def export(
    resource: Annotated[
        str | None, typer.Argument(metavar="RESOURCE", help="A resource, or a table of the database.")
    ] = None,
    job: Annotated[
        str | None, typer.Option(metavar="JOB", help="Instead: what became of each row of a job, by number or id.")
    ] = None,
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
    status: Annotated[
        str | None, typer.Option(help=f"With --job: only rows that are {', '.join(ROW_STATUSES)}.")
    ] = None,
    code: Annotated[str | None, typer.Option(help="With --job: only rows with an issue of this code.")] = None,
    field: Annotated[str | None, typer.Option(help="With --job: only rows with an issue in this field.")] = None,
    bom: Annotated[bool, typer.Option(help="Begin a CSV file with a byte order mark, for Excel.")] = False,
    formulas: Annotated[
        str, typer.Option(help="Texts that look like formulas in CSV and XLSX: protect, or keep as they are.")
    ] = "protect",
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Write the rows of a resource or a table, as they are at one moment, into a file that is whole or not there.

    Or the rows of a job as they came in, each with what became of it.
    """
    # Polars has one of its own, which interrupts twice: the second time in the middle of cleaning up.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)
    kind = write_format(out, "--format", format)
    writing = write_options(out, bom=bom, formulas=formulas)
    _check_source(resource, job, of_resource=(filter, fields), of_job=(status, code, field))
    one_of("--status", status, ROW_STATUSES)
    if as_json and out == "-":
        raise Final(Code.BAD_OPTION, "--json tells of a file; standard output has the rows.", hint="Give --out.")
    if client := client_of(server):
        only_here(client, formulas=formulas != "protect")
        check_name(out)
        with client, _progress(resource or job or "") as progress:
            view = View(statuses=(status,) if status else (), code=code, field=field)
            order = ExportOrder(
                format=kind,
                resource=resource,
                fields=_names(fields),
                filters=tuple(filter or ()),
                job=client.job(job).id if job else None,
                view=view if job else None,
                bom=bom,
            )
            if out == "-":
                _say(stream_there(client, order))
                return
            rows = export_there(client, order, out, progress)
        _tell(rows, out, kind, as_json=as_json)
        return
    with open_database(settings_from()) as database, database.connect("export") as connection:
        if job is not None:
            wanted = Wanted(statuses=(status,) if status else (), code=code, field=field)
            connection.isolation_level = IsolationLevel.REPEATABLE_READ  # the rows come in several statements
            chosen = select_results(connection, get_job(connection, job), wanted)
        else:
            chosen = _selection(connection, resource or "", _names(fields), filter or ())
        target = sys.stdout.buffer if out == "-" else Path(out)
        told: list[str] = []
        with _progress(resource or job or "") as progress:
            rows = export_to(connection, chosen, target, kind, options=writing, progress=progress, tell=told.append)
    _tell(rows, out, kind, *told, as_json=as_json)


def _tell(rows: int, out: str, kind: WriteFormat, *told: str, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(document({"rows": rows, "out": out, "format": kind, "notes": told}) + "\n")
    else:
        _say(*told, f"{counted(rows, 'row')} written")


def _say(*lines: str) -> None:
    console = beside()
    for line in lines:
        console.print(line, markup=False)


def _names(fields: str | None) -> tuple[str, ...]:
    return tuple(field.strip() for field in (fields or "").split(",") if field.strip())


def _check_source(
    resource: str | None, job: str | None, *, of_resource: Sequence[object], of_job: Sequence[object]
) -> None:
    if (resource is None) == (job is None):
        raise Final(Code.BAD_OPTION, "Either RESOURCE or --job is expected.")
    if job is not None and any(option is not None for option in of_resource):
        raise Final(
            Code.BAD_OPTION, "--filter and --fields don't go with --job.", hint="See --status, --code, --field."
        )
    if job is None and any(option is not None for option in of_job):
        raise Final(Code.BAD_OPTION, "--status, --code and --field go with --job.", hint="See --filter.")


def _selection(connection: Connection[Any], name: str, fields: Sequence[str], filters: Sequence[str]) -> Selection:
    found = find_resource(connection, name, known_resources(load_registry()))
    return select_rows(connection, found, fields=fields, filters=[Filter.parse(text) for text in filters])


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
