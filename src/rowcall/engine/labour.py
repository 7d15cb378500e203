"""Batches committed by the workers of one process, until none waits."""

from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.commit import Hopes, Route, commit_next, shortest_route
from rowcall.engine.items import process_items
from rowcall.engine.running import Run, interrupted
from rowcall.engine.values.answers import Unsettled
from rowcall.engine.work import NO_TARGET, Work
from rowcall.engine.workers import work_together
from rowcall.importer import ItemImporter
from rowcall.model import Progress, State
from rowcall.store import jobs, staging
from rowcall.store.jobs import Job
from rowcall.store.rows import pending_batches

_ROUND = 0.01
_LONGEST_ROUND = 1.0
"""Seconds between rounds: what still waits then is in the hands of others. They double while nothing changes."""


def work_off(run: Run, control: Connection[Any], work: Work) -> None:
    """Have all batches committed, also those that others had begun."""
    before, pause = None, _ROUND
    while waiting := pending_batches(control, work.job.id):
        pause = min(_LONGEST_ROUND, 2 * pause) if waiting == before else _ROUND
        before = waiting
        _labour(run, control, work, waiting)
        if run.stop.wait(pause):
            raise interrupted(work.job)


def _labour(run: Run, control: Connection[Any], work: Work, batches: int) -> None:
    """Have workers commit batches until none waits, telling how it goes."""
    route = Route.STAGED if work.target is NO_TARGET else shortest_route(control, work)
    troubles = work_together(
        run,
        work.job,
        lambda connection: _next_batch(run, connection, work, Hopes(route)),
        partial(_tell_counts, run, control, work.job),
        workers=_workers(run, work, batches),
    )
    if troubles:
        raise _trouble(troubles)


def _workers(run: Run, work: Work, batches: int) -> int:
    if work.unforeseen:
        return 1  # then the first row in the file is the first to come
    return run.settings.workers if issubclass(run.importer, ItemImporter) else min(run.settings.workers, batches)


def _trouble(troubles: list[BaseException]) -> BaseException:
    """What to say of what stopped the workers; all that they have to ask at once."""
    asking = [trouble for trouble in troubles if isinstance(trouble, Unsettled)]
    if len(asking) < len(troubles):
        return next(trouble for trouble in troubles if not isinstance(trouble, Unsettled))
    return Unsettled(pl.concat([trouble.questions for trouble in asking]))


def _tell_counts(run: Run, control: Connection[Any], job: Job) -> None:
    counts = jobs.counts_of(control, job)
    phase = "checking" if job.state is State.VALIDATING else "writing"
    total = job.row_count or 0
    run.tell(Progress(phase=phase, rows=counts.done, done=counts.done, total=total, failed=counts.failed))


def _next_batch(run: Run, connection: Connection[Any], work: Work, hopes: Hopes) -> Callable[[], bool]:
    """What to call for the next batch; it says whether there was one."""
    if issubclass(run.importer, ItemImporter):
        importer = run.importer()
        return lambda: process_items(run.database, connection, work, importer)
    staging.prepare(connection, work.layout)
    return lambda: commit_next(connection, work, hopes) is not None
