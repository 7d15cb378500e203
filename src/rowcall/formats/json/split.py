"""A JSON document split into its records: the elements of an array, or values that stand one after the other.

The structural index says where each record begins and ends. What can't be right (a line end inside a string, a
bracket that closes the wrong one, text that no continuation makes valid) breaks one record; splitting goes on at the
next line that opens as the records before it did. Where there is no such line, the rest of the file is one loss.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import numpy as np

from rowcall.formats.json import elements
from rowcall.formats.json.elements import HEAD, Elements, Lost, read_block
from rowcall.formats.json.index import Index, Marks
from rowcall.formats.json.parts import SPACE, Parts, opening_of
from rowcall.formats.json.record import Fault, read_record, state_of, too_long
from rowcall.formats.reading import Limits
from rowcall.model import Code


@dataclass(frozen=True, slots=True)
class Place:
    """Where the records of a document begin, and whether they are the elements of an array that is already open."""

    at: int
    line: int
    in_array: bool


class Splitter:
    """Splits a document into records, from a place on. `end` is the byte behind the array, once that was found."""

    def __init__(self, path: Path, place: Place, limits: Limits) -> None:
        self.end: int | None = None
        self.line = place.line
        self._path = path
        self._in_array = place.in_array
        self._split: Literal["by commas", "by values"] = "by commas" if place.in_array else "by values"
        self._limits = limits
        self._at = place.at
        self._held = b""  # the record that was begun but not ended, from byte `_at` and line `line` on
        self._ahead = b""  # read already, but to be indexed anew
        self._done = False
        self._index = Index()
        self._tested = elements.BLOCK
        self._opening: bytes | None = None
        self._first = True

    def __iter__(self) -> Iterator[Elements | Lost]:
        with self._path.open("rb", buffering=0) as file:
            file.seek(self._at)
            while not self._done:
                block, self._ahead = self._ahead or read_block(file), b""
                yield from self._window(file, block) if block else self._last(file)

    def _window(self, file: IO[bytes], block: bytes) -> Iterator[Elements | Lost]:
        window = self._held + block
        parts = Parts.of(window, self._index.marks(block), len(self._held), in_array=self._in_array)
        self._opening = self._opening or opening_of(window, parts)
        broken = parts.first_broken(self._opening)
        whole = len(parts.starts) if broken is None else broken
        if whole and not (self._first and parts.blank):
            lines = self.line + np.searchsorted(parts.newlines, parts.starts[:whole])
            upto = self._at + len(window)
            yield Elements(window, parts.starts[:whole], parts.ends[:whole], lines, upto, self._split)
        if whole:
            self._first, self._tested = False, elements.BLOCK
        self._hold(window, int(parts.begins[whole]))
        if broken is not None:
            yield from self._resume(file)
        elif parts.closed:
            self.end, self._done = self._at, True
        else:
            yield from self._open_record(file)

    def _open_record(self, file: IO[bytes]) -> Iterator[Lost]:
        """Look at a record that goes on in the next block: can it still become valid, and is it not too long?"""
        if len(self._held) >= self._tested:
            self._tested *= 2
            if state_of(self._held.lstrip(SPACE)) == "broken":
                yield from self._resume(file)
        if len(self._held) > self._limits.record_bytes:
            yield from self._pass_by(file)

    def _last(self, file: IO[bytes]) -> Iterator[Elements | Lost]:
        """What is held when the file ends."""
        self._skip_space()
        text, nothing = self._held, b""
        state = state_of(text)
        if state in ("broken", "too deep") and self._find_opening() >= 0:
            yield from self._resume(file)
            return
        self._done = True
        if text:
            whole, line = np.array([0, len(text)]), np.array([self.line])
            yield Elements(text, whole[:1], whole[1:], line, self._at + len(text), self._split, cut=True)
        if self._in_array and (not text or state == "whole"):
            line = self.line + text.count(b"\n")
            message = "The file ends before its array is closed by ]: it was cut short. Get it whole."
            yield Lost(line, Code.TRUNCATED, message, nothing, 0, self._at)

    def _resume(self, file: IO[bytes]) -> Iterator[Lost]:
        """Give up what is held, and go on at the next line that opens a record."""
        self._skip_space()
        text, at, line = self._held, self._at, self.line
        found = self._find_opening()
        while found < 0 and (block := read_block(file)):
            self._hold(self._held, max(0, len(self._held) - len(self._opening or b"")))
            self._held += block
            found = self._find_opening()
        self._restart(self._held, found + 1 if found >= 0 else len(self._held))
        self._done = found < 0
        size = self._at - at
        fault = _fault(text[:size], line, self._limits)
        rest = f" Nothing in the {size:,} bytes from here on can be told apart into records." if self._done else ""
        raw = text[:size] if size <= len(text) else text[:HEAD]
        yield Lost(line, fault.code, fault.message + rest, raw, size, self._at)

    def _find_opening(self) -> int:
        return -1 if self._opening is None else self._held.find(self._opening)

    def _pass_by(self, file: IO[bytes]) -> Iterator[Lost]:
        """Read on to the end of a record that is too long."""
        self._skip_space()
        head, at, line = self._held[:HEAD], self._at, self.line
        self._hold(self._held, len(self._held))
        cut = None
        while cut is None and (block := read_block(file)):
            cut = self._cut(self._index.marks(block))
            self._hold(block, len(block) if cut is None else cut)
        size = self._at - at
        comma = self._held.startswith(b",")
        self._restart(self._held, int(comma))
        self._first = not comma
        fault = too_long(self._limits)
        yield Lost(line, fault.code, fault.message, head, size, self._at)

    def _cut(self, marks: Marks) -> int | None:
        cuts = marks.commas if self._in_array else marks.closers + 1
        return min([*cuts[:1].tolist(), *([] if marks.exit is None else [marks.exit])], default=None)

    def _hold(self, window: bytes, start: int) -> None:
        self.line += window.count(b"\n", 0, start)
        self._at += start
        self._held = window[start:]

    def _skip_space(self) -> None:
        self._hold(self._held, len(self._held) - len(self._held.lstrip(SPACE)))

    def _restart(self, window: bytes, start: int) -> None:
        """Go on from here as from the beginning."""
        self._hold(window, start)
        self._ahead, self._held = self._held, b""
        self._index, self._tested = Index(), elements.BLOCK


def _fault(text: bytes, line: int, limits: Limits) -> Fault:
    fault = read_record(text[: limits.record_bytes].rstrip(SPACE + b","), line, limits)
    return fault if isinstance(fault, Fault) else Fault(Code.INVALID_JSON, "No comma stands behind this record.")
