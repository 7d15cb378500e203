"""The plan of a job: what would become of each row, kept to be shown, agreed to, and held against the commit.

Of a batch, most rows are created or left unchanged without a word: that is implied, and costs nothing to keep. All
other outcomes are kept like those of a commit, as attempt 0.
"""

from typing import Any

import msgspec
import polars as pl
from psycopg import Connection

from rowcall.engine.preview.marks import marks_of, statuses_of
from rowcall.engine.work import Work
from rowcall.model import Status
from rowcall.store import plans
from rowcall.store.copying import copy_into_own
from rowcall.store.jobs import Job, counts_of
from rowcall.store.mappings import columns_of
from rowcall.store.queries import query
from rowcall.store.results import count_issues
from rowcall.store.rows import RowBatch, finish

_PLAIN = (Status.CREATED, Status.UNCHANGED)


NOTHING_FOUND = pl.DataFrame(schema={"number": pl.Int64})


def lookups_elsewhere(work: Work) -> list[str]:
    """The look-ups in other tables. In the target itself, a commit may find rows under other numbers."""
    return [name for name in work.lookups if name not in work.own_lookups]


def looked_up(work: Work, good: pl.DataFrame) -> pl.DataFrame:
    """What look-ups in other tables found for good rows."""
    return good.select("number", *(pl.col(name).cast(pl.String) for name in lookups_elsewhere(work)))


def foreknown(work: Work, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Outcomes without keys that the target draws when it is written to, and anew each time: those of new versions."""
    layout = work.layout
    own = set(layout.target.primary_key)
    if not layout.version or all(own <= {*key, layout.version} for key in layout.keys):
        return outcomes
    return outcomes.with_columns(pl.when(pl.col("status") != Status.UPDATED.value).then("target_key"))


def keep_piece(
    connection: Connection[Any], work: Work, batch: RowBatch, outcomes: pl.DataFrame, found: pl.DataFrame
) -> None:
    """Keep what is planned for a batch, and mark it as done. Called in the transaction that claims it."""
    outcomes = foreknown(work, outcomes.sort("row_number"))
    counts = {Status(status): count for status, count in outcomes["status"].value_counts().iter_rows()}
    implied = max(_PLAIN, key=lambda status: counts.get(status, 0))
    plain = (pl.col("status") == implied.value) & pl.col("issues").is_null() & pl.col("result").is_null()
    rest = _as_planned(outcomes.filter(~plain))
    if rest.height:
        copy_into_own(connection, "outcome", work.job.id, rest)
    is_implied = rest.height < outcomes.height
    plans.add_piece(connection, work.job.id, batch, marks_of(outcomes, found), implied if is_implied else None)
    finish(connection, work.job.id, batch, counts)


def replace_rows(connection: Connection[Any], work: Work, outcomes: pl.DataFrame, found: pl.DataFrame) -> None:
    """Replace what is planned for some rows, of a plan that is complete."""
    outcomes = foreknown(work, outcomes.sort("row_number"))
    connection.execute(query("take_back"), {"id": work.job.id, "numbers": outcomes["row_number"].to_list()})
    copy_into_own(connection, "outcome", work.job.id, _as_planned(outcomes))
    fresh = pl.DataFrame({"number": outcomes["row_number"], "mark": marks_of(_whole(outcomes), found)})
    for batch, marks in plans.pieces_of(connection, work.job.id, outcomes["row_number"].to_list()):
        here = fresh.filter(pl.col("number").is_between(batch.first_row, batch.last_row))
        marks[here["number"].to_numpy() - batch.first_row] = here["mark"].to_numpy()
        plans.replace_piece(connection, work.job.id, batch, marks)
        counts = dict(statuses_of(marks).value_counts().iter_rows())
        plans.recount(connection, work.job.id, batch, counts)


def _as_planned(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Outcomes as they are kept, of attempt 0. Those that could be implied tell no key, as if they were."""
    planned = outcomes.select(pl.lit(0).alias("attempt"), pl.all())
    if "target_key" not in planned.columns:
        return planned
    known = ~pl.col("status").is_in([status.value for status in _PLAIN])
    return planned.with_columns(pl.when(known).then("target_key"))


def _whole(outcomes: pl.DataFrame) -> pl.DataFrame:
    missing = [name for name in ("target_key", "issues", "before", "result") if name not in outcomes.columns]
    return outcomes.with_columns(pl.lit(None, pl.String).alias(name) for name in missing)


def close_plan(connection: Connection[Any], job: Job) -> None:
    """All pieces are there: add them up. Called in the transaction that ends the preview."""
    counted = counts_of(connection, job)
    counts = {status.value: getattr(counted, status.value) for status in Status}
    digest = plans.digest_of(connection, job.id, _made_from(connection, job))
    problems = count_issues(connection, job.id)
    plans.set_plan(connection, job.id, digest=digest, counts=counts, problems=problems)


def _made_from(connection: Connection[Any], job: Job) -> bytes:
    """All that a plan is made from but the target."""
    config = msgspec.to_builtins(job.config)
    how = {name: value for name, value in config.items() if name not in ("dry_run", "preview", "mapping")}
    columns = [
        (column.position, column.target_field, column.decimal_mark, column.date_order, column.place, column.separator)
        for column in columns_of(connection, job.id)
        if column.target_field
    ]
    said = plans.said_by_people(connection, job.id)
    return msgspec.json.encode([job.file_sha256, job.importer, how, columns, said], order="deterministic")
