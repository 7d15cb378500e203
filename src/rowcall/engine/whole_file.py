"""Importers that look at all rows of a file together: one transaction for all of it."""

from typing import Any

import polars as pl
import psycopg
from psycopg import Connection

from rowcall.engine.failures import own_code
from rowcall.engine.finish import finish_job, plan_again
from rowcall.engine.judge import Judged, judge
from rowcall.engine.outcomes import add_outcomes, outcomes_frame
from rowcall.engine.preview.drift import agreed, plan_done
from rowcall.engine.preview.plan import keep_piece, looked_up
from rowcall.engine.work import Work
from rowcall.importer import WholeFileImporter
from rowcall.store.jobs import Job
from rowcall.store.rows import RowBatch, all_batches, count_outcomes, finish


def process_whole_file(connection: Connection[Any], work: Work, importer: WholeFileImporter) -> Job:
    """Have the importer process the good rows, and end the job. In a dry run only the outcomes stay."""
    with connection.transaction(force_rollback=work.dry):
        batches, judged = _judged(connection, work)
        good = pl.concat([one.good for one in judged]) if judged else pl.DataFrame(schema={"number": pl.Int64})
        with own_code(work.importer, "process"):  # it may give them one by one
            given = outcomes_frame(
                work.importer, importer.process(good, connection) if good.height else (), good["number"].to_list()
            )
        outcomes = pl.concat([given, *(one.settled for one in judged)], how="diagonal")
        found = looked_up(work, good)
        off = _off(connection, work, outcomes, found)
        if not work.dry and not off:
            return _end(connection, work, batches, outcomes)
        if off:
            raise psycopg.Rollback
    if off:
        return plan_again(connection, work.job, off)
    with connection.transaction():
        for batch in batches:
            rows = outcomes.filter(pl.col("row_number").is_between(batch.first_row, batch.last_row))
            keep_piece(connection, work, batch, rows, found)
        return finish_job(connection, work.job, work.importer)


def _off(connection: Connection[Any], work: Work, outcomes: pl.DataFrame, found: pl.DataFrame) -> int:
    """How many outcomes were not agreed to: then all of it has to be looked at again."""
    held = agreed(connection, work, RowBatch(0, 1, work.job.row_count or 0)) if outcomes.height else None
    return held.off(outcomes, found).height if held else 0


def _judged(connection: Connection[Any], work: Work) -> tuple[list[RowBatch], list[Judged]]:
    connection.execute("SELECT 1 FROM rowcall.batch WHERE job_id = %s FOR UPDATE", [work.job.id])
    batches = all_batches(connection, work.job.id)
    return batches, [judge(connection, work, batch) for batch in batches]


def _end(connection: Connection[Any], work: Work, batches: list[RowBatch], outcomes: pl.DataFrame) -> Job:
    add_outcomes(connection, work, outcomes)
    for batch in batches:
        finish(connection, work.job.id, batch, count_outcomes(connection, work.job.id, batch))
        if work.planned:
            plan_done(connection, work, batch)
    return finish_job(connection, work.job, work.importer)
