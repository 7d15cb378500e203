"""The workers of one process: threads that commit batches until none waits."""

import threading
from collections.abc import Callable
from typing import Any

import polars as pl
import psycopg
from psycopg import Connection

from rowcall.engine.commit import Hopes, Route, commit_next, shortest_route
from rowcall.engine.items import process_items
from rowcall.engine.running import MOST_FAILURES, Run, interrupted, may_pass
from rowcall.engine.values.answers import Unsettled
from rowcall.engine.work import NO_TARGET, Work
from rowcall.errors import Final, Retryable, RowcallError
from rowcall.importer import ItemImporter
from rowcall.model import Code, Progress, State
from rowcall.store import jobs, staging
from rowcall.store.db import translated
from rowcall.store.jobs import Job
from rowcall.store.rows import pending_batches

_TOLD_EVERY = 0.25
_ROUND = 0.01
_LONGEST_ROUND = 1.0
"""Seconds between rounds: what still waits then is in the hands of others. They double while nothing changes."""


def work_off(run: Run, control: Connection[Any], work: Work) -> None:
    """Have all batches committed, also those that others had begun."""
    before, pause = None, _ROUND
    while waiting := pending_batches(control, work.job.id):
        pause = min(_LONGEST_ROUND, 2 * pause) if waiting == before else _ROUND
        before = waiting
        _labour(run, control, work)
        if run.stop.wait(pause):
            raise interrupted(work.job)


def _labour(run: Run, control: Connection[Any], work: Work) -> None:
    """Have workers commit batches until none waits, telling how it goes."""
    troubles: list[BaseException] = []
    halt = threading.Event()
    route = Route.STAGED if work.target is NO_TARGET else shortest_route(control, work)

    def labour() -> None:
        try:
            _worker(run, work, Hopes(route), halt)
        except BaseException as error:
            troubles.append(error)
            halt.set()

    workers = 1 if work.unforeseen else run.settings.workers  # then the first row in the file is the first to come
    threads = [threading.Thread(target=labour, name=f"worker-{n}") for n in range(workers)]
    for thread in threads:
        thread.start()
    try:
        while alive := next((thread for thread in threads if thread.is_alive()), None):
            alive.join(_TOLD_EVERY)
            _tell_counts(run, control, work.job)
            if run.yields():
                run.stop.set()
            if run.stop.is_set():
                halt.set()
    finally:
        halt.set()
        for thread in threads:
            thread.join()
    if troubles:
        raise _trouble(troubles)


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


def _worker(run: Run, work: Work, hopes: Hopes, halt: threading.Event) -> None:
    """Commit batches until none waits. A deadlock, a batch that was too slow: it is tried again.

    When the connection is lost, all of the process may have been cut off, and another have the job by now.
    """
    failures = 0
    while not halt.is_set():
        try:
            with run.database.reconnect("worker") as connection:
                next_batch = _next_batch(run, connection, work, hopes)
                while not halt.is_set():
                    if not next_batch():
                        return
                    failures = 0
        except (psycopg.Error, Retryable) as error:
            failures += 1
            trouble = translated(error) if isinstance(error, psycopg.Error) else error
            if not may_pass(trouble) or trouble.code == Code.DATABASE_GONE:
                raise trouble from error
            if not may_pass(trouble, failures):
                raise _given_up(work.job, trouble) from error
            halt.wait(min(2.0, 0.02 * 2**failures))


def _given_up(job: Job, trouble: RowcallError) -> Final:
    """It was tried often enough: whoever called us need not try again, a person may."""
    message = f"Given up after {MOST_FAILURES} attempts: {trouble.message}"
    hint, over_http = (f"When that is mended, go on with: {how}" for how in _ways_on(job))
    return Final(trouble.code, message, hint=hint, over_http=over_http)


def _ways_on(job: Job) -> tuple[str, str]:
    """How a job is resumed: on the command line, and over HTTP."""
    return f"rowcall resume {job.number}", f"POST /v1/imports/{job.id}/resume"


def _next_batch(run: Run, connection: Connection[Any], work: Work, hopes: Hopes) -> Callable[[], bool]:
    """What to call for the next batch; it says whether there was one."""
    if issubclass(run.importer, ItemImporter):
        importer = run.importer()
        return lambda: process_items(run.database, connection, work, importer)
    staging.prepare(connection, work.layout)
    return lambda: commit_next(connection, work, hopes) is not None
