"""A field: how the texts of a column are read into values, what the values must hold, and what a refused text is told.

A field's `forms` are expressions over its own column, the common way of writing first. Each gives the value, or null
for a text that is written otherwise; the rarer forms only ever see what the earlier ones left.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal, Self, cast

import polars as pl

from rowcall.model import Code

TEXT = pl.col("text")
"""In messages: the text as it was read, without blanks around it."""
FOUND = pl.col("found")
"""In messages: the same, cut short for showing."""
DataType = pl.DataType | type[pl.DataType]


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """How a column of the file writes its numbers and dates. Decided once per column, never per cell."""

    decimal: Literal[".", ","] = "."
    date_order: Literal["dmy", "mdy", "ymd"] = "ymd"


@dataclass(frozen=True, slots=True)
class ColumnLimits:
    """What the target column itself demands."""

    required: bool = False
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    precision: int | None = None
    scale: int | None = None
    """How many decimal places are kept, of a number or of seconds; -2 keeps whole hundreds."""
    labels: tuple[str, ...] | None = None
    """The values of an enum."""
    elements: "ColumnLimits | None" = None
    """Of an array: what it demands of each item."""


@dataclass(frozen=True, slots=True)
class Check:
    """Something that a value must hold: `failing` is true where it doesn't, and null passes."""

    code: Code
    failing: pl.Expr
    message: pl.Expr


@dataclass(frozen=True, slots=True)
class Misdeclared:
    """Stands for a field with options that it doesn't have, or without those it needs, until its class says where."""

    kind: str
    option: str
    """The one that there isn't; empty where something else is wrong."""
    known: tuple[str, ...]
    told: str = ""


@dataclass(frozen=True, kw_only=True)
class Field:
    """A column of the target, and what a file may give for it."""

    required: bool = False
    default: Any = None
    """Taken where the cell is blank or the file has no such column."""
    aliases: Sequence[str] = ()
    """Other headers under which files bring this field."""
    help: str = ""
    column: str = ""
    """The target's column; the field's own name unless told."""
    blank: Sequence[str] = ()
    """Texts that mean "no value", besides the empty one. Upper and lower case are the same."""
    name: str = field(default="", init=False)
    timezone: str = field(default="UTC", init=False)
    reading: ColumnReading = field(default=ColumnReading(), init=False)
    limits: ColumnLimits = field(default=ColumnLimits(), init=False)

    def __new__(cls, *given: Any, **options: Any) -> Self:
        if not given and not options:  # a copy
            return super().__new__(cls)
        taken = signature(cls.__init__)
        known = tuple(name for name in taken.parameters if name != "self")
        for option in options:
            if option not in known:
                return cast("Self", Misdeclared(cls.__name__, option, known))  # refused with its class
        try:
            taken.bind(None, *given, **options)
        except TypeError as error:
            told = (
                "takes its options by name"
                if "positional" in str(error)
                else str(error).replace("missing a required argument:", "lacks")
            )
            return cast("Self", Misdeclared(cls.__name__, "", known, told))  # the same
        return super().__new__(cls)

    def named(self, name: str, timezone: str) -> Self:
        """This field under the name, and with the time zone, that its importer gives it."""
        return self._with(name=name, column=self.column or name, timezone=timezone)

    def read_as(self, reading: ColumnReading, limits: ColumnLimits) -> Self:
        """This field for one column of a file and one of the target."""
        return self._with(reading=reading, limits=limits)

    def _with(self, **changes: object) -> Self:
        twin = copy(self)  # not `replace`: Choice and Lookup take their first arguments by position
        for name, value in changes.items():
            object.__setattr__(twin, name, value)
        return twin

    @property
    def dtype(self) -> DataType:
        """The type of the values."""
        return pl.String

    def clean(self) -> pl.Expr:
        """The text without blanks around it; null where there is no value."""
        trimmed = pl.col(self.name).str.strip_chars()
        return pl.when(self._is_filled(trimmed)).then(trimmed)

    def _is_filled(self, trimmed: pl.Expr) -> pl.Expr:
        return (trimmed != "") & ~self._is_blank_word(trimmed) if self.blank else trimmed != ""

    def _is_blank_word(self, trimmed: pl.Expr) -> pl.Expr:
        return trimmed.str.to_lowercase().is_in([text.lower() for text in self.blank])

    def forms(self) -> tuple[pl.Expr, ...]:
        """The ways to read a clean text, the usual one first."""
        return (pl.col(self.name),)

    def refusal(self) -> pl.Expr:
        """What to say about a text that no form reads: a struct of code and message."""
        return refused(Code.VALUE_REFUSED, said("'{}' can't be read.", FOUND))

    def checks(self) -> tuple[Check, ...]:
        """What the values must hold."""
        return ()

    def read(self, texts: pl.Series) -> pl.Series:
        """The values of clean texts; null where no form reads them."""
        # in one piece: Polars panics over columns that are cut differently
        return read_forms(texts.rechunk().alias(self.name), self.forms())

    def default_text(self) -> str | None:
        """The default as a file would write it."""
        return None if self.default is None else str(self.default)

    def default_value(self) -> pl.Series | None:
        """The default as a series of one value; that value is null when the default can't be read."""
        text = self.default_text()
        return None if text is None else self.read(pl.Series(self.name, [text], dtype=pl.String))

    def mistakes(self) -> Iterator[str]:
        """What is wrong with this field's declaration."""
        if isinstance(self.aliases, str):
            yield f'aliases is a text, not a list; write aliases=["{self.aliases}"].'
        if isinstance(self.blank, str):
            yield f'blank is a text, not a list; write blank=["{self.blank}"].'
        if callable(self.default):
            yield "the default is a function; a value is expected, the same for every row."

    def default_mistakes(self) -> Iterator[str]:
        """What is wrong with the default, once the rest of the declaration is right."""
        try:
            text, value = self.default_text(), self.default_value()
        except TypeError as error:
            yield f"the default {self.default!r} doesn't fit: {error}."
            return
        if text is None or value is None:
            return
        shown = pl.DataFrame({"text": [text], "found": [text]})
        if value.null_count():
            yield f"the default doesn't fit: {shown.select(self.refusal()).item()['message']}"
        for check in self.checks():
            if value.to_frame().select(check.failing).item():
                yield f"the default doesn't fit: {shown.select(check.message).item()}"


