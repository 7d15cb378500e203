"""A table into a file, and the file into the table by its scaffolded importer."""

from io import BytesIO
from typing import Any

from psycopg.sql import SQL, Identifier

from rowcall import Importer
from rowcall.export import Resource, export_to, select_rows
from rowcall.formats import ReadOptions, WriteFormat
from rowcall.importer.scaffold import scaffold_table
from rowcall.model import Mode
from rowcall.store.db import Database
from rowcall.store.targets import describe

from ..scaffolding import created
from .importing import Result, run_import


def scaffolded(database: Database, table: str = "t") -> str:
    """The source of an importer for the table."""
    with database.connect() as connection:
        return scaffold_table(describe(connection, table), exact=True)


def exported(database: Database, kind: WriteFormat, table: str = "t") -> bytes:
    """The whole table as a file."""
    out = BytesIO()
    with database.connect() as connection:
        export_to(connection, select_rows(connection, Resource(name=table, table=table)), out, kind)
    return out.getvalue()


def brought_back(database: Database, kind: WriteFormat, table: str = "t") -> Result:
    """What importing the export of a table comes to."""
    return _imported(database, created(scaffolded(database, table)), exported(database, kind, table), kind, Mode.UPSERT)


def _imported(
    database: Database, importer: type[Importer], file: bytes, kind: WriteFormat, mode: Mode | None = None
) -> Result:
    # of numbers such as 1.234 alone nobody could say what the point is
    return run_import(database, importer, file, file_name=f"t.{kind}", mode=mode, read=ReadOptions(decimal="."))


def content(database: Database, table: str = "t") -> list[Any]:
    """The rows as PostgreSQL writes them, so that 1.0 and 1.00 are two."""
    with database.connect() as connection:
        rows = connection.execute(SQL("SELECT t::text FROM {} t ORDER BY 1").format(Identifier(table)))
        return [row for (row,) in rows]


def assert_same(database: Database, kind: WriteFormat, table: str = "t") -> None:
    """Bring a table's own rows back over themselves, and then into the empty table: nothing is different."""
    before = content(database, table)
    file = exported(database, kind, table)
    importer = created(scaffolded(database, table))
    result = _imported(database, importer, file, kind, Mode.UPSERT)
    issues = [outcome.issues for outcome in result.outcomes.values() if outcome.issues]
    assert result.told == ["unchanged"] * len(before), issues
    assert content(database, table) == before
    with database.connect() as connection:
        connection.execute(SQL("TRUNCATE {}").format(Identifier(table)))
    result = _imported(database, importer, file, kind)
    issues = [outcome.issues for outcome in result.outcomes.values() if outcome.issues]
    assert result.told == ["created"] * len(before), issues
    assert content(database, table) == before
