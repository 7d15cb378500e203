"""Reads dates and times of day as people write them. Each function takes a series of texts, and works on it as a whole.

ISO 8601 is always understood, and so are month names and yyyymmdd. Days and months as mere numbers are read in the
order that was decided for the column. Two-digit years are 1969 to 2068, as POSIX has it.
"""

from dataclasses import dataclass
from typing import Self

import polars as pl

from rowcall.importer.fields import read_forms

_DAY, _MONTH = "(?<d>[0-9]{1,2})", "(?<m>[0-9]{1,2})"
_YEAR, _FULL_YEAR = "(?<y>[0-9]{4}|[0-9]{2})", "(?<y>[0-9]{4})"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAME = (
    "(?<n>(?i-u:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\.?"
)
_SHAPES = (
    rf"^{_FULL_YEAR}[-/.]{_MONTH}[-/.]{_DAY}$",
    rf"^{_DAY}(?:\.|st|nd|rd|th)?[- ]{_MONTH_NAME}[- ,]+{_YEAR}$",
    rf"^{_MONTH_NAME} {_DAY}(?:st|nd|rd|th)?,? {_YEAR}$",
    "^(?<y>[0-9]{4})(?<m>[0-9]{2})(?<d>[0-9]{2})$",
)
SHAPES = {
    "ymd": _SHAPES,  # the year in four digits: 03/04/24 is no date while nobody has said which number is the day
    "dmy": (rf"^{_DAY}[-/.]{_MONTH}[-/.]{_YEAR}$", *_SHAPES),
    "mdy": (rf"^{_MONTH}[-/.]{_DAY}[-/.]{_YEAR}$", *_SHAPES),
}
"""The ways to write a date, by the order of its numbers."""
OFFSET = "(?:[zZ]|UTC|[+-](?:0[0-9]|1[0-5])(?::?[0-5][0-9])?)"
MIDNIGHT = rf"[T ,]+(?:00?:00(?::00(?:[.,]0+)?)?|12:00(?::00)? ?(?i-u:am)) ?{OFFSET}?$"
_MOMENT = (
    r"^(?<date>.+?)(?:[T ,]+(?<hour>[0-9]{1,2}):(?<minute>[0-9]{2})"
    r"(?::(?<second>[0-5][0-9])(?:[.,](?<part>[0-9]{1,6})0*)?)?"
    rf" ?(?<half>(?i-u:[ap]\.?m\.?))? ?(?<offset>{OFFSET})?)?$"
)


def written_dates(texts: pl.Series, shape: str) -> pl.Series:
    """Texts of this shape as yyyy-mm-dd, which may not exist; null for any other text."""
    year, day = pl.col("y"), pl.col("d").str.zfill(2)
    century = pl.when(year.cast(pl.Int32) <= 68).then(pl.lit("20")).otherwise(pl.lit("19"))
    full_year = pl.when(year.str.len_bytes() == 2).then(century + year).otherwise(year)
    month = _number_of(pl.col("n")) if "(?<n>" in shape else pl.col("m").str.zfill(2)
    written = pl.when(year != "0000").then(pl.concat_str(full_year, month, day, separator="-"))
    return texts.str.extract_groups(shape).struct.unnest().select(written).to_series()


def _number_of(month: pl.Expr) -> pl.Expr:
    numbers = {name: f"{number:02}" for number, name in enumerate(_MONTHS, 1)}
    return month.str.to_lowercase().str.slice(0, 3).replace_strict(numbers, default=None, return_dtype=pl.String)


def written_in_any_shape(texts: pl.Series, order: str) -> pl.Series:
    """The same, whichever of the shapes it is. The first one takes most; the others see only what is left."""
    return read_forms(texts.alias("text"), [_written_form(shape) for shape in SHAPES[order]])


def _written_form(shape: str) -> pl.Expr:
    return pl.col("text").map_batches(lambda texts: written_dates(texts, shape), return_dtype=pl.String)


def existing_days(written: pl.Series) -> pl.Series:
    """Dates from texts as yyyy-mm-dd."""
    return written.str.to_date("%Y-%m-%d", strict=False, cache=False)


@dataclass(frozen=True, slots=True)
class Moments:
    """Dates of any shape with a time of day and an offset behind them, or none, taken apart."""

    written: pl.Series
    """The dates as yyyy-mm-dd, which may not exist."""
    parts: pl.DataFrame

    @classmethod
    def of(cls, texts: pl.Series, order: str) -> Self:
        # in steps: within one expression the pattern would run again for every part
        parts = texts.str.extract_groups(_MOMENT).struct.unnest()
        return cls(written_in_any_shape(parts["date"], order), parts)

    def within(self, timezone: str) -> pl.Series:
        """The moments in UTC; null for what is none. Those without offset are in this time zone."""
        clock = (pl.col(name).fill_null("00") for name in ("minute", "second", "part"))
        written = self.parts.select(pl.format("{}T{}:{}:{}.{}", self.written, _hour(), *clock)).to_series()
        local = written.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False, cache=False)
        at_offset = pl.col("local").dt.replace_time_zone("UTC") - pl.duration(minutes=_minutes_east())
        here = pl.when(pl.col("offset").is_null()).then(in_utc(pl.col("local"), timezone)).otherwise(at_offset)
        return self.parts.with_columns(local.alias("local")).select(here).to_series()


def in_utc(local: pl.Expr, timezone: str) -> pl.Expr:
    """Local times as moments; the earlier of two equal ones, null where the clock jumps over it."""
    if timezone == "UTC":
        return local.dt.replace_time_zone("UTC")
    placed = local.dt.replace_time_zone(timezone, ambiguous="earliest", non_existent="null")
    return placed.dt.convert_time_zone("UTC")


def _hour() -> pl.Expr:
    """The hour in two digits; 12 am is 00, 1 pm is 13, and 13 pm is none."""
    hour, half = pl.col("hour").fill_null("0").cast(pl.Int64), pl.col("half").str.to_lowercase().str.slice(0, 1)
    halved = hour % 12 + pl.when(half == "p").then(12).otherwise(0)
    hour = pl.when(half.is_null()).then(hour).when(hour.is_between(1, 12)).then(halved)
    return hour.cast(pl.String).str.zfill(2)


def _minutes_east() -> pl.Expr:
    offset = pl.col("offset")
    digits = offset.str.replace_all("[^0-9]", "").str.pad_end(4, "0")
    minutes = digits.str.slice(0, 2).cast(pl.Int64) * 60 + digits.str.slice(2, 2).cast(pl.Int64)
    return pl.when(offset.str.starts_with("-")).then(-minutes).otherwise(minutes)
