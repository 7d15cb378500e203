"""Some rows tried by themselves, by the code that imports them, and undone: what would become of them now."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.commit import Route, apply, planned
from rowcall.engine.items import asked_nobody
from rowcall.engine.judge import duplicates, judge_rows, numbered
from rowcall.engine.outcomes import outcomes_frame
from rowcall.engine.second_look import of_key, refers_to_itself
from rowcall.engine.work import NO_TARGET, Work
from rowcall.importer import WholeFileImporter
from rowcall.model import Code, Status
from rowcall.store import staging
from rowcall.store.queries import query
from rowcall.store.rows import RowBatch


def stand_alone(work: Work) -> bool:
    """Whether what becomes of a row can be told while the other rows of its file are not in."""
    if issubclass(work.importer, WholeFileImporter):
        return False
    return work.target is NO_TARGET or not (work.importer.atomic or work.unforeseen or refers_to_itself(work))


def try_alone(connection: Connection[Any], work: Work, numbers: Sequence[int]) -> pl.DataFrame:
    """The outcomes that some rows, given in order, would have. Called in a transaction; nothing of it stays.

    Importers that ask the outside world ask nobody, and those that look at a whole file are not called: of them, what
    is told is whether the row itself is good.
    """
    rows = numbered(connection, work, numbers)
    judged = judge_rows(connection, work, rows, duplicates(connection, work, rows), asking=False)
    if work.target is NO_TARGET:
        given = outcomes_frame(work.importer, asked_nobody(judged.good), judged.good["number"].to_list())
        return pl.concat([judged.settled, given.select(judged.settled.columns)])
    batch = RowBatch(0, numbers[0], numbers[-1])
    with connection.transaction(force_rollback=True):
        staging.prepare(connection, work.layout)
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        connection.execute(query("take_back"), {"id": work.job.id, "numbers": list(numbers)})
        apply(connection, replace(work, dry=False), batch, judged, Route.ISOLATED)
        return planned(connection, work, batch, numbers)


def hands_over(connection: Connection[Any], work: Work, outcomes: pl.DataFrame) -> bool:
    """Whether one of these rows is refused that others of them lost against: the next best of those counts then."""
    there = pl.col("issues").str.contains(f'"{Code.ALREADY_EXISTS.value}"', literal=True).fill_null(False)
    refused = outcomes.filter((pl.col("status") == Status.FAILED.value) & ~there)["row_number"].to_list()
    given = {**of_key(work), "numbers": outcomes["row_number"].to_list(), "refused": refused}
    return bool(refused) and connection.execute(query("hands_over"), given).fetchone() == (True,)
