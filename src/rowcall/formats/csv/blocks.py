"""One block of a CSV file: which of its records are rows, which are bad, which lines are blank.

The index of `structure.py` settles what is beyond doubt; each record in doubt is read by `records.py` and judged here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from rowcall.formats.csv.records import Dialect, Record, broken, line_end, read_record, split_loosely
from rowcall.formats.csv.structure import Structure, by_lines, by_parity, index_of
from rowcall.formats.reading import Flags, Ints
from rowcall.model import Code


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file's records look like."""

    dialect: Dialect
    width: int
    """Fields of a record, with the empty one behind a trailing delimiter."""
    header: tuple[str, ...] = ()
    """The header's cells, to know it again when it is repeated; empty without a header."""
    trailing: bool = False
    """Records end with a delimiter, behind which nothing may stand."""
    shorter: int | None = None
    """A record of this width is whole too: the columns it leaves out are empty."""
    pad: bool = False
    """Records of any lesser width are filled up, empty fields too many left off."""
    comment: bytes = b""


class Kind(IntEnum):
    """What became of a stretch of the block."""

    ROW = 0
    EXACT_ROW = 1
    BAD = 2
    BLANK = 3
    COMMENT = 4
    HEADER = 5
    INSIDE = 6  # a line within a record that started before it


