"""Fields of text: Text, Email, Uuid, Choice, List, Json."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import msgspec
import polars as pl
from polars.exceptions import ComputeError

from rowcall.importer.fields import FOUND, TEXT, Check, DataType, Field, refused, said
from rowcall.importer.items import element_checks
from rowcall.importer.matching import OnMissing, on_missing_mistakes
from rowcall.model import Code

_ATOM = r"""[^\s@".(),:;<>\[\]\\]+"""
_LABEL = r"[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?"
_EMAIL = rf"^{_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+\p{{L}}[\p{{L}}\p{{N}}-]*[\p{{L}}\p{{N}}]$"
_USUAL_EMAIL = r"^[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*@(?:[a-z0-9]+(?:-+[a-z0-9]+)*\.)+[a-z]{2,}$"
_USUAL_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_UUID = r"^(?:urn:uuid:)?\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$"
# Numbers other than short whole ones are left to `_exact_lists`: here they would come back with other digits.
_JSON_ITEM = r'(?:"(?:[^"\\\x00-\x1f]|\\.)*"|-?[0-9]{1,18}|true|false)'
_JSON_LIST = rf"^\[\s*(?:{_JSON_ITEM}(?:\s*,\s*{_JSON_ITEM})*)?\s*\]$"
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_SHOWN_CHOICES = 12
_JUDGED_VALUES = 500  # wrong values of a batch that get a "did you mean"; the search for it is slow


def whole(pattern: str) -> str:
    """The pattern for a whole text."""
    return f"^(?:{pattern})$"


def pattern_mistake(pattern: str) -> str | None:
    """Why the pattern can't be used, if so."""
    try:
        pl.select(pl.lit("").str.contains(whole(pattern)))
    except ComputeError as error:
        told = [line for line in str(error).splitlines() if line.startswith("error:")]
        return f"the pattern {pattern!r} can't be used: {told[0].removeprefix('error: ') if told else error}."
    return None


def least_mistakes(option: str, value: int | None, least: int) -> Iterator[str]:
    """What is wrong with a number that can't be so small."""
    if value is not None and value < least:
        yield f"{option} is {value}; {least} or more is expected."


def length_checks(field: Field, shortest: int | None, longest: int | None) -> Iterator[Check]:
    """That a text is long enough, and fits its field and its column."""
    length, shown = pl.col(field.name).str.len_chars(), TEXT.str.len_chars()
    longest = min((limit for limit in (longest, field.limits.max_length) if limit is not None), default=None)
    if longest is not None:
        told = said("'{}' has {} characters; at most {} are allowed.", FOUND, shown, longest)
        yield Check(Code.TOO_LONG, length > longest, told)
    if shortest is not None:
        told = said("'{}' has {} characters; at least {} are needed.", FOUND, shown, shortest)
        yield Check(Code.TOO_SHORT, length < shortest, told)


def label_checks(field: Field) -> Iterator[Check]:
    """That a text is one of the labels of its column's enum."""
    labels = field.limits.labels
    if labels is not None:
        yield Check(Code.NOT_A_CHOICE, ~pl.col(field.name).is_in(labels), choice_message(labels))


def choice_message(choices: Sequence[str]) -> pl.Expr:
    """Says which values there are, and which of them was probably meant."""
    more = len(choices) - _SHOWN_CHOICES
    listed = ", ".join(choices[:_SHOWN_CHOICES]) + (f" and {more} more" if more > 0 else "")
    by_lower = {choice.lower(): choice for choice in choices}

    def guesses(found: pl.Series) -> pl.Series:
        texts: list[str] = found.unique(maintain_order=True).head(_JUDGED_VALUES).to_list()
        near = {text: get_close_matches(text.lower(), by_lower, n=1) for text in texts}
        meant = {text: f" Did you mean {by_lower[match[0]]}?" for text, match in near.items() if match}
        return found.replace_strict(meant, default="", return_dtype=pl.String)

    return said("'{}' is none of {}.{}", FOUND, listed, FOUND.map_batches(guesses, return_dtype=pl.String))


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    """Any text."""

    max_length: int | None = None
    min_length: int | None = None
    pattern: str | None = None
    """What the whole text must match, in the syntax of Rust's regex crate: Python's, without look-around."""
    strip: bool = True
    """Take away blanks at both ends."""
    exact: bool = False
    """Keep the text as it is, with its blanks; an empty one is a value too. A blank cell of CSV, which can't tell an
    empty text from none, is empty only where the column must have a value."""

    def clean(self) -> pl.Expr:
        text, trimmed = pl.col(self.name), pl.col(self.name).str.strip_chars()
        if self.exact:
            return pl.when(~self._is_blank_word(trimmed)).then(text) if self.blank else text
        return super().clean() if self.strip else pl.when(self._is_filled(trimmed)).then(text)

    def checks(self) -> tuple[Check, ...]:
        return (
            *length_checks(self, self.min_length, self.max_length),
            *self._pattern_checks(),
            *label_checks(self),
        )

    def _pattern_checks(self) -> Iterator[Check]:
        if self.pattern is not None:
            told = said("'{}' does not match {}.{}", FOUND, self.pattern, f" {self.help}" if self.help else "")
            yield Check(Code.PATTERN_MISMATCH, ~pl.col(self.name).str.contains(whole(self.pattern)), told)

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        yield from least_mistakes("min_length", self.min_length, 0)
        yield from least_mistakes("max_length", self.max_length, 1)
        if self.max_length is not None and (self.min_length or 0) > self.max_length:
            yield f"min_length {self.min_length} is above max_length {self.max_length}."
        if self.pattern is not None and (mistake := pattern_mistake(self.pattern)):
            yield mistake


@dataclass(frozen=True, kw_only=True)
class Email(Text):
    """An e-mail address, kept in lower case so that equal addresses are equal texts."""

    max_length: int | None = 254

    def forms(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        lower = text.str.to_lowercase()
        usual = pl.when(text.str.contains(_USUAL_EMAIL)).then(text)
        return usual, pl.when(lower.str.contains(_EMAIL)).then(lower)

    def refusal(self) -> pl.Expr:
        return refused(Code.INVALID_EMAIL, said("'{}' is not an e-mail address.", FOUND))


@dataclass(frozen=True, kw_only=True)
class Uuid(Field):
    """A UUID; with or without dashes or braces, in either case. Kept in lower case with dashes."""

    def forms(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        lower = text.str.to_lowercase()
        dashed = lower.str.replace(_UUID, "$1-$2-$3-$4-$5")
        return (
            pl.when(text.str.contains(_USUAL_UUID)).then(text),
            pl.when(lower.str.contains(_UUID)).then(dashed),
        )

    def refusal(self) -> pl.Expr:
        return refused(Code.INVALID_UUID, said("'{}' is not a UUID.", FOUND))


@dataclass(frozen=True, init=False)
class Choice(Field):
    """One of some values, in either case; kept as declared."""

    values: tuple[str, ...]
    synonyms: Mapping[str, str]
    on_missing: OnMissing = "fail"

    def __init__(
        self,
        *values: str,
        synonyms: Mapping[str, str] | None = None,
        on_missing: OnMissing = "fail",
        required: bool = False,
        default: str | None = None,
        aliases: Sequence[str] = (),
        help: str = "",  # noqa: A002 (the same name on every field)
        column: str = "",
        blank: Sequence[str] = (),
    ) -> None:
        super().__init__(required=required, default=default, aliases=aliases, help=help, column=column, blank=blank)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "synonyms", {} if synonyms is None else synonyms)
        object.__setattr__(self, "on_missing", on_missing)

    def forms(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        named = {value.lower(): value for value in self.values}
        named |= {other.lower(): value for other, value in self.synonyms.items()}
        return (
            pl.when(text.is_in(self.values)).then(text),
            text.str.to_lowercase().replace_strict(named, default=None, return_dtype=pl.String),
        )

    def refusal(self) -> pl.Expr:
        return refused(Code.NOT_A_CHOICE, choice_message(self.values))

    def checks(self) -> tuple[Check, ...]:
        return (*length_checks(self, None, None), *label_checks(self))

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if not self.values:
            yield 'it has no values to choose from; write Choice("one", "other").'
        lower = [value.strip().lower() for value in self.values]
        if equal := [value for value, text in zip(self.values, lower, strict=True) if lower.count(text) > 1]:
            yield f"the values {' and '.join(map(repr, equal))} are the same apart from upper and lower case."
        yield from on_missing_mistakes(self.on_missing)
        if self.on_missing == "create":
            yield 'on_missing is "create"; the values of a Choice are those that are declared. Use a Lookup.'
        for text in (*self.values, *self.synonyms):
            if not text or text != text.strip():
                yield f"{text!r} can't be matched: cells are read without blanks around them, and an empty one is none."
        for other, value in self.synonyms.items():
            if value not in self.values:
                yield f"the synonyms lead to {value!r}, which is not among the values."
            elif other.lower() in lower and other.lower() != value.lower():
                yield f"the synonym {other!r} for {value!r} is one of the values itself."


def _exact_lists(texts: pl.Series) -> pl.Series:
    """JSON arrays of texts, numbers with all of their digits, truth values and nulls; null for any other text."""
    return pl.Series(texts.name, [_exact_list(text) for text in texts], dtype=pl.List(pl.String))


def _exact_list(text: str | None) -> list[str | None] | None:
    try:
        items = [bytes(item) for item in _ITEMS.decode(text or "")]
    except (msgspec.DecodeError, RecursionError):
        return None
    if any(item[:1] in (b"[", b"{") or b"\\u0000" in item for item in items):
        return None
    return [_TEXT.decode(item) if item[:1] == b'"' else None if item == b"null" else item.decode() for item in items]


@dataclass(frozen=True, kw_only=True)
class List(Field):
    """Several texts in one cell, with a separator between them or as a JSON array. Empty ones are left out."""

    separator: str = ","
    max_items: int | None = None
    item_pattern: str | None = None

    @property
    def dtype(self) -> DataType:
        return pl.List(pl.String)

    def forms(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        is_json = text.str.contains(_JSON_LIST) & text.str.json_path_match("$").is_not_null()
        item = pl.element()
        split = text.str.split(self.separator).list.eval(item.str.strip_chars()).list.eval(item.filter(item != ""))
        return (
            pl.when(~text.str.starts_with("[")).then(split),
            pl.when(is_json).then(text).str.json_decode(pl.List(pl.String)),
            text.map_batches(_exact_lists, return_dtype=pl.List(pl.String)),
        )

    def refusal(self) -> pl.Expr:
        told = said(
            "'{}' is neither a JSON array of texts nor a list with '{}' between its items.", FOUND, self.separator
        )
        return refused(Code.INVALID_LIST, told)

    def checks(self) -> tuple[Check, ...]:
        return (*self._count_checks(), *self._item_checks(), *element_checks(self))

    def _count_checks(self) -> Iterator[Check]:
        if self.max_items is not None:
            told = said("'{}' has more than {} items.", FOUND, self.max_items)
            yield Check(Code.TOO_LONG, pl.col(self.name).list.len() > self.max_items, told)

    def _item_checks(self) -> Iterator[Check]:
        if self.item_pattern is not None:
            matching = pl.element().str.contains(whole(self.item_pattern))
            told = said("'{}' has an item that does not match {}.", FOUND, self.item_pattern)
            yield Check(Code.PATTERN_MISMATCH, ~pl.col(self.name).list.eval(matching).list.all(), told)

    def default_text(self) -> str | None:
        return self.default if self.default is None or isinstance(self.default, str) else json.dumps(list(self.default))

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        yield from least_mistakes("max_items", self.max_items, 1)
        if not self.separator:
            yield "the separator is empty."
        if self.item_pattern is not None and (mistake := pattern_mistake(self.item_pattern)):
            yield mistake


@dataclass(frozen=True, kw_only=True)
class Json(Field):
    """Any JSON value; kept as it is written."""

    def forms(self) -> tuple[pl.Expr, ...]:
        text = pl.col(self.name)
        # "null" is JSON too, but has no match that could be told from none
        return (pl.when(text.str.json_path_match("$").is_not_null() | (text == "null")).then(text),)

    def refusal(self) -> pl.Expr:
        return refused(Code.INVALID_JSON, said("'{}' is not JSON.", FOUND))

    def default_text(self) -> str | None:
        return self.default if self.default is None or isinstance(self.default, str) else json.dumps(self.default)
