"""A frame's rows as the XML of a sheet, column by column.

XlsxWriter's own way, a call per cell, makes 17,000 rows of ten texts a second; this makes 400,000. Also, XlsxWriter
takes a text `<r>…</r>` for ready-made XML, and escapes `_x0041_x0042_` so that it is read back as another text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from xlsxwriter.utility import xl_col_to_name

from rowcall.formats.formulas import formula_cells
from rowcall.formats.texts import lines_of
from rowcall.formats.writing import WriteColumn

# A double holds any 15 digits. Of native numbers, those are made numbers that read back as the same text.
_DIGITS = 15
_NUMBER = r"^(?:0|-?[1-9][0-9]*(?:\.[0-9]*[1-9])?|-?0\.0{0,3}[1-9](?:[0-9]*[1-9])?)$"

# Excel's day 1 is 1900-01-01, but it has a 29th of February in 1900: days are right from 61 on.
_EPOCH = 25_569
_FIRST_DAY, _LAST_DAY = 61, 2_958_465
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}

# XML can't hold these characters; workbooks have an escape for them, so what looks like one must be escaped itself.
# The underscore behind it is left out of the pattern: in _x0041_x0042_ it belongs to both.
_SPECIAL = r"[&<>\x00-\x08\x0b-\x1f\x{fffe}\x{ffff}]|_x[0-9a-fA-F]{4}"
_ESCAPE_LIKE, _ESCAPED = r"_(x[0-9a-fA-F]{4})", "_x005F_${1}"
_CONTROL = [*map(chr, range(9)), "\x0b", "\x0c", *map(chr, range(14, 32)), "\ufffe", "\uffff"]
_REPLACED = {character: f"_x{ord(character):04X}_" for character in _CONTROL} | {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "\r": "&#13;",  # as itself, it would be read as a line feed
}

_Piece = str | pl.Expr
_STEP = 1_000


@dataclass(frozen=True, slots=True)
class Styles:
    """The workbook's numbers for cell formats."""

    of_format: Callable[[str], int]
    """By number format, as "0.00"."""
    text: int
    """Keeps a text a text when someone edits it."""
    header: int
    formula: int | None
    """For texts that look like a formula; None to treat them as any text."""
    marked: int
    """For cells that something is to be said of."""
    marked_formula: int


@dataclass(frozen=True, slots=True)
class _Cells:
    """The XML of a column's cells, from behind their references on; null where there is no cell."""

    pieces: list[_Piece]
    full: bool = True


@dataclass(frozen=True, slots=True)
class _Values:
    """The cells of a column that Excel can hold as a value, in its own notation; null for the others."""

    texts: pl.Series
    number_format: str
    type: str = ""


class SheetRows:
    """Makes rows for one sheet."""

    def __init__(self, columns: Sequence[WriteColumn], styles: Styles) -> None:
        self._columns = columns
        self._styles = styles
        self._letters = [xl_col_to_name(index) for index in range(len(columns))]

    def header(self) -> bytes:
        titles = _escaped(pl.DataFrame([[column.title] for column in self._columns]))
        style = str(self._styles.header)
        return self._rows(1, 1, [_Cells(_text_cells(title, style)) for title in titles.iter_columns()])

    def body(
        self, frame: pl.DataFrame, texts: pl.DataFrame, first: int, marks: Mapping[str, pl.Series] | None = None
    ) -> bytes:
        """The rows of a frame, and the same as text, from this row of the sheet on (the first is 1).

        `marks` tell, for columns of text that have some, which cells are marked.
        """
        marks = marks or {}
        risky = {} if self._styles.formula is None else formula_cells(texts)
        columns = zip(frame.iter_columns(), _escaped(texts).iter_columns(), self._columns, strict=True)
        cells = [
            self._marked(text, marks[wanted.name], risky.get(wanted.name))
            if wanted.name in marks
            else self._cells(column, text, wanted, risky.get(wanted.name))
            for column, text, wanted in columns
        ]
        return self._rows(first, frame.height, cells)

    def _rows(self, first: int, count: int, columns: list[_Cells]) -> bytes:
        number = pl.lit(pl.int_range(first, first + count, eager=True).cast(pl.String))
        row: list[_Piece] = ['<row r="', number, '">']
        for letters, cells in zip(self._letters, columns, strict=True):
            cell = [f'<c r="{letters}', number, *cells.pieces]
            # in one go where every row has the cell: each concatenation copies all of its text
            row += cell if cells.full else [_concatenated(cell).fill_null("")]
        return lines_of(_evaluated([*row, "</row>"]))

    def _cells(self, column: pl.Series, text: pl.Series, wanted: WriteColumn, risky: pl.Series | None) -> _Cells:
        full = not text.null_count()
        texts = _text_cells(text, self._style(risky))
        values = _values(column, text, wanted.native)
        if values is None:
            return _Cells(texts, full)
        start = f'" s="{self._styles.of_format(values.number_format)}"{values.type}><v>'
        pieces = [start, pl.lit(values.texts), "</v></c>"]
        if values.texts.null_count() == text.null_count():
            return _Cells(pieces, full)
        return _Cells([pl.coalesce(_concatenated(pieces), _concatenated(texts))], full)

    def _marked(self, text: pl.Series, marked: pl.Series, risky: pl.Series | None) -> _Cells:
        """Cells of text of which some are marked, also if there is nothing in them."""
        plain = pl.when(marked).then(pl.lit(str(self._styles.marked))).otherwise(pl.lit(str(self._styles.text)))
        style = plain
        if risky is not None:
            quoted = pl.when(marked).then(pl.lit(str(self._styles.marked_formula)))
            style = pl.when(risky).then(quoted.otherwise(pl.lit(str(self._styles.formula)))).otherwise(plain)
        blank = pl.when(marked).then(pl.lit(f'" s="{self._styles.marked}"/>'))
        return _Cells([pl.coalesce(_concatenated(_text_cells(text, style)), blank)], full=False)

    def _style(self, risky: pl.Series | None) -> _Piece:
        plain, guarded = str(self._styles.text), str(self._styles.formula)
        return plain if risky is None else pl.when(risky).then(pl.lit(guarded)).otherwise(pl.lit(plain))


