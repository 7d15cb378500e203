"""The fast tier of the CSV reader: a structural index of one block of bytes, made with numpy.

It answers which stretches of the block are records beyond doubt, how many fields each has, and where doubt begins.
Two views of the same block: **by parity**, where the number of quotes before a line end tells whether it lies inside
a quoted field; and, as soon as any quote stands where none may, **by lines**, where each physical line is judged on
its own and the doubtful ones are left to the exact tier.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rowcall.formats.csv.records import CR, LF, Dialect
from rowcall.formats.reading import Flags, Ints

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Index:
    """The complete lines of a block and the marks within them."""

    array: Bytes
    starts: Ints
    ends: Ints
    """Where each physical line ends, past its line end."""
    contents: Ints
    """Where each line's content ends, before its line end."""
    marks: Ints
    """The positions of quotes, delimiters and line ends, in order, found in one pass (three take twice as long)."""
    line_marks: Ints
    """Which of the marks are line ends."""
    is_quote: Flags
    """Which of the marks are quotes."""
    doubts: Ints
    """Positions of bytes that the fast tier's parser can't be trusted with."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The records of a block as far as it goes: their spans, first lines, field counts, and which are in doubt."""

    starts: Ints
    ends: Ints
    contents: Ints
    lines: Ints
    """The index of the physical line where each record starts."""
    fields: Ints
    doubtful: Flags
    line_count: int
    """How many physical lines these records cover."""


_NONE: Ints = np.empty(0, np.int64)


def index_of(data: bytes, dialect: Dialect, *, final: bool, utf8: bool) -> Index:
    """Find the complete lines of a block and everything of structure within them.

    With `utf8`, the block is taken to be valid UTF-8; without, bytes that are not are put in doubt.
    """
    array = np.frombuffer(data, np.uint8)
    mask = array == LF
    if dialect.bare_cr:
        mask |= _is_bare_cr(array, final=final)
    if len(dialect.delimiter) == 1:
        mask |= array == dialect.delimiter[0]
    if dialect.quote:
        mask |= array == dialect.quote[0]
    marks = np.flatnonzero(mask)
    signs = array[marks]
    line_marks = np.flatnonzero((signs == LF) | (signs == CR)) if dialect.bare_cr else np.flatnonzero(signs == LF)
    ends = marks[line_marks] + 1
    if final and len(data) > (ends[-1] if len(ends) else 0):
        ends = np.append(ends, len(data))
        marks, signs = np.append(marks, len(data) - 1), np.append(signs, np.uint8(0))
        line_marks = np.append(line_marks, len(marks) - 1)
    whole = int(line_marks[-1]) + 1 if len(ends) else 0
    starts = np.concatenate((np.zeros(min(1, len(ends)), np.int64), ends[:-1]))
    array = array[: int(ends[-1]) if len(ends) else 0]
    return Index(
        array,
        starts,
        ends,
        _contents(array, starts, ends),
        marks[:whole],
        line_marks,
        signs[:whole] == dialect.quote[0] if dialect.quote else np.zeros(whole, np.bool_),
        _doubts(data[: len(array)], array, dialect, final=final, utf8=utf8),
    )


def _is_bare_cr(array: Bytes, *, final: bool) -> Flags:
    """Which bytes are a CR that no LF follows. Of the very last byte, that is known only at the end of the file."""
    bare = array == CR
    bare[:-1] &= array[1:] != LF
    if len(bare) and not final:
        bare[-1] = False
    return bare


def _contents(array: Bytes, starts: Ints, ends: Ints) -> Ints:
    """Where the content of each line ends: before LF, CRLF or CR, or at the end of a file that has none."""
    if not len(ends):
        return ends
    last = array[ends - 1]
    contents = ends - ((last == LF) | (last == CR))
    before = contents - 1
    crlf = (last == LF) & (before >= starts) & (array[before] == CR)
    return contents - crlf


def _doubts(data: bytes, array: Bytes, dialect: Dialect, *, final: bool, utf8: bool) -> Ints:
    found: list[Ints] = []
    if len(dialect.delimiter) != 1:
        return np.arange(len(array), dtype=np.int64)  # only the exact tier reads long delimiters
    if b"\0" in data:
        found.append(np.flatnonzero(array == 0))
    if dialect.backslash:
        found.append(np.flatnonzero(array == 0x5C))
    if not dialect.bare_cr and b"\r" in data:
        found.append(np.flatnonzero(_is_bare_cr(array, final=final)))
    if not utf8 and not data.isascii():
        found.append(np.array(_invalid_utf8(data), np.int64))
    return np.sort(np.concatenate(found)) if found else _NONE


