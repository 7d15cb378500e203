"""A batch to the target, exactly once: its effect, its outcomes and its mark are one transaction.

The shortest way is tried first, and each refusal leads to a more careful one, in a transaction of its own:

straight   COPY into the target
staged     COPY into a temporary table, match, then set statements
checked    the same, after the target's constraints were asked which rows they would refuse
isolated   the same, in halves until the guilty rows stand alone
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import polars as pl
import psycopg
from psycopg import Connection

from rowcall.engine.creating import create_missing
from rowcall.engine.judge import OUTCOMES, Judged, judge
from rowcall.engine.observe import committed
from rowcall.engine.refusals import fields_named, is_refusal, issue_of, issue_of_violation, tells_of_rows
from rowcall.engine.rowkeys import row_keys
from rowcall.engine.work import WRITTEN_ALIKE, Work
from rowcall.errors import Retryable
from rowcall.importer import Lookup
from rowcall.model import Code, Issue, Status
from rowcall.store import matching, staging, writing
from rowcall.store.copying import cells_text, copy_in, copy_into_own, copy_out, json_text, jsonb_text, text_columns
from rowcall.store.rows import RowBatch, claim, count_outcomes, finish, hold_state, outcomes_select, split
from rowcall.store.trial import Refused, Tried, try_halves
from rowcall.store.violations import violations

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
    return all(
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
        hopes.learn(tried, route)
        return batch


def _attempt(
    connection: Connection[Any], work: Work, number: int | None, route: Route, claimed: list[RowBatch]
) -> RowBatch | None:
    """One transaction. In a dry run it is undone, and its outcomes alone are written by another."""
    outcomes, began = _NOTHING, time.monotonic()
    with connection.transaction(force_rollback=work.dry):
        batch = claim(connection, work.job, number)
        if batch is None:
            return None
        claimed.append(batch)
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        counts = apply(connection, work, batch, judge(connection, work, batch), route)
        finish(connection, work.job.id, batch, counts)
        if work.dry:
            outcomes = planned(connection, work, batch)
    if work.dry:
        keep_plan(connection, work, batch, outcomes, counts)
    committed(work.job, len(batch), counts, time.monotonic() - began)
    return batch


_PLANNED = [*OUTCOMES.items(), ("before", pl.String)]
_NOTHING = pl.DataFrame(schema=dict(_PLANNED))


def planned(
    connection: Connection[Any], work: Work, batch: RowBatch, numbers: Sequence[int] | None = None
) -> pl.DataFrame:
    """The outcomes of a batch, or of some rows of it, to be kept when the transaction that made them is undone."""
    return copy_out(connection, outcomes_select(work.job.id, batch, numbers), _PLANNED)


def keep_plan(
    connection: Connection[Any], work: Work, batch: RowBatch, outcomes: pl.DataFrame, counts: dict[Status, int]
) -> None:
    """Keep the outcomes of a dry run, unless somebody else did."""
    with connection.transaction():
        if hold_state(connection, work.job) and claim(connection, work.job, batch.number):
            add_outcomes(connection, work, outcomes)
            finish(connection, work.job.id, batch, counts)


def apply(connection: Connection[Any], work: Work, batch: RowBatch, judged: Judged, route: Route) -> dict[Status, int]:
    """Write a judged batch to the target, with an outcome for each row; returns how many of each."""
    if work.creating and judged.good.height:
        good, failed = create_missing(connection, work, judged.good)
        judged = Judged(good, pl.concat([judged.settled, failed]))
    add_outcomes(connection, work, judged.settled)
    if route is Route.STRAIGHT or not judged.good.height:
        _straight(connection, work, judged.good)
        settled = dict(judged.settled["status"].value_counts().iter_rows())
        return {Status.CREATED: judged.good.height, **{Status(status): count for status, count in settled.items()}}
    _staged(connection, work, judged.good, route)
    return count_outcomes(connection, work.job.id, batch)


def add_outcomes(connection: Connection[Any], work: Work, outcomes: pl.DataFrame) -> None:
    """COPY outcomes of the job's rows."""
    if outcomes.height:
        copy_into_own(connection, "outcome", outcomes.select(pl.lit(str(work.job.id)).alias("job_id"), pl.all()))


def _columns(work: Work, good: pl.DataFrame) -> pl.DataFrame:
    """The values under the names of the target's columns, as texts that PostgreSQL reads."""
    named = good.select(pl.col(name).alias(work.importer.fields[name].column) for name in work.fields)
    as_json = [
        name
        for name, dtype in named.schema.items()
        if isinstance(dtype, pl.List) and work.target.columns[name].base in ("json", "jsonb")
    ]
    return text_columns(named.with_columns(json_text(pl.col(name)) for name in as_json))


# ------------------------------------------------------------------------------------------------------ straight


def _straight(connection: Connection[Any], work: Work, good: pl.DataFrame) -> None:
    if not good.height:
        return
    rows = _filled(connection, work, _columns(work, good))
    if copy_in(connection, work.target.identifier, rows) < rows.height:
        raise writing.Dropped
    own = work.target.primary_key
    key = cells_text(rows.select(pl.col(own).cast(pl.String))) if own else pl.lit(None, pl.String)
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
    return rows.with_columns(rows[name].cast(pl.String).scatter(empty.arg_true(), values))


# -------------------------------------------------------------------------------------------------------- staged


