"""What each column could be, with counts for and against: decided per column, never per cell.

Nothing is converted here. A column of `03/04/2024` is evidence for a date in two orders, and saying so is the point:
where two readings explain every value equally well, that is an ambiguity to be asked about, not guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import polars as pl

from rowcall.formats.reading import Batch, Column, Reading, ReadOptions
from rowcall.model import FALSE, TRUE

SAMPLE_ROWS = 10_000
_SAMPLE_CELLS = 2_000_000
_LIKELY = 0.9  # of the values speak for a kind: it is followed through the whole file
_SKETCH = 4_096
_SAMPLES = 3


class Kind(StrEnum):
    """What the values of a column may be, the more particular first."""

    UUID = "uuid"
    EMAIL = "email"
    URL = "url"
    DATE_YMD = "date year-month-day"
    DATE_DMY = "date day-month-year"
    DATE_MDY = "date month-day-year"
    DATE_WORDS = "date with month name"
    DATE_COMPACT = "date yyyymmdd"
    TIME = "time"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    CODE = "code of digits"
    DECIMAL_POINT = "decimal with point"
    DECIMAL_COMMA = "decimal with comma"
    MONEY = "amount with currency"
    PERCENT = "percent"
    JSON = "json"
    TEXT = "text"


_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?"
_TIME_OF_DAY = rf"(?:[T ,]+{_CLOCK} ?(?:Z|UTC|[+-]\d{{2}}:?\d{{2}})?)?"
_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:\d{4}|\d{2})"
_MONTH_NAME = r"[\p{L}]{3,9}\.?"
_POINT = r"(?:\d+|[1-9]\d{0,2}(?:[, '\x{a0}\x{202f}]\d{3})+)(?:\.\d+)?|\.\d+"
_COMMA = r"(?:\d+|[1-9]\d{0,2}(?:[. '\x{a0}\x{202f}]\d{3})+)(?:,\d+)?|,\d+"
_CURRENCY = r"(?:[$€£¥₹₽₺₩]|[A-Z]{3})"
_TRUTH = "|".join((*TRUE, *FALSE))

_PATTERNS = {
    Kind.UUID: r"^\{?[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}\}?$",
    Kind.EMAIL: r"^[^\s@<>,;]+@[^\s@<>,;]+\.[^\s@<>,;.]{2,}$",
    Kind.URL: r"^(?i:https?|ftp)://[^\s]+$",
    Kind.DATE_YMD: rf"^\d{{4}}[-/.]{_MONTH}[-/.]{_DAY}{_TIME_OF_DAY}$",
    Kind.DATE_DMY: rf"^{_DAY}[-/.]{_MONTH}[-/.]{_YEAR}{_TIME_OF_DAY}$",
    Kind.DATE_MDY: rf"^{_MONTH}[-/.]{_DAY}[-/.]{_YEAR}{_TIME_OF_DAY}$",
    Kind.DATE_WORDS: (
        rf"^(?:{_DAY}(?:\.|st|nd|rd|th)?[- ]{_MONTH_NAME}[- ,]+{_YEAR}|{_MONTH_NAME} {_DAY}(?:st|nd|rd|th)?,? {_YEAR})"
        rf"{_TIME_OF_DAY}$"
    ),
    Kind.DATE_COMPACT: r"^(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$",
    Kind.TIME: rf"^{_CLOCK}$",
    Kind.BOOLEAN: rf"^(?i:{_TRUTH})$",
    Kind.INTEGER: r"^[+-]?(?:0|[1-9]\d{0,18})$",
    Kind.CODE: r"^\d+$",
    Kind.DECIMAL_POINT: rf"^[+-]?(?:{_POINT})(?:[eE][+-]?\d+)?$",
    Kind.DECIMAL_COMMA: rf"^[+-]?(?:{_COMMA})(?:[eE][+-]?\d+)?$",
    Kind.MONEY: rf"^[+-]?(?:{_CURRENCY} ?[+-]?(?:{_POINT}|{_COMMA})|(?:{_POINT}|{_COMMA}) ?{_CURRENCY})$",
    Kind.PERCENT: rf"^[+-]?(?:{_POINT}|{_COMMA}) ?%$",
    Kind.JSON: r"^(?:\{.*\}|\[.*\])$",
}
_MISSING = r"^(?i:null|none|n/?a|nan|#n/a|nil|-+|\?)$"

# Readings that exclude each other though every value may allow both.
_RIVALS = (
    (Kind.DATE_DMY, Kind.DATE_MDY),
    (Kind.DECIMAL_POINT, Kind.DECIMAL_COMMA),
    (Kind.DATE_COMPACT, Kind.INTEGER),
    (Kind.BOOLEAN, Kind.INTEGER),
)
_GIVEN = {".": Kind.DECIMAL_POINT, ",": Kind.DECIMAL_COMMA, "dmy": Kind.DATE_DMY, "mdy": Kind.DATE_MDY}


@dataclass(frozen=True, slots=True)
class Evidence:
    """How many of the examined values speak for a kind, and how many against."""

    kind: Kind
    supporting: int
    against: int


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What is known about a column after reading some or all of its values."""

    column: Column
    rows: int
    filled: int
    """Values that are neither null nor empty."""
    nulls: int
    missing: int
    """Filled values that only say that there is none: NULL, N/A, -."""
    distinct: int
    distinct_exact: bool
    longest: int
    samples: tuple[str, ...]
    """The first three different values."""
    evidence: tuple[Evidence, ...]
    """For the kinds that some value speaks for, the best first."""
    kind: Kind
    """What all (or nearly all) values can be read as."""
    ambiguous: tuple[Kind, ...]
    """Two kinds that explain the values equally well; empty when one of them does it better."""

    @property
    def decimal(self) -> str | None:
        """The decimal mark, where the values tell it."""
        marks = {Kind.DECIMAL_POINT: ".", Kind.DECIMAL_COMMA: ","}
        return None if self.ambiguous else marks.get(self.kind)

    @property
    def date_order(self) -> str | None:
        """The order of day, month and year, where the values tell it."""
        orders = {Kind.DATE_YMD: "ymd", Kind.DATE_DMY: "dmy", Kind.DATE_MDY: "mdy", Kind.DATE_COMPACT: "ymd"}
        return None if self.ambiguous else orders.get(self.kind)


