"""Writes batches of rows to a file or a stream: CSV, NDJSON, JSON, XLSX or Parquet.

The file appears under its name when it is complete; after an error or an abort there is none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Protocol, Self

import polars as pl

from rowcall.errors import FileRefused
from rowcall.formats.output import Compression, Output, suffix_compression
from rowcall.formats.reading import MIB, Column
from rowcall.model import Code

_SLICE_CELLS = 200_000
_SLICE_BYTES = 4 * MIB

Comments = Mapping[tuple[int, str], str]
"""Comments for cells, by row of the frame (from 0) and column name."""


class WriteFormat(StrEnum):
    """The kinds of file that Rowcall writes."""

    CSV = "csv"
    NDJSON = "ndjson"
    JSON = "json"
    XLSX = "xlsx"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a file is written. Options that a format has no use for are left aside."""

    compression: Compression | None = None
    """For CSV, NDJSON and JSON. None means: by the target's suffix (.gz, .bz2, .xz, .zst)."""
    header: bool = True
    """A header row, in CSV and XLSX."""
    formulas: Literal["protect", "keep"] = "protect"
    """What happens in CSV and XLSX to texts that a spreadsheet program might run as a formula."""
    delimiter: str = ","
    quote: Literal["minimal", "all"] = "minimal"
    newline: Literal["\n", "\r\n"] = "\n"
    bom: bool = False
    """Begin a CSV file with a byte order mark, by which Excel knows UTF-8."""
    null: str = ""
    """The text for null in CSV. Unlike an empty text, it is never quoted."""
    sheet: str = "Rows"
    mark: bool = False
    """Fill the cells of a workbook that have a comment. Beyond the most comments that it may have, no more are made."""
    row_group: int = 32 * MIB
    """Bytes that a row group of a Parquet file takes in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteColumn:
    """A column to write, and what a workbook shows with it."""

    name: str
    """The frames' column, and the key in JSON and Parquet."""
    header: str = ""
    """What stands above it in CSV and XLSX; the name when blank."""
    native: Literal["text", "number", "boolean", "date", "datetime", "time", "json"] | None = None
    """What the texts of the column stand for, where that is known."""
    choices: tuple[str, ...] = ()
    """Values to pick from, as a drop-down."""
    strict: bool = True
    """Whether nothing else can be typed then."""
    note: str = ""
    """Help, as a comment on the header."""
    hidden: bool = False

    @property
    def title(self) -> str:
        return self.header if self.header.strip() else self.name


@dataclass(frozen=True, slots=True)
class Refused:
    """A row of the frame that was not written, because the format can't hold it."""

    row: int
    """Its place in the frame, from 0."""
    column: str
    code: Code
    message: str


class Encoder(Protocol):
    """One format: turns frames into bytes and hands them to its output."""

    def write(self, frame: pl.DataFrame, comments: Comments, /) -> tuple[Refused, ...]: ...
    def finish(self) -> None: ...
    def discard(self) -> None: ...


class Writer:
    """An opened file that takes frames. Leaving the `with` block by an error leaves no file."""

    def __init__(self, output: Output, encoder: Encoder, columns: Sequence[WriteColumn]) -> None:
        self.rows = 0
        self._output = output
        self._encoder = encoder
        self._names = [column.name for column in columns]
        self._open = True

    def write(self, frame: pl.DataFrame, comments: Comments | None = None) -> tuple[Refused, ...]:
        """Write the rows of a frame; return those that the format can't hold, at most one entry per row."""
        if not self._open:
            raise ValueError("This writer is closed.")
        try:
            refused = self._encoder.write(self._aligned(frame), comments or {})
        except BaseException:
            self.abort()
            raise
        self.rows += frame.height - len(refused)
        return refused

    def close(self) -> None:
        """Complete the file and give it its name."""
        if not self._open:
            return
        try:
            self._encoder.finish()
            self._output.commit()
        except BaseException:
            self.abort()
            raise
        self._open = False

    def abort(self) -> None:
        """Leave no file."""
        if self._open:
            self._open = False
            self._encoder.discard()
            self._output.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _aligned(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame's columns in the file's order; a column that it doesn't have (yet) is null."""
        if frame.columns == self._names:
            return frame
        if unknown := set(frame.columns).difference(self._names):
            raise ValueError(f"The writer was opened without the columns {sorted(unknown)}.")
        known = set(frame.columns)
        return frame.select(
            pl.col(name) if name in known else pl.lit(None, pl.String).alias(name) for name in self._names
        )


_DEFAULT = WriteOptions()


def open_writer(
    target: Path | BinaryIO,
    format: WriteFormat,  # noqa: A002 (the product's word)
    columns: Sequence[Column | WriteColumn],
    options: WriteOptions = _DEFAULT,
) -> Writer:
    """Begin a file (or a stream) of this format with these columns."""
    wanted = tuple(_write_column(column) for column in columns)
    if not wanted:
        raise FileRefused(Code.BAD_OPTION, "There are no columns to write.", hint="Choose at least one.")
    output = Output(target, _compression(target, format, options))
    try:
        return Writer(output, _encoder(output, format, wanted, options), wanted)
    except BaseException:
        output.discard()
        raise


def slices(frame: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """Parts of the frame, small enough to be turned into bytes at once, each with its first row."""
    by_bytes = frame.height * _SLICE_BYTES // max(1, int(frame.estimated_size()))
    rows = max(1, min(by_bytes, _SLICE_CELLS // frame.width))
    for start in range(0, frame.height, rows):
        yield start, frame.slice(start, rows)


def _write_column(column: Column | WriteColumn) -> WriteColumn:
    if isinstance(column, WriteColumn):
        return column
    return WriteColumn(name=column.name, header=column.header, native=column.native)


def _compression(target: Path | BinaryIO, kind: WriteFormat, options: WriteOptions) -> Compression | None:
    compression = options.compression or (suffix_compression(target) if isinstance(target, Path) else None)
    if compression and kind in (WriteFormat.XLSX, WriteFormat.PARQUET):
        raise FileRefused(
            Code.BAD_OPTION,
            f"A {kind} file is compressed already; .{compression} around it is not written.",
            hint=f"Leave .{compression} off.",
        )
    return compression


def _encoder(output: Output, kind: WriteFormat, columns: tuple[WriteColumn, ...], options: WriteOptions) -> Encoder:
    # Imported here because the formats import this module's words, and pyarrow and XlsxWriter load slowly.
    match kind:
        case WriteFormat.CSV:
            from rowcall.formats.csv.writer import CsvEncoder

            return CsvEncoder(output, columns, options)
        case WriteFormat.NDJSON | WriteFormat.JSON:
            from rowcall.formats.json.writer import JsonEncoder

            return JsonEncoder(output, columns, array=kind is WriteFormat.JSON)
        case WriteFormat.XLSX:
            from rowcall.formats.workbook.writer import XlsxEncoder

            return XlsxEncoder(output, columns, options)
        case WriteFormat.PARQUET:
            from rowcall.formats.arrow.parquet_writer import ParquetEncoder

            return ParquetEncoder(output, columns, options)
