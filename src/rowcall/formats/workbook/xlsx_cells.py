"""The fast way from the XML of some whole rows to their cells.

The text is cut at each `<c ` and Polars matches every piece, whole, against the form that spreadsheet programs write:
over a million cells a second, and nothing is guessed. A block with a piece of any other form goes to `xlsx_cell_walk`,
which knows all of XML and gives the same, four times slower.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from rowcall.formats.reading import Ints
from rowcall.formats.workbook.sheet_cells import LAST_COLUMN, LAST_ROW, column_number, letters
from rowcall.formats.workbook.xlsx_parts import Kind
from rowcall.formats.workbook.xlsx_xml import dereferenced, plain_text
from rowcall.formats.workbook.xlsx_zip import corrupt

KindOf = Callable[[str | None, str | None], Kind]
"""The kind of a cell by its `t` and `s` attributes."""

_ATTRIBUTES = r'(?: [A-Za-z0-9:]{1,24}="[^"<>&]*")*'
_EMPTY_ROWS = rf"(?:<row{_ATTRIBUTES} ?(?:/>|></row>)\s*)*"
_TO_NEXT_CELL = rf"{_EMPTY_ROWS}(?:<row{_ATTRIBUTES} ?>\s*)?"
_PRESERVE = r'(?: xml:space="preserve")?'
_FORMULA = rf"<f{_ATTRIBUTES} ?(?:/>|>[^<]*</f>)"
_VALUE = rf"<v{_PRESERVE}(?: ?/>|>[^<]*</v>)|<is><t{_PRESERVE}(?: ?/>|>[^<]*</t>)</is>"
_BEFORE = rf"^\s*{_TO_NEXT_CELL}$"
_CELL = (
    rf'^r="[A-Z]{{1,3}}[1-9][0-9]{{0,6}}"{_ATTRIBUTES} ?(?:/>|>(?:{_FORMULA})?(?:{_VALUE})?</c>)'
    rf"\s*(?:</row>\s*{_TO_NEXT_CELL})?$"
)
# Simple enough for the regex engine's quick way with groups: a third of the time that groups within _CELL take.
_FIELDS = r'^r="(?<letters>[A-Z]+)(?<row>[0-9]+)"(?<attributes>[^>]*)>(?:<(?:v|is><t)[^>]*>(?<text>[^<]*)<)?'
_BEHIND_FORMULA = r"(?:</f|/)><(?:v|is><t)[^>]*>([^<]*)<"
_FORMULA_TEXT = r"<f[^>]*>([^<]*)"
_GIVES_TEXT = ' t="(?:str|inlineStr|d)"'  # which may be empty
_NOT_CALCULATED = "<f>"  # in the place of attributes, which hold no such thing
_ATTRIBUTE = re.compile(r' ([^ =]+)="([^"]*)"')
_ROW = re.compile(r'<row (?:[^<>]* )?r="([1-9][0-9]{0,6})"')


@dataclass(frozen=True, slots=True)
class StoredCells:
    """Cells as stored: the text within, and what kind of thing it is."""

    rows: Ints
    cols: Ints
    kinds: Ints
    texts: pl.Series
    last: int

    def checked(self) -> "StoredCells":
        """Itself, or a refusal of cells beyond the sheet or out of order."""
        places = self.rows * LAST_COLUMN + self.cols
        if len(places) and (self.rows.max() > LAST_ROW or self.cols.max() >= LAST_COLUMN):
            at = int(np.argmax((self.rows > LAST_ROW) | (self.cols >= LAST_COLUMN)))
            raise corrupt(f"it has a cell {self._place(at)}, but sheets end at XFD1048576.")
        if len(places) > 1 and (disorder := np.diff(places) <= 0).any():
            at = int(np.argmax(disorder))
            raise corrupt(f"the cell {self._place(at + 1)} follows {self._place(at)}.")
        return self

    def _place(self, index: int) -> str:
        return f"{letters(int(self.cols[index]))}{self.rows[index]}"


def fast_cells(block: bytes, kind_of: KindOf) -> StoredCells | None:
    """The cells of some whole rows; None when the block has anything that programs don't usually write."""
    text = plain_text(block)
    if text is None:
        return None
    pieces = pl.Series([text]).str.split("<c ").explode()
    cells = pieces.slice(1)
    if not pieces.head(1).str.contains(_BEFORE).all() or not cells.str.contains(_CELL).all():
        return None
    fields = cells.str.extract_groups(_FIELDS).struct.unnest()
    if "<f" in text:
        fields = _with_formulas(cells, fields)
    filled = fields.filter(pl.col("text").is_not_null())
    return StoredCells(
        filled["row"].cast(pl.Int64).to_numpy(),
        _mapped(filled["letters"], column_number),
        _mapped(filled["attributes"], lambda attributes: _kind(attributes, kind_of)),
        dereferenced(filled["text"]) if "&" in text else filled["text"],
        _last_row(text, fields["row"]),
    )


def _with_formulas(cells: pl.Series, fields: pl.DataFrame) -> pl.DataFrame:
    """The cached values of formulas stand behind them. Where there is none, the formula itself is kept."""
    at = (fields["text"].is_null() & cells.str.contains("<f", literal=True)).arg_true()
    values, attributes = cells.gather(at).str.extract(_BEHIND_FORMULA), fields["attributes"].gather(at)
    known = (values.fill_null("") != "") | attributes.str.contains(_GIVES_TEXT)
    values = values.zip_with(known, "=" + cells.gather(at).str.extract(_FORMULA_TEXT))
    attributes = attributes.zip_with(known, pl.Series([_NOT_CALCULATED]).new_from_index(0, len(at)))
    return fields.with_columns(fields["text"].scatter(at, values), fields["attributes"].scatter(at, attributes))


def _mapped(texts: pl.Series, number_of: Callable[[str], int]) -> Ints:
    """A number for each text, asked once per distinct text: a block has few columns and few styles."""
    distinct = texts.unique()
    numbers = pl.Series([number_of(text) for text in distinct], dtype=pl.Int64)
    return texts.replace_strict(distinct, numbers, return_dtype=pl.Int64).to_numpy()


def _kind(attributes: str, kind_of: KindOf) -> int:
    if attributes == _NOT_CALCULATED:
        return Kind.FORMULA
    found = _ATTRIBUTE.findall(attributes)
    by_name = dict(found)
    if len(by_name) < len(found) or "r" in by_name:
        raise corrupt(f"a cell has an attribute twice ({attributes.strip()}).")
    return kind_of(by_name.get("t"), by_name.get("s"))


def _last_row(text: str, rows: pl.Series) -> int:
    last_cell = int(rows[-1]) if len(rows) else 0
    last_tag = _ROW.match(text, text.rfind("<row "))
    return max(last_cell, int(last_tag[1]) if last_tag else 0)
