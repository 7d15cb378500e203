"""Takes back what a job wrote: created rows are deleted, updated ones restored, versions removed.

Slice by slice, the last rows first, each with its record in one transaction. A row that was written since by somebody
else stays as it is, and so does one that others refer to or that the database refuses to change; it is noted why. As
long as something is taken back, what was kept is tried again: it may have waited for that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.sql import SQL

from rowcall.engine.refusals import is_refusal, issue_of_undo
from rowcall.errors import Final
from rowcall.importer import Importer, ItemImporter, WholeFileImporter
from rowcall.model import Code, State
from rowcall.store import jobs, undoing, undos
from rowcall.store.copying import jsonb_text
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job
from rowcall.store.referrers import referrers_of
from rowcall.store.targets import describe
from rowcall.store.trial import try_in_halves
from rowcall.store.undoing import Undoing
from rowcall.store.undos import Undo, Undone
from rowcall.store.writing import Dropped
from rowcall.words import counted

AT_ONCE = 5_000
"""The most rows of a slice."""
_SAMPLES = 20
_EVERYTHING = Wanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPreview:
    """What an undo would do now, by the same look at the target that the undo itself takes."""

    to_delete: int
    to_restore: int
    fields: dict[str, int]
    """The columns that would be restored, with in how many rows."""
    changed: int
    blocked: int
    gone: int
    reverted: int
    """Rows that were taken back already."""
    blocked_by: list[dict[str, Any]]
    samples: list[dict[str, Any]]
    """Some of the rows that would be kept, as they were and as they are."""
    refusal: str | None
    """Why it would not be done."""
    until: datetime | None
    """When the job goes, and what it knows of the target with it."""

    @property
    def reversible(self) -> int:
        return self.to_delete + self.to_restore


# ----------------------------------------------------------------------------------------------- whether it can be done


def why_not(importer: type[Importer]) -> str | None:
    """Why nothing that an importer did can be taken back; None if it can."""
    if importer.undo is not True:
        return importer.undo or f"{importer.name} doesn't let its imports be taken back."
    if issubclass(importer, WholeFileImporter | ItemImporter):
        return f"{importer.name} processes rows by its own code: Rowcall doesn't know what that changed."
    return None


def require_possible(importer: type[Importer]) -> None:
    """Refuse what can't be taken back for what the importer is."""
    if why := why_not(importer):
        raise Final(Code.UNDO_NOT_POSSIBLE, why)


def require_stamps(connection: Connection[Any], job: Job) -> None:
    """Refuse a job of which it can't be told any more who wrote its rows last."""
    told = None
    if undos.asks(connection, "stamps_lacking", job.id):
        told = f"Job {job.number} was imported before Rowcall kept who wrote a row last: it can't be told."
    elif undos.asks(connection, "stamps_off", job.id):
        told = f"The database was restored from a dump since job {job.number}: who wrote a row last can't be told."
    if told:
        raise Final(Code.UNDO_NOT_POSSIBLE, told, hint="Import a file that says what the rows should be.")


def _what(connection: Connection[Any], job: Job, importer: type[Importer], which: Wanted) -> Undoing:
    require_possible(importer)
    target = describe(connection, importer.target)
    if not target.primary_key or target.kind == "f":
        lacking = "is a foreign table" if target.kind == "f" else "has no primary key"
        told = f"{importer.target} {lacking}: which row became which of its rows is not known."
        raise Final(Code.UNDO_NOT_POSSIBLE, told)
    require_stamps(connection, job)
    return Undoing(job_id=job.id, target=target, referrers=referrers_of(connection, target), which=which)


# --------------------------------------------------------------------------------------------------------------- before


