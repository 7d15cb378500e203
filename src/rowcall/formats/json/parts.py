"""A window of a JSON document cut into the parts that records stand in, and which of them can't be right."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from rowcall.formats.json.index import Marks
from rowcall.formats.json.record import state_of
from rowcall.formats.reading import Ints

SPACE = b" \t\r\n\x1e"
"""JSON's blanks, and the mark in front of each value of a JSON text sequence."""
_SPACES = np.zeros(256, np.bool_)
_SPACES[list(SPACE)] = True
_LF, _BRACE, _BRACKET = b"\n{]"
_STEPS = 16

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a window that ended in it, and where the next one begins."""

    window: bytes
    begins: Ints
    starts: Ints
    ends: Ints
    """Starts and ends without the blanks around, which are between `begins` and the next one."""
    newlines: Ints
    open: int
    closed: bool
    """The array ends behind the last part."""
    stray: int | None
    """A bracket that closes what was never opened."""
    torn: int | None

    @classmethod
    def of(cls, window: bytes, marks: Marks, held: int, *, in_array: bool) -> Self:
        """Cut a window at commas, or behind closing brackets. `marks` are those of what stands behind `held` bytes."""
        cuts = marks.commas if in_array else marks.closers + 1
        stray, closed = marks.exit, False
        if stray is not None:
            cuts, closed = cuts[cuts <= stray], in_array and window[held + stray] == _BRACKET
            cuts = np.append(cuts, stray) if closed else cuts
        ends = cuts + held
        begins = np.concatenate(([0], ends + in_array))
        data = np.frombuffer(window, np.uint8)
        return cls(
            window,
            begins,
            *_trimmed(window, data, begins[:-1], ends),
            newlines=np.flatnonzero(data == _LF),
            open=int(begins[-1]),
            closed=closed,
            stray=None if closed or stray is None else stray + held,
            torn=None if marks.torn is None else marks.torn + held,
        )

    @property
    def blank(self) -> bool:
        """Whether there is nothing but the array's end."""
        return self.closed and len(self.starts) == 1 and bool(self.starts[0] == self.ends[0])

    def first_broken(self, opening: bytes | None) -> int | None:
        """The first part that is no record, where that can be told before decoding; the open part counts as well."""
        broken = [] if self.stray is None else [len(self.starts)]
        if opening is not None:
            broken += self._torn() + self._glued(len(opening) - 1)
        return min(broken, default=None)

    def _torn(self) -> list[int]:
        if self.torn is None or (self.closed and self.torn >= self.open):
            return []
        return [int(np.searchsorted(self.begins, self.torn, "right")) - 1]

    def _glued(self, indent: int) -> list[int]:
        """A part with a line that opens like a record, though it is not the first of the part, and that isn't valid."""
        data = np.frombuffer(self.window, np.uint8)
        opened = self.newlines[self.newlines + indent < self.open] + indent
        opened = opened[data[opened] == _BRACE]
        inner = np.setdiff1d(opened, self.starts, assume_unique=True)
        for part in np.unique(np.searchsorted(self.begins, inner, "right") - 1).tolist():
            if state_of(self.window[self.starts[part] : self.ends[part]]) != "whole":
                return [part]
        return []


def opening_of(window: bytes, parts: Parts) -> bytes | None:
    """How a record opens its line: the line end in front, the indent, and the brace."""
    open_part = window[parts.open :]
    begun = parts.open + len(open_part) - len(open_part.lstrip(SPACE))
    for start in (*parts.starts[-1:].tolist(), begun):
        line = window.rfind(b"\n", 0, start) + 1
        indent, after = window[line:start], window[start + 1 : start + 2]
        # a brace alone on its line without indent: nested objects may be written in the same way
        telling = indent or after not in (b"", b"\r", b"\n")
        if line and telling and not indent.strip(b" \t") and window[start : start + 1] == b"{":
            return window[line - 1 : start + 1]
    return None


def _trimmed(window: bytes, data: npt.NDArray[np.uint8], starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    starts, ends = starts.copy(), ends.copy()
    for _ in range(_STEPS):  # enough for the indents that people use
        in_front, behind = _blanks_around(data, starts, ends)
        if not (in_front.any() or behind.any()):
            return starts, ends
        starts += in_front
        ends -= behind & (starts < ends)
    for part in np.flatnonzero(np.logical_or(*_blanks_around(data, starts, ends))).tolist():
        text = window[starts[part] : ends[part]]
        starts[part] += len(text) - len(text.lstrip(SPACE))
        ends[part] = starts[part] + len(text.strip(SPACE))
    return starts, ends


def _blanks_around(data: npt.NDArray[np.uint8], starts: Ints, ends: Ints) -> tuple[Bools, Bools]:
    some = starts < ends
    return some & _SPACES[data[np.minimum(starts, len(data) - 1)]], some & _SPACES[data[ends - 1]]
