"""A batch to the target, exactly once: its effect, its outcomes and its mark are one transaction.

The shortest way is tried first, and each refusal leads to a more careful one, in a transaction of its own:

straight   COPY into the target
staged     COPY into a temporary table, match, then set statements
checked    the same, after the target's constraints were asked which rows they would refuse
isolated   the same, in halves until the guilty rows stand alone
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import polars as pl
import psycopg
from psycopg import Connection

from rowcall.engine.creating import Created, create_missing
from rowcall.engine.judge import NO_OUTCOMES, Judged, judge
from rowcall.engine.observe import committed
from rowcall.engine.outcomes import add_outcomes
from rowcall.engine.preview.drift import OUTCOME, Agreed, OffPlan, agreed, as_agreed, plan_done
from rowcall.engine.preview.foresee import is_foreseeable
from rowcall.engine.preview.plan import keep_piece, looked_up
from rowcall.engine.refusals import is_refusal
from rowcall.engine.staged import Care, Staged, foreseen, left_alone, stage, target_columns, write_staged
from rowcall.engine.work import WRITTEN_ALIKE, Work
from rowcall.errors import Retryable
from rowcall.importer import Lookup
from rowcall.model import Code, Status
from rowcall.store import staging, writing
from rowcall.store.binary import text_arrays
from rowcall.store.copying import copy_in, copy_out, text_columns
from rowcall.store.rows import RowBatch, claim, count_outcomes, finish, hold_state, outcomes_select, split

_BEGIN = "SET CONSTRAINTS ALL IMMEDIATE"
_BEGIN_PLAN = f"{_BEGIN}; SET LOCAL synchronous_commit TO off"
"""Should the server crash, the last batches are planned again. The move to the next state waits for all of them."""
_NO_COPY = psycopg.errors.FeatureNotSupported
"""What COPY says to a table with row-level security."""


class Route(IntEnum):
    """How careful to be."""

    STRAIGHT = 0
    STAGED = 1
    CHECKED = 2
    ISOLATED = 3


@dataclass(slots=True)
class Hopes:
    """Which route to try first: the shortest, unless it failed lately. Says nothing about what comes out."""

    route: Route
    careful: Route = Route.STRAIGHT
    """What the last refused batch needed."""
    waits: int = 0
    """Batches until the shortest way is tried again."""
    patience: int = 1

    def first(self) -> Route:
        if self.waits:
            self.waits -= 1
            return max(self.route, self.careful)
        return self.route

    def learn(self, tried: Route, needed: Route) -> None:
        if needed > tried:
            self.careful, self.waits = needed, self.patience
            self.patience = min(64, self.patience * 2)
        elif tried == self.route:
            self.patience = 1


def shortest_route(connection: Connection[Any], work: Work) -> Route:
    """The route to begin with. An update of a table that has rows will hardly go straight."""
    if work.importer.once or work.layout.version or not work.layout.columns or not _tells_keys(work):
        return Route.STAGED
    if work.layout.on_match == "update" and staging.has_rows(connection, work.target):
        return Route.STAGED
    return Route.STRAIGHT


def _tells_keys(work: Work) -> bool:
    """Whether the target's key is known before it is written: as we write it is how PostgreSQL would."""
    fields = {field.column: field for name, field in work.importer.fields.items() if name in work.fields}
    return not work.target.keys_change and all(
        isinstance(fields[name], WRITTEN_ALIKE.get(work.target.columns[name].base, Lookup))
        for name in work.target.primary_key
        if name in fields
    )


def commit_next(connection: Connection[Any], work: Work, hopes: Hopes) -> RowBatch | None:
    """Claim the next batch and commit it; None when none is waiting."""
    tried = route = hopes.first()
    number: int | None = None
    while True:
        claimed: list[RowBatch] = []
        try:
            batch = _attempt(connection, work, number, route, claimed)
        except psycopg.errors.QueryCanceled:
            if not claimed or len(claimed[0]) == 1:
                raise
            split(connection, work.job.id, claimed[0])  # too much for the time a statement is given
            return claimed[0]
        except psycopg.Error as error:
            if not is_refusal(error) and not (route is Route.STRAIGHT and isinstance(error, _NO_COPY)):
                raise
            if route is Route.ISOLATED:  # the guilty are out already: somebody else writes the same rows
                said = f"{work.importer.target} refuses rows that it took one by one: {error.diag.message_primary}."
                raise Retryable(Code.DATABASE_BUSY, said) from error
            route, number = Route(route + 1), claimed[0].number
            continue
        except OffPlan:
            route, number = Route(route + 1), claimed[0].number
            continue
        hopes.learn(tried, route)
        return batch


