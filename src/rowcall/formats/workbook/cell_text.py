"""What a workbook stores, as the text that stands for it: numbers, dates by serial, truth values, escaped texts.

The functions for columns take stored texts and give null where one can't be what it should be.
"""

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal

import polars as pl

from rowcall.formats.workbook.xlsx_parts import Kind

_DAY = 86_400_000  # milliseconds: serials are doubles, whose noise starts below a microsecond
_LAST_1900, _LAST_1904 = 2_958_465, 2_957_003  # the serials of 9999-12-31
_NO_DAY = 60  # the 1900 system has a 29 February 1900, which never was
_FAR = 1e9  # days; a duration beyond that is none
_TIME = "%H:%M:%S%.f"
_DATETIME = f"%Y-%m-%dT{_TIME}"

# As it stands: any integer (a double would cut a 19-digit one), and decimals of up to 15 digits, which a double keeps.
_INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
_DECIMAL = r"^-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9]$"
_DOUBLE_KEEPS = 15 + 1  # digits and the point
_PLAIN_FROM, _PLAIN_BELOW = 1e-7, 1e21  # numbers within are written without an exponent

_TRUTHS = {"1": "true", "0": "false", "true": "true", "false": "false"}
_ESCAPE = re.compile(r"_x([Dd][89ABab][0-9A-Fa-f]{2})__x([Dd][C-Fc-f][0-9A-Fa-f]{2})_|_x([0-9A-Fa-f]{4})_")


def number_texts(stored: pl.Series) -> pl.Series:
    """`7` for 7.0, `0.1` for 0.10000000000000001; digits as the file has them where they are exact."""
    fine = stored.str.contains(_INTEGER) | (stored.str.contains(_DECIMAL) & (stored.str.len_bytes() <= _DOUBLE_KEEPS))
    others = (~fine).arg_true()
    return stored if others.is_empty() else stored.clone().scatter(others, _shortest(stored.gather(others)))


def _shortest(stored: pl.Series) -> pl.Series:
    numbers = stored.str.strip_chars().cast(pl.Float64, strict=False)
    numbers = numbers.set(~numbers.is_finite(), None)
    texts = numbers.cast(pl.String).str.strip_suffix(".0").replace("-0", "0")
    return _each(texts, texts.str.contains("e", literal=True), lambda text: number_text(float(text)))


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number, with an exponent only where zeros would fill the line."""
    text = repr(value).removesuffix(".0")
    if "e" in text and _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return format(Decimal(text), "f")
    return "0" if text == "-0" else text


def truth_texts(stored: pl.Series) -> pl.Series:
    """`true` and `false`."""
    return stored.replace_strict(_TRUTHS, default=None, return_dtype=pl.String)


def moment_texts(stored: pl.Series, kind: Kind, *, from_1904: bool) -> pl.Series:
    """Serials as ISO dates and times. What a format hides is not dropped: a date with a time of day shows both."""
    serials = stored.str.strip_chars().cast(pl.Float64, strict=False)
    serials = serials.set(~(serials.abs() < _FAR), None)
    moments = (serials * _DAY).round().cast(pl.Int64).alias("since").to_frame()
    if kind is Kind.DURATION:
        return moments.to_series().map_elements(duration_text, return_dtype=pl.String)
    return moments.select(_calendar(kind, from_1904=from_1904)).to_series()


def _calendar(kind: Kind, *, from_1904: bool) -> pl.Expr:
    since = pl.col("since")
    day, time = since.floordiv(_DAY), since.mod(_DAY)
    exists = day.is_between(0, _LAST_1904) if from_1904 else day.is_between(1, _LAST_1900) & (day != _NO_DAY)
    moment = (since + _start(day, from_1904=from_1904) * _DAY).cast(pl.Datetime("ms"))
    full = pl.when(exists).then(moment.dt.strftime(_DATETIME))
    if kind is Kind.DATE:
        return pl.when(exists & (time == 0)).then(moment.dt.strftime("%Y-%m-%d")).otherwise(full)
    if kind is Kind.TIME:
        return pl.when(day == 0).then(since.cast(pl.Datetime("ms")).dt.strftime(_TIME)).otherwise(full)
    return full


def _start(day: pl.Expr, *, from_1904: bool) -> pl.Expr:
    """The day of serial 0, counted from 1970."""
    if from_1904:
        return _days_to(dt.date(1904, 1, 1))
    return pl.when(day < _NO_DAY).then(_days_to(dt.date(1899, 12, 31))).otherwise(_days_to(dt.date(1899, 12, 30)))


def _days_to(date: dt.date) -> pl.Expr:
    return pl.lit((date - dt.date(1970, 1, 1)).days, pl.Int64)  # in milliseconds it would overflow Int32


def duration_text(milliseconds: int) -> str:
    """As many hours as it takes: 27:30:00."""
    seconds, part = divmod(abs(milliseconds), 1_000)
    sign = "-" if milliseconds < 0 else ""
    fraction = f".{part:03}" if part else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def unescaped(texts: pl.Series) -> pl.Series:
    """Excel's escapes undone: `_x000D_` is a carriage return, `_x005F_` the underscore of a text like `_x0041_`."""
    return _each(texts, texts.str.contains("_x", literal=True), lambda text: _ESCAPE.sub(_character, text))


def _character(match: re.Match[str]) -> str:
    high, low, single = match.groups()
    if high:
        return chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00)
    code = int(single, 16)
    # NUL and half a character are no text; they stay as written
    return match[0] if code == 0 or 0xD800 <= code <= 0xDFFF else chr(code)


def _each(texts: pl.Series, chosen: pl.Series, change: Callable[[str], str]) -> pl.Series:
    """Some texts changed one by one, for what is too rare or too odd to be an expression."""
    positions = chosen.fill_null(value=False).arg_true()
    if positions.is_empty():
        return texts
    return texts.clone().scatter(positions, [change(text) for text in texts.gather(positions)])
