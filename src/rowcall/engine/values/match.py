"""What the distinct values of a field stand for: found as they are, remembered, without case and accents, or alike.

Only what is sure is taken. Two things that a value fits equally are a question, and so is what is merely alike.
"""

from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.resolve import TO_CREATE
from rowcall.engine.values.known import Known, known_of, scope_labels
from rowcall.engine.values.similar import MOST_ENTRIES, PROPOSED, holding, similar, words
from rowcall.engine.work import Work
from rowcall.importer import Choice, Lookup, folded_values
from rowcall.store import value_mappings

_NO_SCOPE = "what it is looked up within has no value"
_AMBIGUOUS = PROPOSED + 1
_MATCHED = ("id", "status", "action", "target_key", "target_label", "confidence", "basis", "reason", "candidates")
_CANDIDATES = {"id": pl.Int64, "key": pl.String, "label": pl.String, "score": pl.Int64}


def match_values(connection: Connection[Any], work: Work, name: str) -> None:
    """Find out what the values stand for that were gathered of a field. Called in the same transaction."""
    known = known_of(work.importer, name)
    for values in value_mappings.to_match(connection):
        labels = values.select("id", _scope_labels(connection, work, name, values))
        matched = _matched(connection, work, name, known, values).join(labels, on="id")
        value_mappings.add_matched(connection, work.job.id, name, matched)
    value_mappings.count_values(connection, work.job.id, name)


def _scope_labels(connection: Connection[Any], work: Work, name: str, values: pl.DataFrame) -> pl.Series:
    """What the scopes of values are called."""
    within = getattr(work.importer.fields[name], "within", None)
    scopes = values["scope"]
    if not isinstance(work.importer.fields.get(within or ""), Lookup):
        return scopes.replace("", None).alias("scope_label")
    labels = scope_labels(connection, work.importer, name, scopes.unique().to_list())
    created = {scope: scope.rpartition("\x1f")[2] for scope in scopes.unique() if scope.startswith(TO_CREATE)}
    return scopes.replace_strict({**labels, **created}, default=None, return_dtype=pl.String).alias("scope_label")


def _matched(connection: Connection[Any], work: Work, name: str, known: Known, values: pl.DataFrame) -> pl.DataFrame:
    found = values.join(known.found(connection, values.select("value", "scope")), on=["value", "scope"], how="left")
    said = value_mappings.remembered(connection, work.job.organisation_id, work.job.importer, values)
    found = found.join(_still_there(connection, known, said), on="id", how="left")
    one, recalled = (pl.col("keys") == 1).fill_null(False), pl.col("said").is_not_null()
    field = work.importer.fields[name]
    policy = field.on_missing if isinstance(field, Lookup | Choice) else "fail"
    exact = one & (pl.col("sure").fill_null(False) | pl.lit(policy != "ask"))  # else small letters decide
    agree = (one & (pl.col("said_key") == pl.col("key")) & (pl.col("said") == "use")).fill_null(False)
    takes_said = recalled & ~agree & (~exact | pl.col("overrode"))
    at_odds = recalled & exact & ~agree & ~takes_said
    parts = [
        _exact(connection, known, found.filter((exact & ~recalled) | agree)),
        _remembered(found.filter(takes_said)),
        _at_odds(connection, known, found.filter(at_odds)),
    ]
    left = found.filter(~exact & ~recalled)
    if left.height:
        parts.append(_by_likeness(connection, known, left, creates=policy == "create"))
    return pl.concat(parts)


def _still_there(connection: Connection[Any], known: Known, said: pl.DataFrame) -> pl.DataFrame:
    """What was decided, but for values that were to stand for what is gone."""
    used = said.filter(pl.col("said") == "use")
    there = known.labels(connection, used["said_key"].unique().to_list()) if used.height else {}
    return said.filter((pl.col("said") != "use") | pl.col("said_key").is_in([*there]))


def _exact(connection: Connection[Any], known: Known, found: pl.DataFrame) -> pl.DataFrame:
    labels = known.labels(connection, found["key"].unique().to_list()) if found.height else {}
    return found.select(
        "id",
        *_settled("use", pl.col("key"), _label_of("key", labels)),
        pl.lit(1.0, pl.Float32).alias("confidence"),
        pl.when("synonym").then(pl.lit("synonym")).otherwise(pl.lit("exact")).alias("basis"),
        pl.when("synonym").then(pl.lit("another word for it")).otherwise(pl.lit("is there")).alias("reason"),
        pl.lit("[]").alias("candidates"),
    )


