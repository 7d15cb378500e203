"""An importer for a Table Schema, the description of a table that Frictionless data packages carry."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from rowcall.errors import Final
from rowcall.importer.fields import folded
from rowcall.importer.scaffold.source import (
    FieldSource,
    ImporterSource,
    Value,
    are_told_apart,
    bound,
    field_names,
    source,
    taken_headers,
    taken_notes,
)
from rowcall.importer.texts import pattern_mistake
from rowcall.model import FALSE, TRUE, Code

_KINDS = {
    "string": "Text",
    "number": "Decimal",
    "integer": "Integer",
    "year": "Integer",
    "boolean": "Boolean",
    "date": "Date",
    "datetime": "DateTime",
    "list": "List",
    "array": "Json",
    "object": "Json",
    "geojson": "Json",
}
_ORDER = " Each column's values tell the order of day, month and year, or --date-order."
_FORMATS = {"email": "Email", "uuid": "Uuid"}


class _Constraints(msgspec.Struct, frozen=True, rename="camel"):
    required: bool = False
    unique: bool = False
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | float | str | None = None
    maximum: int | float | str | None = None
    pattern: str | None = None
    enum: tuple[Any, ...] = ()


class _Field(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    type: str = "string"
    format: Any = "default"
    title: str = ""
    description: str = ""
    constraints: _Constraints = _Constraints()
    delimiter: str = ","
    decimal_char: str = "."
    group_char: str = ""
    bare_number: bool = True
    true_values: tuple[str, ...] = ()
    false_values: tuple[str, ...] = ()

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(map(_choice, self.constraints.enum))

    @property
    def kind(self) -> str:
        if are_told_apart(self.choices):
            return "Choice"
        if self.type == "string" and isinstance(self.format, str):
            return _FORMATS.get(self.format, "Text")
        return _KINDS.get(self.type, "Text")


class _Reference(msgspec.Struct, frozen=True):
    fields: str | tuple[str, ...]
    resource: str = ""


class _ForeignKey(msgspec.Struct, frozen=True):
    fields: str | tuple[str, ...]
    reference: _Reference


class _Schema(msgspec.Struct, frozen=True, rename="camel"):
    fields: tuple[_Field, ...]
    primary_key: str | tuple[str, ...] = ()
    foreign_keys: tuple[_ForeignKey, ...] = ()
    missing_values: tuple[str | dict[str, Any], ...] = ("",)
    title: str = ""
    description: str = ""


def scaffold_schema(document: Mapping[str, object], name: str) -> str:
    """The source of an importer into the table `name`, from a Table Schema."""
    schema = _read(document, name)
    _check_names(schema, name)
    names = field_names(field.name for field in schema.fields)
    key = tuple(names[column] for column in _primary_key(schema, names))
    unique = tuple(names[field.name] for field in schema.fields if field.constraints.unique)
    others = tuple(column for column in unique if (column,) != key)
    keys = [*filter(None, (key, others if len(others) == 1 else ())), (), ()]
    return source(
        ImporterSource(
            target=name,
            description=schema.description or schema.title or f"Rows of {name}.",
            key=keys[0],
            natural_key=keys[1],
            fields=tuple(_field(field, names, schema, name) for field in schema.fields),
            notes=tuple(_schema_notes(schema, names, others)),
        )
    )


def _read(document: Mapping[str, object], name: str) -> _Schema:
    try:
        return msgspec.convert(document, _Schema)
    except msgspec.ValidationError as error:
        raise Final(
            Code.BAD_OPTION,
            f"The Table Schema of {name} can't be read: {error}.",
            hint="A Table Schema is a JSON object with a list of `fields`, each with a `name` and a `type`.",
        ) from error


def _check_names(schema: _Schema, name: str) -> None:
    counts = Counter(field.name for field in schema.fields)
    if twice := [repr(field) for field, count in counts.items() if count > 1]:
        told = f"The Table Schema of {name} has several fields of the name {', '.join(twice)}."
        raise Final(Code.BAD_OPTION, told, hint="Give each field a name of its own.")


def _primary_key(schema: _Schema, names: Mapping[str, str]) -> tuple[str, ...]:
    """The primary key, unless it has a part that is no field."""
    key = _several(schema.primary_key)
    return key if all(column in names for column in key) else ()


def _field(field: _Field, names: Mapping[str, str], schema: _Schema, table: str) -> FieldSource:
    name, taken = names[field.name], taken_headers(names)
    reference = next((key.reference for key in schema.foreign_keys if _several(key.fields) == (field.name,)), None)
    kind = "Lookup" if reference else field.kind
    blank = [text for text in map(_missing, schema.missing_values) if text]
    options: dict[str, Value] = {
        **(_lookup(reference) if reference else {}),
        **_of_constraints(field.constraints, kind),
        **({"separator": field.delimiter} if kind == "List" and field.delimiter != "," else {}),
        **({"required": True} if field.constraints.required else {}),
        **({"aliases": [field.name]} if folded(field.name) != folded(name) and field.name not in taken else {}),
        **({"blank": blank} if blank else {}),
        **({"help": help_text} if (help_text := " ".join((field.description or field.title).split())) else {}),
    }
    values = (reference.resource or table,) if reference else field.choices if kind == "Choice" else ()
    notes = (*_field_notes(field, kind), *_writing_notes(field, kind), *taken_notes(field.name, name, taken))
    return FieldSource(name=name, kind=kind, values=values, options=options, notes=notes)


def _lookup(reference: _Reference) -> dict[str, Value]:
    to = _several(reference.fields)[0]
    return {"by": to} if to == "id" else {"by": to, "to": to}


def _of_constraints(constraints: _Constraints, kind: str) -> dict[str, Value]:
    given: dict[str, Value | None] = {}
    if kind in ("Text", "Email"):
        given = {"min_length": constraints.min_length, "max_length": constraints.max_length}
        given["pattern"] = None if _unusable(constraints.pattern) else constraints.pattern
    if kind in ("Integer", "Decimal"):
        given = {"min": _bound(constraints.minimum, kind), "max": _bound(constraints.maximum, kind)}
    return {name: value for name, value in given.items() if value is not None}


def _bound(text: int | float | str | None, kind: str) -> int | float | None:
    try:
        return bound(Decimal(str(text)), whole=kind != "Decimal")
    except InvalidOperation:
        return None


def _field_notes(field: _Field, kind: str) -> Iterator[str]:
    constraints = field.constraints
    if kind == "Text" and field.type not in _KINDS:
        yield f"Table Schema's type {field.type} is taken as text."
    if constraints.pattern and (kind not in ("Text", "Email") or _unusable(constraints.pattern)):
        yield f"A pattern that could not be taken over: {constraints.pattern}"
    bounds = {"minimum": constraints.minimum, "maximum": constraints.maximum}
    for name, value in bounds.items():
        if value is not None and (kind not in ("Integer", "Decimal") or _bound(value, kind) is None):
            yield f"A {name} that could not be taken over: {value}"


def _writing_notes(field: _Field, kind: str) -> Iterator[str]:
    """How files write the values, where a field doesn't take it from the schema."""
    if field.constraints.enum and kind not in ("Choice", "Lookup"):
        yield f"One of these, which a Choice could not tell apart: {', '.join(map(repr, field.choices))}."
    if field.format not in ("default", "any") and kind not in ("Email", "Uuid"):
        yield f"Not taken over: the format {field.format}.{_ORDER if kind in ('Date', 'DateTime') else ''}"
    if kind in ("Integer", "Decimal"):
        if field.decimal_char != ".":
            yield f"Not taken over: decimalChar {field.decimal_char!r}. Each column's values tell, or --decimal."
        if field.group_char not in ("", ",", ".", " ", "'"):
            yield f"Not taken over: groupChar {field.group_char!r}."
        if not field.bare_number:
            yield "Not taken over: bareNumber. Signs around a number, such as $ or %, are refused."
    if kind == "Boolean":
        for name, words, known in (("trueValues", field.true_values, TRUE), ("falseValues", field.false_values, FALSE)):
            if others := [repr(word) for word in words if word.lower() not in known]:
                yield f"Not taken over, of {name}: {', '.join(others)}."


def _schema_notes(schema: _Schema, names: Mapping[str, str], unique: tuple[str, ...]) -> Iterator[str]:
    if missing := [repr(column) for column in _several(schema.primary_key) if column not in names]:
        yield f"Not taken over: the primaryKey, of which {', '.join(missing)} is no field."
    if len(unique) > 1:
        yield f"Unique too, and may serve as the key or natural_key: {'; '.join(unique)}."
    for key in schema.foreign_keys:
        if len(columns := _several(key.fields)) > 1:
            yield f"{', '.join(columns)} together lead to {key.reference.resource}: no field checks that."


def _unusable(pattern: str | None) -> bool:
    return pattern is not None and pattern_mistake(pattern) is not None


def _choice(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _missing(value: str | dict[str, Any]) -> str:
    return value if isinstance(value, str) else str(value.get("value", ""))


def _several(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
