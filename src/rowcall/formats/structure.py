"""The fast tier of the CSV reader: a structural index of one block of bytes, made with numpy.

It answers which stretches of the block are records beyond doubt, how many fields each has, and where doubt begins.
Two views of the same block: **by parity**, where the number of quotes before a line end tells whether it lies inside
a quoted field; and, as soon as any quote stands where none may, **by lines**, where each physical line is judged on
its own and the doubtful ones are left to the exact tier.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rowcall.formats.reading import Flags, Ints
from rowcall.formats.records import CR, LF, Dialect

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Index:
    """Positions within a block. `ends` are where physical lines end, past their line end."""

    data: bytes
    array: Bytes
    starts: Ints
    ends: Ints
    contents: Ints
    """Where each line's content ends, before its line end."""
    quotes: Ints
    delimiters: Ints
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


def index_of(data: bytes, dialect: Dialect, *, final: bool, utf8: bool) -> Index:
    """Find the complete lines of a block and everything of structure within them.

    With `utf8`, the block is taken to be valid UTF-8; without, bytes that are not are put in doubt.
    """
    array = np.frombuffer(data, np.uint8)
    line_ends = np.flatnonzero(array == LF)
    if dialect.bare_cr:
        line_ends = np.sort(np.concatenate((line_ends, _bare_crs(array, final=final))))
    ends = line_ends + 1
    if final and len(data) > (ends[-1] if len(ends) else 0):
        ends = np.append(ends, len(data))
    whole = int(ends[-1]) if len(ends) else 0
    array = array[:whole]
    starts = np.concatenate((np.zeros(min(1, len(ends)), np.int64), ends[:-1]))
    return Index(
        data,
        array,
        starts,
        ends,
        _contents(array, starts, ends),
        np.flatnonzero(array == dialect.quote[0]) if dialect.quote else _NONE,
        np.flatnonzero(array == dialect.delimiter[0]) if len(dialect.delimiter) == 1 else _NONE,
        _doubts(data[:whole], array, dialect, final=final, utf8=utf8),
    )


_NONE: Ints = np.empty(0, np.int64)


def _bare_crs(array: Bytes, *, final: bool) -> Ints:
    crs = np.flatnonzero(array == CR)
    if len(crs) and crs[-1] == len(array) - 1:
        last, crs = crs[-1:], crs[:-1]
        return np.append(crs[array[crs + 1] != LF], last if final else _NONE)
    return crs[array[crs + 1] != LF]


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
        found.append(_bare_crs(array, final=final))
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
    quotes = index.quotes
    if len(index.doubts) or not _quotes_in_place(index) or (final and len(quotes) % 2):
        return None
    outside = np.searchsorted(quotes, index.ends) & 1 == 0
    ends = index.ends[outside]
    lines = np.concatenate((np.zeros(min(1, len(ends)), np.int64), np.flatnonzero(outside)[:-1] + 1))
    delimiters = _outside_quotes(index.delimiters, quotes)
    return Structure(
        index.starts[lines],
        ends,
        index.contents[outside],
        lines,
        np.diff(np.searchsorted(delimiters, ends), prepend=0) + 1,
        np.zeros(len(ends), np.bool_),
        int(np.flatnonzero(outside)[-1]) + 1 if len(ends) else 0,
    )


def _outside_quotes(delimiters: Ints, quotes: Ints) -> Ints:
    """The delimiters with an even number of quotes before them."""
    if not len(quotes):
        return delimiters
    # as a running sum over the few quotes: looking each delimiter up among the quotes takes ten times as long
    toggles = np.zeros(len(delimiters) + 1, np.int32)
    np.add.at(toggles, np.searchsorted(delimiters, quotes), 1)
    return delimiters[np.cumsum(toggles[:-1]) & 1 == 0]


def _quotes_in_place(index: Index) -> bool:
    """Whether every quote, taken in turn as opening and closing, has the neighbours it must have."""
    if not len(index.quotes):
        return True
    opens, closes = _neighbours(index)
    return bool(opens[0::2].all() and closes[1::2].all())


def _neighbours(index: Index) -> tuple[Flags, Flags]:
    """For each quote: may it open a field or escape (by what precedes), may it close one (by what follows)?"""
    array, quotes = index.array, index.quotes
    quote = array[quotes[0]]
    delimiter = array[index.delimiters[0]] if len(index.delimiters) else LF
    before = array[quotes - 1]  # for position 0 this is the block's last byte: put right below
    opens = (before == delimiter) | (before == LF) | (before == CR) | (before == quote)
    opens[0] |= quotes[0] == 0
    after = array[np.minimum(quotes + 1, len(array) - 1)]
    closes = (after == delimiter) | (after == LF) | (after == CR) | (after == quote)
    closes[-1] |= quotes[-1] == len(array) - 1
    return opens, closes


def by_lines(index: Index) -> Structure:
    """Every physical line of a block as a record of its own, in doubt where its quotes don't add up."""
    starts, quotes, delimiters = index.starts, index.quotes, index.delimiters
    doubtful = np.zeros(len(starts), np.bool_)
    doubtful[np.searchsorted(starts, index.doubts, "right") - 1] = True
    if len(quotes):
        first = np.searchsorted(quotes, starts)
        doubtful[np.diff(first, append=len(quotes)) & 1 == 1] = True
        line = np.searchsorted(starts, quotes, "right") - 1
        closing = (np.arange(len(quotes)) - first[line]) & 1 == 1
        opens, closes = _neighbours(index)
        doubtful[line[np.where(closing, ~closes, ~opens)]] = True
        line = np.searchsorted(starts, delimiters, "right") - 1
        delimiters = delimiters[(np.searchsorted(quotes, delimiters) - first[line]) & 1 == 0]
    fields = np.diff(np.searchsorted(delimiters, index.ends), prepend=0) + 1
    return Structure(starts, index.ends, index.contents, np.arange(len(starts)), fields, doubtful, len(starts))
