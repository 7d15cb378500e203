"""What reading a file gives: facts about it, its columns, and batches of rows with the bad records beside them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from rowcall.model import Code

KIB, MIB, GIB = 2**10, 2**20, 2**30
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Format(StrEnum):
    """The kinds of file that Rowcall reads."""

    CSV = "csv"  # any delimiter
    XLSX = "xlsx"  # and XLSM
    XLS = "xls"
    XLSB = "xlsb"
    ODS = "ods"
    NDJSON = "ndjson"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"


@dataclass(frozen=True, slots=True)
class Limits:
    """Where reading stops, so that no file can take the machine with it."""

    record_bytes: int = 16 * MIB
    columns: int = 16_384
    header_bytes: int = MIB
    inflated_bytes: int = 20 * GIB
    inflate_ratio: int = 250
    zip_entries: int = 10_000
    json_depth: int = 64
    child_memory: int = 400 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Overrides for what is otherwise detected. None means: find out."""

    format: Format | None = None
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    """The quote character; "" for none."""
    escape: Literal["doubled", "backslash"] | None = None
    comment: str | None = None
    """Lines starting with this are skipped and counted. Never detected."""
    header: int | None = None
    """The line (or sheet row) of the header, from 1; 0 when there is none."""
    sheet: str | int | None = None
    """A sheet's name, or its position from 1."""
    records: str | None = None
    """The key of a JSON document under which the array of records lies."""
    ragged: Literal["reject", "pad"] = "reject"
    """A record with too few fields, or too many empty ones: a bad record, or fitted with empty fields at its end."""
    decimal: Literal[".", ","] | None = None
    """The decimal mark; None: the values of each column decide."""
    date_order: Literal["dmy", "mdy", "ymd"] | None = None
    """The order of day, month and year; None: the values of each column decide."""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class PointedOptions(ReadOptions):
    """The same for those who have to tell numbers that a workbook stores as such from texts that look like one."""

    point: str = "."
    """What stands before the fraction of such numbers."""


@dataclass(frozen=True, slots=True)
class ExpectingOptions(ReadOptions):
    """The same for those who know what columns may be called, which tells a header where its words alone don't."""

    names: frozenset[str] = frozenset()
    """In the form that `normal` gives them."""


def expecting(options: ReadOptions, names: frozenset[str]) -> ExpectingOptions:
    """The options of a reader that expects columns of these names."""
    return ExpectingOptions(**{part.name: getattr(options, part.name) for part in fields(ReadOptions)}, names=names)


def expected_names(options: ReadOptions) -> frozenset[str]:
    """The names that columns are expected to have, in the form that `normal` gives them."""
    return options.names if isinstance(options, ExpectingOptions) else frozenset()


def point_of(options: ReadOptions) -> str:
    """The mark in numbers that a file stores as such: that of the texts beside them, where it is told."""
    return options.point if isinstance(options, PointedOptions) else options.decimal or "."


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A plain (not compressed) file on disk, and the name its bringer gave it, which is only a hint."""

    path: Path
    name: str

    @property
    def size(self) -> int:
        return self.path.stat().st_size


@dataclass(frozen=True, slots=True)
class Fact:
    """Something found out about a file, and why it is believed."""

    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth knowing about a file that is read all the same."""

    code: Code
    message: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet of a workbook. `rows` counts the rows that hold at least one value."""

    name: str
    rows: int
    visible: bool = True


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the file. `name` is unique within the file and names the column in every frame."""

    index: int
    header: str
    name: str
    native: Literal["text", "number", "boolean", "date", "datetime", "time", "json"] | None = None
    """What the file itself says the values are, where its format can (Parquet, JSON); None where it can't."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that can't become a row: where it stands, what is wrong, and its own text."""

    number: int
    line: int
    code: Code
    message: str
    raw: bytes
    """The record's bytes with its line end, in UTF-8; cut short when `size` is larger."""
    size: int
    cells: tuple[str, ...] = ()
    """The record's fields as far as they could be told apart."""

    @property
    def text(self) -> str:
        return self.raw.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class CellIssue:
    """One cell that holds no usable value, in a row that otherwise stands. The frame has null in its place."""

    number: int
    line: int
    column: int
    code: Code
    value: str
    message: str