def read_forms(texts: pl.Series, forms: Sequence[pl.Expr]) -> pl.Series:
    """Read every text by the first form that can."""
    return read_missed(texts, texts.to_frame().select(forms[0]).to_series(), forms[1:])


def read_missed(texts: pl.Series, values: pl.Series, forms: Sequence[pl.Expr]) -> pl.Series:
    """The values, with those that are missing read from their texts by the remaining forms."""
    missed = values.is_null() & texts.is_not_null()
    if not forms or not missed.any():
        return values
    found = read_forms(texts.filter(missed), forms)
    nth = (missed.cum_sum().cast(pl.Int64) - 1).clip(0)
    return values.zip_with(~missed, found.gather(nth))


def folded(header: str) -> str:
    """A header as it is compared: letters and digits only, in one case."""
    return "".join(character for character in unicodedata.normalize("NFKC", header).casefold() if character.isalnum())


def folded_values(texts: pl.Expr) -> pl.Expr:
    """Values as they are compared where case, accents and the kind of blanks don't count."""
    plain = texts.str.normalize("NFKD").str.replace_all(r"\p{M}+", "").str.to_lowercase().str.replace_all("ß", "ss")
    return plain.str.replace_all(r"\s+", " ").str.strip_chars()


def said(template: str, *parts: object) -> pl.Expr:
    """A message with a part for each `{}`: an expression, or something to show as it is."""
    return pl.format(template, *(part if isinstance(part, pl.Expr) else pl.lit(str(part)) for part in parts))


def refused(code: str, message: pl.Expr) -> pl.Expr:
    """A struct of code and message: what is told about a row."""
    return pl.struct(pl.lit(str(code)).alias("code"), message.alias("message"))
