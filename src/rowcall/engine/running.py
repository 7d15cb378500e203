"""One process working on one job: what it needs, when it stops, and what it waits for to pass."""

import secrets
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psycopg

from rowcall.config import Settings
from rowcall.engine.scratch import Scratch
from rowcall.errors import Retryable, RowcallError
from rowcall.importer import Importer
from rowcall.model import Code, Progress
from rowcall.store.db import Database
from rowcall.store.jobs import Job
from rowcall.store.queries import query

_WATCHED_EVERY = 0.3
MOST_FAILURES = 20
"""In a row, of one batch, before the work is given up; the job can be resumed."""
_PASSING: dict[str, int] = {
    Code.DATABASE_GONE: MOST_FAILURES,
    Code.DATABASE_BUSY: MOST_FAILURES,
    Code.FILE_STORE_AWAY: 6,
}
"""What may pass by itself, and how often it is waited for. Clients of file stores try again themselves."""


@dataclass(slots=True)
class Run:
    """One process working on one job: what it needs, and where to tell how it goes."""

    database: Database
    importer: type[Importer]
    settings: Settings
    tell: Callable[[Progress], None] = lambda _: None
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by whoever wants this job's work to end at the next occasion."""
    yields: Callable[[], bool] = lambda: False
    """Whether to make room for other jobs; asked only when that costs little."""
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    """By which it is told from others; hosts that share a folder have the same process numbers."""


def scratch_of(run: Run, job: Job) -> Scratch:
    """Where a process keeps what it needs for a while."""
    return Scratch(run.settings.data_dir / "scratch" / str(job.id) / run.name)


def interrupted(job: Job) -> RowcallError:
    """The work was asked to stop."""
    return Retryable(
        Code.INTERRUPTED,
        f"Job {job.number} was interrupted; what is done stays done.",
        hint=f"Finish it with: rowcall resume {job.number}",
        over_http=f"Workers go on with it; if it is paused, POST /v1/imports/{job.id}/resume.",
    )


def check_stop(run: Run, job: Job) -> None:
    """Raise when the work is to stop."""
    if run.stop.is_set():
        raise interrupted(job)


def may_pass(trouble: RowcallError, failures: int = 0) -> bool:
    """Whether it is worth while to wait; a full disk and a database that stayed away are for a person."""
    return isinstance(trouble, Retryable) and failures < _PASSING.get(trouble.code, 0)


@contextmanager
def watching(run: Run, job: Job) -> Generator[None]:
    """Meanwhile look, on a connection of its own, whether somebody wishes the work to end or its time is over."""
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(run, job, done), name="watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _watch(run: Run, job: Job, done: threading.Event) -> None:
    over = time.monotonic() + job.slice_ms / 1000 if job.slice_ms else None
    while not done.wait(_WATCHED_EVERY):  # most jobs end before
        with suppress(psycopg.Error, Retryable), run.database.connect("watch") as connection:
            while not done.is_set():
                if over and time.monotonic() > over:
                    connection.execute(query("slice_over"), {"id": job.id})
                asked = connection.execute(query("wish_of"), {"id": job.id}).fetchone()
                if asked and any(asked):
                    run.stop.set()
                    return
                done.wait(_WATCHED_EVERY)