def _concatenated(pieces: Sequence[_Piece]) -> pl.Expr:
    merged: list[_Piece] = []
    for piece in pieces:
        if merged and isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return pl.concat_str([pl.lit(piece) if isinstance(piece, str) else piece for piece in merged])


def _evaluated(pieces: Sequence[_Piece]) -> pl.Series:
    # In steps: Polars takes 600 MB to plan the 80,000 pieces of the widest sheet at once.
    if len(pieces) > _STEP:
        steps = range(0, len(pieces), _STEP)
        return _evaluated([pl.lit(_evaluated(pieces[step : step + _STEP])) for step in steps])
    return pl.select(_concatenated(pieces)).to_series()


def _text_cells(text: pl.Series, style: _Piece) -> list[_Piece]:
    return ['" s="', style, '" t="inlineStr"><is><t xml:space="preserve">', pl.lit(text), "</t></is></c>"]


def _escaped(texts: pl.DataFrame) -> pl.DataFrame:
    special = texts.select(pl.all().str.contains(_SPECIAL).any()).row(0)
    names = [name for name, found in zip(texts.columns, special, strict=True) if found]
    return texts.with_columns(pl.col(names).str.replace_all(_ESCAPE_LIKE, _ESCAPED).str.replace_many(_REPLACED))


def _values(column: pl.Series, text: pl.Series, native: str | None) -> _Values | None:
    kind = column.dtype
    if kind == pl.String:
        return _native_values(text, native)
    if kind == pl.Boolean:
        return _booleans(text)
    if kind.is_integer():
        return _Values(_short(text), "General")
    if kind.is_float():
        return _Values(text.set(~column.is_finite(), None), "General")
    if isinstance(kind, pl.Decimal):
        return _Values(_short(text), "0." + "0" * kind.scale if kind.scale else "0")
    if kind == pl.Date:
        return _dates(column)
    if isinstance(kind, pl.Datetime) and kind.time_zone is None:  # with a zone: text, Excel has no zones
        return _datetimes(column, _PER_SECOND[kind.time_unit])
    return _times(column) if kind == pl.Time else None


def _native_values(text: pl.Series, native: str | None) -> _Values | None:
    """Texts of which the file said that they are numbers or truth values."""
    if native == "number":
        return _Values(_short(text.set(~text.str.contains(_NUMBER), None)), "General")
    if native == "boolean":
        return _booleans(text)
    return None


def _booleans(text: pl.Series) -> _Values:
    texts = text.replace_strict({"true": "1", "false": "0"}, default=None, return_dtype=pl.String)
    return _Values(texts, "General", ' t="b"')


def _short(text: pl.Series) -> pl.Series:
    """Numbers that a double holds digit for digit."""
    digits = text.str.replace_all(r"[-.]", "").str.len_bytes()
    return text.set(digits > _DIGITS, None)


def _dates(column: pl.Series) -> _Values:
    days = column.to_physical() + _EPOCH
    return _Values(_in_range(days, days), "yyyy-mm-dd")


def _datetimes(column: pl.Series, per_second: int) -> _Values:
    ticks, per_day = column.to_physical(), 86_400 * per_second
    days = ticks // per_day + _EPOCH
    # whole days first, so that only one rounding happens: a microsecond survives
    serial = days + (ticks % per_day) / per_day
    return _Values(_in_range(serial, days), f"yyyy-mm-dd hh:mm:ss{_fraction(ticks, per_second)}")


def _times(column: pl.Series) -> _Values:
    ticks, per_second = column.to_physical(), _PER_SECOND["ns"]
    serial = ticks / (86_400 * per_second)
    return _Values(serial.cast(pl.String), f"hh:mm:ss{_fraction(ticks, per_second)}")


def _fraction(ticks: pl.Series, per_second: int) -> str:
    return ".000" if (ticks % per_second != 0).any() else ""


def _in_range(serial: pl.Series, days: pl.Series) -> pl.Series:
    return serial.cast(pl.String).set((days < _FIRST_DAY) | (days > _LAST_DAY), None)
