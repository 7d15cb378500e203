"""Keeps a spreadsheet program from running a cell's text as a formula, and takes the protection off again.

A text that begins like a formula gets one apostrophe in front in CSV; reading takes one off. Texts that already
have apostrophes there get one more, so that the two are exact inverses for every text.

What begins like a formula: OWASP's and ASVS's list of first characters, also behind spaces (LibreOffice, Google
Sheets and converters trim them before they evaluate), and the full-width forms that East Asian Excel takes for
ASCII ones. A text that is just a number with its sign (-5, +3.5, -1e5, -5,00) does no harm and stays.
"""

import re
from collections.abc import Iterator

import polars as pl

_FORMULA = r"^'*(?:[\x00\t\n\r]| *[=+\-@＝＋－＠])"
_NUMBER = r"^'* *[+\-][.,]?[0-9][0-9.,]*(?:[eE][+\-]?[0-9]+)?$"
_PROTECTED = re.compile(rb"' *(?:[\x00\t\n\r=+\-@]|\xef\xbc[\x8b\x8d\x9d\xa0])")


def formula_cells(text: pl.Series) -> pl.Series | None:
    """Which texts, apart from apostrophes in front, a spreadsheet program may run; None when there are none."""
    begins = text.str.contains(_FORMULA)  # half the cost, and enough for most columns
    if not begins.any():
        return None
    found = begins & ~text.str.contains(_NUMBER)
    return found if found.any() else None


def protect(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe in front of the text cells that look like a formula."""
    found = ((text, formula_cells(text)) for text in _texts(frame))
    changed = [_where(cells, "'" + text, text) for text, cells in found if cells is not None]
    return frame.with_columns(changed) if changed else frame


def restore(frame: pl.DataFrame) -> pl.DataFrame:
    """Undo `protect`. A frame without protected cells comes back as the same object."""
    found = ((text, _protected_cells(text)) for text in _texts(frame))
    changed = [_where(cells, text.str.strip_prefix("'"), text) for text, cells in found if cells is not None]
    return frame.with_columns(changed) if changed else frame


def might_be_protected(data: bytes) -> bool:
    """Whether UTF-8 bytes can hold protected cells at all. Cheap (1.7 GB/s), never wrong when it says no."""
    return _PROTECTED.search(data) is not None


def _protected_cells(text: pl.Series) -> pl.Series | None:
    quoted = text.str.starts_with("'")
    cells = formula_cells(text) if quoted.any() else None
    return None if cells is None or not (cells & quoted).any() else cells & quoted


def _texts(frame: pl.DataFrame) -> Iterator[pl.Series]:
    return (column for column in frame.iter_columns() if column.dtype == pl.String)


def _where(cells: pl.Series, changed: pl.Series, text: pl.Series) -> pl.Series:
    return changed.zip_with(cells, text).alias(text.name)
