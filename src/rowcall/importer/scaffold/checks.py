"""What check constraints ask of single columns, where a field's options can say it.

PostgreSQL writes a constraint back in one form whatever was typed: `BETWEEN` as two comparisons, `IN` as `= ANY`, casts
spelled out. So a few patterns cover what people write; the rest is left to PostgreSQL.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Literal

import polars as pl
from polars.exceptions import PolarsError

_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_CAST = re.compile(
    r'::(?:"[^"]+"|\w+)(?:\.\w+)?(?: varying| precision| with(?:out)? time zone)?(?:\([\d,]+\))?(?:\[\])?'
)
_NEEDLESS = re.compile(r'(?<![\w"])\((\w+|"[^"]+"|\$\d+|-?[\d.]+)\)')
_COLUMN = r'(\w+|"[^"]+")'
_NUMBER = r"(-?\d+(?:\.\d+)?|\$\d+)"
_COMPARED = re.compile(rf"{_COLUMN} (>=|>|<=|<) {_NUMBER}")
_LENGTH = re.compile(rf"(?:char_length|character_length|length)\({_COLUMN}\) (>=|>|<=|<|=) {_NUMBER}")
_MATCHED = re.compile(rf"{_COLUMN} ~ \$(\d+)")
_AMONG = re.compile(rf"{_COLUMN} = ANY \(+ARRAY\[((?:\$\d+(?:, )?)+)\]\)+")
_EQUAL = re.compile(rf"{_COLUMN} = \$(\d+)")
_FILLED = re.compile(rf"(?:(?:btrim|TRIM)\((?:BOTH FROM )?)?{_COLUMN}\)? <> \$(\d+)")
_ABSENT = re.compile(rf"{_COLUMN} IS NULL")
_PRESENT = re.compile(rf"{_COLUMN} IS NOT NULL")


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of one column, named like the option of a field that says it."""

    column: str
    option: Literal["choices", "min", "max", "min_length", "max_length", "pattern", "required", "filled"]
    value: Decimal | int | str | tuple[str, ...] | bool
    strict: bool = False
    """The bound itself is refused too."""


@dataclass(frozen=True, slots=True)
class Understood:
    """What could be understood of a constraint."""

    demands: tuple[Demand, ...]
    whole: bool


def understand(expression: str) -> Understood:
    """What the constraint asks of single columns, and whether that is all of it."""
    literals: list[str] = []
    parts = _parts(_simple(expression, literals), " AND ")
    read = [_demands(part, literals) for part in parts]
    return Understood(tuple(chain.from_iterable(demands for demands in read if demands)), None not in read)


def _simple(expression: str, literals: list[str]) -> str:
    """The condition without casts and needless brackets; its literals become $0, $1 and so on."""

    def numbered(match: re.Match[str]) -> str:
        literals.append(match[1].replace("''", "'"))
        return f"${len(literals) - 1}"

    text = _CAST.sub("", _LITERAL.sub(numbered, expression))
    while (shorter := _NEEDLESS.sub(r"\1", text)) != text:
        text = shorter
    return text


def _parts(text: str, joined_by: str) -> list[str]:
    """The operands, at the outermost level of brackets."""
    text = _bare(text)
    depth, start, parts = 0, 0, list[str]()
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and text.startswith(joined_by, place):
            parts.append(text[start:place])
            start = place + len(joined_by)
    return [_bare(part) for part in [*parts, text[start:]]]


def _bare(text: str) -> str:
    while text.startswith("(") and _closed_at(text) == len(text) - 1:
        text = text[1:-1]
    return text


def _closed_at(text: str) -> int:
    """Where the bracket that opens the text is closed."""
    depth = 0
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return place
    return -1


def _demands(text: str, literals: list[str]) -> tuple[Demand, ...] | None:
    """The demands of a condition without AND; None when it says something else."""
    if len(parts := _parts(text, " OR ")) > 1:
        return _either(parts, literals)
    if found := _COMPARED.fullmatch(text):
        return _bounds(found, literals, "min", "max")
    if found := _LENGTH.fullmatch(text):
        return _bounds(found, literals, "min_length", "max_length")
    if found := _MATCHED.fullmatch(text):
        return _pattern(_name(found[1]), literals[int(found[2])])
    if found := _AMONG.fullmatch(text):
        values = tuple(literals[int(place)] for place in re.findall(r"\$(\d+)", found[2]))
        return (Demand(_name(found[1]), "choices", values),)
    if found := _EQUAL.fullmatch(text):
        return (Demand(_name(found[1]), "choices", (literals[int(found[2])],)),)
    if found := _PRESENT.fullmatch(text):
        return (Demand(_name(found[1]), "required", True),)
    if (found := _FILLED.fullmatch(text)) and literals[int(found[2])] == "":
        return (Demand(_name(found[1]), "filled", True),)
    return None


def _either(parts: list[str], literals: list[str]) -> tuple[Demand, ...] | None:
    """`x IS NULL OR …` says nothing more than `…`: blank values pass. Otherwise only `x = 'a' OR x = 'b'` is known."""
    absent = {_name(found[1]) for part in parts if (found := _ABSENT.fullmatch(part))}
    conditions = [part for part in parts if not _ABSENT.fullmatch(part)]
    if len(conditions) == 1:
        read = [_demands(part, literals) for part in _parts(conditions[0], " AND ")]
        demands = tuple(chain.from_iterable(part for part in read if part))
        same = absent == {demand.column for demand in demands}
        return demands if same and None not in read else None
    equal = [_EQUAL.fullmatch(part) for part in conditions]
    columns = {_name(found[1]) for found in equal if found} | absent
    if None in equal or len(columns) != 1:
        return None
    return (Demand(columns.pop(), "choices", tuple(literals[int(found[2])] for found in equal if found)),)


def _bounds(
    found: re.Match[str],
    literals: list[str],
    lower: Literal["min", "min_length"],
    upper: Literal["max", "max_length"],
) -> tuple[Demand, ...] | None:
    column, comparison, number = _name(found[1]), found[2], found[3]
    try:
        value = Decimal(literals[int(number[1:])] if number.startswith("$") else number)
    except InvalidOperation:  # a date, say
        return None
    if not value.is_finite():
        return None
    strict = comparison in (">", "<")
    least, most = Demand(column, lower, value, strict), Demand(column, upper, value, strict)
    return {">": (least,), ">=": (least,), "<": (most,), "<=": (most,), "=": (least, most)}[comparison]


def _pattern(column: str, regex: str) -> tuple[Demand, ...] | None:
    """PostgreSQL looks for the pattern anywhere in the text; a field's pattern is for all of it."""
    inner = regex.removeprefix("^").removesuffix("$")
    if len(_parts(inner, "|")) > 1 or not _compiles(inner):
        return None
    before = "" if regex.startswith("^") else ".*"
    after = "" if regex.endswith("$") and not regex.endswith("\\$") else ".*"
    return (Demand(column, "pattern", f"{before}{inner}{after}"),)


def _compiles(regex: str) -> bool:
    try:
        pl.Series([""]).str.contains(regex)
    except PolarsError:
        return False
    return True


def _name(column: str) -> str:
    return column.strip('"')
