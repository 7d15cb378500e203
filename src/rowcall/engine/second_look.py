"""Rows that refer to rows of the same file: employees to their manager, categories to their parent.

When such a row's turn comes, the one it refers to may not be there yet, because it stands further down. So what failed
for that reason alone is tried again when all batches are done, for as long as that helps. What comes out doesn't depend
on how the file was cut into batches.
"""

from dataclasses import replace
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.commit import Hopes, Route, apply, commit_next, keep_plan, planned
from rowcall.engine.judge import NO_OUTCOMES, judge_rows
from rowcall.engine.work import Work
from rowcall.model import Status
from rowcall.store import staging
from rowcall.store.queries import query
from rowcall.store.rows import RowBatch, all_batches, read_rows

_AT_ONCE = 5_000


def refers_to_itself(work: Work) -> bool:
    """Whether rows of the target refer to others, through a field that the file brings."""
    return bool(_own_lookups(work) or _own_constraints(work))


def _own_lookups(work: Work) -> list[str]:
    own = (work.importer.target, work.target.name, f"{work.target.schema}.{work.target.name}")
    return [name for name, lookup in work.lookups.items() if lookup.table in own]


def _own_constraints(work: Work) -> list[str]:
    own = (work.target.schema, work.target.name)
    return [
        key.name
        for key in work.target.foreign
        if (key.table_schema, key.table_name) == own and work.layout.given.issuperset(key.columns)
    ]


def look_again(connection: Connection[Any], work: Work) -> None:
    """Try rows again that failed for want of another row, until none more gets in."""
    staging.prepare(connection, work.layout)
    while _round(connection, work):
        pass


def _round(connection: Connection[Any], work: Work) -> bool:
    """Whether any row got in."""
    given = {"id": work.job.id, "lookups": _own_lookups(work), "constraints": _own_constraints(work), "most": _AT_ONCE}
    after, progress = 0, False
    while True:
        with connection.transaction():
            found = connection.execute(query("failed_for_want"), {**given, "after": after}).fetchall()
            if not found:
                return progress
            numbers = [number for (number,) in found]
            after = numbers[-1]
            progress |= _again(connection, work, numbers)


def _again(connection: Connection[Any], work: Work, numbers: list[int]) -> bool:
    first, last = numbers[0], numbers[-1]
    rows = read_rows(connection, work.job.id, dict(work.positions), first=first, last=last, numbers=numbers)
    judged = judge_rows(connection, work, rows, NO_OUTCOMES)
    connection.execute(query("take_back"), {"id": work.job.id, "numbers": numbers})
    apply(connection, work, RowBatch(0, first, last), judged, Route.ISOLATED)
    connection.execute(query("recount_batches"), {"id": work.job.id})
    failed = connection.execute(query("still_failed"), {"id": work.job.id, "numbers": numbers}).fetchone()
    return bool(failed and failed[0] < len(numbers))


def plan_together(connection: Connection[Any], work: Work, hopes: Hopes) -> None:
    """A dry run in which each batch sees what the earlier ones did: one transaction for all, undone at the end."""
    staging.prepare(connection, work.layout)
    batches = all_batches(connection, work.job.id)
    real = replace(work, dry=False)
    with connection.transaction(force_rollback=True):
        while commit_next(connection, real, hopes):
            pass
        look_again(connection, real)
        for batch in batches:
            work.scratch.put(-batch.number, planned(connection, work, batch))
    for batch in batches:
        outcomes = pl.read_ipc(work.scratch.file(-batch.number).read_bytes())
        counts = {Status(status): count for status, count in outcomes["status"].value_counts().iter_rows()}
        keep_plan(connection, work, batch, outcomes, counts)