def _label_of(column: str, labels: dict[str, str]) -> pl.Expr:
    return pl.col(column).replace_strict(labels, default=None, return_dtype=pl.String)


def _settled(action: str | pl.Expr, key: pl.Expr, label: pl.Expr) -> tuple[pl.Expr, ...]:
    said = pl.lit(action) if isinstance(action, str) else action
    status = pl.lit("AUTO_MATCHED").alias("status")
    return status, said.alias("action"), key.alias("target_key"), label.alias("target_label")


def _remembered(found: pl.DataFrame) -> pl.DataFrame:
    return found.select(
        "id",
        *_settled(pl.col("said"), pl.col("said_key"), pl.col("said_label")),
        pl.lit(1.0, pl.Float32).alias("confidence"),
        pl.lit("remembered").alias("basis"),
        pl.format("last time, by {} in {}", "said_by", "said_in").alias("reason"),
        pl.lit("[]").alias("candidates"),
    )


def _at_odds(connection: Connection[Any], known: Known, found: pl.DataFrame) -> pl.DataFrame:
    """Values that are there by now, but stood for something else last time."""
    labels = known.labels(connection, found["key"].unique().to_list()) if found.height else {}
    sure = pl.lit(100, pl.Int64).alias("score")
    one = found.select("id", "key", _label_of("key", labels).alias("label"), sure)
    other = found.filter(pl.col("said") == "use")
    other = other.select("id", pl.col("said_key").alias("key"), pl.col("said_label").alias("label"), sure)
    reason = pl.format("is there by now, and was decided otherwise by {} in {}", "said_by", "said_in").alias("reason")
    return _open(found.select("id", reason), pl.concat([one, other]))


