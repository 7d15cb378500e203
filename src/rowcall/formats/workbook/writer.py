"""XLSX from frames. The rows wait as XML in a temporary file until the end; memory doesn't grow with them."""

import tempfile
from bisect import bisect
from collections.abc import Mapping, Sequence
from contextlib import suppress

import polars as pl

from rowcall.errors import FileRefused
from rowcall.formats.output import Output, OutputFile, write_errors_told
from rowcall.formats.texts import as_text
from rowcall.formats.workbook.writer_book import MAX_COLUMNS, MAX_ROWS, Book
from rowcall.formats.workbook.writer_rows import SheetRows
from rowcall.formats.writing import Comments, Refused, WriteColumn, WriteOptions, slices
from rowcall.model import Code

_MAX_CELL = 32_767
# Comments stay in memory until the end: 1.3 KB each, and their text.
_MAX_COMMENTS, _MAX_COMMENT = 50_000, 1_000
_WIDTH_SAMPLE, _MIN_WIDTH, _MAX_WIDTH = 1_000, 8, 60
_TEMPORARY = "A temporary file"


class XlsxEncoder:
    """One sheet of rows under a styled header, with comments, drop-downs and hidden columns where asked for."""

    def __init__(self, output: Output, columns: Sequence[WriteColumn], options: WriteOptions) -> None:
        _check(columns, options)
        self._output = output
        self._columns = columns
        self._places = {column.name: place for place, column in enumerate(columns)}
        self._header = options.header
        self._mark = options.mark
        self._used = 0
        self._comments = 0
        self._shaped = False
        with write_errors_told(_TEMPORARY):
            self._spool = tempfile.TemporaryFile()  # noqa: SIM115 (closed in discard; has no name, so it never stays)
        try:
            self._book = Book(options.sheet, guard_formulas=options.formulas == "protect")
            self._rows = SheetRows(columns, self._book.styles)
            if options.header:
                self._append(self._rows.header(), 1)
        except BaseException:
            self.discard()
            raise

    def write(self, frame: pl.DataFrame, comments: Comments, /) -> tuple[Refused, ...]:
        if not self._shaped:
            self._shape(frame)
        first = self._used
        marks = _marks(frame, comments) if self._mark else {}
        refused = [refusal for start, part in slices(frame) for refusal in self._write_part(part, start, marks)]
        self._add_comments(comments, first, [refusal.row for refusal in refused])
        return tuple(refused)

    def finish(self) -> None:
        if not self._shaped:
            self._shape(pl.DataFrame(schema={column.name: pl.String for column in self._columns}))
        if self._header:
            self._book.freeze_header(self._used, len(self._columns))
        for place, column in enumerate(self._columns):
            if column.note and self._header:
                self._add_comment(0, place, column.note)
            if column.choices:
                self._book.offer(place, int(self._header), column.choices, strict=column.strict)
        with write_errors_told(_TEMPORARY):
            self._book.write(OutputFile(self._output), self._spool, self._used, len(self._columns))
        self.discard()

    def discard(self) -> None:
        with suppress(OSError):  # what it still buffers may not fit on the disk, and isn't wanted
            self._spool.close()

    def _write_part(self, part: pl.DataFrame, start: int, marks: Mapping[str, pl.Series]) -> list[Refused]:
        texts = as_text(part)
        marked = {name: mark.slice(start, part.height) for name, mark in marks.items()}
        too_long = _too_long(texts)
        if too_long:
            kept = ~pl.int_range(part.height, eager=True).is_in(list(too_long))
            part, texts = part.filter(kept), texts.filter(kept)
            marked = {name: mark.filter(kept) for name, mark in marked.items()}
        if part.height:
            self._append(self._rows.body(part, texts, self._used + 1, marked), part.height)
        return [_refusal(start + row, lengths) for row, lengths in sorted(too_long.items())]

    def _append(self, rows: bytes, count: int) -> None:
        self._used += count
        if self._used > MAX_ROWS:
            raise FileRefused(
                Code.FORMAT_LIMIT,
                f"A sheet holds at most {MAX_ROWS - self._header:,} rows{' under its header' * self._header}; "
                "there are more.",
                hint="Write CSV or Parquet, or fewer rows.",
            )
        with write_errors_told(_TEMPORARY):
            self._spool.write(rows)

    def _add_comments(self, comments: Comments, first: int, refused: list[int]) -> None:
        """Comment on the frame's rows, which begin at `first` and moved up past those refused."""
        gone = set(refused)
        for (row, name), text in comments.items():
            if row not in gone:
                self._add_comment(first + row - bisect(refused, row), self._places[name], text)

    def _add_comment(self, row: int, place: int, text: str) -> None:
        self._comments += 1
        if self._comments > _MAX_COMMENTS:
            if self._mark:
                return
            raise FileRefused(
                Code.FORMAT_LIMIT,
                f"A workbook is written with at most {_MAX_COMMENTS:,} comments; there are more.",
                hint="Write the comments into a column of their own.",
            )
        self._book.comment(row, place, text if len(text) <= _MAX_COMMENT else text[: _MAX_COMMENT - 1] + "…")

    def _shape(self, frame: pl.DataFrame) -> None:
        """Give the columns widths by their header and first rows."""
        self._shaped = True
        lengths = as_text(frame.head(_WIDTH_SAMPLE)).select(pl.all().str.len_chars().max().fill_null(0)).row(0)
        for place, (column, kind, length) in enumerate(zip(self._columns, frame.dtypes, lengths, strict=True)):
            width = min(max(length + 2, len(column.title) + 4, _MIN_WIDTH), _MAX_WIDTH)
            text = kind == pl.String and column.native in (None, "text")
            self._book.set_column(place, width, text=text, hidden=column.hidden)


