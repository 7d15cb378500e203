"""What the texts of a row mean: look-ups and choices, as people decided, and else as their fields have it."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.resolve import NO_ISSUES, NO_QUESTIONS, Resolved, left_out_issue, resolve, together
from rowcall.engine.values.answers import Answers
from rowcall.engine.work import Work
from rowcall.importer import Choice


def meant(connection: Connection[Any], work: Work, texts: pl.DataFrame, names: set[str] | None = None) -> Resolved:
    """Rows with keys in place of texts that are looked up, and choices in place of what stands for them.

    `names`: only these fields.
    """
    lookups = {name: lookup for name, lookup in work.lookups.items() if names is None or name in names}
    resolved = resolve(connection, lookups, texts, work.answers)
    choices = {name: choice for name, choice in work.choices.items() if names is None or name in names}
    return _chosen(connection, choices, resolved, work.answers) if choices else resolved


def _chosen(
    connection: Connection[Any], choices: Mapping[str, Choice], resolved: Resolved, answers: Answers
) -> Resolved:
    found, rows = [resolved], resolved.rows
    for name, choice in choices.items():
        found.append(_choice(connection, name, choice, rows, answers))
        rows = found[-1].rows
    return together(rows, found)


def _choice(connection: Connection[Any], name: str, choice: Choice, rows: pl.DataFrame, answers: Answers) -> Resolved:
    rows = rows.with_columns(choice.clean().alias(name))
    asked = rows.select(pl.col(name).alias("value"), pl.lit("").alias("scope")).drop_nulls().unique()
    said = answers.of(connection, name, asked)
    said = said.filter((pl.col("action") != "use") | pl.col("target").is_in(choice.values)).drop("scope")
    said = said.rename({"action": "_action", "target": "_target", "late": "_late"})
    joined = rows.join(said, left_on=name, right_on="value", how="left", maintain_order="left")
    unread = joined.select(is_unread(choice, joined[name])).to_series()
    action, policy = pl.col("_action"), choice.on_missing
    left_out = joined.filter(action == "skip")
    skipped = [left_out.select("number", *left_out_issue(name))] if left_out.height else []
    missing = joined.filter(unread & joined["_action"].is_null())
    questions = NO_QUESTIONS
    empties = pl.lit(False)
    if policy == "ask":
        about = (pl.lit(name).alias("field"), pl.lit("").alias("scope"), pl.col(name).alias("value"))
        questions = missing.select("number", *about)
    elif policy == "skip":
        skipped.append(_refused(missing, name, choice))
    if policy != "fail":
        empties = unread & joined["_action"].is_null()
    text = (
        pl.when(action == "use")
        .then(pl.col("_target"))
        .when((action.is_null() & ~empties).fill_null(False))
        .then(pl.col(name))
    )
    late = frozenset(joined.filter("_late")["number"])
    rows = joined.with_columns(text.alias(name)).drop("_action", "_target", "_late")
    return Resolved(rows, NO_ISSUES, pl.concat([NO_ISSUES, *skipped]), questions, late)


def is_unread(choice: Choice, texts: pl.Series) -> pl.Series:
    """Where a text is none of the choices."""
    return choice.read(texts).is_null() & texts.is_not_null()


def _refused(missing: pl.DataFrame, name: str, choice: Choice) -> pl.DataFrame:
    shown = missing.with_columns(pl.col(name).alias("text"), pl.col(name).str.head(60).alias("found"))
    told = shown.select("number", choice.refusal().alias("told"), field=pl.lit(name), value=pl.col(name).str.head(200))
    return told.unnest("told").select("number", "code", "field", "value", "message")
