"""The workers of one process: threads with a connection each, that do piece after piece until none is left."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import Connection

from rowcall.engine.running import MOST_FAILURES, Run, may_pass
from rowcall.errors import Final, Retryable, RowcallError
from rowcall.model import Code
from rowcall.store.db import translated
from rowcall.store.jobs import Job

_TOLD_EVERY = 0.25
Begin = Callable[[Connection[Any]], Callable[[], bool]]
"""Makes a connection ready; what comes of it does the next piece and says whether there was one."""


def work_together(run: Run, job: Job, begin: Begin, tell: Callable[[], None], *, workers: int) -> list[BaseException]:
    """Have workers do pieces until none is left or the work is to stop; what stopped them, if anything did."""
    troubles: list[BaseException] = []
    halt = threading.Event()

    def work() -> None:
        try:
            _worker(run, job, begin, halt)
        except BaseException as error:
            troubles.append(error)
            halt.set()

    threads = [threading.Thread(target=work, name=f"worker-{n}") for n in range(workers)]
    for thread in threads:
        thread.start()
    try:
        while alive := next((thread for thread in threads if thread.is_alive()), None):
            alive.join(_TOLD_EVERY)
            tell()
            if run.yields():
                run.stop.set()
            if run.stop.is_set():
                halt.set()
    finally:
        halt.set()
        for thread in threads:
            thread.join()
    return troubles


def _worker(run: Run, job: Job, begin: Begin, halt: threading.Event) -> None:
    """Do pieces until none is left. A deadlock, a piece that was too slow: it is tried again.

    When the connection is lost, all of the process may have been cut off, and another have the job by now.
    """
    failures = 0
    while not halt.is_set():
        try:
            with run.database.reconnect("worker") as connection:
                next_piece = begin(connection)
                while not halt.is_set():
                    if not next_piece():
                        return
                    failures = 0
        except (psycopg.Error, Retryable) as error:
            failures += 1
            trouble = translated(error) if isinstance(error, psycopg.Error) else error
            if not may_pass(trouble) or trouble.code == Code.DATABASE_GONE:
                raise trouble from error
            if not may_pass(trouble, failures):
                raise _given_up(job, trouble) from error
            halt.wait(min(2.0, 0.02 * 2**failures))


def _given_up(job: Job, trouble: RowcallError) -> Final:
    """It was tried often enough: whoever called us need not try again, a person may."""
    message = f"Given up after {MOST_FAILURES} attempts: {trouble.message}"
    hint, over_http = (f"When that is mended, go on with: {how}" for how in _ways_on(job))
    return Final(trouble.code, message, hint=hint, over_http=over_http)


def _ways_on(job: Job) -> tuple[str, str]:
    """How a job is resumed: on the command line, and over HTTP."""
    return f"rowcall resume {job.number}", f"POST /v1/imports/{job.id}/resume"
