"""Fields of numbers and of yes or no: Integer, Decimal, Boolean. No digit is ever lost silently.

But by columns of type `real` and `double precision`: they take the nearest number that they have. To refuse what does
not come back digit by digit would refuse what C's `%.17g` writes, which is a double without loss.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal as Exact

import polars as pl

from rowcall.importer.fields import FOUND, TEXT, Check, ColumnReading, DataType, Field, refused, said
from rowcall.model import FALSE, TRUE, Code

_GROUPING = {".": r"[,'’ \x{a0}\x{202f}]", ",": r"[.'’ \x{a0}\x{202f}]"}
_DIGITS = 38
_INT64_DIGITS = 18
_MOST = 10**_DIGITS - 1
_NO_NUMBER = r"^(?i-u:nan|[+-]?inf(?:inity)?)$"
_OF_ZERO = -(2**31)
_PLACES = 12  # where neither the field nor its column says: 26 digits before the mark remain


def _whole_digits(reading: ColumnReading) -> str:
    return rf"(?:[0-9]{{1,3}}(?:{_GROUPING[reading.decimal]}[0-9]{{3}})+|[0-9]+)"


def _number(reading: ColumnReading) -> str:
    """A number with or without grouping, fraction and exponent."""
    mark = rf"[{reading.decimal}]"
    return rf"^[+-]?(?:{_whole_digits(reading)}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]{{1,4}})?$"


def _bare(text: pl.Expr, reading: ColumnReading) -> pl.Expr:
    """A number without grouping, and with a point."""
    return text.str.replace_all(_GROUPING[reading.decimal], "").str.replace(",", ".", literal=True)


def places_of(bare: pl.Series) -> pl.Series:
    """How many decimal places numbers have: trailing zeros don't count, an exponent does. 1200 has -2, and 0 fewest."""
    parts = bare.str.extract_groups(r"^[+-]?(?<whole>[0-9]*)(?:\.(?<fraction>[0-9]*))?(?:[eE](?<exponent>.+))?$")
    fraction = pl.col("fraction").fill_null("")
    digits, length = pl.col("whole") + fraction, fraction.str.len_bytes().cast(pl.Int64)
    zeros = digits.str.len_bytes().cast(pl.Int64) - digits.str.strip_chars_end("0").str.len_bytes()
    places = length - zeros - pl.col("exponent").cast(pl.Int64, strict=False).fill_null(0)
    is_zero = digits.str.strip_chars("0") == ""
    return parts.struct.unnest().select(pl.when(is_zero).then(_OF_ZERO).otherwise(places)).to_series()


def _range_checks(field: Field, low: Exact | None, high: Exact | None) -> Iterator[Check]:
    """That a value lies within its field and its column."""
    value, limits = pl.col(field.name), field.limits
    end: Callable[[Exact], float | Exact] = _end
    if field.dtype == pl.String:
        value, end = value.cast(pl.Float64, strict=False), float
    low = max((Exact(least) for least in (low, limits.minimum) if least is not None), default=None)
    high = min((Exact(most) for most in (high, limits.maximum) if most is not None), default=None)
    if low is not None:
        yield Check(Code.TOO_SMALL, value < end(low), said("{} is below the minimum of {}.", FOUND, f"{low:f}"))
    if high is not None:
        yield Check(Code.TOO_LARGE, value > end(high), said("{} is above the maximum of {}.", FOUND, f"{high:f}"))


def _end(end: Exact) -> int | Exact:
    """The end of a range, within what any value can be."""
    if abs(end) > _MOST:
        return _MOST if end > 0 else -_MOST
    return int(end) if end == end.to_integral_value() else end


def _too_precise(kept: int) -> pl.Expr:
    if kept < 0:
        return said("{} is no multiple of {}, and its column keeps nothing finer.", FOUND, 10**-kept)
    return said("{} has more than {} decimal places.", FOUND, kept)


def _range_mistakes(low: Exact | None, high: Exact | None) -> Iterator[str]:
    for option, end in (("min", low), ("max", high)):
        if end is not None and not end.is_finite():
            yield f"{option} is {end}; a number is expected. Leave it out if there is none."
            return
    if low is not None and high is not None and low > high:
        yield f"min {low} is above max {high}."


