"""What an undo would do now: told by queries where they tell all, else by doing it in a transaction that is undone."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg import Connection

from rowcall.engine.undo.possible import incomplete, none_fits, nothing_to_undo, require_possible, what_of
from rowcall.engine.undo.reverse import take_all
from rowcall.errors import Final
from rowcall.importer import Importer
from rowcall.model import Code
from rowcall.store import jobs, undos
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job
from rowcall.store.undoing.blocking import block, tell_blocked
from rowcall.store.undoing.doubting import may_be_refused
from rowcall.store.undoing.finding import find, follow_chains, one_fits
from rowcall.store.undoing.slices import Undoing, prepare
from rowcall.store.undoing.telling import counted, dependents, samples, take_results
from rowcall.store.undoing.writing import come_out_otherwise, differing
from rowcall.store.undos import Slice

_SAMPLES = 20
_MOST_DEADLOCKS = 5
_KEPT = ("changed", "blocked", "refused")
_EVERYTHING = Wanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPreview:
    """What an undo would do now, by the same look at the target that the undo itself takes."""

    to_delete: int = 0
    to_restore: int = 0
    fields: dict[str, int] = field(default_factory=dict[str, int])
    """The columns that would be restored, with in how many rows."""
    not_restored: dict[str, int] = field(default_factory=dict[str, int])
    """The columns that would not be as they were in rows that are restored, as a trigger writes them."""
    changed: int = 0
    blocked: int = 0
    refused: int = 0
    """Rows that the database would refuse to change."""
    gone: int = 0
    reverted: int = 0
    """Rows that were taken back already."""
    blocked_by: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    samples: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Some of the rows that would be kept, as they were and as they are."""
    refusal: str | None = None
    """Why it would not be done."""
    until: datetime | None = None
    """When the job goes, and what it knows of the target with it."""

    @property
    def reversible(self) -> int:
        return self.to_delete + self.to_restore

    @property
    def kept(self) -> int:
        return self.changed + self.blocked + self.refused


def preview_undo(
    connection: Connection[Any],
    job: Job,
    importer: type[Importer],
    which: Wanted = _EVERYTHING,
    *,
    partial: bool = False,
    retention_days: int | None = None,
) -> UndoPreview:
    """What an undo would do now. Nothing stays of it; rows are locked only where it has to be tried."""
    reverted = jobs.counts_of(connection, job).reverted
    days = importer.retention_days or retention_days
    until = job.completed_at + timedelta(days=days) if job.completed_at and days else None
    try:
        require_possible(importer)
        if not undos.asks(connection, "is_to_undo", job.id):
            raise nothing_to_undo(job)
        what = what_of(connection, job, importer, which)
        if not one_fits(connection, job.id, which):
            raise none_fits()
    except Final as error:
        if error.code not in (Code.UNDO_NOT_POSSIBLE, Code.BAD_REQUEST):
            raise
        return UndoPreview(reverted=reverted, refusal=error.message, until=until)
    prepare(connection)
    seen, in_doubt = _looked(connection, job, what)
    if in_doubt:
        seen = _tried_after_all(connection, job, what, seen)
    in_part = importer.atomic and not partial and seen.kept
    refusal = incomplete(importer, seen.kept).message if in_part else None
    return replace(seen, reverted=reverted, refusal=refusal, until=until)


def _looked(connection: Connection[Any], job: Job, what: Undoing) -> tuple[UndoPreview, bool]:
    """What queries tell, and whether PostgreSQL may say otherwise."""
    with connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        find(connection, what, _all_of(job), lock=False)
        follow_chains(connection)
        block(connection, what)
        tell_blocked(connection, what)
        found: dict[tuple[str | None, bool], int] = {
            (result, created): count for result, created, count in counted(connection)
        }
        changed, blocked, gone = (
            found.get((result, True), 0) + found.get((result, False), 0) for result in ("changed", "blocked", "gone")
        )
        seen = UndoPreview(
            to_delete=found.get((None, True), 0),
            to_restore=found.get((None, False), 0),
            fields=differing(connection, what),
            changed=changed,
            blocked=blocked,
            gone=gone,
            blocked_by=dependents(connection),
            samples=_samples(connection, what),
        )
        return seen, may_be_refused(connection, what, seen.fields, deletes=seen.to_delete > 0)


def _tried_after_all(connection: Connection[Any], job: Job, what: Undoing, seen: UndoPreview) -> UndoPreview:
    """The same, again where it meets others who write the rows in another order: nothing is lost by that."""
    for _ in range(_MOST_DEADLOCKS):
        with suppress(psycopg.errors.DeadlockDetected):
            return _tried(connection, job, what, seen)
    return _tried(connection, job, what, seen)


def _tried(connection: Connection[Any], job: Job, what: Undoing, seen: UndoPreview) -> UndoPreview:
    """What it comes to when it is done, in a transaction that is undone."""
    with connection.transaction(force_rollback=True):
        undo = undos.begin_trial(connection, job, what.which)
        take_all(connection, what, undo)
        results = undos.results_of(connection, undo)
        find(connection, what, _all_of(job), lock=False, kept_by=undo.number)
        follow_chains(connection)
        stay = differing(connection, what)  # what was refused is as it was
        otherwise = come_out_otherwise(connection, what, undo.number)
        take_results(connection, what)
        fields = {name: count - stay.get(name, 0) - otherwise.get(name, 0) for name, count in seen.fields.items()}
        return UndoPreview(
            to_delete=results["deleted"],
            to_restore=results["restored"],
            fields={name: count for name, count in fields.items() if count > 0},
            not_restored=otherwise,
            **{name: results[name] for name in ("changed", "blocked", "refused", "gone", "blocked_by")},
            samples=_samples(connection, what),
        )


def _all_of(job: Job) -> Slice:
    return Slice(1, job.row_count or 2**62)


def _samples(connection: Connection[Any], what: Undoing) -> list[dict[str, Any]]:
    return [row for result in _KEPT for row in samples(connection, what, result, _SAMPLES)]
