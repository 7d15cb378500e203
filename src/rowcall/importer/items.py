"""What the items of a List must hold so that the elements of their column keep them: PostgreSQL would round some."""

from collections.abc import Iterator

import polars as pl

from rowcall.importer.fields import FOUND, Check, ColumnLimits, Field, said
from rowcall.importer.numbers import places_of
from rowcall.model import Code

_SECONDS_PART = r"(?::[0-9]{2}|[0-9]{6})[.,]([0-9]+)"


def element_checks(field: Field) -> Iterator[Check]:
    """That each item is as short and as coarse as the elements of the column."""
    limits = field.limits.elements
    if limits is None:
        return
    if limits.max_length is not None:
        told = said("'{}' has an item of more than {} characters.", FOUND, limits.max_length)
        yield Check(Code.TOO_LONG, _any(field, pl.element().str.len_chars() > limits.max_length), told)
    if limits.scale is not None:
        finer = _places(limits) > limits.scale
        yield Check(Code.TOO_PRECISE, _any(field, finer), _too_precise(limits, limits.scale))


def _any(field: Field, failing: pl.Expr) -> pl.Expr:
    return pl.col(field.name).list.eval(failing).list.any()


def _places(limits: ColumnLimits) -> pl.Expr:
    """How many decimal places an item has: of a number, or of the seconds of a time. Null for what is neither."""
    if limits.precision is not None:
        bare = pl.element().str.strip_chars().str.replace_all("_", "", literal=True)
        return bare.map_batches(places_of, return_dtype=pl.Int64)
    return pl.element().str.extract(_SECONDS_PART).str.strip_chars_end("0").str.len_bytes().cast(pl.Int64)


def _too_precise(limits: ColumnLimits, kept: int) -> pl.Expr:
    if limits.precision is None:
        return said("'{}' has an item with more than {} decimal places of a second.", FOUND, kept)
    if kept < 0:
        return said("'{}' has an item that is no multiple of {}, and its column keeps nothing finer.", FOUND, 10**-kept)
    return said("'{}' has an item with more than {} decimal places.", FOUND, kept)
