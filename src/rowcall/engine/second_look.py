"""Rows that need another row of the same file to come in first.

Employees refer to their manager, categories to their parent; a unique value may be free only when the row that has it
was changed. When such a row's turn comes, the other one may still be further down. So what failed for that reason is
tried again when all batches are done, for as long as that helps; then come rows that were left out at first (waiting),
and the next best of rows with equal keys of which the one that counted was refused.
What comes out doesn't depend on how the file was cut into batches.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine import waiting
from rowcall.engine.commit import Hopes, Route, apply, commit_next, planned
from rowcall.engine.judge import duplicates, judge, judge_rows, numbered
from rowcall.engine.preview.drift import agreed, left_behind
from rowcall.engine.preview.plan import NOTHING_FOUND, keep_piece, looked_up, lookups_elsewhere
from rowcall.engine.wants import own_constraints, values_that_move
from rowcall.engine.work import Work
from rowcall.store import staging
from rowcall.store.queries import query
from rowcall.store.rows import RowBatch, all_batches, claim, hold_state

_AT_ONCE = 5_000
_MOST_CHANCES = 20
"""How often another one of equal rows is tried, where those before were refused."""


def refers_to_itself(work: Work) -> bool:
    """Whether rows of the target refer to others, through a field that the file brings."""
    return bool(work.own_lookups or own_constraints(work))


def some_failed(connection: Connection[Any], work: Work) -> bool:
    """Whether there are rows to try again."""
    return (
        bool(_failed(connection, work, 0)) or waiting.some_wait(connection, work) or _some_passed_over(connection, work)
    )


def look_again(connection: Connection[Any], work: Work, check: Callable[[], None]) -> None:
    """Try rows again that failed for want of another row, until none more gets in. `check` may raise in between.

    Then come those that waited for them, and so on.
    """
    if not some_failed(connection, work):
        return
    staging.prepare(connection, work.layout)
    going_on, chances = True, _MOST_CHANCES
    while going_on:
        while _round(connection, work, check):
            pass
        going_on = waiting.let_go(connection, work, _all_failed(connection, work))
        if not going_on and chances:
            going_on, chances = _give_chances(connection, work, check), chances - 1
    if work.planned:
        with connection.transaction():
            left_behind(connection, work, _all_failed(connection, work))


def _round(connection: Connection[Any], work: Work, check: Callable[[], None]) -> bool:
    """Whether any row got in."""
    after, progress = 0, False
    while True:
        check()
        with connection.transaction():
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            numbers = _failed(connection, work, after)
            if not numbers:
                return progress
            after = numbers[-1]
            progress |= _again(connection, work, numbers)


def _some_passed_over(connection: Connection[Any], work: Work) -> bool:
    return connection.execute(query("passed_over"), of_key(work)).fetchone() == (True,)


def of_key(work: Work) -> dict[str, Any]:
    """Rows that are equal by another unique value may mean the same row of the target as one that is written."""
    return {"id": work.job.id, "key": list(work.importer.keys[0]) if work.importer.keys else []}


def _give_chances(connection: Connection[Any], work: Work, check: Callable[[], None]) -> bool:
    """Try the next best of rows that lost against one that the target then refused; whether there were any."""
    with connection.transaction():
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        numbers = [number for (number,) in connection.execute(query("pass_over"), of_key(work))]
        for at in range(0, len(numbers), _AT_ONCE):
            check()
            _again(connection, work, numbers[at : at + _AT_ONCE])
    return bool(numbers)


def _all_failed(connection: Connection[Any], work: Work) -> Iterator[list[int]]:
    after = 0
    while numbers := _failed(connection, work, after):
        yield numbers
        after = numbers[-1]


def _failed(connection: Connection[Any], work: Work, after: int) -> list[int]:
    constraints = [*own_constraints(work), *values_that_move(work)]
    lookups = work.own_lookups
    if not constraints and not lookups:
        return []
    given = {"id": work.job.id, "lookups": lookups, "constraints": constraints, "after": after, "most": _AT_ONCE}
    return [number for (number,) in connection.execute(query("failed_for_want"), given)]


def _again(connection: Connection[Any], work: Work, numbers: list[int]) -> bool:
    first, last = numbers[0], numbers[-1]
    rows = numbered(connection, work, numbers)
    judged = judge_rows(connection, work, rows, duplicates(connection, work, rows))
    connection.execute(query("take_back"), {"id": work.job.id, "numbers": numbers})
    batch = RowBatch(0, first, last)
    apply(connection, work, batch, judged, Route.ISOLATED, agreed(connection, work, batch))
    connection.execute(query("count_attempts"), {"id": work.job.id, "numbers": numbers})
    connection.execute(query("recount_batches"), {"id": work.job.id, "first": first, "last": last})
    failed = connection.execute(query("still_failed"), {"id": work.job.id, "numbers": numbers}).fetchone()
    return bool(failed and failed[0] < len(numbers))


def plan_together(connection: Connection[Any], work: Work, hopes: Hopes, check: Callable[[], None]) -> None:
    """A dry run in which each batch sees what the earlier ones did: one transaction for all, undone at the end."""
    staging.prepare(connection, work.layout)
    connection.execute(query("forget_pieces"), {"id": work.job.id})
    batches = all_batches(connection, work.job.id)
    real = replace(work, dry=False)
    with connection.transaction(force_rollback=True):
        while commit_next(connection, real, hopes):
            check()
        look_again(connection, real, check)
        for batch in batches:
            work.scratch.put_plan(batch.number, planned(connection, work, batch), _found(connection, work, batch))
    for batch in batches:
        _keep_plan(connection, work, batch, *work.scratch.plan(batch.number))


def _keep_plan(
    connection: Connection[Any], work: Work, batch: RowBatch, outcomes: pl.DataFrame, found: pl.DataFrame
) -> None:
    """Keep what is planned for a batch, unless somebody else did. `found` is what look-ups found."""
    with connection.transaction():
        if hold_state(connection, work.job) and claim(connection, work.job, batch.number):
            keep_piece(connection, work, batch, outcomes, found)


def _found(connection: Connection[Any], work: Work, batch: RowBatch) -> pl.DataFrame:
    """What the look-ups of a batch find, now that all rows are there that they may refer to."""
    if not lookups_elsewhere(work):
        return NOTHING_FOUND
    return looked_up(work, judge(connection, work, batch).good)
