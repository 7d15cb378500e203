"""The template of an importer: a workbook to fill in, with a column for each field and what it takes.

Its cells are texts, so that what is typed stays as it is typed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from psycopg import Connection

from rowcall.engine.documents import demands_of, type_of
from rowcall.export.rejects import found_by
from rowcall.formats import WriteColumn, WriteFormat, WriteOptions, open_writer
from rowcall.importer import Choice, Date, DateTime, Decimal, Field, Importer, Integer, Lookup
from rowcall.importer.conditions import condition_of

_WRITTEN: dict[type[Field], str] = {
    Date: "Such as 2024-12-31.",
    DateTime: "Such as 2024-12-31 14:05:00.",
    Decimal: "Such as 1234.5.",
    Integer: "Such as 1234.",
}


def write_template(connection: Connection[Any], importer: type[Importer], target: Path | BinaryIO) -> None:
    """Write the workbook: the required fields first, each with a comment; choices and look-ups can be picked."""
    fields = sorted(importer.fields.values(), key=lambda field: not _is_required(field))
    columns = [_column(connection, importer, field) for field in fields]
    with open_writer(target, WriteFormat.XLSX, columns, WriteOptions(sheet="Rows")):
        pass


def _is_required(field: Field) -> bool:
    return field.required and field.default is None


def _column(connection: Connection[Any], importer: type[Importer], field: Field) -> WriteColumn:
    note = "\n".join(_told(importer, field))
    if isinstance(field, Choice):
        return WriteColumn(name=field.name, native="text", note=note, choices=tuple(field.values))
    found = found_by(connection, field) if isinstance(field, Lookup) else ()
    return WriteColumn(name=field.name, native="text", note=note, choices=found, strict=False)


def _told(importer: type[Importer], field: Field) -> Iterator[str]:
    """What somebody who fills in a column should know."""
    yield f"{type_of(field)}, {'required' if _is_required(field) else 'may be empty'}"
    if field.help:
        yield field.help
    if told := _WRITTEN.get(type(field)):
        yield told
    if isinstance(field, Choice):
        yield f"One of: {', '.join(field.values)}"
    elif isinstance(field, Lookup):
        yield f"A row of {field.table}, by its {' or '.join(field.by)}"
    else:
        yield from (f"{name}: {value}" for name, value in demands_of(field).items())
    if field.default is not None:
        yield f"If empty: {field.default_text()}"
    if field.name in importer.only_when:
        yield f"Only when {condition_of(importer, field.name)}"