@dataclass(frozen=True, kw_only=True)
class Integer(Field):
    """A whole number, with or without grouping of thousands; `5.0` is one, `5.5` and `5e3` are not.

    An exponent is refused because spreadsheets write long numbers that way, with their last digits gone.
    """

    min: int | None = None
    max: int | None = None

    @property
    def dtype(self) -> DataType:
        return pl.Int64

    def forms(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        bare = text.str.replace(rf"[{self.reading.decimal}]0*$", "").str.replace_all(
            _GROUPING[self.reading.decimal], ""
        )
        return (
            text.cast(pl.Int64, strict=False),
            pl.when(text.str.contains(self._pattern())).then(bare).cast(pl.Int64, strict=False),
        )

    def _pattern(self) -> str:
        return rf"^[+-]?{_whole_digits(self.reading)}(?:[{self.reading.decimal}]0*)?$"

    def refusal(self) -> pl.Expr:
        is_whole, is_negative = TEXT.str.contains(self._pattern()), TEXT.str.starts_with("-")
        return (
            pl.when(~is_whole)
            .then(refused(Code.INVALID_INTEGER, said("'{}' is not a whole number.", FOUND)))
            .when(is_negative)
            .then(refused(Code.TOO_SMALL, said("{} is below the minimum of {}.", FOUND, -(2**63))))
            .otherwise(refused(Code.TOO_LARGE, said("{} is above the maximum of {}.", FOUND, 2**63 - 1)))
        )

    def checks(self) -> tuple[Check, ...]:
        return (*self._precision_checks(), *_range_checks(self, _exact(self.min), _exact(self.max)))

    def _precision_checks(self) -> Iterator[Check]:
        kept = self.limits.scale
        if kept is not None and kept < 0:
            value = pl.col(self.name)
            rest = value % 10**-kept if -kept <= _INT64_DIGITS else value
            yield Check(Code.TOO_PRECISE, rest != 0, _too_precise(kept))

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        yield from _range_mistakes(_exact(self.min), _exact(self.max))


@dataclass(frozen=True, kw_only=True)
class Decimal(Field):
    """A number, kept digit by digit. More decimal places than the field or its column has are an issue, not rounded."""

    min: int | float | Exact | None = None
    max: int | float | Exact | None = None
    places: int | None = None
    exact: bool = False
    """Take any number of digits, an exponent of any size, NaN and Infinity. The value is a text, which rules can't
    reckon with; `min` and `max` are compared with 15 digits."""

    @property
    def dtype(self) -> DataType:
        return pl.String() if self.exact else pl.Decimal(_DIGITS, self.scale)

    @property
    def scale(self) -> int:
        """How many decimal places there may be."""
        return max(0, self._kept)

    @property
    def _kept(self) -> int:
        """The same; below 0 where the column keeps whole tens or hundreds only."""
        allowed = [places for places in (self.places, self.limits.scale) if places is not None]
        return min(allowed, default=_PLACES)

    def forms(self) -> tuple[pl.Expr, ...]:
        return self._texts() if self.exact else self._decimals()

    def _texts(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        number = pl.when(text.str.contains(_number(self.reading))).then(_bare(text, self.reading))
        bounded = self.places is not None or self.limits.scale is not None
        return (
            number.map_batches(self._exact_texts, return_dtype=pl.String) if bounded else number,
            pl.when(text.str.contains(_NO_NUMBER)).then(text),
        )

    def _decimals(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        usual = rf"^[+-]?[0-9]+(?:\.[0-9]{{1,{self.scale}}})?$" if self.scale else r"^[+-]?[0-9]+$"
        grouped = rf"^[+-]?{_whole_digits(self.reading)}(?:[{self.reading.decimal}][0-9]{{0,{self.scale}}}0*)?$"
        bare, exact = _bare(text, self.reading), _bare(text, self.reading).map_batches(self._exact_texts)
        forms = (
            pl.when(text.str.contains(usual)).then(text),
            pl.when(text.str.contains(grouped)).then(bare),
            pl.when(text.str.contains(_number(self.reading))).then(exact),
        )
        # where the comma is the mark, 1.234 is more than a thousand; and not each whole number has its zeros
        first = 2 if self._kept < 0 else int(self.reading.decimal == ",")
        return tuple(form.cast(self.dtype, strict=False) for form in forms[first:])

    def _exact_texts(self, texts: pl.Series) -> pl.Series:
        """The numbers that have no more decimal places than they may; null for the others."""
        return texts.to_frame("bare").select(pl.when(places_of(texts) <= self._kept).then(pl.col("bare"))).to_series()

    def refusal(self) -> pl.Expr:
        is_number = TEXT.str.contains(_number(self.reading))
        is_precise = _bare(TEXT, self.reading).map_batches(places_of, return_dtype=pl.Int64) > self._kept
        too_long = said("{} has more than {} digits before the decimal mark.", FOUND, _DIGITS - self.scale)
        return (
            pl.when(~is_number)
            .then(refused(Code.INVALID_DECIMAL, said("'{}' is not a number.", FOUND)))
            .when(is_precise)
            .then(refused(Code.TOO_PRECISE, _too_precise(self._kept)))
            .when(TEXT.str.starts_with("-"))
            .then(refused(Code.TOO_SMALL, too_long))
            .otherwise(refused(Code.TOO_LARGE, too_long))
        )

    def checks(self) -> tuple[Check, ...]:
        return (*self._precision_checks(), *_range_checks(self, _exact(self.min), _exact(self.max)))

    def _precision_checks(self) -> Iterator[Check]:
        precision, scale = self.limits.precision, self.limits.scale or 0
        if self.exact:
            return  # PostgreSQL tells
        if precision is not None and precision - scale < _DIGITS - self.scale:
            end, value = 10 ** (precision - scale), pl.col(self.name)
            told = said("{} has more than {} digits before the decimal mark.", FOUND, precision - scale)
            yield Check(Code.TOO_LARGE, value >= end, told)
            yield Check(Code.TOO_SMALL, value <= -end, told)

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        yield from _range_mistakes(_exact(self.min), _exact(self.max))
        if self.places is not None and not 0 <= self.places <= _DIGITS:
            yield f"places is {self.places}; 0 to {_DIGITS} are possible."


def _exact(number: int | float | Exact | None) -> Exact | None:
    return None if number is None else Exact(str(number))


@dataclass(frozen=True, kw_only=True)
class Boolean(Field):
    """Yes or no: true/false, yes/no, y/n, t/f, 1/0, on/off, and the words of some languages; in either case."""

    @property
    def dtype(self) -> DataType:
        return pl.Boolean

    def forms(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        words = dict.fromkeys(TRUE, True) | dict.fromkeys(FALSE, False)
        usual = pl.when(text.is_in(["true", "false"])).then(text == "true")
        return usual, text.str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean)

    def refusal(self) -> pl.Expr:
        return refused(Code.INVALID_BOOLEAN, said("'{}' is neither true nor false, yes nor no, 1 nor 0.", FOUND))
