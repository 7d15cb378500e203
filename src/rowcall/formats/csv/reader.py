"""The CSV reader: blocks of bytes become batches of rows, with every line accounted for.

Two tiers. A structural index (`structure.py`) finds the records of a block that are beyond doubt; their bytes go to
Polars in one piece. What is in doubt is read record by record (`records.py`, `blocks.py`) and comes out as a row,
written into the same piece, as a bad record, or as a blank line.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from rowcall.formats.csv.blocks import Block, Kind, Layout, judge_block, judge_broken, judge_record
from rowcall.formats.csv.records import CR, LF, Dialect, encode_record, read_record
from rowcall.formats.encoding import is_utf8
from rowcall.formats.formulas import might_be_protected, restore
from rowcall.formats.reading import (
    KIB,
    MIB,
    BadRecord,
    Batch,
    Column,
    Flags,
    Ints,
    Limits,
    Skipped,
    SkippedLines,
    Spans,
)
from rowcall.model import Code

BLOCK_BYTES = 3 * MIB // 2  # measured: smaller ones cost more calls, larger ones more cache misses
_SHOWN_BYTES = 64 * KIB  # of a record too long to keep

_SKIPPED = {Kind.BLANK: Skipped.BLANK, Kind.COMMENT: Skipped.COMMENT, Kind.HEADER: Skipped.HEADER}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A judged block with the fields of its rows."""

    block: Block
    rows: Ints
    """The places of the rows among the block's stretches."""
    frame: pl.DataFrame


