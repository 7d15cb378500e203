"""What can be exported: a declared part of a table, or a table as it is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.errors import Final
from rowcall.importer.declaration import did_you_mean, nearest
from rowcall.importer.registry import Registry
from rowcall.model import Code
from rowcall.store.db import translated
from rowcall.store.queries import query
from rowcall.store.targets import find_table

_INTERNAL = ("rowcall", "pg_catalog", "information_schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A table, or the part of it that people may export."""

    name: str
    table: str
    """`table` or `schema.table`; a view will do."""
    fields: tuple[str, ...] = ()
    """The columns that are given out, in this order; all of the table if none are named."""
    order: tuple[str, ...] = ()
    """The columns that the rows are ordered by; the primary key if none are named."""
    filters: tuple[str, ...] | None = None
    """The fields by which rows can be chosen; None for every field."""
    organisation: str | None = None
    """The column with the id of the organisation that a row belongs to: over HTTP, each is given its own rows only.
    None: the rows are for everybody who may export."""

    def __post_init__(self) -> None:
        self._require_list("fields", self.fields)
        self._require_list("order", self.order)
        self._require_list("filters", self.filters or ())
        for name in self.filters or ():
            if self.fields and name not in self.fields:
                raise self.mistake(
                    f"filters names {name!r}, which is not among its fields", did_you_mean(name, self.fields)
                )

    def _require_list(self, option: str, names: tuple[str, ...] | str) -> None:
        if isinstance(names, str):
            raise self.mistake(f"{option} is a text, not a list of names", f"Write {option}=({names!r},).")
        if len(set(names)) < len(names):
            raise self.mistake(f"{option} names a column twice: {', '.join(names)}", "Name each once.")

    def mistake(self, what: str, hint: str) -> Final:
        """What is wrong with this declaration."""
        return Final(Code.BAD_DECLARATION, f"Resource {self.name!r}: {what}.", hint=hint)


def known_resources(registry: Registry) -> dict[str, Resource]:
    """The resources of all packs, by name."""
    return declared(thing for pack in registry.packs for thing in pack.resources)


def declared(things: Iterable[object]) -> dict[str, Resource]:
    """The resources that packs declare, by name."""
    found: dict[str, Resource] = {}
    for thing in things:
        if not isinstance(thing, Resource):
            raise Final(Code.BAD_DECLARATION, f"{thing!r} in a pack's `resources` is no Resource.")
        if thing.name in found:
            raise thing.mistake("there are two of this name", "Rename one of them.")
        found[thing.name] = thing
    return found


def find_resource(connection: Connection[Any], name: str, known: Mapping[str, Resource]) -> Resource:
    """The resource of that name, else the table of that name."""
    if name in known:
        return known[name]
    try:
        if not _is_table(connection, name):
            raise _unknown(connection, name, known)
    except psycopg.Error as error:
        raise translated(error) from error
    return Resource(name=name, table=name)


def _is_table(connection: Connection[Any], name: str) -> bool:
    try:
        return find_table(connection, name).schema not in _INTERNAL  # keys and accounts live there
    except Final:
        return False


def _unknown(connection: Connection[Any], name: str, known: Iterable[str]) -> Final:
    tables = connection.cursor(row_factory=scalar_row).execute(query("target_tables")).fetchall()
    names = {*known, *tables}
    message = f"There is no resource and no table {name!r}. {nearest(name, names)}"
    return Final(
        Code.UNKNOWN_RESOURCE, message.strip(), hint=f"Known are: {', '.join(sorted(names))}." if names else ""
    )