@dataclass(frozen=True, slots=True)
class Verdict:
    """A record that the exact tier read: a row with its cells, or a bad record with the reason."""

    start: int
    end: int
    cells: tuple[bytes, ...]
    code: Code | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """The judged stretches of a block, in order. `verdicts` has those that the exact tier read, by position."""

    data: bytes
    starts: Ints
    ends: Ints
    lines: Ints
    kinds: npt.NDArray[np.uint8]
    verdicts: dict[int, Verdict]
    line_count: int

    @property
    def consumed(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0


def judge_block(data: bytes, layout: Layout, *, final: bool, utf8: bool = False) -> Block:
    """Judge the complete records of a block; the rest waits for the next. Nothing when even the first is incomplete."""
    index = index_of(data, layout.dialect, final=final, utf8=utf8)
    structure = None if layout.comment else by_parity(index, final=final)
    if structure is None or _glued(structure, layout):
        structure = by_lines(index)
    kinds = _first_look(structure, data, layout)
    verdicts, upto = _exact_look(data, structure, kinds, layout, final=final)
    return _in_order(data, structure, kinds, verdicts, upto)


def judge_record(data: bytes, layout: Layout) -> Block | None:
    """Judge only the first record of a block that may hold just a part of it; None when it isn't whole yet."""
    record = read_record(data, 0, layout.dialect, final=False)
    return None if record is None else judge_block(data[: record.end], layout, final=True)


def judge_broken(data: bytes, layout: Layout) -> Block:
    """Judge the first line of a block as a record of its own: the quote that it opens is never closed."""
    line = line_end(data, 0, layout.dialect)[1]
    return judge_block(data[:line], layout, final=True)


def _glued(structure: Structure, layout: Layout) -> bool:
    """Whether a record of several lines has the wrong width: maybe a lost quote swallowed its neighbours."""
    several = np.diff(structure.lines, append=structure.line_count) > 1
    return bool((several & (structure.fields != layout.width)).any())


def _first_look(structure: Structure, data: bytes, layout: Layout) -> npt.NDArray[np.uint8]:
    kinds = np.zeros(len(structure.starts), np.uint8)
    odd: Flags = structure.doubtful | (structure.fields != layout.width)
    if layout.width == 1:  # a line of spaces has the right width, but is blank
        first = np.frombuffer(data, np.uint8)[structure.starts]
        odd |= (first == 0x20) | (first == 0x09)
    kinds[odd] = Kind.EXACT_ROW
    kinds[structure.contents == structure.starts] = Kind.BLANK
    return kinds


def _exact_look(
    data: bytes, structure: Structure, kinds: npt.NDArray[np.uint8], layout: Layout, *, final: bool
) -> tuple[list[Verdict], int]:
    """Read what is in doubt. Changes `kinds` in place; gives the verdicts and how far the block is judged."""
    verdicts: list[Verdict] = []
    resume = 0
    for i in _doubtful(data, structure, kinds, layout).tolist():
        start = int(structure.starts[i])
        if start < resume:
            continue
        if layout.comment and data.startswith(layout.comment, start):
            kinds[i] = Kind.COMMENT
            continue
        record = read_record(data, start, layout.dialect, final=final)
        if record is None:
            kinds[i:] = Kind.INSIDE
            return verdicts, start
        judged = list(_judge(data, start, record, layout))
        resume = judged[-1].end
        kinds[i : int(np.searchsorted(structure.starts, resume))] = Kind.INSIDE
        verdicts += judged
    return verdicts, int(structure.ends[-1]) if len(structure.ends) else 0


def _doubtful(data: bytes, structure: Structure, kinds: npt.NDArray[np.uint8], layout: Layout) -> Ints:
    doubtful = kinds == Kind.EXACT_ROW
    if layout.comment:
        doubtful |= np.frombuffer(data, np.uint8)[structure.starts] == layout.comment[0]
    return np.flatnonzero(doubtful)


def _judge(data: bytes, start: int, record: Record, layout: Layout) -> Iterator[Verdict]:
    """What the record at `start` really is: mostly one row or bad record, sometimes several rows."""
    raw = data[start : record.end]
    if record.code is None and len(record.cells) != layout.width:
        if _swallowed(raw, layout):
            record = broken(data, start, layout.dialect, Code.UNCLOSED_QUOTE)
            raw = data[start : record.end]
        elif parts := _split_at_cr(raw, layout):
            yield from (replace(part, start=start + part.start, end=start + part.end) for part in parts)
            return
    yield Verdict(start, record.end, *_verdict(raw, record, layout))


def _verdict(raw: bytes, record: Record, layout: Layout) -> tuple[tuple[bytes, ...], Code | None, str]:
    cells = record.cells
    if record.code == Code.UNCLOSED_QUOTE:
        return cells, record.code, "A quote is opened and never closed."
    if record.code == Code.BROKEN_QUOTE:
        return cells, record.code, "Text follows a closing quote; a quote inside a field must be doubled."
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return cells, Code.INVALID_ENCODING, f"Byte {error.start + 1} of the record is not valid in this encoding."
    if b"\0" in raw:
        return cells, Code.NUL_CHARACTER, "The record holds a NUL character, which no text field can take."
    if not raw.strip():
        return (), None, ""
    fitted = _fit(cells, layout)
    if fitted is not None:
        return fitted, None, ""
    expected = layout.width - layout.trailing
    code = Code.TOO_FEW_FIELDS if len(cells) < expected else Code.TOO_MANY_FIELDS
    return cells, code, f"{len(cells)} fields where {expected} were expected."


def _fit(cells: tuple[bytes, ...], layout: Layout) -> tuple[bytes, ...] | None:
    """The cells at the file's width, where it is certain (or asked for) that only empty ones are too many or missing.

    Empty fields at a record's end may come from an unquoted delimiter further left: then all behind it is shifted.
    """
    width, count = layout.width, len(cells)
    if count == width:
        return cells
    if count > width:
        return cells[:width] if layout.pad and not any(cell.strip() for cell in cells[width:]) else None
    short = layout.pad or count == layout.shorter or (layout.trailing and count == width - 1)
    return (*cells, *[b""] * (width - count)) if short else None


def _swallowed(raw: bytes, layout: Layout) -> bool:
    """Whether a record over several lines, of the wrong width, is really lines glued by a lost quote.

    So when each line after the first would be a record by itself. The text of a cell hardly ever looks like that.
    """
    dialect = layout.dialect
    pos = line_end(raw, 0, dialect)[1]
    if pos == len(raw):
        return False
    while pos < len(raw):
        content, following = line_end(raw, pos, dialect)
        if len(split_loosely(raw[pos:content], dialect)) != layout.width:
            return False
        pos = following
    return True


def _split_at_cr(raw: bytes, layout: Layout) -> list[Verdict]:
    """The rows of a line that is ragged as it stands, but a whole number of rows when CR ends a record too."""
    dialect = replace(layout.dialect, bare_cr=True)
    parts: list[Verdict] = []
    pos = 0
    while pos < len(raw):
        record = read_record(raw, pos, dialect, final=True)
        if record is None or record.code or len(record.cells) != layout.width or b"\0" in raw:
            return []
        parts.append(Verdict(pos, record.end, record.cells))
        pos = record.end
    try:
        raw.decode()
    except UnicodeDecodeError:
        return []
    return parts if len(parts) > 1 else []


def _in_order(
    data: bytes, structure: Structure, kinds: npt.NDArray[np.uint8], verdicts: list[Verdict], upto: int
) -> Block:
    """Put what the fast tier settled and what the exact tier read into one sequence."""
    if not verdicts and not (kinds == Kind.INSIDE).any():
        return Block(data, structure.starts, structure.ends, structure.lines, kinds, {}, structure.line_count)
    cut = int(np.searchsorted(structure.starts, upto))
    line_count = int(structure.lines[cut]) if cut < len(structure.lines) else structure.line_count
    keep = np.flatnonzero(kinds != Kind.INSIDE)
    starts = np.concatenate((structure.starts[keep], np.array([v.start for v in verdicts], np.int64)))
    ends = np.concatenate((structure.ends[keep], np.array([v.end for v in verdicts], np.int64)))
    kind = np.concatenate((kinds[keep], np.array([_kind(v) for v in verdicts], np.uint8)))
    order = np.argsort(starts, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    found = {int(place[len(keep) + i]): verdict for i, verdict in enumerate(verdicts)}
    lines = np.searchsorted(structure.starts, starts[order], "right") - 1
    return Block(data, starts[order], ends[order], structure.lines[lines], kind[order], found, line_count)


def _kind(verdict: Verdict) -> Kind:
    if verdict.code is not None:
        return Kind.BAD
    return Kind.EXACT_ROW if verdict.cells else Kind.BLANK
