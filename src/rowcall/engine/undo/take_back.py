"""Takes back what a job wrote, slice by slice, the last rows first.

As long as something is taken back, what was kept is tried again: it may have waited for that.
"""

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import Connection

from rowcall.engine.undo.possible import incomplete, what_of
from rowcall.engine.undo.reverse import take_slice
from rowcall.errors import Final
from rowcall.importer import Importer
from rowcall.model import Code, State
from rowcall.store import jobs, undos
from rowcall.store.jobs import Job
from rowcall.store.undoing.slices import prepare
from rowcall.store.undos import Undo, Undone

AT_ONCE = 5_000
"""The most rows of a slice."""


def take_back(
    connection: Connection[Any],
    job: Job,
    importer: type[Importer],
    check: Callable[[], None],
    tell: Callable[[], None],
    *,
    most: int = AT_ONCE,
) -> Job:
    """REVERTING: take back slice after slice of so many rows, then end. `check` may raise in between."""
    with connection.transaction():
        undo = undos.under_way(connection, job.id)
    if undo is None:
        return jobs.get_job(connection, str(job.id))
    try:
        what = what_of(connection, job, importer, undo.which)
    except Final as error:
        if error.code != Code.UNDO_NOT_POSSIBLE:
            raise
        return _given_up(connection, job, undo, error)
    prepare(connection)

    def step() -> bool:
        check()
        tell()
        return take_slice(connection, what, most)

    if importer.atomic and not undo.partial:
        return _all_or_nothing(connection, job, importer, undo, step)
    while step():
        pass
    with connection.transaction():
        return end_undo(connection, job)


def _all_or_nothing(
    connection: Connection[Any], job: Job, importer: type[Importer], undo: Undo, step: Callable[[], bool]
) -> Job:
    kept = 0
    with connection.transaction():
        while step():
            pass
        done = undos.undos_of(connection, job)[-1]
        kept = done.kept
        if not kept:
            return end_undo(connection, job)
        raise psycopg.Rollback
    return _given_up(connection, job, undo, incomplete(importer, kept))


def _given_up(connection: Connection[Any], job: Job, undo: Undo, why: Final) -> Job:
    """The job where it was before, with the reason why it is not taken back."""
    with connection.transaction():
        undos.end(connection, undo)
        return jobs.move(connection, job, undo.came_from, error=why)


def end_undo(connection: Connection[Any], job: Job) -> Job:
    """The job when its undo is over: REVERTED if nothing of it is left, else where it came from. In a transaction."""
    undo = undos.under_way(connection, job.id)
    if undo is None:
        return jobs.get_job(connection, str(job.id))
    undos.end(connection, undo)
    is_left = undos.asks(connection, "what_is_left", job.id)
    return jobs.move(connection, job, undo.came_from if is_left else State.REVERTED)


def undo_of(connection: Connection[Any], job: Job, number: int | None = None) -> Undone:
    """An undo of a job, the latest unless another is named."""
    found = [done for done in undos.undos_of(connection, job) if number in (None, done.undo.number)]
    if not found:
        told = f"Job {job.number} was not taken back{f' {number} times' if number else ''}."
        raise Final(Code.UNDO_NOT_FOUND, told)
    return found[-1]
