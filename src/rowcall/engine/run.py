"""A process works on a job: has it to itself, through restarts, and notes what stopped it.

Safe to call again at any time, after anything.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import Connection

from rowcall.engine import observe
from rowcall.engine.advance import advance
from rowcall.engine.failures import failure_of
from rowcall.engine.moves import granted, let_go
from rowcall.engine.running import Run, may_pass, scratch_of, watching
from rowcall.engine.values import ask as ask_values
from rowcall.errors import Final, Retryable, RowcallError
from rowcall.model import WORKING, Code, State, Wish
from rowcall.store import jobs
from rowcall.store.db import Database, translated
from rowcall.store.jobs import Job

_UNWRITTEN = (State.UPLOADED, State.COLUMN_MAPPING, State.CELL_MAPPING, State.FINGERPRINT_CHECK)


@contextmanager
def held(database: Database, job: Job) -> Generator[Connection[Any]]:
    """A connection that has the job to itself."""
    with database.reconnect("runner", idle_timeout=3600) as control:
        if not jobs.lock(control, job.id, patience=10):
            raise Final(
                Code.JOB_BUSY,
                f"Job {job.number} is being worked on by another process.",
                hint="Wait for it: `rowcall jobs` shows how far it is.",
                over_http=f"Wait for it: GET /v1/imports/{job.id} tells how far it is.",
            )
        yield control


def run_job(run: Run, job: Job) -> Job:
    """Work on a job until it ends or waits, through restarts of the database.

    What can't be mended by trying again ends the job in FAILED while it has written nothing. After that, and where the
    database or somebody's code raised what nobody expected, it stays as it is, the reason noted, and can be resumed.
    """
    try:
        return _through_restarts(run, job)
    finally:
        scratch_of(run, job).remove()


def _through_restarts(run: Run, job: Job) -> Job:
    failures, seen = 0, None
    while True:
        try:
            with held(run.database, job) as control:
                job = jobs.get_job(control, str(job.id))
                progress = job.state, jobs.counts_of(control, job)
                failures, seen = (failures if progress == seen else 0), progress
                with watching(run, job):
                    return _advanced(run, control, job, failures)
        except (psycopg.Error, Retryable) as error:
            trouble = translated(error) if isinstance(error, psycopg.Error) else error
            failures += 1
            if run.stop.is_set() or not may_pass(trouble, failures):
                raise trouble from error
            run.stop.wait(min(2.0, 0.02 * 2**failures))


def _advanced(run: Run, control: Connection[Any], job: Job, failures: int) -> Job:
    """The job as far as it goes, with a note of what stopped it unless that may pass."""
    try:
        job = (_granted(control, job) if job.wish else None) or advance(run, control, job)
        return _granted(control, job, let_go) or job
    except Exception as error:
        trouble = failure_of(error)
        if _is_superseded(control, job):  # there is nothing left to go wrong
            return jobs.get_job(control, str(job.id))
        if trouble.code in (Code.INTERRUPTED, Code.FOREIGN_FILE_STORE):  # it goes on elsewhere
            if moved := _granted(control, jobs.get_job(control, str(job.id)), let_go):
                return moved
        elif not may_pass(trouble, failures + 1):
            with suppress(psycopg.Error):  # a database that is away takes no notes
                _note(control, job, trouble, for_good=_is_for_good(trouble, error))
        raise


def _is_for_good(trouble: RowcallError, error: Exception) -> bool:
    """Whether nothing can be done about it; an importer's code can be mended."""
    return isinstance(error, Final) and trouble.code != Code.IMPORTER_FAILED


def _is_superseded(control: Connection[Any], job: Job) -> bool:
    with suppress(psycopg.Error):  # whoever finds the database again finds that, too
        return jobs.get_job(control, str(job.id)).state is State.SUPERSEDED
    return False


def _granted(
    control: Connection[Any], job: Job, grant: Callable[[Connection[Any], Job], Job | None] = granted
) -> Job | None:
    """The job as it was wished, if something is."""
    moved = grant(control, job)
    if moved and moved.state is not job.state:
        observe.moved(control, job, moved)
    return moved


def _note(control: Connection[Any], job: Job, trouble: RowcallError, *, for_good: bool) -> None:
    """Keep why the work stopped, and let go of the job."""
    with control.transaction():
        now = jobs.seize(control, job)
        after = _stopped(control, now, trouble, for_good=for_good)
        jobs.unlock(control, job.id)
    if after.state is not now.state:
        observe.moved(control, now, after)


def _stopped(control: Connection[Any], job: Job, trouble: RowcallError, *, for_good: bool) -> Job:
    """The job where it stops. What we said no to ourselves, before anything was written, has failed for good."""
    if for_good and job.state in _UNWRITTEN and not ask_values.is_under_way(control, job):
        return jobs.move(control, job, State.FAILED, error=trouble)
    if job.wish is Wish.CANCEL and (cancelled := granted(control, job)):
        return cancelled
    if job.background and job.state in WORKING:  # else it would be tried again for ever
        return jobs.move(control, job, State.PAUSED, error=trouble)
    if not job.ended:
        jobs.note_error(control, job, trouble)
    return job
