"""Which of what is known a value is most like, misspelt or with its words in another order.

Every value is compared with everything, in C; how much that may be at most is fixed, so that a table of a million rows
or a file of a million different values costs a second, and no proposal, instead of an hour.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from rapidfuzz import fuzz
from rapidfuzz.process import cdist

MOST_ENTRIES = 50_000
"""Beyond these nothing is proposed; people search instead."""
_MOST_PAIRS = 20_000_000
"""Comparisons for one field: about two seconds."""
_PAIRS_AT_ONCE = 4_000_000
LEAST = 70
"""Of a hundred. What is less alike is no help."""
PROPOSED = 5
SIMILAR = {"id": pl.Int64, "key": pl.String, "label": pl.String, "score": pl.Int64}


def similar(values: pl.DataFrame, entries: pl.DataFrame) -> pl.DataFrame:
    """Of values (id, scope, folded; the frequent ones first) the entries that are most like them, each key once.

    `id`, `key`, `label` and `score`, the best first.
    """
    budget = _MOST_PAIRS
    found = [pl.DataFrame(schema=SIMILAR)]
    by_scope = entries.partition_by("scope", as_dict=True)
    for (scope,), some in values.group_by("scope", maintain_order=True):
        known = by_scope.get((scope,))
        if known is None or budget < known.height:
            continue
        some = some.head(budget // known.height)
        budget -= some.height * known.height
        found.append(_compared(some, known))
    return pl.concat(found)


def holding(values: pl.DataFrame, entries: pl.DataFrame) -> pl.DataFrame:
    """The entries that begin with the words of a value (id, scope, folded), or have them in them: as `similar` tells.

    As a search finds them, but by whole words. Nothing is compared: runs of words are looked up, each once.
    """
    wanted = values.select("id", "scope", _words_of("folded").alias("words"))
    wanted = wanted.with_columns(pl.col("words").list.join(" ").alias("run"))
    known = entries.sort("label", "key").select("key", "label", "scope", _words_of("folded").alias("words"))
    found = [pl.DataFrame(schema={**SIMILAR, "scope": pl.String, "run": pl.String}).drop("id")]
    for length in range(1, _MOST_WORDS):
        sought = wanted.filter(pl.col("words").list.len() == length).select("scope", "run").unique()
        for start in range(_MOST_WORDS - length + 1) if sought.height else ():
            longer = known.filter(pl.col("words").list.len() > max(length, start + length - 1))
            runs = longer.with_columns(pl.col("words").list.slice(start, length).list.join(" ").alias("run"))
            held = runs.join(sought, on=["scope", "run"], how="semi", maintain_order="left")
            score = pl.lit(90 if start else 95, pl.Int64).alias("score")
            found.append(held.select("key", "label", score, "scope", "run"))
    each = pl.concat(found).unique(["scope", "run", "key"], keep="first", maintain_order=True)
    best = each.group_by("scope", "run", maintain_order=True).head(PROPOSED)
    return wanted.join(best, on=["scope", "run"]).select(list(SIMILAR))


_MOST_WORDS = 6


def _words_of(folded: str) -> pl.Expr:
    return pl.col(folded).str.extract_all(r"[\p{L}\p{N}]+")


def _compared(values: pl.DataFrame, entries: pl.DataFrame) -> pl.DataFrame:
    step = max(1, _PAIRS_AT_ONCE // entries.height)
    pieces = [_nearest(values[start : start + step], entries) for start in range(0, values.height, step)]
    ranked = pl.concat(pieces).sort("score", descending=True, maintain_order=True)
    return ranked.unique(["id", "key"], keep="first", maintain_order=True).group_by("id", maintain_order=True).head(5)


def _nearest(values: pl.DataFrame, entries: pl.DataFrame) -> pl.DataFrame:
    scores = np.maximum(_scores(values, entries, "folded"), _scores(values, entries, "words"))
    most = min(4 * PROPOSED, entries.height)  # an entry may be known by several texts
    places = np.argpartition(scores, -most, axis=1)[:, -most:]
    best = np.take_along_axis(scores, places, axis=1)
    row, nth = np.nonzero(best >= LEAST)
    chosen = entries[places[row, nth]]
    return pl.DataFrame(
        [
            values["id"].gather(row),
            chosen["key"],
            chosen["label"],
            pl.Series("score", best[row, nth].astype(np.int64), dtype=pl.Int64),
        ]
    ).sort("score", "key", descending=[True, False])


def _scores(values: pl.DataFrame, entries: pl.DataFrame, column: str) -> npt.NDArray[Any]:
    return cdist(
        values[column].to_list(),
        entries[column].to_list(),
        scorer=fuzz.ratio,
        score_cutoff=LEAST,
        dtype=np.uint8,
    )


def words(folded: pl.Expr) -> pl.Expr:
    """A folded text with its words in order."""
    return folded.str.split(" ").list.sort().list.join(" ")
