"""An importer as Python source, laid out as ruff would."""

import itertools
import keyword
import re
import textwrap
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from rowcall.importer.importer import Importer

_WIDTH = 88
_BACKSLASHES = re.compile(r'[^"\n]*[^"\\\n]')

Value = str | int | float | bool | tuple[str, ...] | list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSource:
    """A field: its kind with what goes between the brackets, and what a person should know about it."""

    name: str
    kind: str
    values: tuple[str, ...] = ()
    options: dict[str, Value] = field(default_factory=dict[str, Value])
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImporterSource:
    """An importer that is to be written."""

    target: str
    description: str
    key: tuple[str, ...] = ()
    natural_key: tuple[str, ...] = ()
    fields: tuple[FieldSource, ...]
    notes: tuple[str, ...] = ()


def source(importer: ImporterSource) -> str:
    """A module with this importer."""
    kinds = {field.kind for field in importer.fields}
    names = sorted(kinds | {"Importer"} | ({"Skip"} if importer.key else set[str]()))
    head = [*_imported(names), "", "", f"class {class_name(importer.target)}(Importer):"]
    body = [
        _docstring(importer.description),
        "",
        *_notes(importer.notes),
        f"target = {_text(importer.target)}",
        *_keys(importer),
        "",
        *chain.from_iterable(_field(field) for field in importer.fields),
    ]
    return "\n".join([*head, *(f"    {line}".rstrip() for line in body)]) + "\n"


def class_name(table: str) -> str:
    """`app.order_lines` is called OrderLines."""
    words = identifier(table.rpartition(".")[2]).split("_")
    return "".join(word[:1].upper() + word[1:] for word in words)


def identifier(name: str) -> str:
    """The name in Python's letters: `Größe (cm)` is called grosse_cm."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    word = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)).strip("_").lower() or "column"
    return f"column_{word}" if word[0].isdigit() else word


def field_names(columns: Iterable[str]) -> dict[str, str]:
    """The field of each column, no two the same. A row's own number leaves no field that name.

    A column whose name can be a field's has it before any that is only called alike.
    """
    given: dict[str, str] = {}
    for column in sorted(columns, key=lambda column: identifier(column) != column):
        word = {"number": "number_value"}.get(identifier(column), identifier(column))
        others = (f"{word}_{count}" for count in itertools.count(2))
        given[column] = next(name for name in itertools.chain([word], others) if name not in given.values())
    return given


def _attribute(name: str) -> str:
    """An underscore sets a field apart from Python's words and the importer's own."""
    return f"{name}_" if keyword.iskeyword(name) or hasattr(Importer, name) else name


def _imported(names: list[str]) -> list[str]:
    line = f"from rowcall import {', '.join(names)}"
    return [line] if len(line) <= _WIDTH else ["from rowcall import (", *(f"    {name}," for name in names), ")"]


def _docstring(description: str) -> str:
    plain = " ".join(description.split()).replace("\\", "\\\\").replace('"""', "'''").rstrip('"')
    return f'"""{plain}"""'


def _keys(importer: ImporterSource) -> list[str]:
    keys = {"key": importer.key, "natural_key": importer.natural_key}
    lines = [f"{name} = {', '.join(map(_text, key))}" for name, key in keys.items() if key]
    if importer.key:
        lines.append("on_match = Skip()  # rows that are there already; Update() changes them")
    return lines


def _field(field: FieldSource) -> list[str]:
    start = f"{_attribute(field.name)} = {field.kind}("
    arguments = [*map(_text, field.values), *(f"{name}={_value(value)}" for name, value in field.options.items())]
    line = f"{start}{', '.join(arguments)})"
    if len(line) + 4 <= _WIDTH:
        return [*_notes(field.notes), line]
    options = chain.from_iterable(_option(name, value) for name, value in field.options.items())
    return [*_notes(field.notes), start, *(f"    {_text(value)}," for value in field.values), *options, ")"]


def _option(name: str, value: Value) -> list[str]:
    line = f"    {name}={_value(value)},"
    if isinstance(value, list) and len(line) + 4 > _WIDTH:
        return [f"    {name}=[", *(f"        {_text(item)}," for item in value), "    ],"]
    return [line]


def _notes(notes: tuple[str, ...]) -> list[str]:
    wrapped = (textwrap.wrap(" ".join(note.split()), _WIDTH - 6, break_long_words=False) for note in notes)
    return [f"# {line}" for line in chain.from_iterable(wrapped)]


def _value(value: Value) -> str:
    match value:
        case str():
            return _text(value)
        case tuple():
            return f"({', '.join(map(_text, value))})"
        case list():
            return f"[{', '.join(map(_text, value))}]"
        case _:
            return repr(value)


def _text(text: str) -> str:
    """A literal, in the quotes that need fewer escapes."""
    if "\\" in text and _BACKSLASHES.fullmatch(text) and text.isprintable():
        return f'r"{text}"'
    quote = '"' if text.count('"') <= text.count("'") else "'"
    return quote + "".join(_escaped(letter, quote) for letter in text) + quote


def _escaped(letter: str, quote: str) -> str:
    if letter in (quote, "\\"):
        return f"\\{letter}"
    return letter if letter.isprintable() else repr(letter)[1:-1]