class Window:
    """The part of a byte stream that is being looked at: peek ahead, then drop what was used."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._buffer = b""
        self._start = 0
        self._ended = False

    def peek(self, size: int) -> tuple[bytes, bool]:
        """Up to `size` bytes from here, and whether the stream ends with them. Never ends inside a CRLF."""
        missing = size - (len(self._buffer) - self._start)
        while missing > 0 and not self._ended:
            more = self._read(missing)
            self._ended = not more
            self._buffer = self._buffer[self._start :] + more
            self._start = 0
            missing -= len(more)
        data = self._buffer[self._start : self._start + size]
        final = self._ended and self._start + size >= len(self._buffer)
        return (data[:-1] if data.endswith(b"\r") and not final else data), final

    def drop(self, count: int) -> None:
        self._start += count


@dataclass(slots=True)
class DelimitedReader:
    """Reads the records of a delimited file from where its header ends."""

    layout: Layout
    columns: list[Column]
    limits: Limits
    number: int = 1
    """Of the next record."""
    line: int = 1
    """Of the next byte."""

    def batches(self, read: Callable[[int], bytes], *, skip: int = 0) -> Iterator[Batch]:
        """Read a stream of UTF-8 from behind its first `skip` bytes to its end."""
        _keep_memory_warm()
        window = Window(read)
        window.peek(skip)
        window.drop(skip)
        while True:
            data, final = window.peek(BLOCK_BYTES)
            if final and not data:
                return
            block = self._judged(window, data, final=final)
            if block:
                yield self._batch(self._parsed(block))
                window.drop(block.consumed)
            else:
                yield self._skip_long_line(window)

    def _judged(self, window: Window, data: bytes, *, final: bool) -> Block | None:
        block = judge_block(data, self.layout, final=final, utf8=True)
        return block if block.consumed else self._look_ahead(window)

    def _parsed(self, block: Block) -> Parsed:
        """The rows of a block as columns of text."""
        rows = np.flatnonzero(block.kinds <= Kind.EXACT_ROW)
        text = _rows_text(block, rows, self.layout.dialect)
        names = [column.name for column in self.columns]
        if self.layout.trailing:
            names.append("")
        frame = _parse(text, names, wire(self.layout.dialect))
        if frame is None and not is_utf8(text):  # Polars has looked, so that nobody else needs to
            return self._parsed(judge_block(block.data[: block.consumed], self.layout, final=True))
        if frame is None or frame.height != len(rows):
            frame = _parse_exactly(text, names, wire(self.layout.dialect))
        return Parsed(block, rows, restore(frame) if might_be_protected(text) else frame)

    def _look_ahead(self, window: Window) -> Block | None:
        """The first record, when it is longer than a block; None when even its first line exceeds the limit."""
        size = BLOCK_BYTES
        while size < self.limits.record_bytes:
            size = min(2 * size, self.limits.record_bytes)
            data, final = window.peek(size)
            block = judge_block(data, self.layout, final=True) if final else judge_record(data, self.layout)
            if block:
                return block
        data, _ = window.peek(size)
        return judge_broken(data, self.layout) if _first_line_end(data, self.layout.dialect) else None

    def _skip_long_line(self, window: Window) -> Batch:
        """A line beyond the limit as one bad record, read past in pieces."""
        head, _ = window.peek(_SHOWN_BYTES)
        size = 0
        while True:
            data, final = window.peek(BLOCK_BYTES)
            end = _first_line_end(data, self.layout.dialect)
            size += end or len(data)
            window.drop(end or len(data))
            if end or final:
                break
        message = f"The line is {size:,} bytes long; at most {self.limits.record_bytes:,} are read."
        bad = BadRecord(self.number, self.line, Code.LINE_TOO_LONG, message, head, size)
        self.number += 1
        self.line += 1
        return self._nothing(bad=(bad,))

    def _nothing(self, *, bad: tuple[BadRecord, ...] = ()) -> Batch:
        none = pl.Series([], dtype=pl.Int64)
        return Batch(pl.DataFrame(schema={c.name: pl.String for c in self.columns}), none, none, bad)

    def _batch(self, parsed: Parsed) -> Batch:
        """Turn a parsed block into a batch, and go on counting from it."""
        block = parsed.block
        frame, messages = self._second_look(block, parsed.rows, parsed.frame)
        first, lines = self.number, block.lines + self.line
        self.line += block.line_count
        if frame.height == len(lines):
            self.number += len(lines)
            raw = Spans(block.data, block.starts, block.ends)
            return Batch(frame, pl.int_range(first, self.number, eager=True), _series(lines), raw=raw)
        counted = np.cumsum(block.kinds <= Kind.BAD)
        self.number += int(counted[-1])
        rows = np.flatnonzero(block.kinds <= Kind.EXACT_ROW)
        return Batch(
            frame,
            _series(counted[rows] + first - 1),
            _series(lines[rows]),
            self._bad_records(block, counted + first - 1, lines, messages),
            (),
            tuple(_skipped_runs(block, lines)),
            Spans(block.data, block.starts[rows], block.ends[rows]),
        )

    def _second_look(self, block: Block, rows: Ints, frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[int, str]]:
        """Find what only shows once the fields are apart: repeated headers, text behind a trailing delimiter."""
        messages: dict[int, str] = {}
        header = _repeats(frame, self.layout.header)
        if self.layout.trailing:
            behind = (frame.to_series(frame.width - 1) != "").to_numpy()
            frame = frame.drop("")
            message = f"{self.layout.width} fields where {self.layout.width - 1} were expected."
            messages = dict.fromkeys(rows[behind].tolist(), message)
            block.kinds[rows[behind]] = Kind.BAD
            header |= behind
            block.kinds[rows[header & ~behind]] = Kind.HEADER
        elif header.any():
            block.kinds[rows[header]] = Kind.HEADER
        return (frame.filter(~pl.Series(header)) if header.any() else frame), messages

    def _bad_records(self, block: Block, numbers: Ints, lines: Ints, messages: dict[int, str]) -> tuple[BadRecord, ...]:
        bad: list[BadRecord] = []
        for i in np.flatnonzero(block.kinds == Kind.BAD).tolist():
            raw = block.data[block.starts[i] : block.ends[i]]
            verdict = block.verdicts.get(i)
            if verdict is None or verdict.code is None:
                record = read_record(raw, 0, self.layout.dialect, final=True)
                code, message, cells = Code.TOO_MANY_FIELDS, messages[i], record.cells if record else ()
            else:
                code, message, cells = verdict.code, verdict.message, verdict.cells
            texts = tuple(cell.decode("utf-8", "replace") for cell in cells)
            bad.append(BadRecord(int(numbers[i]), int(lines[i]), code, message, raw, len(raw), texts))
        return tuple(bad)


def _keep_memory_warm() -> None:
    """Have the allocator hold on to the memory of a block for the next one.

    glibc returns freed memory to the system at once until it has seen a larger piece freed; then each block's arrays
    cost fresh pages. Allocating and freeing one such piece (never touched) makes reading 1.5 times as fast.
    """
    piece = bytearray(16 * MIB)
    del piece


def _series(numbers: Ints) -> pl.Series:
    """A series of these; without gaps it is made from its ends, which takes a tenth of the time of a copy."""
    if len(numbers) and numbers[-1] - numbers[0] + 1 == len(numbers):
        return pl.int_range(int(numbers[0]), int(numbers[-1]) + 1, eager=True)
    return pl.Series(numbers, dtype=pl.Int64)


def wire(dialect: Dialect) -> Dialect:
    """The dialect in which rows go to Polars: the file's own where Polars can read it."""
    return dialect if len(dialect.delimiter) == 1 else Dialect()