def preview_undo(
    connection: Connection[Any],
    job: Job,
    importer: type[Importer],
    which: Wanted = _EVERYTHING,
    *,
    partial: bool = False,
    retention_days: int | None = None,
) -> UndoPreview:
    """What an undo would do now. Nothing is locked, and nothing stays."""
    reverted = jobs.counts_of(connection, job).reverted
    days = importer.retention_days or retention_days
    until = job.completed_at + timedelta(days=days) if job.completed_at and days else None
    try:
        require_possible(importer)
        if not undos.asks(connection, "is_to_undo", job.id):
            raise nothing_to_undo(job)
        what = _what(connection, job, importer, which)
    except Final as error:
        if error.code != Code.UNDO_NOT_POSSIBLE:
            raise
        return UndoPreview(
            to_delete=0, to_restore=0, fields={}, changed=0, blocked=0, gone=0, reverted=reverted, blocked_by=[],
            samples=[], refusal=error.message, until=until,
        )  # fmt: skip
    undoing.prepare(connection)
    with connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        undoing.find(connection, what, 1, job.row_count or 2**62, lock=False)
        undoing.follow_chains(connection)
        undoing.block(connection, what)
        found: dict[tuple[str | None, bool], int] = {
            (result, created): count for result, created, count in undoing.counted(connection)
        }
        kept = {
            result: found.get((result, True), 0) + found.get((result, False), 0) for result in ("changed", "blocked")
        }
        incomplete = importer.atomic and not partial and any(kept.values())
        return UndoPreview(
            to_delete=found.get((None, True), 0),
            to_restore=found.get((None, False), 0),
            fields=undoing.differing(connection, what),
            **kept,
            gone=found.get(("gone", True), 0) + found.get(("gone", False), 0),
            reverted=reverted,
            blocked_by=undoing.dependents(connection),
            samples=[row for result in kept for row in undoing.samples(connection, what, result, _SAMPLES)],
            refusal=_incomplete(importer, sum(kept.values())).message if incomplete else None,
            until=until,
        )


def _incomplete(importer: type[Importer], kept: int) -> Final:
    stay = counted(kept, "row")
    told = f"{importer.name} is imported as a whole and taken back as a whole, and {stay} would have to stay."
    return Final(
        Code.UNDO_INCOMPLETE, told, hint="Look at the preview; ask for a partial undo to take back the others."
    )


def undo_of(connection: Connection[Any], job: Job, number: int | None = None) -> Undone:
    """An undo of a job, the latest unless another is named."""
    found = [done for done in undos.undos_of(connection, job) if number in (None, done.undo.number)]
    if not found:
        told = f"Job {job.number} was not taken back{f' {number} times' if number else ''}."
        raise Final(Code.UNDO_NOT_FOUND, told)
    return found[-1]


def nothing_to_undo(job: Job) -> Final:
    """What is said where a job has nothing that could be taken back."""
    return Final(Code.UNDO_NOT_POSSIBLE, f"Job {job.number} has written no row that is not taken back already.")


# ------------------------------------------------------------------------------------------------------------ the work


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
        what = _what(connection, job, importer, undo.which)
    except Final as error:
        if error.code != Code.UNDO_NOT_POSSIBLE:
            raise
        return _given_up(connection, job, undo, error)
    undoing.prepare(connection)

    def step() -> bool:
        check()
        tell()
        return _step(connection, what, most)

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
    return _given_up(connection, job, undo, _incomplete(importer, kept))


def _given_up(connection: Connection[Any], job: Job, undo: Undo, why: Final) -> Job:
    """The job where it was before, with the reason why it is not taken back."""
    with connection.transaction():
        undos.end(connection, undo)
        return jobs.move(connection, job, undo.came_from, error=why)


def _step(connection: Connection[Any], what: Undoing, most: int) -> bool:
    """Take back the next slice; false when nothing is left to try, or others have moved the job on."""
    with connection.transaction():
        undo = undos.under_way(connection, what.job_id)
        if undo is None:
            return False
        piece = undos.next_slice(connection, undo, most)
        if piece is None:
            return undos.next_round(connection, undo)
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        kept_by = undo.number if undo.round > 1 else None
        undoing.find(connection, what, *piece, lock=True, kept_by=kept_by)
        undoing.block(connection, what)
        _reverse(connection, what)
        undos.record(connection, undo, *piece)
        return True


def _reverse(connection: Connection[Any], what: Undoing) -> None:
    """Take back what can be taken back of the rows that were found; note why the others can't."""
    numbers = undoing.left(connection)
    if not numbers:
        return
    columns = list(undoing.differing(connection, what))
    try:
        with connection.transaction():
            for statement in undoing.statements(what, columns, SQL("")):
                connection.execute(statement)
            if undoing.count_done(connection) < len(numbers):
                raise Dropped
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        tried = try_in_halves(connection, undoing.attempt(what, columns), numbers)
        issues = {row: issue_of_undo(refused, what.target.name) for row, refused in tried.refused.items()}
        undoing.refuse(connection, {row: jsonb_text(issue) for row, issue in issues.items()})


def end_undo(connection: Connection[Any], job: Job) -> Job:
    """The job when its undo is over: REVERTED if nothing of it is left, else where it came from. In a transaction."""
    undo = undos.under_way(connection, job.id)
    if undo is None:
        return jobs.get_job(connection, str(job.id))
    undos.end(connection, undo)
    is_left = undos.asks(connection, "what_is_left", job.id)
    return jobs.move(connection, job, undo.came_from if is_left else State.REVERTED)