def _check(columns: Sequence[WriteColumn], options: WriteOptions) -> None:
    if len(columns) > MAX_COLUMNS:
        raise FileRefused(
            Code.FORMAT_LIMIT,
            f"A sheet holds at most {MAX_COLUMNS:,} columns; there are {len(columns):,}.",
            hint="Write CSV or Parquet, or fewer columns.",
        )
    if not options.sheet.isprintable():
        raise FileRefused(
            Code.BAD_OPTION, f"A sheet can't be named {options.sheet!r}.", hint="Use characters that show."
        )
    too_long = [column.name for column in columns if len(column.title.encode("utf-16-le")) > 2 * _MAX_CELL]
    if too_long and options.header:
        raise FileRefused(
            Code.FORMAT_LIMIT,
            f"The header {too_long[0][:40]!r}… is longer than the {_MAX_CELL:,} characters of a cell.",
            hint="Write CSV, or shorten the header.",
        )


def _marks(frame: pl.DataFrame, comments: Comments) -> dict[str, pl.Series]:
    """Which cells have a comment, for each column that has some."""
    rows: dict[str, list[int]] = {}
    for row, name in comments:
        rows.setdefault(name, []).append(row)
    every = pl.int_range(frame.height, eager=True)
    return {name: every.is_in(some) for name, some in rows.items()}


def _too_long(texts: pl.DataFrame) -> dict[int, dict[str, int]]:
    """The rows with cells too long for a sheet, and the lengths of those cells by column."""
    found: dict[int, dict[str, int]] = {}
    sizes = texts.select(pl.all().str.len_bytes().max()).row(0)  # never fewer bytes in UTF-8 than units in UTF-16
    for place, size in enumerate(sizes):
        if size is not None and size > _MAX_CELL:
            text = texts.to_series(place)
            lengths = text.str.len_chars() + text.str.count_matches(r"[\x{10000}-\x{10FFFF}]")
            for row in lengths.gt(_MAX_CELL).arg_true():
                found.setdefault(row, {})[text.name] = lengths[row]
    return found


def _refusal(row: int, lengths: dict[str, int]) -> Refused:
    cells = " and ".join(f"{column!r} ({length:,})" for column, length in lengths.items())
    message = f"A cell of a workbook holds at most {_MAX_CELL:,} characters; there are more in {cells}."
    return Refused(row, next(iter(lengths)), Code.CELL_TOO_LONG, message)
