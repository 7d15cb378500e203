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


def looks_like_formula(text: pl.Expr) -> pl.Expr:
    """Whether a text, apart from apostrophes in front, is one that a spreadsheet program may run."""
    return text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)


def protect(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe in front of the text cells that look like a formula."""
    return _changed(frame, looks_like_formula, lambda text: pl.lit("'") + text)


def restore(frame: pl.DataFrame) -> pl.DataFrame:
    """Undo `protect`. A frame without protected cells comes back as the same object."""
    return _changed(frame, _is_protected, lambda text: text.str.strip_prefix("'"))


def might_be_protected(data: bytes) -> bool:
    """Whether UTF-8 bytes can hold protected cells at all. Cheap (1.7 GB/s), never wrong when it says no."""
    return _PROTECTED.search(data) is not None


def _is_protected(text: pl.Expr) -> pl.Expr:
    return text.str.starts_with("'") & looks_like_formula(text)


def _changed(
    frame: pl.DataFrame, where: Callable[[pl.Expr], pl.Expr], change: Callable[[pl.Expr], pl.Expr]
) -> pl.DataFrame:
    # Looking first and rewriting only the columns concerned is twice as fast as rewriting all (clean data).
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    if not texts or not frame.height:
        return frame
    found = frame.select(where(pl.col(texts)).any()).row(0)
    concerned = [name for name, hit in zip(texts, found, strict=True) if hit]
    if not concerned:
        return frame
    text = pl.col(concerned)
    return frame.with_columns(pl.when(where(text)).then(change(text)).otherwise(text).name.keep())
