"""Values that are the same for all rows: read when they are given, in the notation that is given for the file.

What is kept is the text as it is read without one: 2024-12-31 for 31.12.2024. A template that takes it over means the
same by it, however its next file writes dates.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal as Exact
from typing import Any

import polars as pl

from rowcall.engine.columns.asking import in_config
from rowcall.errors import DoesNotFit
from rowcall.formats import ReadOptions
from rowcall.importer import Choice, Date, DateTime, Decimal, Field, Importer, Integer, Lookup
from rowcall.importer.fields import ColumnLimits, ColumnReading
from rowcall.model import Code


@dataclass(frozen=True, slots=True, kw_only=True)
class _Constant:
    kept: str
    mistake: str | None = None


def read_constants(importer: type[Importer], constants: Mapping[str, str], read: ReadOptions) -> dict[str, str]:
    """The constants as they are kept. Refuses those that their fields can't take: they would fail in every row."""
    found = {name: _read(importer.fields[name], text, read) for name, text in constants.items()}
    wrong = {name: each.mistake for name, each in found.items() if each.mistake}
    if wrong:
        told = " ".join(f"The value of {name} for all rows doesn't fit: {mistake}" for name, mistake in wrong.items())
        errors = [{"at": f"constants/{name}", "message": mistake} for name, mistake in wrong.items()]
        hints = dict(zip(("hint", "over_http"), _hints([importer.fields[name] for name in wrong], read), strict=True))
        raise DoesNotFit(Code.BAD_MAPPING, told, **hints, errors=errors)
    return {name: each.kept for name, each in found.items()}


def _hints(fields: Sequence[Field], read: ReadOptions) -> tuple[str, str]:
    """How such values are written, on the command line and over HTTP."""
    if not any(_is_written_in_ways(field) for field in fields):
        return "", ""
    always = "Dates such as 2024-12-31 and numbers such as 1234 or 1.2340 can always be read."
    if read.decimal or not any(isinstance(field, Decimal) for field in fields):
        return always, ""
    return (
        f"{always} Or import the file with --decimal point or --decimal comma.",
        f"{always} Or import the file with {in_config('decimal', '.')}, or a comma.",
    )


def _is_written_in_ways(field: Field) -> bool:
    """Whether the same text can be another value in another file."""
    return isinstance(field, Date | DateTime | Decimal | Integer)


def _read(field: Field, text: str, read: ReadOptions) -> _Constant:
    if isinstance(field, Lookup) or (isinstance(field, Choice) and field.on_missing != "fail"):
        return _Constant(kept=text)  # what it stands for may be asked
    ways = [field.read_as(reading, ColumnLimits()) for reading in _readings(field, text.strip(), read)]
    texts = pl.DataFrame({field.name: [text]}).select(field.clean()).to_series()
    if texts.null_count():
        return _Constant(kept=text)
    values = [way.read(texts) for way in ways]
    nth = next((nth for nth, value in enumerate(values) if not value.null_count()), 0)
    if doubt := _doubt(field, texts, ways, read):
        return _Constant(kept=text, mistake=f"{text!r} can be read {doubt}.")
    if mistake := _mistake(ways[nth], text, values[nth]):
        return _Constant(kept=text, mistake=mistake)
    if not _is_written_in_ways(field):
        return _Constant(kept=text)
    value = values[nth].item()
    plain = field.read_as(ColumnReading(), ColumnLimits()).read(texts).item()
    return _Constant(kept=text if value == plain else _written(value))


def _readings(field: Field, text: str, read: ReadOptions) -> list[ColumnReading]:
    """The ways to read a constant: as is said for the file, else in whichever way it can be read."""
    if isinstance(field, Date | DateTime):
        orders = (read.date_order,) if read.date_order else ("ymd", "dmy", "mdy")
        return [ColumnReading(date_order=order) for order in orders]
    point, comma = ColumnReading(), ColumnReading(decimal=",")
    if not isinstance(field, Decimal | Integer):
        return [point]
    if not read.decimal and (small := _BELOW_ONE.match(text)):  # of which nothing groups digits
        return [ColumnReading(decimal="," if small[1] == "," else ".")]
    # a whole number: what stands in it can only group digits
    comma_first = read.decimal == "," or (not read.decimal and isinstance(field, Integer) and "." in text)
    return [comma, point] if comma_first else [point, comma]


_BELOW_ONE = re.compile("[+-]?0?([.,])")


def _doubt(field: Field, texts: pl.Series, ways: Sequence[Field], read: ReadOptions) -> str | None:
    """Between what a constant leaves a doubt, in which nothing else decides, as it would in a column."""
    if isinstance(field, Date | DateTime):
        return "with the day or the month first" if len(_different(texts, ways)) > 1 else None
    if not isinstance(field, Decimal) or read.decimal:
        return None
    number = Decimal().named(field.name, field.timezone)  # whatever places the field has
    values = _different(texts, [number.read_as(way.reading, ColumnLimits()) for way in ways])
    return " or ".join(f"as {_written(value)}" for value in values) if len(values) > 1 else None


def _different(texts: pl.Series, ways: Sequence[Field]) -> list[Any]:
    """The values that a text has, read in these ways."""
    return [value for value in dict.fromkeys(way.read(texts).item() for way in ways) if value is not None]


def _mistake(field: Field, text: str, value: pl.Series) -> str | None:
    """What a row with this text would be told."""
    shown = pl.DataFrame({"text": [text.strip()], "found": [text.strip()[:60]]})
    if value.null_count():
        return shown.select(field.refusal()).item()["message"]
    failing = (check for check in field.checks() if value.alias(field.name).to_frame().select(check.failing).item())
    return next((shown.select(check.message).item() for check in failing), None)


def _written(value: Any) -> str:
    """A value as every file can write it."""
    if isinstance(value, Exact):
        text = f"{value:f}"  # not `normalize`, which rounds to 28 digits
        return text.rstrip("0").rstrip(".") if "." in text else text
    return value.isoformat() if isinstance(value, dt.date) else str(value)