@dataclass(slots=True)
class _Tally:
    """Running counts of one column."""

    column: Column
    rows: int = 0
    filled: int = 0
    nulls: int = 0
    missing: int = 0
    longest: int = 0
    separated: int = 0
    """Values with a point or comma between digits."""
    samples: dict[str, None] = field(default_factory=dict[str, None])
    supporting: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(_PATTERNS, 0))
    examined: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(_PATTERNS, 0))
    sketch: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))


class Profile:
    """Collects evidence batch by batch, in memory that depends on the columns only.

    All kinds are tried on a sample; through the rest of the file only those that the sample speaks for.
    """

    def __init__(self, options: ReadOptions | None = None) -> None:
        self._options = options or ReadOptions()
        self._tallies: list[_Tally] = []
        self._rows = 0

    def observe(self, batch: Batch, columns: Sequence[Column]) -> None:
        """Take a batch into account. `columns` may have grown since the last one."""
        self._tallies += [_Tally(column, rows=self._rows, nulls=self._rows) for column in columns[len(self._tallies) :]]
        sample_rows = min(SAMPLE_ROWS, _SAMPLE_CELLS // max(1, len(columns)))
        frame = batch.frame
        while frame.height:
            sampling = self._rows < sample_rows
            part = frame.head(sample_rows - self._rows) if sampling else frame
            for tally, series in zip(self._tallies, part, strict=False):
                _add(tally, series, [kind for kind in _PATTERNS if sampling or _is_followed(tally, kind)])
            self._rows += part.height
            frame = frame.slice(part.height)

    def columns(self) -> tuple[ColumnProfile, ...]:
        """What the evidence says so far."""
        return tuple(_profile(tally, self._rows, self._options) for tally in self._tallies)


def _is_followed(tally: _Tally, kind: Kind) -> bool:
    return tally.supporting[kind] > 0 and tally.supporting[kind] >= _LIKELY * tally.examined[kind]


def _add(tally: _Tally, series: pl.Series, kinds: Sequence[Kind]) -> None:
    text = series.drop_nulls()
    trimmed = text.str.strip_chars()
    filled = trimmed.filter(trimmed != "")
    tally.rows += len(series)
    tally.nulls += len(series) - len(text)
    tally.filled += len(filled)
    if not len(filled):
        return
    tally.longest = max(tally.longest, int(filled.str.len_chars().max() or 0))  # pyright: ignore[reportArgumentType] (an Int column's max)
    for value in filled.head(200) if len(tally.samples) < _SAMPLES else ():
        if len(tally.samples) < _SAMPLES:
            tally.samples[value[:200]] = None
    tally.sketch = _merged(tally.sketch, filled)
    missing = int(filled.str.contains(_MISSING).sum())
    tally.missing += missing
    if not kinds:
        return
    counts = pl.DataFrame({"v": filled}).select(
        *(pl.col("v").str.contains(_PATTERNS[kind]).sum().alias(kind) for kind in kinds),
        pl.col("v").str.contains(r"\d[.,]\d").sum().alias("separated"),
    )
    found = counts.row(0, named=True)
    tally.separated += found.pop("separated")
    for kind in kinds:
        tally.supporting[kind] += found[kind]
        tally.examined[kind] += len(filled) - missing


def _merged(sketch: npt.NDArray[np.uint64], values: pl.Series) -> npt.NDArray[np.uint64]:
    """The k smallest hashes seen (a KMV sketch): as many as there are distinct values, while they are few."""
    hashes = values.hash().to_numpy()
    if len(sketch) == _SKETCH:
        hashes = hashes[hashes < sketch[-1]]
        if not len(hashes):
            return sketch
    return np.union1d(sketch, hashes)[:_SKETCH]


def profile_of(reading: Reading, options: ReadOptions | None = None, *, rows: int | None = SAMPLE_ROWS) -> Profile:
    """The profile of a file's first rows, or of all of them."""
    profile = Profile(options)
    for batch in reading:
        profile.observe(batch, reading.columns)
        if rows is not None and reading.counts.rows >= rows:
            break
    return profile


def _profile(tally: _Tally, rows: int, options: ReadOptions) -> ColumnProfile:
    evidence = [
        Evidence(kind, count, tally.examined[kind] - count) for kind, count in tally.supporting.items() if count
    ]
    evidence.sort(key=lambda e: e.against / (e.against + e.supporting))
    kind, ambiguous = _reading(tally)
    given = _GIVEN.get(options.decimal or ""), _GIVEN.get(options.date_order or "")
    kind, ambiguous = next(((k, ()) for k in ambiguous if k in given), (kind, ambiguous))
    exact = len(tally.sketch) < _SKETCH
    distinct = len(tally.sketch) if exact else round((_SKETCH - 1) / (float(tally.sketch[-1]) / 2.0**64))
    return ColumnProfile(
        tally.column,
        rows,
        tally.filled,
        tally.nulls,
        tally.missing,
        min(distinct, tally.filled),
        exact,
        tally.longest,
        tuple(tally.samples),
        tuple(evidence),
        kind,
        ambiguous,
    )


def _reading(tally: _Tally) -> tuple[Kind, tuple[Kind, ...]]:
    """The kind that explains the values best, and its rival where that explains them as well."""

    def share(kind: Kind) -> float:
        return tally.supporting[kind] / tally.examined[kind] if tally.examined[kind] else 0.0

    best = max(_PATTERNS, key=lambda kind: (share(kind), -list(_PATTERNS).index(kind)))
    if share(best) < _LIKELY:
        return Kind.TEXT, ()
    if best is Kind.BOOLEAN and share(Kind.INTEGER) < 1 and len(tally.sketch) > 4:
        return Kind.TEXT, ()  # y, n, t, f among other initials
    for one, other in _RIVALS:
        both = share(one) == share(other) >= _LIKELY
        if best in (one, other) and both and (one is not Kind.DECIMAL_POINT or tally.separated):
            return best, (one, other)
    return best, ()
