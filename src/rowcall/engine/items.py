"""Importers that ask the outside world about each row.

Such a call can't be part of a transaction. A batch is leased instead, and its outcomes are written only if the lease
is still ours: a worker that was away for too long finds that its results are no longer wanted.
"""

import asyncio
import random
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import polars as pl
from psycopg import Connection

from rowcall.engine.failures import own_code
from rowcall.engine.judge import Judged, judge
from rowcall.engine.observe import committed
from rowcall.engine.outcomes import add_outcomes, outcomes_frame
from rowcall.engine.preview.drift import plan_done
from rowcall.engine.preview.plan import keep_piece, looked_up
from rowcall.engine.values.answers import Unsettled
from rowcall.engine.work import Work
from rowcall.errors import Final, Retryable
from rowcall.importer import ItemImporter, ItemResult, RowOutcome
from rowcall.model import Code, Issue, Status
from rowcall.store.db import Database
from rowcall.store.rows import RowBatch, count_outcomes, finish, hold_state, lease, renew

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0


def process_items(database: Database, connection: Connection[Any], work: Work, importer: ItemImporter) -> bool:
    """Process the next batch that nobody has leased; False when none is waiting."""
    owner = str(uuid4())
    batch = lease(connection, work.job, owner, importer.lease_seconds)
    if batch is None:
        return False
    try:
        judged = judge(connection, work, batch)
    except Unsettled:
        renew(connection, work.job.id, batch, owner, 0)
        raise
    try:
        with _renewed(database, work, batch, owner, importer.lease_seconds):
            outcomes = asked_nobody(judged.good) if work.dry else asyncio.run(process_rows(importer, judged.good))
        with own_code(work.importer, "process"):
            frame = outcomes_frame(work.importer, outcomes, judged.good["number"].to_list())
    except Final:
        renew(connection, work.job.id, batch, owner, 0)  # whoever resumes the job needn't wait for it
        raise
    _keep(connection, work, batch, owner, judged, frame)
    return True


def _keep(
    connection: Connection[Any], work: Work, batch: RowBatch, owner: str, judged: Judged, given: pl.DataFrame
) -> None:
    """Write the outcomes, unless the lease ran out and somebody else has the batch, or others moved the job on."""
    began = time.monotonic()
    with connection.transaction():
        if not hold_state(connection, work.job) or not renew(connection, work.job.id, batch, owner, 0):
            return
        if work.dry:
            outcomes = pl.concat([given, judged.settled], how="diagonal")
            keep_piece(connection, work, batch, outcomes, looked_up(work, judged.good))
            return
        add_outcomes(connection, work, judged.settled)
        add_outcomes(connection, work, given)
        counts = count_outcomes(connection, work.job.id, batch)
        finish(connection, work.job.id, batch, counts)
        if work.planned:  # of what the outside world would say, nothing was planned
            plan_done(connection, work, batch)
    committed(work.job, len(batch), counts, time.monotonic() - began)


@contextmanager
def _renewed(database: Database, work: Work, batch: RowBatch, owner: str, seconds: float) -> Generator[None]:
    """Renew the lease from a thread of its own for as long as the work goes on."""
    done = threading.Event()

    def keep_alive() -> None:
        with database.reconnect("lease") as connection:
            while not done.wait(seconds / 3):
                renew(connection, work.job.id, batch, owner, seconds)

    thread = threading.Thread(target=keep_alive, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


async def process_rows(importer: ItemImporter, rows: pl.DataFrame) -> list[RowOutcome]:
    """The outcomes of rows, some of them asked about at the same time."""
    places = asyncio.Semaphore(importer.concurrency)

    async def one(row: Mapping[str, Any]) -> RowOutcome:
        async with places:
            return await _tried(importer, row)

    return list(await asyncio.gather(*(one(row) for row in rows.iter_rows(named=True))))


async def _tried(importer: ItemImporter, row: Mapping[str, Any]) -> RowOutcome:
    """The outcome of one row; what may succeed later is tried again, each time after a longer pause."""
    number: int = row["number"]
    pause = _FIRST_PAUSE
    for attempt in range(1, importer.attempts + 1):
        try:
            with own_code(type(importer), f"process (row {number:,})"):
                result = _expected(importer, await importer.process(row))
        except Retryable as error:
            if attempt == importer.attempts:
                message = f"Given up after {attempt} attempts: {error.message}"
                return RowOutcome(number, Status.FAILED, issues=(Issue(error.code, message),))
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 (spreads the attempts, guards nothing)
            pause = min(_LONGEST_PAUSE, 2 * pause)
        else:
            return RowOutcome(number, result.status, result.target_key, result.issues, result.result)
    raise AssertionError("attempts is at least 1")


def _expected(importer: ItemImporter, result: ItemResult) -> ItemResult:
    if isinstance(result, ItemResult | RowOutcome):  # pyright: ignore[reportUnnecessaryIsInstance] (the latter says no less)
        return result
    told = f"process of importer {importer.name} gave {result!r}; an ItemResult is expected."
    raise Final(Code.IMPORTER_FAILED, told, hint="Mend its code, then resume the job.")


def asked_nobody(rows: pl.DataFrame) -> list[RowOutcome]:
    """The outcomes of good rows in a dry run."""
    issue = Issue(Code.NOT_APPLIED, "A dry run asks nobody about it.")
    return [RowOutcome(number, Status.SKIPPED, issues=(issue,)) for number in rows["number"]]
