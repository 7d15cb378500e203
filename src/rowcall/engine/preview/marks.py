"""A mark for each row of a plan: eight bytes that are others as soon as something else is planned for it.

A row is planned otherwise when another status comes out, other issues, another row of the target, another content of
the row that is changed, or when its look-ups find something else. Of what would be left as it is, the content doesn't
count. Marks are the same on every machine and in every version of the libraries: a plan may be committed elsewhere,
and much later.
"""

from typing import Any, cast

import numpy as np
import polars as pl

from rowcall.model import Status
from rowcall.store.plans import Marks

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ISSUES = pl.List(pl.Struct({"code": pl.String, "field": pl.String}))
_STATUSES = [status.value for status in Status]
_BITS = 3
"""Of a mark, for the status: it can be told from it."""


def marks_of(outcomes: pl.DataFrame, looked_up: pl.DataFrame) -> Marks:
    """The marks of outcomes, in their order. `looked_up` has, by `number`, what look-ups found."""
    written = pl.col("status").is_in([Status.CREATED.value, Status.UPDATED.value])
    updated = pl.col("status") == Status.UPDATED.value
    names = [name for name in looked_up.columns if name != "number"]
    rows = outcomes
    if names:
        rows = rows.join(looked_up, left_on="row_number", right_on="number", how="left", maintain_order="left")
    found = pl.concat_str([pl.col(name).fill_null("\x00") for name in names] or [pl.lit("")], separator="\x1e")
    parts = [
        pl.when(updated).then("target_key"),
        pl.when(updated).then("before"),
        pl.when(~written).then("said"),
        pl.when(written).then(found),
    ]
    texts = rows.with_columns(_said(rows["issues"]).alias("said")).select(
        pl.concat_str([part.fill_null("\x00") for part in parts], separator="\x1f")
    )
    return hashed(texts.to_series()) << np.uint64(_BITS) | _numbered(rows["status"])


def statuses_of(marks: Marks) -> pl.Series:
    """The statuses that marks tell."""
    places = (marks & np.uint64(2**_BITS - 1)).astype(np.int64)
    return pl.Series(_STATUSES, dtype=pl.String).gather(places)


def _numbered(statuses: pl.Series) -> Marks:
    return statuses.cast(pl.Enum(_STATUSES)).to_physical().cast(pl.UInt64).to_numpy()


def _said(issues: pl.Series) -> pl.Series:
    """The codes of issues with their fields. Messages may tell the same in other words."""
    if issues.null_count() == len(issues):
        return issues
    each = pl.concat_str(pl.element().struct.field("code"), pl.element().struct.field("field").fill_null(""))
    codes = pl.col("issues").str.json_decode(_ISSUES).list.eval(each).list.sort().list.join(" ")
    return issues.alias("issues").to_frame().select(codes).to_series()


def hashed(texts: pl.Series) -> Marks:
    """A number of 64 bits for each text: a polynomial of its bytes, stirred. It guards against change, not malice."""
    arrow = cast("Any", texts.rechunk()).to_arrow(compat_level=pl.CompatLevel.oldest())  # Arrow has no types
    _, offsets, data = arrow.buffers()
    ends = np.frombuffer(offsets, np.int64)[arrow.offset : arrow.offset + len(arrow) + 1]
    content = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]].astype(np.uint64) + np.uint64(1)
    ends = ends - ends[0]
    lengths = np.diff(ends)
    powers = np.cumprod(np.full(int(lengths.max(initial=0)), _FACTOR), dtype=np.uint64)
    places = np.arange(len(content)) - np.repeat(ends[:-1], lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(content * powers[places], dtype=np.uint64)])
    found = sums[ends[1:]] - sums[ends[:-1]] + lengths.astype(np.uint64)
    found ^= found >> np.uint64(32)
    found *= _FACTOR
    return found ^ (found >> np.uint64(29))