def _rows_text(block: Block, rows: Ints, dialect: Dialect) -> bytes:
    """The bytes of the rows alone, each ended by LF; rows that the exact tier read are written anew."""
    data = block.data
    if dialect.bare_cr:
        array = np.frombuffer(data, np.uint8).copy()
        last = block.ends - 1
        array[last[array[last] == CR]] = LF
        data = array.tobytes()
    if len(rows) == len(block.kinds) and not block.verdicts:
        return data[: block.consumed]
    pieces: list[bytes] = []
    start = 0
    for i in np.flatnonzero(block.kinds != Kind.ROW).tolist():
        pieces.append(data[start : block.starts[i]])
        start = int(block.ends[i])
        if block.kinds[i] == Kind.EXACT_ROW:
            pieces.append(encode_record(block.verdicts[i].cells, wire(dialect)))
    return b"".join((*pieces, data[start : block.consumed]))


def _parse(text: bytes, names: list[str], dialect: Dialect) -> pl.DataFrame | None:
    try:
        # a third less overhead a call than read_csv, which also looks for files, credentials and the best engine
        return pl.scan_csv(
            BOM_UTF8 + text if text.startswith(BOM_UTF8) else text,  # Polars takes the first one away
            has_header=False,
            separator=dialect.delimiter.decode(),
            quote_char=dialect.quote.decode() or None,
            schema=dict.fromkeys(names, pl.String),
            empty_string_is_null=False,
        ).collect(engine="in-memory")
    except pl.exceptions.PolarsError:
        return None


def _parse_exactly(text: bytes, names: list[str], dialect: Dialect) -> pl.DataFrame:
    rows: list[list[str]] = []
    pos = 0
    while pos < len(text):
        record = read_record(text, pos, dialect, final=True)
        if record is None:
            break
        rows.append([cell.decode() for cell in record.cells])
        pos = record.end
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _repeats(frame: pl.DataFrame, header: tuple[str, ...]) -> Flags:
    """Which rows are the header again. In a file of one column a value may well equal its header: never there."""
    if len(header) < 2 or not (frame.to_series(0) == header[0]).any():
        return np.zeros(frame.height, np.bool_)
    same = [frame.to_series(i) == text for i, text in enumerate(header)]
    return pl.select(pl.all_horizontal(*same)).to_series().to_numpy()


def _skipped_runs(block: Block, lines: Ints) -> Iterator[SkippedLines]:
    skipped = np.flatnonzero(block.kinds >= Kind.BLANK)
    if not len(skipped):
        return
    kinds = block.kinds[skipped]
    breaks = np.flatnonzero((np.diff(skipped) != 1) | (np.diff(kinds) != 0)) + 1
    for run in np.split(skipped, breaks):
        raw = block.data[block.starts[run[0]] : block.ends[run[-1]]]
        yield SkippedLines(_SKIPPED[Kind(block.kinds[run[0]])], int(lines[run[0]]), len(run), raw)


def _first_line_end(data: bytes, dialect: Dialect) -> int:
    """Past the first line end of the data; 0 when there is none."""
    lf = data.find(b"\n") + 1
    cr = data.find(b"\r") + 1 if dialect.bare_cr else 0
    return min(lf, cr) if lf and cr else lf or cr
