"""The keys of a JSON object of any size, found without decoding their values."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from rowcall.formats.json.elements import read_block
from rowcall.formats.json.index import Index

_MEMBER = re.compile(rb'\s*+"((?:[^"\\]++|\\.)*+)"\s*+:\s*+(?:(\[)\s*+)?+(\S)', re.DOTALL)
_HEAD = 4096

Kind = Literal["objects", "empty array", "array", "value"]


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object and the kind of its value."""

    key: str
    kind: Kind
    at: int
    """The first byte of the value; of an array, the byte behind its bracket."""


class Members:
    """The members of an object, from a byte in it (up to another one); `end` is the byte behind it, once found."""

    def __init__(self, path: Path, at: int, *, stop: int | None = None) -> None:
        self.end: int | None = None
        self._path = path
        self._at = at
        self._stop = stop

    def __iter__(self) -> Iterator[Member]:
        with self._path.open("rb", buffering=0) as file:
            file.seek(self._at)
            index, at, starts = Index(), self._at, [0]
            while self.end is None and (self._stop is None or at < self._stop) and (block := read_block(file)):
                marks = index.marks(block)
                commas = marks.commas if marks.exit is None else marks.commas[marks.commas < marks.exit]
                self.end = None if marks.exit is None else at + marks.exit + 1
                for start in [*starts, *(commas + 1).tolist()]:
                    whole = start + _HEAD <= len(block)
                    text, offset = (block, start) if whole else (os.pread(file.fileno(), _HEAD, at + start), 0)
                    if found := _MEMBER.match(text, offset):
                        yield _member(found, at + start - offset)
                at, starts = at + len(block), []


def _member(found: re.Match[bytes], offset: int) -> Member:
    if found[2] is None:
        return Member(_text(found[1]), "value", offset + found.start(3))
    kinds: dict[bytes, Kind] = {b"{": "objects", b"]": "empty array"}
    return Member(_text(found[1]), kinds.get(found[3], "array"), offset + found.end(2))


def _text(key: bytes) -> str:
    if key.isascii() and b"\\" not in key:
        return key.decode()
    try:
        return msgspec.json.decode(b'"%b"' % key, type=str)
    except ValueError:  # not JSON's escapes, or not UTF-8
        return key.decode("utf-8", "replace")
