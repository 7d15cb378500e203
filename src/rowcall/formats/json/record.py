"""One JSON record, read exactly: its keys with their values as they stand in the file, or what is wrong with it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from rowcall.formats.json.index import Index
from rowcall.formats.reading import MIB, Limits
from rowcall.model import Code

Record = Mapping[str, msgspec.Raw]

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUE = msgspec.json.Decoder(msgspec.Raw)  # checks the grammar and builds nothing
NUMBERS_BEGIN = "-0123456789"
_TEXT = msgspec.json.Decoder(str)
_BRACE = ord("{")
_BACKSLASH, _COLON, _QUOTE, _SPACE = b'\\:" '
_MOST_REBUILT = MIB

_TOKEN = re.compile(rb'"((?:[^"\\]++|\\.)*+)"(?:[ \t\r\n]*+(:))?|(\{)|\}', re.DOTALL)
_SPACED = re.compile(rb'"[ \t\r\n]+:')
_ESCAPE = re.compile(rb"\\(u0000|.)", re.DOTALL)
_SURROGATE = re.compile(rb"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_HALF_PAIR = re.compile(rb"(?<!\\)\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u|\\?\Z)")
_REASON = re.compile(r"JSON is malformed: (.*) \(byte (\d+)\)")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a record can't become a row."""

    code: Code
    message: str


def read_record(text: bytes, line: int, limits: Limits, *, cut: bool = False) -> Record | Fault:
    """Read one record. `cut` says that the file ends behind it, so that an open end means a truncated file."""
    if len(text) > limits.record_bytes:
        return too_long(limits)
    try:
        text.decode()
        _VALUE.decode(text)
    except UnicodeDecodeError as error:
        return Fault(
            Code.INVALID_ENCODING, f"Byte 0x{text[error.start]:02x} is not UTF-8, {_where(text, error.start, line)}."
        )
    except RecursionError:
        return _too_deep(limits)
    except msgspec.DecodeError as error:
        return _malformed(text, line, str(error), cut=cut)
    if text.lstrip()[0] != _BRACE:
        return Fault(Code.NOT_AN_OBJECT, f"Expected an object in braces, found {_shown(text.strip())}.")
    if fault := _nul(text):
        return fault
    if text.count(b":") > limits.columns:  # don't build what may be too wide
        return structural_fault(text, limits) or _OBJECT.decode(text)
    record = _OBJECT.decode(text)
    flat = text.count(b"[") + text.count(b"{") <= limits.json_depth
    if flat and text.count(b'":') == len(record) and not _SPACED.search(text):
        return record  # as many keys as colons behind a quote: none stands twice
    return structural_fault(text, limits) or record


def state_of(text: bytes) -> Literal["whole", "open", "broken", "too deep"]:
    """Whether a text is a JSON value, the beginning of one, or what no continuation makes one."""
    try:
        _VALUE.decode(text)
    except RecursionError:
        return "too deep"
    except msgspec.DecodeError as error:
        if b"\\u" in text and len(text) <= MIB and (paired := _SURROGATE.sub(rb"\1\\ufffd", text)) != text:
            return state_of(paired)  # half a surrogate pair is no character, but it breaks no structure
        return "open" if _at_the_end(text, str(error)) else "broken"
    return "whole"


def _at_the_end(text: bytes, error: str) -> bool:
    """Whether an error may be only that the text ends too early. A number that was cut off counts as a wrong one."""
    found = _REASON.fullmatch(error)
    return found is None or (int(found[2]) == len(text) and not found[1].startswith("trailing"))


def cell_text(value: str, point: str = ".") -> str | None:
    """A value as text: a string without quotes and escapes, null as None, a number with this decimal mark.

    Everything else is left as it stands.
    """
    if value[0] == '"':
        return _TEXT.decode(value) if "\\" in value else value[1:-1]
    if value[0] == "n":
        return None
    return value.replace(".", point) if value[0] in NUMBERS_BEGIN else value


def structural_fault(text: bytes, limits: Limits, *, depth: int = 0) -> Fault | None:
    """Look through valid JSON for doubled keys, too many keys and too deep nesting, without building its values.

    Building them could take 25 times the text's size (`[[],[],…]`); this holds the keys of the open objects only.
    """
    brackets = text.count(b"[") + text.count(b"{")
    if depth + brackets > limits.json_depth and depth + _depth(text) > limits.json_depth:
        return _too_deep(limits)
    open_keys: list[set[bytes]] = []
    for token in _TOKEN.finditer(text):
        kind = token.lastindex
        if kind == 2:
            key = _plain(token[1])
            if key in open_keys[-1]:
                return Fault(Code.DUPLICATE_KEY, f"The key {_shown(key)} stands twice in one object.")
            open_keys[-1].add(key)
            if len(open_keys[-1]) > limits.columns and depth + len(open_keys) == 1:
                return too_many_keys(limits)
        elif kind == 3:
            open_keys.append(set())
        elif kind is None:
            open_keys.pop()
    return None


