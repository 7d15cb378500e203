"""Takes back what a job wrote, slice by slice, the last rows first.

A first round goes through all rows. As long as something is taken back, what was kept is tried again in another one:
it may have waited for that. So what stays in the end doesn't depend on the slices, nor on who came first.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
from psycopg import Connection

from rowcall.engine.running import Run, check_stop
from rowcall.engine.undo.passage import Passage
from rowcall.engine.undo.possible import incomplete, what_of
from rowcall.engine.undo.reverse import AT_ONCE, Boldness, take_slice
from rowcall.engine.workers import work_together
from rowcall.errors import Final
from rowcall.model import Code, Progress, State
from rowcall.store import jobs, undos
from rowcall.store.jobs import Job
from rowcall.store.undoing.slices import Undoing, prepare
from rowcall.store.undos import Undo, Undone


def take_back(run: Run, control: Connection[Any], job: Job) -> Job:
    """REVERTING: take back slice after slice, then end."""
    with control.transaction():
        undo = undos.under_way(control, job.id)
    if undo is None:
        return jobs.get_job(control, str(job.id))
    try:
        what = what_of(control, job, run.importer, undo.which)
    except Final as error:
        if error.code != Code.UNDO_NOT_POSSIBLE:
            raise
        return _given_up(control, job, undo, error)
    prepare(control)
    if run.importer.atomic and not undo.partial:
        return _all_or_nothing(run, control, job, undo, what)
    if undo.round == 1:
        _first_round(run, control, job, undo, what)
    _later_rounds(run, control, job, what)
    with control.transaction():
        return end_undo(control, job)


def _first_round(run: Run, control: Connection[Any], job: Job, undo: Undo, what: Undoing) -> None:
    """Go through all rows, by several workers."""
    passage = Passage(undos.slices(control, undo, _most(run)))
    # of rows that refer to each other, the last ones go first
    workers = 1 if what.refers_to_itself else min(run.settings.workers, len(passage.waiting))

    def begin(connection: Connection[Any]) -> Callable[[], bool]:
        prepare(connection)
        boldness = Boldness()
        return lambda: _take_next(connection, what, passage, boldness)

    for trouble in work_together(run, job, begin, partial(_tell, run, control, job), workers=workers):
        raise trouble
    check_stop(run, job)


def _take_next(connection: Connection[Any], what: Undoing, passage: Passage, boldness: Boldness) -> bool:
    """Take back the next slice; false when none is left, or others have moved the job on."""
    with passage.taken() as piece:
        if piece is None:
            return False
        with connection.transaction():
            undo = undos.hold(connection, what.job_id)
            if undo is None or undo.round > 1:
                return False
            take_slice(connection, what, undo, piece, boldness)
            undos.go_on(connection, undo, passage.below(piece))
    return True


def _later_rounds(run: Run, control: Connection[Any], job: Job, what: Undoing) -> None:
    """Try again what was kept, as long as that takes something back."""
    while _try_kept(control, what, _most(run)):
        _tell(run, control, job)
        if run.yields():
            run.stop.set()
        check_stop(run, job)


def _try_kept(connection: Connection[Any], what: Undoing, most: int) -> bool:
    with connection.transaction():
        undo = undos.hold(connection, what.job_id)
        if undo is None:
            return False
        piece = undos.next_kept(connection, undo, most) if undo.round > 1 else None
        if piece is None:
            return undos.next_round(connection, undo)
        take_slice(connection, what, undo, piece, Boldness())
        undos.go_on(connection, undo, piece.first - 1)
        return True


def _most(run: Run) -> int:
    return min(AT_ONCE, run.settings.batch_rows_max)


def _tell(run: Run, control: Connection[Any], job: Job) -> None:
    counts = jobs.counts_of(control, job)
    total = counts.created + counts.updated + counts.reverted
    run.tell(Progress(phase="undoing", rows=counts.reverted, done=counts.reverted, total=total))


def _all_or_nothing(run: Run, control: Connection[Any], job: Job, undo: Undo, what: Undoing) -> Job:
    kept = 0
    with control.transaction():
        passage, boldness = Passage(undos.slices(control, undo, _most(run))), Boldness()
        while _take_next(control, what, passage, boldness):
            _tell(run, control, job)
            check_stop(run, job)
        _later_rounds(run, control, job, what)
        kept = undos.undos_of(control, job)[-1].kept
        if not kept:
            return end_undo(control, job)
        raise psycopg.Rollback
    return _given_up(control, job, undo, incomplete(run.importer, kept))


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
