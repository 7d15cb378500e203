"""Arrow columns of any type as text; lists, structs and maps as JSON. Runs in the guarded child."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, repeat
from json.encoder import encode_basestring
from typing import Any

from rowcall.formats.arrow.leaves import (
    Text,
    is_text,
    leaf_text,
    of_strings,
    pa,
    pc,
    plain,
    strings_of,
    types,
    values_type,
)
from rowcall.formats.arrow.messages import Native

_NOT_JSON = ("NaN", "Infinity", "-Infinity")

_NATIVES: Sequence[tuple[Callable[[Any], bool], Native]] = (
    (types.is_boolean, "boolean"),
    (types.is_integer, "number"),
    (types.is_floating, "number"),
    (types.is_decimal, "number"),
    (types.is_date, "date"),
    (types.is_timestamp, "datetime"),
    (types.is_time, "time"),
    (types.is_nested, "json"),
    (lambda kind: isinstance(kind, pa.JsonType), "json"),
)


def text_of(array: Any) -> Text:
    """A column as text."""
    array = plain(array)
    if not types.is_nested(array.type):
        return leaf_text(array)
    return of_strings([None if text == "null" else text for text in _json(array)])


def native_of(kind: Any) -> Native:
    """What the values of a type are."""
    kind = values_type(kind)
    for applies, native in _NATIVES:
        if applies(kind):
            return native
    return "text"


def depth_of(kind: Any) -> int:
    """How deep a type is nested."""
    inner = [kind.field(index).type for index in range(kind.num_fields)] if types.is_nested(kind) else []
    return 1 + max(map(depth_of, inner), default=0)


def leaves_of(kind: Any) -> int:
    """How many columns a type takes when it is stored."""
    if not types.is_nested(kind) or not kind.num_fields:
        return 1
    return sum(leaves_of(kind.field(index).type) for index in range(kind.num_fields))


def _json(array: Any) -> list[str]:
    """The JSON text of each value. A NUL character stays one, for `of_strings` to find."""
    array = plain(array)
    kind = array.type
    if types.is_struct(kind):
        return _objects(array)
    if types.is_map(kind):
        return _maps(array)
    if types.is_union(kind):
        return [_json(pa.array([value.value.as_py()], value.value.type))[0] for value in array]
    if types.is_nested(kind):
        return _lists(array)
    if is_text(kind):
        return ["null" if text is None else _quoted(text) for text in strings_of(array)]
    return _leaves(array)


def _leaves(array: Any) -> list[str]:
    text = leaf_text(array)
    texts: list[str | None] = text.array.to_pylist()
    for index, value in text.odd.items():
        texts[index] = value
    bare = native_of(array.type) in ("number", "boolean")
    return ["null" if text is None else text if bare and text not in _NOT_JSON else _quoted(text) for text in texts]


def _lists(array: Any) -> list[str]:
    inner = iter(_json(pc.list_flatten(array)))
    lengths = pc.list_value_length(array).to_pylist()
    return ["null" if length is None else f"[{','.join(islice(inner, length))}]" for length in lengths]


def _objects(array: Any) -> list[str]:
    keys = [_quoted(array.type.field(index).name) for index in range(array.type.num_fields)]
    rows = zip(*map(_json, array.flatten()), strict=True) if keys else repeat((), len(array))
    return [
        _object(zip(keys, row, strict=True)) if valid else "null"
        for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)
    ]


def _object(members: Iterable[tuple[str, str]]) -> str:
    inner = ",".join(f"{key}:{value}" for key, value in members)
    return f"{{{inner}}}"


def _maps(array: Any) -> list[str]:
    offsets = array.offsets.to_pylist()
    inside = slice(offsets[0], offsets[-1])
    keys = [key if key.startswith('"') else _quoted(key) for key in _json(array.keys[inside])]
    members = list(zip(keys, _json(array.items[inside]), strict=True))
    texts: list[str] = []
    for start, end, valid in zip(offsets, offsets[1:], array.is_valid().to_pylist(), strict=False):
        own = members[start - offsets[0] : end - offsets[0]]
        texts.append(_map(own) if valid else "null")
    return texts


def _map(members: list[tuple[str, str]]) -> str:
    if len(dict(members)) == len(members):
        return _object(members)
    pairs = ",".join(f"[{key},{value}]" for key, value in members)  # an object would lose a doubled key
    return f"[{pairs}]"


def _quoted(text: str) -> str:
    escaped = "\0".join(encode_basestring(part)[1:-1] for part in text.split("\0"))
    return f'"{escaped}"'
