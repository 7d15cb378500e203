"""Arrow values that aren't nested, as text, by the column. Runs in the guarded child.

Integers as digits; floats as the shortest text that gives the same number back (7.0, 0.1, 1e+20, NaN, Infinity);
decimals with all digits of their scale; dates and times in ISO 8601, without a fraction where it is zero; durations
as PT…S; bytes as \\x and hexadecimal digits.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow
import pyarrow.compute

from rowcall.model import Code

# pyarrow has no types: in the modules that use it, its objects are Any
pa: Any = pyarrow
pc: Any = pyarrow.compute
types: Any = pyarrow.types

_ZERO_FRACTION = r"\.0+(Z|[+-]\d{4})?$"
_ZONE = r"([+-]\d\d)(\d\d)$"
_YEAR = r"^(?:000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})-"
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


@dataclass(frozen=True, slots=True)
class Text:
    """A column as text: which of its rows hold no proper text, and which values have none (null in the array)."""

    array: Any
    bad: Mapping[int, Code] = field(default_factory=dict[int, Code])
    odd: Mapping[int, str] = field(default_factory=dict[int, str])


def leaf_text(array: Any) -> Text:
    """A column that isn't nested, as text."""
    for applies, render in _RENDERERS:
        if applies(array.type):
            return render(array)
    return Text(array.cast(pa.string()))


def is_text(kind: Any) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_binary(kind: Any) -> bool:
    return (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    )


def values_type(kind: Any) -> Any:
    """The type of a column's values, however they are stored."""
    return values_type(kind.value_type) if types.is_dictionary(kind) or types.is_run_end_encoded(kind) else kind


def plain(array: Any) -> Any:
    """A column without the wrapping that changes only how its values are stored."""
    kind = array.type
    if types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if isinstance(kind, pa.UuidType):
        return pa.array([None if value is None else str(uuid.UUID(bytes=value)) for value in array.storage.to_pylist()])
    return plain(array.storage) if isinstance(kind, pa.BaseExtensionType) else array


def of_strings(values: Sequence[str | None]) -> Text:
    """A column from strings, which `strings_of` may have made: with the rows apart that are no proper text."""
    if _flaw("".join(value for value in values if value is not None)) is None:
        return Text(pa.array(values, pa.string()))
    bad = {index: code for index, value in enumerate(values) if value is not None and (code := _flaw(value))}
    clean = [value and value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for value in values]
    return Text(pa.array(clean, pa.string()), bad)


def _flaw(value: str) -> Code | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return Code.INVALID_ENCODING
    return Code.NUL_CHARACTER if "\0" in value else None


def _string(array: Any) -> Text:
    if types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    try:
        array.validate(full=True)  # a Parquet reader takes any bytes for UTF-8
    except pa.ArrowInvalid:
        pass
    else:
        if not pc.any(pc.match_substring(array, "\0")).as_py():
            return Text(array)
    return of_strings(strings_of(array))


def strings_of(array: Any) -> list[str | None]:
    """A text column as strings. Bytes that are no UTF-8 stand in them as lone surrogates."""
    try:
        return array.to_pylist()
    except UnicodeDecodeError:
        pass
    binary = array.view(pa.binary() if types.is_string(array.type) else pa.large_binary())
    return [None if value is None else value.decode("utf-8", "surrogateescape") for value in binary.to_pylist()]


def _floating(array: Any) -> Text:
    text = pc.replace_substring_regex(array.cast(pa.string()), r"^(-?\d+)$", r"\1.0")
    if pc.all(pc.is_finite(array)).as_py() is not False:
        return Text(text)
    for found, written in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
        text = pc.if_else(pc.equal(text, found), written, text)
    return Text(text)


def _decimal(array: Any) -> Text:
    text = array.cast(pa.string())
    if not pc.any(pc.match_substring(text, "E")).as_py():
        return Text(text)
    return Text(pa.array([None if value is None else f"{value:f}" for value in array.to_pylist()], pa.string()))


def _date(array: Any) -> Text:
    return _within_years(array.cast(pa.string()))


def _timestamp(array: Any) -> Text:
    try:
        text = array.cast(pa.string())
    except pa.ArrowInvalid:  # a zone that isn't known here: the instant is what counts
        text = array.cast(pa.timestamp(array.type.unit, "UTC")).cast(pa.string())
    text = pc.replace_substring_regex(text, _ZERO_FRACTION, r"\1")
    if array.type.tz is not None:
        text = pc.replace_substring_regex(text, _ZONE, r"\1:\2")
    return _within_years(pc.replace_substring(text, " ", "T", max_replacements=1))


def _time(array: Any) -> Text:
    text = pc.replace_substring_regex(array.cast(pa.string()), _ZERO_FRACTION, r"\1")
    return _odd_apart(text, pc.match_substring(text, "<"))


def _within_years(text: Any) -> Text:
    return _odd_apart(text, pc.invert(pc.match_substring_regex(text, _YEAR)))


def _odd_apart(text: Any, odd: Any) -> Text:
    if not pc.any(odd).as_py():
        return Text(text)
    found = {index: _bare(text[index].as_py()) for index, is_odd in enumerate(odd.to_pylist()) if is_odd}
    return Text(pc.if_else(odd, pa.scalar(None, pa.string()), text), odd=found)


def _bare(text: str) -> str:
    """The number in Arrow's `<value out of range: 1000000000>`."""
    return text.rpartition(" ")[2].rstrip(">") if text.startswith("<") else text


def _duration(array: Any) -> Text:
    digits = _DIGITS[array.type.unit]
    values = array.cast(pa.int64()).to_pylist()
    return Text(pa.array([None if value is None else f"PT{_seconds(value, digits)}S" for value in values], pa.string()))


def _interval(array: Any) -> Text:
    values = array.to_pylist()
    texts = [None if value is None else f"P{value[0]}M{value[1]}DT{_seconds(value[2], 9)}S" for value in values]
    return Text(pa.array(texts, pa.string()))


def _seconds(value: int, digits: int) -> str:
    whole, fraction = divmod(abs(value), 10**digits)
    text = f"{whole}.{fraction:0{digits}}".rstrip("0") if fraction else str(whole)
    return f"-{text}" if value < 0 else text


def _binary(array: Any) -> Text:
    texts = [None if value is None else f"\\x{value.hex()}" for value in array.to_pylist()]
    return Text(pa.array(texts, pa.large_string()))


_RENDERERS: Sequence[tuple[Callable[[Any], bool], Callable[[Any], Text]]] = (
    (is_text, _string),
    (is_binary, _binary),
    (types.is_floating, _floating),
    (types.is_decimal, _decimal),
    (types.is_date, _date),
    (types.is_timestamp, _timestamp),
    (types.is_time, _time),
    (types.is_duration, _duration),
    (types.is_interval, _interval),
)