def _attempt(
    connection: Connection[Any], work: Work, number: int | None, route: Route, claimed: list[RowBatch]
) -> RowBatch | None:
    """One transaction. In a dry run, what it does to the target is undone, and its outcomes alone are kept."""
    began = time.monotonic()
    with connection.transaction():
        batch = claim(connection, work.job, number)
        if batch is None:
            return None
        claimed.append(batch)
        connection.execute(_BEGIN_PLAN if work.dry else _BEGIN)
        judged = judge(connection, work, batch)
        if work.dry:
            counts = _plan(connection, work, batch, judged, route)
        else:
            counts = apply(connection, work, batch, judged, route, agreed(connection, work, batch))
            finish(connection, work.job.id, batch, counts)
            if work.planned:
                plan_done(connection, work, batch)
    committed(work.job, len(batch), counts, time.monotonic() - began)
    return batch


_NOTHING = pl.DataFrame(schema=OUTCOME)
_REST = ("target_key", "issues", "before", "result")


def _plan(connection: Connection[Any], work: Work, batch: RowBatch, judged: Judged, route: Route) -> dict[Status, int]:
    """Keep what would become of a batch: foreseen, or tried and undone. Returns how many of each."""
    told = foreseen(connection, work, judged.good) if is_foreseeable(work) else None
    if told is not None:
        outcomes = pl.concat([_NOTHING, judged.settled, told], how="diagonal")
    else:
        with connection.transaction(force_rollback=True):
            apply(connection, work, batch, judged, route)
            outcomes = planned(connection, work, batch)
    if hold_state(connection, work.job):
        keep_piece(connection, work, batch, outcomes, looked_up(work, judged.good))
    return {Status(status): count for status, count in outcomes["status"].value_counts().iter_rows()}


def planned(
    connection: Connection[Any], work: Work, batch: RowBatch, numbers: Sequence[int] | None = None
) -> pl.DataFrame:
    """The outcomes of a batch, or of some rows of it, to be kept when what made them is undone."""
    return copy_out(connection, outcomes_select(work.job.id, batch, numbers), list(OUTCOME.items()))


def apply(
    connection: Connection[Any],
    work: Work,
    batch: RowBatch,
    judged: Judged,
    route: Route,
    held: Agreed | None = None,
) -> dict[Status, int]:
    """Write a judged batch to the target, with an outcome for each row; returns how many of each.

    Where something was agreed to, it is `held` against that: what would come out otherwise fails.
    """
    if held and judged.late:
        held = held.and_said(connection, work, judged.late)
    ready = _made_ready(connection, work, judged.good, route, held)
    settled = pl.concat([as_agreed(connection, work, judged.settled, held), ready.settled], how="diagonal")
    add_outcomes(connection, work, settled)
    if ready.staged is None:
        _straight(connection, work, ready.good, held, ready.found)
        counted = dict(settled["status"].value_counts().iter_rows())
        return {Status.CREATED: ready.good.height, **{Status(status): count for status, count in counted.items()}}
    write_staged(connection, work, ready.staged, changes=_tells_changes(work, held))
    return count_outcomes(connection, work.job.id, batch)


def _tells_changes(work: Work, held: Agreed | None) -> bool:
    return work.plans or held is not None


@dataclass(frozen=True, slots=True)
class _Ready:
    """Rows that can be written."""

    good: pl.DataFrame
    found: pl.DataFrame
    """What look-ups found for them."""
    staged: Staged | None
    """None: they go straight to the target."""
    settled: pl.DataFrame
    """Outcomes of rows that turned out not to be written."""