def _invalid_utf8(data: bytes) -> list[int]:
    """The position of the first undecodable byte of each line that has one."""
    positions: list[int] = []
    start = 0
    view = memoryview(data)
    while start < len(data):
        try:
            str(view[start:], "utf-8")
        except UnicodeDecodeError as error:
            positions.append(start + error.start)
            line = data.find(b"\n", positions[-1])
            start = line + 1 if line >= 0 else len(data)
        else:
            break
    return positions


def by_parity(index: Index, *, final: bool) -> Structure | None:
    """The records of a block whose quotes are all where they belong; None when one isn't.

    A record may run over several lines. The block's last, incomplete record is left out.
    """
    if len(index.doubts):
        return None
    line_marks = index.line_marks
    if not index.is_quote.any():
        fields = np.diff(line_marks, prepend=-1)
        lines = np.arange(len(line_marks))
        return Structure(index.starts, index.ends, index.contents, lines, fields, _no_doubt(lines), len(lines))
    seen = np.cumsum(index.is_quote, dtype=np.int32)
    if not _quotes_in_place(index) or (final and seen[-1] & 1):
        return None
    counted = np.cumsum((seen & 1 == 0) & ~index.is_quote, dtype=np.int32)  # marks outside quotes, up to each mark
    outside = np.flatnonzero(seen[line_marks] & 1 == 0)
    lines = np.concatenate((np.zeros(min(1, len(outside)), np.int64), outside[:-1] + 1))
    return Structure(
        index.starts[lines],
        index.ends[outside],
        index.contents[outside],
        lines,
        np.diff(counted[line_marks[outside]], prepend=0),
        _no_doubt(outside),
        int(outside[-1]) + 1 if len(outside) else 0,
    )


def _no_doubt(records: Ints) -> Flags:
    return np.zeros(len(records), np.bool_)


def _quotes_in_place(index: Index) -> bool:
    """Whether every quote, taken in turn as opening and closing, has the neighbours it must have."""
    opens, closes = _neighbours(index)
    return bool(opens[0::2].all() and closes[1::2].all())


def _neighbours(index: Index) -> tuple[Flags, Flags]:
    """For each quote: may it open a field or escape (by what precedes), may it close one (by what follows)?"""
    array, is_quote = index.array, index.is_quote
    at = np.flatnonzero(is_quote)
    quotes = index.marks[at]
    # a neighbour that is a mark is a delimiter, a line end or a quote; a CR belongs to a line end too
    opens = (index.marks[at - 1] == quotes - 1) | (array[quotes - 1] == CR)
    opens[0] |= quotes[0] == 0
    after = np.minimum(at + 1, len(index.marks) - 1)
    closes = (index.marks[after] == quotes + 1) | (array[np.minimum(quotes + 1, len(array) - 1)] == CR)
    closes[-1] |= quotes[-1] == len(array) - 1
    return opens, closes


def by_lines(index: Index) -> Structure:
    """Every physical line of a block as a record of its own, in doubt where its quotes don't add up."""
    starts, line_marks = index.starts, index.line_marks
    doubtful = np.zeros(len(starts), np.bool_)
    doubtful[np.searchsorted(starts, index.doubts, "right") - 1] = True
    fields = np.diff(line_marks, prepend=-1)
    lines = np.arange(len(starts))
    if index.is_quote.any():
        line = np.repeat(lines, fields)  # of each mark
        seen = np.cumsum(index.is_quote)
        before = np.concatenate((np.zeros(1, np.int64), seen[line_marks[:-1]]))  # quotes before each line
        odd = (seen - before[line]) & 1 == 1
        doubtful[odd[line_marks]] = True
        opens, closes = _neighbours(index)
        of_quote = line[index.is_quote]
        doubtful[of_quote[np.where(odd[index.is_quote], ~opens, ~closes)]] = True
        fields = np.bincount(line[~odd & ~index.is_quote], minlength=len(lines))
    return Structure(starts, index.ends, index.contents, lines, fields, doubtful, len(lines))
