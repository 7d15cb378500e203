"""Rows that somebody wants tried again when their job is through. Only they run; their attempts are kept."""

import asyncio
from collections.abc import Callable
from typing import Any

from psycopg import Connection

from rowcall.engine.commit import Route, apply
from rowcall.engine.duplicates import decide_again
from rowcall.engine.items import process_rows
from rowcall.engine.judge import duplicates, judge_rows, numbered
from rowcall.engine.outcomes import add_outcomes, outcomes_frame
from rowcall.engine.work import NO_TARGET, Work
from rowcall.importer import ItemImporter
from rowcall.store import staging
from rowcall.store.edits import edited_of, lost_to_edited
from rowcall.store.queries import query
from rowcall.store.rows import RowBatch

_AT_ONCE = 5_000


def try_again(connection: Connection[Any], work: Work, check: Callable[[], None]) -> None:
    """Run the rows that wait for another attempt. `check` may raise in between."""
    most = 10 * work.importer.concurrency if issubclass(work.importer, ItemImporter) else _AT_ONCE
    numbers = _waiting(connection, work, most)
    if numbers and work.target is not NO_TARGET:
        staging.prepare(connection, work.layout)
    while numbers:
        check()
        _attempt(connection, work, numbers)
        numbers = _waiting(connection, work, most)


def _waiting(connection: Connection[Any], work: Work, most: int) -> list[int]:
    given = {"id": work.job.id, "most": most}
    return [number for (number,) in connection.execute(query("next_retries"), given)]


def _attempt(connection: Connection[Any], work: Work, numbers: list[int]) -> None:
    """One attempt of some rows, with their outcomes, counts and marks in one transaction."""
    first, last = numbers[0], numbers[-1]
    if work.edited and work.target is not NO_TARGET:  # what lost may win now, and the other way round
        lost = lost_to_edited(connection, work.job.id, numbers)
        fresh = {*edited_of(connection, work.job.id, numbers), *lost}
        decide_again(connection, work, sorted({*numbers, *lost.values()}), sorted(fresh))
    rows = numbered(connection, work, numbers)
    judged = judge_rows(connection, work, rows, duplicates(connection, work, rows))
    given = {"id": work.job.id, "numbers": numbers}
    if issubclass(work.importer, ItemImporter):  # asks the outside world, so before the transaction
        outcomes = asyncio.run(process_rows(work.importer(), judged.good))
        frame = outcomes_frame(work.importer, outcomes, judged.good["number"].to_list())
    else:
        frame = None
    with connection.transaction():
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        connection.execute(query("set_aside"), given)
        if frame is None:
            apply(connection, work, RowBatch(0, first, last), judged, Route.ISOLATED)
        else:
            add_outcomes(connection, work, judged.settled)
            add_outcomes(connection, work, frame)
        connection.execute(query("count_attempts"), given)
        connection.execute(query("recount_batches"), {"id": work.job.id, "first": first, "last": last})
        connection.execute(query("retries_done"), given)
