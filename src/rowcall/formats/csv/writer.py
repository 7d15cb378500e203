"""CSV from frames."""

import io
from collections.abc import Sequence

import polars as pl

from rowcall.errors import FileRefused
from rowcall.formats.formulas import protect
from rowcall.formats.output import Output
from rowcall.formats.texts import as_text
from rowcall.formats.writing import Comments, Refused, WriteColumn, WriteOptions, slices
from rowcall.model import Code

_BOM = b"\xef\xbb\xbf"


class CsvEncoder:
    """Delimited text in UTF-8."""

    def __init__(self, output: Output, columns: Sequence[WriteColumn], options: WriteOptions) -> None:
        _check(options)
        self._output = output
        self._options = options
        # In a file of one column, an empty cell would be a blank line, and a semicolon might pass for the delimiter.
        self._single = len(columns) == 1
        self._quoted = self._single or options.quote == "all"
        if options.bom:
            output.write(_BOM)
        if options.header:
            output.write(self._lines(pl.DataFrame([[column.title] for column in columns])))

    def write(self, frame: pl.DataFrame, _comments: Comments, /) -> tuple[Refused, ...]:
        for _, part in slices(frame):
            self._output.write(self._lines(as_text(part)))
        return ()

    def finish(self) -> None:
        """Every line is out already."""

    def discard(self) -> None:
        """Nothing is held."""

    def _lines(self, texts: pl.DataFrame) -> memoryview:
        options = self._options
        if self._single and not options.null:
            texts = texts.fill_null("")
        data = io.BytesIO()
        (protect(texts) if options.formulas == "protect" else texts).write_csv(
            data,
            include_header=False,
            separator=options.delimiter,
            line_terminator=options.newline,
            null_value=options.null,
            # "always" would quote null as well, and make it an empty text
            quote_style="non_numeric" if self._quoted else "necessary",
        )
        return data.getbuffer()


def _check(options: WriteOptions) -> None:
    if len(options.delimiter.encode()) != 1 or options.delimiter in '"\r\n':
        raise FileRefused(
            Code.BAD_OPTION,
            f"{options.delimiter!r} can't be the delimiter: one ASCII character is expected, no quote or line end.",
            hint='Use "," or ";", a tab or "|".',
        )
    if any(mark in options.null for mark in (options.delimiter, '"', "\r", "\n")):
        raise FileRefused(
            Code.BAD_OPTION,
            f"{options.null!r} can't stand for null: it is written without quotes, so it can't contain a quote, "
            "a line end or the delimiter.",
        )