def _depth(text: bytes) -> int:
    index, deepest = Index(), 0
    for start in range(0, len(text), MIB):
        deepest = max(deepest, int(index.marks(text[start : start + MIB]).depths.max(initial=0)))
    return deepest


def nested_sound(values: Sequence[str], limits: Limits) -> bool:
    """Whether the nested ones of some values each have no doubled key and aren't too deep.

    Decoding and encoding again drops doubled keys; it takes a fifth of the time of looking at each value, but more
    memory, and only texts without escapes are written again as they stood.
    """
    odd: list[str] = []
    plain: list[str] = []
    for value in values:
        if value[0] not in "[{":
            continue
        deep = value.count("[") + value.count("{") >= limits.json_depth
        (odd if deep or "\\" in value or len(value) > _MOST_REBUILT else plain).append(value)
    if any(structural_fault(value.encode(), limits, depth=1) for value in odd):
        return False
    text = f"[{','.join(plain)}]".encode()
    try:
        again = msgspec.json.encode(msgspec.json.decode(text))
    except msgspec.ValidationError:  # an integer of thousands of digits
        return False
    return possible_keys(again) == possible_keys(text)


def possible_keys(text: bytes) -> int | None:
    """Count the colons of valid JSON that may stand behind a key: never fewer than there are keys.

    None when blanks in front of colons make that hard to say.
    """
    data = np.frombuffer(text, np.uint8)
    colons = np.flatnonzero(data == _COLON)
    before = data[colons - 1]
    quoted, spaced = colons[before == _QUOTE], colons[before <= _SPACE]
    if (data[spaced - 2] <= _SPACE).any():
        return None
    within_text = (data[quoted - 2] == _BACKSLASH) & (data[quoted - 3] != _BACKSLASH)
    return int(len(quoted) - np.count_nonzero(within_text) + np.count_nonzero(data[spaced - 2] == _QUOTE))


def too_long(limits: Limits) -> Fault:
    return Fault(Code.LINE_TOO_LONG, f"The record is longer than {limits.record_bytes:,} bytes.")


def too_many_keys(limits: Limits) -> Fault:
    message = f"With the keys of this record the file would have more than {limits.columns:,} columns."
    return Fault(Code.TOO_MANY_COLUMNS, message)


def _too_deep(limits: Limits) -> Fault:
    return Fault(Code.JSON_TOO_DEEP, f"Brackets are nested deeper than {limits.json_depth} levels.")


def _plain(key: bytes) -> bytes:
    return _TEXT.decode(b'"%b"' % key).encode() if b"\\" in key else key


def _nul(text: bytes) -> Fault | None:
    if b"\\u0000" in text and any(escape[1] == b"u0000" for escape in _ESCAPE.finditer(text)):
        return Fault(Code.NUL_CHARACTER, "A text holds a NUL character (\\u0000), which no database text can hold.")
    return None


def _malformed(text: bytes, line: int, error: str, *, cut: bool) -> Fault:
    if not text.strip():
        return Fault(Code.INVALID_JSON, "A record is missing: nothing stands where one is expected.")
    if b"\0" in text:
        return Fault(Code.NUL_CHARACTER, f"There is a NUL byte, {_where(text, text.index(0), line)}.")
    if "surrogate" in error or ("truncated" in error and _HALF_PAIR.search(text[-12:])):
        return Fault(Code.INVALID_ENCODING, "An escape \\uD800 to \\uDFFF is half of a pair: no character.")
    if cut and _at_the_end(text, error):
        return Fault(
            Code.TRUNCATED,
            "The file ends inside this record, before it is closed by }: it was cut short. Get it whole.",
        )
    if found := _REASON.fullmatch(error):
        at = min(int(found[2]), len(text))
        return Fault(Code.INVALID_JSON, f"Not valid JSON: {found[1]}, {_where(text, at, line)}{_before(text, at)}.")
    return Fault(Code.INVALID_JSON, "The record ends before its last quote or bracket is closed.")


def _where(text: bytes, at: int, line: int) -> str:
    characters = len(text[:at].decode("utf-8", "replace")) + 1
    return f"near character {characters:,} of the record (line {line + text.count(10, 0, at):,})"


def _before(text: bytes, at: int) -> str:
    shown = text[max(0, at - 20) : at].decode("utf-8", "replace").strip()
    return f", behind {shown!r}" if shown else ""


def _shown(text: bytes) -> str:
    shown = text[:40].decode("utf-8", "replace")
    return repr(shown) if len(text) <= 40 else f"{shown!r}…"
