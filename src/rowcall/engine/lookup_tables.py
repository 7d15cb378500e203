"""Whether the tables that an importer looks up in are there, and have the columns that it counts on."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from psycopg import Connection

from rowcall.errors import Final
from rowcall.importer import Importer, Lookup
from rowcall.model import Code
from rowcall.store.targets import find_table


def require_lookup_tables(connection: Connection[Any], importer: type[Importer]) -> None:
    """Raise BAD_TARGET for the first look-up that could not be made."""
    for field in importer.fields.values():
        if isinstance(field, Lookup):
            _require_columns(connection, importer, field)


def _require_columns(connection: Connection[Any], importer: type[Importer], field: Lookup) -> None:
    columns = find_table(connection, field.table).columns
    for option, name in _needed(field):
        if name not in columns:
            near = get_close_matches(name, list(columns), 1)
            told = (
                f"Table {field.table}, in which {importer.name}.{field.name} looks, has no column {name!r} ({option})."
            )
            hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(columns)}."
            raise Final(Code.BAD_TARGET, told, hint=hint)


def _needed(field: Lookup) -> Iterator[tuple[str, str]]:
    """The columns that a look-up needs, each with the option that names it."""
    yield from (("by", name) for name in field.by)
    yield "to", field.to
    for option, name in (("within", field.within), ("label", field.label)):
        if name:
            yield option, name
