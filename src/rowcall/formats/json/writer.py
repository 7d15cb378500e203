"""NDJSON and JSON from frames."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import msgspec
import polars as pl

from rowcall.formats.output import Output
from rowcall.formats.texts import json_of, lines_of, text_of
from rowcall.formats.writing import Comments, Refused, WriteColumn, slices

_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?$"
_BOOLEAN = r"^(?:true|false)$"


class JsonEncoder:
    """One object per line: NDJSON, or the same lines in an array."""

    def __init__(self, output: Output, columns: Sequence[WriteColumn], *, array: bool) -> None:
        self._output = output
        self._natives = {column.name: column.native for column in columns}
        self._array = array
        self._rows = False

    def write(self, frame: pl.DataFrame, _comments: Comments, /) -> tuple[Refused, ...]:
        for _, part in slices(frame):
            lines = _lines([self._cells(column) for column in part.iter_columns()])
            self._output.write(self._elements(lines) if self._array else lines)
        return ()

    def finish(self) -> None:
        if self._array:
            self._output.write(b"\n]\n" if self._rows else b"[]\n")

    def discard(self) -> None:
        """Nothing is held."""

    def _elements(self, lines: bytes) -> bytes:
        before = b",\n" if self._rows else b"[\n"
        self._rows = True
        # JSON escapes line ends within texts: every line feed here stands between two objects
        return before + lines[:-1].replace(b"\n", b",\n")

    def _cells(self, column: pl.Series) -> "_Cells":
        """The column as Polars writes it rightly, or as JSON made here: exact digits, nested values."""
        kind, native = column.dtype, self._natives[column.name]
        if kind.is_nested():
            return _Cells(json_of(column).fill_null("null"), ready=True)
        if kind.is_integer() or kind == pl.Boolean:
            return _Cells(column, ready=False)
        text = text_of(column)
        if kind.is_decimal() or kind.is_float() or (kind == pl.String and native == "number"):
            return _matching(text, _NUMBER)
        if kind == pl.String and native == "boolean":
            return _matching(text, _BOOLEAN)
        if kind == pl.String and native == "json":
            return _or_quoted(text, pl.Series([_one_line(cell) for cell in text], dtype=pl.String))
        return _Cells(text, ready=False)


@dataclass(frozen=True, slots=True)
class _Cells:
    """A column on its way into objects. When ready, its texts are JSON, without null."""

    values: pl.Series
    ready: bool


def _matching(text: pl.Series, pattern: str) -> _Cells:
    """JSON where the text has the right form, else a string."""
    return _or_quoted(text, text.set(~text.str.contains(pattern), None))


def _or_quoted(text: pl.Series, json: pl.Series) -> _Cells:
    if json.null_count() > text.null_count():
        json = pl.select(pl.coalesce(pl.lit(json), _quoted(text))).to_series()
    return _Cells(json.fill_null("null").alias(text.name), ready=True)


def _quoted(text: pl.Series) -> pl.Expr:
    return _between(pl.struct(pl.lit(text.alias(""))).struct.json_encode(), '{"":', "}")


def _one_line(cell: str | None) -> str | None:
    """The cell's JSON on one line; None when it isn't JSON, or is a text or null.

    Bare, those could not be told from a text that isn't JSON and from no value: their JSON is written as a text.
    """
    if cell is None or cell.lstrip()[:1] in ("", '"', "n"):
        return None
    try:
        msgspec.json.decode(cell, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    return cell.replace("\n", " ").replace("\r", " ")  # valid JSON has them only between its tokens


def _lines(columns: list[_Cells]) -> bytes:
    if not any(column.ready for column in columns):
        data = io.BytesIO()
        pl.DataFrame([column.values for column in columns]).write_ndjson(data)
        return data.getvalue()
    members = pl.concat_str(list(_members(columns)), separator=",")
    return lines_of(pl.select(pl.lit("{") + members + pl.lit("}")).to_series())


def _members(columns: list[_Cells]) -> Iterator[pl.Expr]:
    """Parts of each row's object; Polars encodes neighbouring columns together."""
    for ready, group in groupby(columns, lambda column: column.ready):
        if ready:
            for column in group:
                key = msgspec.json.encode(column.values.name).decode()
                yield pl.lit(f"{key}:") + pl.lit(column.values)
        else:
            members = pl.struct(pl.lit(column.values) for column in group)
            yield _between(members.struct.json_encode(), "{", "}")


def _between(text: pl.Expr, before: str, after: str) -> pl.Expr:
    return text.str.strip_prefix(before).str.strip_suffix(after)
