"""`rowcall scaffold`: an importer for a table that exists, or for a Table Schema."""

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from psycopg import Connection

from rowcall.config import settings_from
from rowcall.errors import Final
from rowcall.formats.output import write_errors_told
from rowcall.importer.scaffold import scaffold_schema, scaffold_table
from rowcall.model import Code
from rowcall.store.db import open_database
from rowcall.store.targets import describe, domain_checks, require_no_rule


def scaffold(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A table, or schema.table, or the .json file of a Table Schema.")
    ],
    out: Annotated[Path | None, typer.Option(help="The file to write; else standard output.")] = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="For files exported from the table: keep blanks, empty texts and all digits."),
    ] = False,
    force: Annotated[bool, typer.Option(help="Write over a file that is there.")] = False,
) -> None:
    """Write an importer for a table: a field per column, with what its type, keys and constraints demand."""
    if out is not None and out.exists() and not force:
        hint = "Give another name, or --force to write over it."
        raise Final(Code.BAD_OPTION, f"{out} is there already.", hint=hint)
    text = _from_schema(Path(table)) if table.lower().endswith(".json") else _from_table(table, exact=exact)
    if out is None:
        sys.stdout.write(text)
    else:
        with write_errors_told(repr(str(out))):
            out.write_text(text, encoding="utf-8")


def _from_schema(path: Path) -> str:
    if not path.is_file():
        raise Final(Code.FILE_NOT_FOUND, f"There is no file {path}.", hint="Correct the path of the Table Schema.")
    try:
        document = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Final(Code.BAD_OPTION, f"{path} is not a JSON object: {error}.") from error
    return scaffold_schema(document, path.name.partition(".")[0])


def _from_table(table: str, *, exact: bool) -> str:
    with open_database(settings_from()) as database, database.connect() as connection:
        return _described(connection, table, exact=exact)


def _described(connection: Connection[Any], table: str, *, exact: bool) -> str:
    target = describe(connection, table)
    if not target.takes_rows:
        raise Final(Code.BAD_TARGET, f"{table} is no table of yours, so that nothing can be imported into it.")
    require_no_rule(target, table)
    referenced = dict.fromkeys(f"{key.table_schema}.{key.table_name}" for key in target.foreign)
    tables = [describe(connection, name) for name in referenced]
    return scaffold_table(target, tables, domain_checks(connection, table), exact=exact)