def _staged(connection: Connection[Any], work: Work, good: pl.DataFrame, route: Route) -> None:
    rows = _columns(work, good).insert_column(0, good["number"].alias("rowcall_number"))
    if work.importer.once:
        rows = rows.with_columns(row_keys(work.layout.keys, rows).alias("rowcall_key"))
    refused: dict[int, Issue] = {}
    note = _noting(refused, work, rows)
    for number, error in staging.load(connection, rows):
        note(number, Refused.of(error))
    matching.match(connection, work.layout)
    staging.fill(connection, work.layout, {series.name for series in rows if not series.null_count()})
    taken = staging.take_keys(connection, work.job.importer, work.job.id) if work.importer.once else []
    if route >= Route.CHECKED:
        refused |= _violating(connection, work, rows)
    if route is Route.ISOLATED:
        guilty, pieces = _guilty(connection, work, rows)
        refused |= guilty
        for piece in pieces:
            _write(connection, work, piece)
    else:
        _write(connection, work)
    key_fields = [fields_named(work, key) for key in work.layout.keys]
    writing.add_outcomes(connection, work.layout, work.job.id, key_fields)
    if work.importer.once:
        staging.give_back_keys(connection, work.job.id, list(refused))
    add_outcomes(connection, work, _settled([*_failed(refused), *map(_skipped, taken)]))


def _write(connection: Connection[Any], work: Work, numbers: list[int] | None = None) -> None:
    changed = writing.write(connection, work.layout, numbers)
    if changed:
        raise Retryable(
            Code.DATABASE_BUSY, f"{changed:,} rows of {work.importer.target} were changed by others meanwhile."
        )


def _violating(connection: Connection[Any], work: Work, rows: pl.DataFrame) -> dict[int, Issue]:
    """The rows that a constraint would refuse, taken out."""
    issues: dict[int, Issue] = {}
    for violation in violations(connection, work.layout):
        fresh = [number for number in violation.numbers if number not in issues]
        found = rows.filter(pl.col("rowcall_number").is_in(fresh))
        for row in found.iter_rows(named=True):
            issues[row["rowcall_number"]] = issue_of_violation(violation, work, row)
    _take_out(connection, work, rows, issues)
    return issues


def _take_out(connection: Connection[Any], work: Work, rows: pl.DataFrame, issues: dict[int, Issue]) -> None:
    """Take refused rows out, unless one is refused only because another import has just created it: that is a match."""
    asked = _by_key(work, rows.filter(pl.col("rowcall_number").is_in(list(issues))))
    if issues and (created := matching.matched_meanwhile(connection, work.layout, asked)):
        raise Retryable(
            Code.DATABASE_BUSY, f"{created:,} rows of {work.importer.target} were created by others meanwhile."
        )
    staging.remove(connection, list(issues))


def _by_key(work: Work, rows: pl.DataFrame) -> list[list[int]]:
    """The numbers of rows, for each key those that are matched by it: the file gives all of it, and no key before."""
    numbers: list[list[int]] = []
    for key in work.layout.keys:
        whole = pl.all_horizontal(pl.col(name).is_not_null() for name in key)
        numbers.append(rows.filter(whole)["rowcall_number"].to_list())
        rows = rows.filter(~whole)
    return numbers


def _guilty(connection: Connection[Any], work: Work, rows: pl.DataFrame) -> tuple[dict[int, Issue], list[list[int]]]:
    """Find the rows that can't be written by trying, then take back the trial and take out the guilty.

    Also returns the others in the pieces in which they could be written, one after the other.
    """
    with connection.transaction(force_rollback=True):
        staging.index_numbers(connection)
        numbers = staging.staged_numbers(connection)
        with connection.transaction(force_rollback=True):
            tried = _tried(connection, work, numbers)
        rest = [number for number in numbers if number not in tried.refused]
        pieces = [rest] if _goes_at_once(connection, work, rest) else tried.pieces
    issues: dict[int, Issue] = {}
    note = _noting(issues, work, rows)
    for number, refused in tried.refused.items():
        note(number, refused)
    _take_out(connection, work, rows, issues)
    return issues, pieces


def _tried(connection: Connection[Any], work: Work, numbers: list[int]) -> Tried:
    pieces: list[list[int]] = []
    while True:
        tried = try_halves(connection, work.layout, numbers)
        pieces += tried.pieces
        for number, refused in tried.refused.items():
            if not tells_of_rows(refused):
                writing.write(connection, work.layout, [number])  # raises it as it is, unless it was for a moment
                raise Retryable(Code.DATABASE_BUSY, f"{work.importer.target} could not be written: {refused.message}.")
        if not work.target.refers_to_itself or len(tried.refused) in (0, len(numbers)):
            return Tried(tried.refused, pieces)
        numbers = sorted(tried.refused)  # what they refer to may be there by now


def _goes_at_once(connection: Connection[Any], work: Work, numbers: list[int]) -> bool:
    """Whether rows that could be written in pieces can be written together."""
    try:
        with connection.transaction(force_rollback=True):
            writing.write(connection, work.layout, numbers)
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        return False
    return True


def _noting(issues: dict[int, Issue], work: Work, rows: pl.DataFrame) -> Callable[[int, Refused], None]:
    def note(number: int, refused: Refused) -> None:
        issues[number] = issue_of(refused, work, rows.filter(pl.col("rowcall_number") == number))

    return note


def _failed(refused: dict[int, Issue]) -> list[dict[str, Any]]:
    return [
        {"row_number": number, "status": Status.FAILED.value, "issues": jsonb_text([issue])}
        for number, issue in refused.items()
    ]


def _skipped(taken: tuple[int, str, int]) -> dict[str, Any]:
    number, job, row = taken
    message = f"Row {row:,} of job {job} was imported with the same key."
    issue = Issue(Code.ALREADY_IMPORTED, message, metadata={"job": job, "row": row})
    return {"row_number": number, "status": Status.SKIPPED.value, "issues": jsonb_text([issue])}


def _settled(outcomes: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(outcomes, schema=OUTCOMES)