class Skipped(StrEnum):
    """Why a stretch of the file is not a record."""

    BLANK = "blank"
    HEADER = "header"
    PREAMBLE = "preamble"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class SkippedLines:
    """A run of lines that are not records: how many, from which line, and their bytes."""

    kind: Skipped
    line: int
    count: int
    raw: bytes = b""


class Spans(Sequence[bytes]):
    """The raw bytes of each row of a batch, cut from the block they were read in only when asked for."""

    __slots__ = ("_data", "_ends", "_starts")

    def __init__(self, data: bytes, starts: Ints, ends: Ints) -> None:
        self._data, self._starts, self._ends = data, starts, ends

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> "Spans": ...
    def __getitem__(self, index: int | slice) -> "bytes | Spans":
        if isinstance(index, slice):
            return Spans(self._data, self._starts[index], self._ends[index])
        return self._data[self._starts[index] : self._ends[index]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of the file, as text, in the file's order.

    Row numbers count every record, good and bad, from 1; blank, header, preamble and comment lines have none.
    """

    frame: pl.DataFrame
    """One String column per column of the file known so far; null is null, empty is empty."""
    numbers: pl.Series
    """Int64: the row number of each row of the frame."""
    lines: pl.Series
    """Int64: the file line where the row starts; in a workbook, the sheet's row."""
    bad: tuple[BadRecord, ...] = ()
    issues: tuple[CellIssue, ...] = ()
    skipped: tuple[SkippedLines, ...] = ()
    raw: Sequence[bytes] = ()
    """The bytes of each row in UTF-8, with its line end, for formats that have lines."""


@dataclass(slots=True)
class Counts:
    """How many of each there were so far. rows = good + bad."""

    rows: int = 0
    good: int = 0
    bad: int = 0
    issues: int = 0
    blank: int = 0
    header: int = 0
    preamble: int = 0
    comment: int = 0

    def add(self, batch: Batch) -> None:
        self.good += batch.frame.height
        self.bad += len(batch.bad)
        self.rows = self.good + self.bad
        self.issues += len(batch.issues)
        for run in batch.skipped:
            setattr(self, run.kind.value, getattr(self, run.kind.value) + run.count)


@dataclass(frozen=True, slots=True)
class Detected:
    """What was found out about a file, each with its reason. None where a format has no such thing."""

    format: Fact
    compression: Fact | None = None
    encoding: Fact | None = None
    delimiter: Fact | None = None
    quote: Fact | None = None
    escape: Fact | None = None
    newline: Fact | None = None
    header: Fact | None = None
    preamble: tuple[str, ...] = ()
    sheet: Fact | None = None
    sheets: tuple[Sheet, ...] = ()
    records: Fact | None = None
    notes: tuple[Note, ...] = ()


class Reading:
    """An opened file: what was detected, its columns, and its batches.

    Iterate it for the batches; iterating again reads the file again. `counts` follows the latest iteration.
    `columns` is complete once `settle()` was called or the file was read to its end: JSON may bring new keys in
    its last record. Existing columns never move.
    """

    def __init__(
        self,
        file: LocalFile,
        detected: Detected,
        columns: list[Column],
        batches: Callable[[], Iterator[Batch]],
        *,
        settle: Callable[[], None] = lambda: None,
        position: Callable[[], int] = lambda: 0,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.file = file
        self.detected = detected
        self.counts = Counts()
        self._columns = columns
        self._batches = batches
        self._settle = settle
        self._position = position
        self._closers = [close]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(self._columns)

    @property
    def position(self) -> int:
        """Bytes of the (uncompressed) file that were read so far, for a progress bar."""
        return self._position()

    def settle(self) -> None:
        """Make `columns` complete, reading ahead through the file where the format needs it."""
        self._settle()

    def __iter__(self) -> Iterator[Batch]:
        self.counts = Counts()
        for batch in self._batches():
            self.counts.add(batch)
            yield batch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of temporary files."""
        while self._closers:
            self._closers.pop(0)()

    def close_with(self, close: Callable[[], None]) -> None:
        """Have something else closed together with this reading, after it."""
        self._closers.append(close)
