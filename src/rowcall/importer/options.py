"""Checks what is declared by its annotation: an option that is something else would fail in the middle of an import."""

import datetime as dt
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import Field as Part
from dataclasses import fields
from decimal import Decimal as Exact
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_WORDS: dict[Any, str] = {
    bool: "True or False",
    str: "a text",
    int: "a whole number",
    float: "a number",
    Exact: "a number",
    dt.date: "a date",
    dt.datetime: "a datetime",
    Sequence: "a list of texts",
    tuple: "a tuple of texts",
    Mapping: "a dict of texts",
}
_UNNAMED = frozenset({Any, types.NoneType})


def option_mistakes(declared: Any) -> Iterator[str]:
    """Those options of a field, or of another dataclass, that are not what their annotation says."""
    hints = _hints(declared.__class__)
    for part in fields(declared):
        if _is_option(part) and not fits(value := getattr(declared, part.name), hints[part.name]):
            yield f"{part.name} is {value!r}; {expected(hints[part.name])} is expected."


def _is_option(part: "Part[Any]") -> bool:
    return part.init or part.name not in ("name", "timezone", "reading", "limits")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def fits(value: object, hint: Any) -> bool:
    """Whether a value is what an annotation says."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any or origin is Literal:  # others say more of these
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair)  # pyright: ignore[reportUnknownVariableType] (anything may stand there)
    if origin in (Sequence, tuple):  # a text alone is told otherwise
        return isinstance(value, Collection) and all(isinstance(text, str) for text in value)  # pyright: ignore[reportUnknownVariableType] (as above)
    if hint in (int, float):
        return isinstance(value, hint) and not isinstance(value, bool)
    return isinstance(value, hint)


def expected(hint: Any) -> str:
    """What an annotation says, in words."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    named = (get_origin(part) or part for part in parts if part not in _UNNAMED)
    return " or ".join(dict.fromkeys(_WORDS.get(part, getattr(part, "__name__", str(part))) for part in named))
