"""A resource, fields and filters become one SELECT, checked before anything is written."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composed, Identifier

from rowcall.errors import Final
from rowcall.export.filters import Filter, condition
from rowcall.export.kinds import Kind, kind_of
from rowcall.export.resource import Resource
from rowcall.formats import WriteColumn
from rowcall.importer.declaration import did_you_mean
from rowcall.model import Code
from rowcall.store.db import translated
from rowcall.store.targets import Target, describe


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """A field that is exported."""

    name: str
    kind: Kind
    optional: bool
    """A row need not bring a value for it: it is null then, or the default."""

    @property
    def write_column(self) -> WriteColumn:
        return WriteColumn(name=self.name, native=self.kind.native)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows and fields that an export gives."""

    resource: Resource
    columns: tuple[ExportColumn, ...]
    statement: Composed
    counting: Composed
    """The statement that tells how many rows there are."""

    @property
    def write_columns(self) -> list[WriteColumn]:
        """The columns as a writer takes them."""
        return [column.write_column for column in self.columns]

    @property
    def optional_texts(self) -> list[str]:
        """The columns of text that may be null."""
        return [column.name for column in self.columns if column.optional and column.kind.native == "text"]


def select_rows(
    connection: Connection[Any],
    resource: Resource,
    *,
    fields: Sequence[str] = (),
    filters: Sequence[Filter] = (),
    organisation: UUID | None = None,
) -> Selection:
    """The rows of a resource that meet the filters, with these fields; all of them if none are named.

    Given an organisation, only its rows, if the resource tells them apart.
    """
    try:
        target = describe(connection, resource.table)
        _check_declaration(resource, target)
        chosen = _chosen(resource, target, fields)
        _check_filters(connection, resource, target, filters)
    except psycopg.Error as error:
        raise translated(error) from error
    found = [target.columns[name] for name in chosen]
    columns = tuple(
        ExportColumn(column.name, kind_of(column), not column.not_null or column.default is not None)
        for column in found
    )
    whose = [Filter(resource.organisation, "=", str(organisation))] if organisation and resource.organisation else []
    source = _source(target, [condition(each) for each in (filters, whose) if each])
    return Selection(
        resource=resource,
        columns=columns,
        statement=_statement(resource, target, columns, source),
        counting=SQL("SELECT count(*) ") + source,
    )


def _check_declaration(resource: Resource, target: Target) -> None:
    whose = (resource.organisation,) if resource.organisation else ()
    named = {"fields": resource.fields, "order": resource.order, "filters": resource.filters or ()}
    named["organisation"] = whose
    for option, names in named.items():
        for name in names:
            if name not in target.columns:
                what = f"{option} names {name!r}, which is no column of {resource.table}"
                raise resource.mistake(what, did_you_mean(name, target.columns))


def _chosen(resource: Resource, target: Target, fields: Sequence[str]) -> list[str]:
    offered = resource.fields or tuple(target.columns)
    for name in fields:
        if name not in offered:
            raise Final(Code.BAD_OPTION, f"{resource.name} has no field {name!r}.", hint=did_you_mean(name, offered))
    if twice := [repr(name) for name, count in Counter(fields).items() if count > 1]:
        raise Final(Code.BAD_OPTION, f"Named twice: {', '.join(twice)}.", hint="Name each field once.")
    return list(dict.fromkeys(fields or offered))


def _check_filters(connection: Connection[Any], resource: Resource, target: Target, filters: Sequence[Filter]) -> None:
    offered = resource.fields or tuple(target.columns)
    allowed = offered if resource.filters is None else resource.filters
    for each in filters:
        if each.field not in offered:
            raise Final(
                Code.BAD_OPTION, f"{resource.name} has no field {each.field!r}.", hint=did_you_mean(each.field, offered)
            )
        if each.field not in allowed:
            hint = f"It can by {', '.join(allowed)}." if allowed else ""
            raise Final(Code.BAD_OPTION, f"{resource.name} can't be filtered by {each.field!r}.", hint=hint)
        _check_value(connection, target, each)


def _check_value(connection: Connection[Any], target: Target, each: Filter) -> None:
    """Let PostgreSQL read the value, as it will for the export."""
    about = f"the field {each.field!r}, which is {target.columns[each.field].type}"
    try:
        connection.execute(SQL("SELECT FROM {} WHERE {} LIMIT 0").format(target.identifier, condition([each])))
    except psycopg.DataError as error:
        said = (error.diag.message_primary or str(error)).partition("\n")[0]
        raise Final(
            Code.BAD_OPTION, f"{each.value!r} doesn't fit {about}.", hint=f"PostgreSQL says: {said}."
        ) from error
    except psycopg.errors.UndefinedFunction as error:
        raise Final(Code.BAD_OPTION, f"{each.operator} can't be used on {about}.") from error


def _source(target: Target, conditions: Sequence[Composed]) -> Composed:
    source = SQL("FROM {}").format(target.identifier)
    return source + SQL(" WHERE ") + SQL(" AND ").join(conditions) if conditions else source


def _statement(resource: Resource, target: Target, columns: Sequence[ExportColumn], source: Composed) -> Composed:
    selected = SQL(", ").join([column.kind.selected(column.name) for column in columns])
    statement = SQL("SELECT {} ").format(selected) + source
    if order := resource.order or target.primary_key:
        # qualified: a bare name would mean the output column, which may be text
        statement += SQL(" ORDER BY ") + SQL(", ").join([Identifier(target.name, name) for name in order])
    return statement