def _made_ready(
    connection: Connection[Any], work: Work, good: pl.DataFrame, route: Route, held: Agreed | None
) -> _Ready:
    found = looked_up(work, good)  # before any is created: that would have another key each time
    care = Care(checked=route >= Route.CHECKED, isolated=route is Route.ISOLATED)

    def staged(rows: pl.DataFrame) -> _Ready:
        is_straight = route is Route.STRAIGHT or not rows.height
        there = None if is_straight else stage(connection, work, rows, care, held, found)
        return _Ready(rows, found, there, NO_OUTCOMES)

    return _with_created(connection, work, good, held, staged) if work.creating else staged(good)


def _with_created(
    connection: Connection[Any],
    work: Work,
    good: pl.DataFrame,
    held: Agreed | None,
    staged: Callable[[pl.DataFrame], _Ready],
) -> _Ready:
    """The rows, with what they need in other tables. What was created for none that is written is undone.

    Then it is done again without the rows that had asked for it. Deleting it would take a right that importing doesn't,
    and might take along what others refer to. Nothing is written to the target yet: see `xmin` in docs/decisions.md.
    """
    told = _NOTHING
    while True:
        with connection.transaction():
            created = create_missing(connection, work, good)
            ready = staged(created.good)
            failed = as_agreed(connection, work, created.failed, held)
            idle = _idle(connection, work, created, ready, failed, changes=_tells_changes(work, held))
            vain = created.in_vain(idle["row_number"])
            if len(vain):
                raise psycopg.Rollback
        if not len(vain):
            return replace(ready, settled=pl.concat([told, failed], how="diagonal"))
        told = pl.concat([told, idle.filter(pl.col("row_number").is_in(vain.implode()))])
        good = good.filter(~pl.col("number").is_in(vain.implode()))


def _idle(
    connection: Connection[Any], work: Work, created: Created, ready: _Ready, failed: pl.DataFrame, *, changes: bool
) -> pl.DataFrame:
    """Outcomes of rows that won't be written, where something was created for them."""
    numbers = created.made_for["number"].unique()
    idle = [_NOTHING, failed]
    if ready.staged and len(numbers):
        idle += [ready.staged.settled, left_alone(connection, work, numbers.to_list(), changes=changes)]
    return pl.concat(idle, how="diagonal")


# ------------------------------------------------------------------------------------------------------ straight


def _straight(
    connection: Connection[Any], work: Work, good: pl.DataFrame, held: Agreed | None, found: pl.DataFrame
) -> None:
    if not good.height:
        return
    created = pl.DataFrame({"row_number": good["number"]}, schema_overrides=OUTCOME).with_columns(
        pl.lit(Status.CREATED.value).alias("status"), *(pl.lit(None, pl.String).alias(name) for name in _REST)
    )
    if held and held.off(created, found).height:
        raise OffPlan
    rows = _filled(connection, work, target_columns(work, good))
    if copy_in(connection, work.target.identifier, rows, work.target.types) < rows.height:
        raise writing.Dropped
    own = work.target.primary_key
    key = text_arrays(rows.select(pl.col(own).cast(pl.String))) if own else pl.lit(None, pl.Binary)
    outcomes = pl.select(
        good["number"].alias("row_number"), pl.lit(Status.CREATED.value).alias("status"), key.alias("target_key")
    )
    add_outcomes(connection, work, outcomes)


def _filled(connection: Connection[Any], work: Work, rows: pl.DataFrame) -> pl.DataFrame:
    """What the target would fill in by itself, filled in now: COPY can't, for single rows, nor tell the key it made."""
    for name, column in work.target.columns.items():
        key = name in work.target.primary_key
        if column.default is None or not (key or (name in rows.columns and column.not_null)):
            continue
        empty = (
            rows[name].is_null() if name in rows.columns else pl.repeat(True, rows.height, dtype=pl.Boolean, eager=True)
        )
        missing = int(empty.sum())
        if missing:
            values = staging.default_values(connection, column.default, missing)
            rows = _with_values(rows, name, empty, values)
    return rows


def _with_values(rows: pl.DataFrame, name: str, empty: pl.Series, values: list[str]) -> pl.DataFrame:
    if len(values) == rows.height:
        return rows.with_columns(pl.Series(name, values, dtype=pl.String))
    return rows.with_columns(text_columns(rows.select(name))[name].cast(pl.String).scatter(empty.arg_true(), values))
