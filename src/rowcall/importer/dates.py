"""Fields of time: Date, DateTime."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from rowcall.importer.date_texts import MIDNIGHT, OFFSET, Moments, existing_days, in_utc, written_in_any_shape
from rowcall.importer.fields import FOUND, Check, DataType, Field, refused, said
from rowcall.model import Code

_EXAMPLES = {"ymd": "2024-12-31", "dmy": "31.12.2024", "mdy": "12/31/2024"}
_SPELT = {"ymd": "year, month, day", "dmy": "day, month, year", "mdy": "month, day, year"}
_ISO_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ISO_TIME = "[0-9]{2}:[0-9]{2}:[0-5][0-9]"
_MICROSECONDS = 6  # decimal places of a second, the most that PostgreSQL keeps
_FINER = r"(:[0-9]{2}[.,][0-9]{6})[0-9]+"
_UTC = pl.Datetime("us", "UTC")
_TOLD = pl.Struct({"code": pl.String, "message": pl.String})


@dataclass(frozen=True, kw_only=True)
class Date(Field):
    """A day. A time of day is accepted only when it is midnight."""

    min: dt.date | None = None
    max: dt.date | None = None

    @property
    def dtype(self) -> DataType:
        return pl.Date

    def forms(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        is_iso = text.str.contains(f"{_ISO_DATE}$") & ~text.str.starts_with("0000")
        iso = pl.when(is_iso).then(text).str.to_date("%Y-%m-%d", strict=False, cache=False)
        return iso, text.str.replace(MIDNIGHT, "").map_batches(self._days, return_dtype=pl.Date)

    def _days(self, texts: pl.Series) -> pl.Series:
        return existing_days(written_in_any_shape(texts, self.reading.date_order))

    def refusal(self) -> pl.Expr:
        return _told(self._told)

    def _told(self, refused_texts: pl.DataFrame) -> pl.Expr:
        order = self.reading.date_order
        written = written_in_any_shape(refused_texts["text"].str.replace(MIDNIGHT, ""), order)
        no_date = said("'{}' is not a date such as {}.", FOUND, _EXAMPLES[order])
        return (
            pl.when(pl.lit(written.is_null()))
            .then(refused(Code.INVALID_DATE, no_date))
            .otherwise(refused(Code.DATE_NOT_EXISTING, _why_no_day(written, order)))
        )

    def checks(self) -> tuple[Check, ...]:
        return tuple(_range_checks(self, self.min, self.max))

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        yield from _range_mistakes(self.min, self.max)


@dataclass(frozen=True, kw_only=True)
class DateTime(Field):
    """A moment, kept in UTC. A day alone is its midnight; a time without offset is in the importer's time zone.

    Where the clock is put back, the earlier of the two equal times is taken. A time that the clock jumps over when it
    is put forward is an issue.
    """

    min: dt.datetime | None = None
    max: dt.datetime | None = None

    @property
    def dtype(self) -> DataType:
        return _UTC

    def forms(self) -> tuple[pl.Expr, ...]:
        # measured on 1M texts: pattern and fixed format 60 ms, slices 100 ms, the format with any offset 215 ms
        text = pl.col(self.name)
        return (
            _parsed(text, f"{_ISO_DATE}T{_ISO_TIME}Z$", "%Y-%m-%dT%H:%M:%SZ").dt.replace_time_zone("UTC"),
            _parsed(text, rf"{_ISO_DATE}T{_ISO_TIME}(?:\.[0-9]{{1,6}})?{OFFSET}$", "%Y-%m-%dT%H:%M:%S%.f%#z"),
            in_utc(_parsed(text, f"{_ISO_DATE} {_ISO_TIME}$", "%Y-%m-%d %H:%M:%S"), self.timezone),
            text.map_batches(self._moments, return_dtype=_UTC),
        )

    def _moments(self, texts: pl.Series) -> pl.Series:
        return Moments.of(texts, self.reading.date_order).within(self.timezone)

    def refusal(self) -> pl.Expr:
        return _told(self._told)

    def _told(self, refused_texts: pl.DataFrame) -> pl.Expr:
        order = self.reading.date_order
        read = Moments.of(refused_texts["text"], order)
        finer = Moments.of(refused_texts["text"].str.replace(_FINER, "$1"), order).within(self.timezone).is_not_null()
        no_day = read.written.is_not_null() & existing_days(read.written).is_null()
        elsewhere = read.within("UTC").is_not_null()
        no_moment = said("'{}' is not a date and time such as {} 14:05:00.", FOUND, _EXAMPLES[order])
        skipped = said("{} does not exist in {}: the clock is put forward over it.", FOUND, self.timezone)
        return (
            pl.when(pl.lit(no_day))
            .then(refused(Code.DATE_NOT_EXISTING, _why_no_day(read.written, order)))
            .when(pl.lit(elsewhere))
            .then(refused(Code.DATE_NOT_EXISTING, skipped))
            .when(pl.lit(finer))
            .then(refused(Code.TOO_PRECISE, _too_precise(_MICROSECONDS)))
            .otherwise(refused(Code.INVALID_DATETIME, no_moment))
        )

    def checks(self) -> tuple[Check, ...]:
        return (*self._precision_checks(), *_range_checks(self, _aware(self.min), _aware(self.max)))

    def _precision_checks(self) -> Iterator[Check]:
        kept = self.limits.scale
        if kept is not None and kept < _MICROSECONDS:
            part = pl.col(self.name).dt.microsecond() % 10 ** (_MICROSECONDS - kept)
            yield Check(Code.TOO_PRECISE, part != 0, _too_precise(kept))

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        yield from _range_mistakes(_aware(self.min), _aware(self.max))


def _too_precise(kept: int) -> pl.Expr:
    if kept == 0:
        return said("{} has a fraction of a second, and its column keeps whole ones.", FOUND)
    return said("{} has more than {} decimal places of a second.", FOUND, kept)


def _parsed(text: pl.Expr, pattern: str, form: str) -> pl.Expr:
    """Texts of a fixed form; the pattern because the parser takes other widths, signs and blanks for it too."""
    is_so = text.str.contains(pattern) & ~text.str.starts_with("0000")
    return pl.when(is_so).then(text).str.to_datetime(form, time_unit="us", strict=False, cache=False)


def _told(tell: Callable[[pl.DataFrame], pl.Expr]) -> pl.Expr:
    """What is told about the texts, worked out over all of them at once."""

    def tell_all(texts: pl.Series) -> pl.Series:
        frame = texts.struct.unnest()
        return frame.select(tell(frame)).to_series()

    return pl.struct("text", "found").map_batches(tell_all, return_dtype=_TOLD)


def _why_no_day(written: pl.Series, order: str) -> pl.Expr:
    """Why these dates, as yyyy-mm-dd, don't exist."""
    first = pl.lit(existing_days(written.str.slice(0, 8) + "01"))
    month, length = first.dt.strftime("%B %Y"), first.dt.month_end().dt.day()
    no_month = "{} does not exist: there is no month {}, reading it as {}."
    return (
        pl.when(first.is_null())
        .then(said(no_month, FOUND, pl.lit(written.str.slice(5, 2)), _SPELT[order]))
        .otherwise(said("{} does not exist: {} has {} days.", FOUND, month, length))
    )


def _range_checks(field: Field, low: dt.date | None, high: dt.date | None) -> Iterator[Check]:
    value = pl.col(field.name)
    if low is not None:
        told = said("{} is before the earliest possible, {}.", FOUND, low)
        yield Check(Code.TOO_SMALL, value < pl.lit(low, dtype=field.dtype), told)
    if high is not None:
        told = said("{} is after the latest possible, {}.", FOUND, high)
        yield Check(Code.TOO_LARGE, value > pl.lit(high, dtype=field.dtype), told)


def _range_mistakes(low: dt.date | None, high: dt.date | None) -> Iterator[str]:
    if low is not None and high is not None and low > high:
        yield f"min {low} is after max {high}."


def _aware(moment: dt.datetime | None) -> dt.datetime | None:
    """The moment in UTC; without an offset it is in UTC already."""
    if moment is None:
        return None
    return moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
