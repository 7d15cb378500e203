"""An importer as Python source, laid out as ruff would. What would not load is not written."""

import itertools
import keyword
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal as Exact
from itertools import chain

from rowcall.errors import Final
from rowcall.importer.dates import Date, DateTime
from rowcall.importer.fields import Field, folded
from rowcall.importer.importer import Importer
from rowcall.importer.lookups import Lookup
from rowcall.importer.numbers import Boolean, Decimal, Integer
from rowcall.importer.texts import Choice, Email, Json, List, Text, Uuid
from rowcall.model import Code

_KINDS: Mapping[str, type[Field]] = {
    kind.__name__: kind
    for kind in (Boolean, Choice, Date, DateTime, Decimal, Email, Integer, Json, List, Lookup, Text, Uuid)
}
_BOUNDS = ("min", "max", "min_length", "max_length", "pattern")
_DIGITS = 38
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
    """A module with this importer; one that could not be loaded is refused."""
    importer = replace(importer, fields=tuple(map(_sound, importer.fields)))
    _check_loads(importer)
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


def _sound(field: FieldSource) -> FieldSource:
    """The field without bounds that no value could keep, which are told instead."""
    mistakes = list(_declared(field).named(field.name, "UTC").mistakes())
    bounds = {name: value for name, value in field.options.items() if name in _BOUNDS}
    if not mistakes or not bounds:
        return field
    told = f"Left out: {', '.join(f'{name}={_value(value)}' for name, value in bounds.items())}; {' '.join(mistakes)}"
    others = {name: value for name, value in field.options.items() if name not in bounds}
    return replace(field, options=others, notes=(*field.notes, told))


def _check_loads(importer: ImporterSource) -> None:
    """Declare the class as loading its source would."""
    fields = {_attribute(field.name): _declared(field) for field in importer.fields}
    keys = {"key": importer.key, "natural_key": importer.natural_key}
    try:
        type(class_name(importer.target), (Importer,), {"__module__": "", "target": importer.target, **keys, **fields})
    except Final as error:
        told = f"No importer that could be loaded can be written for {importer.target}: {error.message}"
        raise Final(Code.BAD_TARGET, told, hint="Write one by hand that leaves this out.") from error


def _declared(field: FieldSource) -> Field:
    return _KINDS[field.kind](*field.values, **field.options)


def class_name(table: str) -> str:
    """`app.order_lines` is called OrderLines."""
    words = identifier(table.rpartition(".")[2]).split("_")
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return f"{name}Rows" if keyword.iskeyword(name) else name


def identifier(name: str) -> str:
    """The name in Python's letters: `Größe (cm)` is called grosse_cm."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    word = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)).strip("_").lower() or "column"
    return f"column_{word}" if word[0].isdigit() else word


def field_names(columns: Iterable[str]) -> dict[str, str]:
    """The field of each column, no two alike to a file's header. A row's own number leaves no field that name.

    A column whose name can be a field's has it before any that is only called alike.
    """
    given: dict[str, str] = {}
    taken: set[str] = set()
    for column in sorted(columns, key=lambda column: _word(column) != column):
        others = (f"{_word(column)}_{count}" for count in itertools.count(2))
        name = next(name for name in itertools.chain([_word(column)], others) if folded(name) not in taken)
        given[column] = name
        taken.add(folded(name))
    return given


def _word(column: str) -> str:
    word = identifier(column)
    return "number_value" if word == "number" else word


def taken_headers(names: Mapping[str, str]) -> dict[str, str]:
    """The columns under whose own name a file brings another, each with that one.

    A header is first a field's name, then the name of the first column that is written so.
    """
    owners = {folded(name): column for column, name in names.items()}
    for column in names:
        owners.setdefault(folded(column), column)
    return {column: owner for column in names if (owner := owners[folded(column)]) != column}


def taken_notes(column: str, name: str, taken: Mapping[str, str]) -> tuple[str, ...]:
    """That a file's column is not known by the name that its target has."""
    if column not in taken:
        return ()
    return (f"A file's column {column!r} looks like {taken[column]!r}: bring it with --map '{column}={name}'.",)


def are_told_apart(choices: Sequence[str]) -> bool:
    """Whether a Choice can take them: it looks at neither case nor blanks."""
    plain = {choice.strip().lower() for choice in choices}
    return len(plain) == len(choices) > 0 and "" not in plain and all(choice == choice.strip() for choice in choices)


def bound(number: Exact, *, whole: bool) -> int | float | None:
    """A bound as it is written in Python; None for one that would not be the same there."""
    if not number.is_finite() or number.adjusted() >= _DIGITS:
        return None
    if number == number.to_integral_value():
        return int(number)
    return None if whole or Exact(repr(float(number))) != number else float(number)


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
