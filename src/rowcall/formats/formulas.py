"""Keeps a spreadsheet program from running a cell's text as a formula, and takes the protection off again.

A text that begins like a formula gets one apostrophe in front in CSV; reading takes one off. Texts that already
have apostrophes there get one more, so that the two are exact inverses for every text.

What begins like a formula: OWASP's and ASVS's list of first characters, also behind spaces (LibreOffice, Google
Sheets and converters trim them before they evaluate), and the full-width forms that East Asian Excel takes for
ASCII ones. A text that is just a number with its sign (-5, +3.5, -1e5, -5,00) does no harm and stays.
"""

import re
from collections.abc import Callable

import polars as pl

_FORMULA = r"^'*(?:[\x00\t\n\r]| *[=+\-@＝＋－＠])"
_NUMBER = r"^'* *[+\-][.,]?[0-9][0-9.,]*(?:[eE][+\-]?[0-9]+)?$"
_PROTECTED = re.compile(rb"' *(?:[\x00\t\n\r=+\-@]|\xef\xbc[\x8b\x8d\x9d\xa0])")


def formula_cells(frame: pl.DataFrame) -> dict[str, pl.Series]:
    """Which texts, apart from apostrophes in front, a spreadsheet program may run; only columns that have some."""
    # the first pattern alone is cheap, and enough for most columns
    text = pl.col(_having(frame, _texts(frame), lambda text: text.str.contains(_FORMULA)))
    cells = frame.select(text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER))
    return {name: cells[name] for name in _having(cells, cells.columns, lambda cell: cell)}


def protect(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe in front of the text cells that look like a formula."""
    found = formula_cells(frame)
    changes = [
        pl.when(cells).then(pl.lit("'") + pl.col(name)).otherwise(name).alias(name) for name, cells in found.items()
    ]
    return frame.with_columns(changes) if changes else frame


def restore(frame: pl.DataFrame) -> pl.DataFrame:
    """Undo `protect`. A frame without protected cells comes back as the same object."""
    quoted = _having(frame, _texts(frame), lambda text: text.str.starts_with("'"))
    found = formula_cells(frame.select(quoted))
    protected = {name: cells & frame[name].str.starts_with("'") for name, cells in found.items()}
    changes = [
        pl.when(cells).then(pl.col(name).str.strip_prefix("'")).otherwise(name).alias(name)
        for name, cells in protected.items()
        if cells.any()
    ]
    return frame.with_columns(changes) if changes else frame


def might_be_protected(data: bytes) -> bool:
    """Whether UTF-8 bytes can hold protected cells at all. Cheap, never wrong when it says no."""
    return b"'" in data and _PROTECTED.search(data) is not None


def _texts(frame: pl.DataFrame) -> list[str]:
    return [name for name, kind in zip(frame.columns, frame.dtypes, strict=True) if kind == pl.String]


def _having(frame: pl.DataFrame, names: list[str], condition: Callable[[pl.Expr], pl.Expr]) -> list[str]:
    """Those of the columns in which some cell meets the condition."""
    if not names or not frame.height:
        return []
    found = frame.select(condition(pl.col(names)).any()).row(0)
    return [name for name, hit in zip(names, found, strict=True) if hit]
