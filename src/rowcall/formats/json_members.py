"""The keys of a JSON object of any size, found without decoding their values."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from rowcall.formats.json_elements import read_block
from rowcall.formats.json_index import Index

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
            index, at, starts = Index(), self._at, [self._at]
            while self.end is None and (self._stop is None or at < self._stop) and (block := read_block(file)):
                marks = index.marks(block)
                commas = marks.commas if marks.exit is None else marks.commas[marks.commas < marks.exit]
                self.end = None if marks.exit is None else at + marks.exit + 1
                for start in [*starts, *(commas + at + 1).tolist()]:
                    if member := _member(os.pread(file.fileno(), _HEAD, start), start):
                        yield member
                at, starts = at + len(block), []


def _member(text: bytes, at: int) -> Member | None:
    found = _MEMBER.match(text)
    if found is None:
        return None
    if found[2] is None:
        return Member(_text(found[1]), "value", at + found.start(3))
    kinds: dict[bytes, Kind] = {b"{": "objects", b"]": "empty array"}
    return Member(_text(found[1]), kinds.get(found[3], "array"), at + found.end(2))


def _text(key: bytes) -> str:
    try:
        return msgspec.json.decode(b'"%b"' % key, type=str)
    except ValueError:  # not JSON's escapes, or not UTF-8
        return key.decode("utf-8", "replace")