def _open(values: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Questions: id and reason, with what is proposed."""
    listed = (
        candidates.group_by("id", maintain_order=True)
        .agg(pl.struct("key", "label", "score").head(PROPOSED).alias("list"))
        .select("id", pl.struct("list").struct.json_encode().str.slice(8).str.head(-1).alias("candidates"))
    )
    return values.join(listed, on="id", how="left", maintain_order="left").select(
        "id",
        pl.lit("UNRESOLVED").alias("status"),
        pl.lit(None, pl.String).alias("action"),
        pl.lit(None, pl.String).alias("target_key"),
        pl.lit(None, pl.String).alias("target_label"),
        pl.lit(0.0, pl.Float32).alias("confidence"),
        pl.lit(None, pl.String).alias("basis"),
        "reason",
        pl.col("candidates").fill_null("[]"),
    )


# ------------------------------------------------------------------------------------------- what is not there as it is


def _by_likeness(connection: Connection[Any], known: Known, values: pl.DataFrame, *, creates: bool) -> pl.DataFrame:
    """Values that no look is sure to find, or finds several times: without case and accents, then created or alike."""
    same, entries = _folded_alike(connection, known, values)
    small = values.filter(pl.col("keys") == 1)
    counted = same.group_by("id").agg(pl.col("key").n_unique().alias("same"), pl.col("key", "label").first())
    values = values.drop("key").join(counted, on="id", how="left", maintain_order="left")
    one = values.filter((pl.col("same") == 1) & pl.col("keys").is_null())
    new = values.filter(pl.col("keys").is_null() & (pl.col("same").fill_null(0) != 1) & pl.lit(creates))
    several = values.filter((pl.col("same") > 1) | (pl.col("keys") > 1)).join(new, on="id", how="anti")
    settled = one.select(
        "id",
        *_settled("use", pl.col("key"), pl.col("label")),
        pl.lit(0.99, pl.Float32).alias("confidence"),
        pl.lit("folded").alias("basis"),
        pl.lit("the same without case and accents").alias("reason"),
        pl.lit("[]").alias("candidates"),
    )
    called = pl.lit(known.called)
    fits = pl.format("fits {} rows of {}", pl.max_horizontal("same", pl.col("keys").cast(pl.UInt32)), called)
    questions = _open(several.select("id", fits.alias("reason")), same.with_columns(score=pl.lit(100, pl.Int64)))
    found = _exact(connection, known, small.join(several, on="id", how="anti"))
    rest = values.filter(pl.col("same").is_null() & pl.col("keys").is_null()).join(new, on="id", how="anti")
    return pl.concat([settled, found, _new(known, new), questions, _alike(known, rest, entries)])


def _new(known: Known, values: pl.DataFrame) -> pl.DataFrame:
    """Values of which the importer says that what they name is created."""
    return values.select(
        "id",
        *_settled("create", pl.lit(None, pl.String), pl.lit(None, pl.String)),
        pl.lit(1.0, pl.Float32).alias("confidence"),
        pl.lit("new").alias("basis"),
        pl.lit(f"is not in {known.called}, and is created").alias("reason"),
        pl.lit("[]").alias("candidates"),
    )


def _folded_alike(
    connection: Connection[Any], known: Known, values: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """For each value the entries that are the same without case and accents; and all entries, unless they are many."""
    wanted = values.select("id", "scope", "folded")
    alike = pl.DataFrame(schema={name: kind for name, kind in _CANDIDATES.items() if name != "score"})
    kept: list[pl.DataFrame] = []
    count = 0
    for entries in known.entries(connection):
        entries = entries.with_columns(folded_values(pl.col("text")).alias("folded")).filter(pl.col("folded") != "")
        found = wanted.join(entries, on=["scope", "folded"]).select("id", "key", "label")
        alike = pl.concat([alike, found]).unique(["id", "key"], keep="first", maintain_order=True)
        alike = alike.group_by("id", maintain_order=True).head(_AMBIGUOUS)
        count += entries.height
        if count <= MOST_ENTRIES:
            kept.append(entries.select("key", "label", "scope", "folded"))
    return alike, pl.concat(kept) if kept and count <= MOST_ENTRIES else None


def _alike(known: Known, values: pl.DataFrame, entries: pl.DataFrame | None) -> pl.DataFrame:
    told = f"nothing like it is in {known.called}" if entries is not None else f"is not in {known.called}"
    nothing = pl.when(pl.lit(known.scoped) & (pl.col("scope") == "")).then(pl.lit(_NO_SCOPE)).otherwise(pl.lit(told))
    if entries is None:
        return _open(values.select("id", nothing.alias("reason")), pl.DataFrame(schema=_CANDIDATES))
    ordered = values.select("id", "scope", "folded").with_columns(words(pl.col("folded")).alias("words"))
    near = similar(ordered, entries.with_columns(words(pl.col("folded")).alias("words")))
    near = _best(near.with_columns(held=pl.lit(False)), holding(ordered, entries).with_columns(held=pl.lit(True)))
    second = pl.col("score").slice(1, 1).first().fill_null(0)
    best = near.group_by("id", maintain_order=True).agg(
        pl.col("key").first().alias("near_key"),
        pl.col("label").first().alias("near_label"),
        pl.col("score").first().alias("near"),
        (second < pl.col("score").first()).alias("clear"),
        pl.col("held").first(),
    )
    questions = _open(values.select("id", nothing.alias("reason")), near).join(best, on="id", how="left")
    clear = pl.col("clear").fill_null(False) & ~pl.col("held")  # a part of a name is no reason to propose it
    return questions.with_columns(
        pl.when(clear).then("near_key").alias("target_key"),
        pl.when(clear).then("near_label").alias("target_label"),
        pl.when(clear).then(pl.col("near").cast(pl.Float32) / 100).otherwise("confidence").alias("confidence"),
        pl.when(clear).then(pl.lit("similar")).alias("basis"),
        pl.when(clear)
        .then(pl.format("{} % like {}", "near", "near_label"))
        .when(pl.col("held"))
        .then(pl.lit("in the name of other ones"))
        .when(pl.col("near").is_not_null())
        .then(pl.lit("like several"))
        .otherwise("reason")
        .alias("reason"),
    ).select(_MATCHED)


def _best(near: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """The likeliest of both, the best first, each key once."""
    ranked = pl.concat([near, held]).sort("score", "label", "key", descending=[True, False, False])
    ranked = ranked.unique(["id", "key"], keep="first", maintain_order=True)
    return ranked.group_by("id", maintain_order=True).head(PROPOSED)
