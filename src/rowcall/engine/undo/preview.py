"""What an undo would do now."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import Connection

from rowcall.engine.undo.possible import incomplete, nothing_to_undo, require_possible, what_of
from rowcall.errors import Final
from rowcall.importer import Importer
from rowcall.model import Code
from rowcall.store import jobs, undos
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job
from rowcall.store.undoing.blocking import block
from rowcall.store.undoing.finding import find, follow_chains
from rowcall.store.undoing.slices import prepare
from rowcall.store.undoing.telling import counted, dependents, samples
from rowcall.store.undoing.writing import differing
from rowcall.store.undos import Slice

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
        what = what_of(connection, job, importer, which)
    except Final as error:
        if error.code != Code.UNDO_NOT_POSSIBLE:
            raise
        return UndoPreview(
            to_delete=0, to_restore=0, fields={}, changed=0, blocked=0, gone=0, reverted=reverted, blocked_by=[],
            samples=[], refusal=error.message, until=until,
        )  # fmt: skip
    prepare(connection)
    with connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        find(connection, what, Slice(1, job.row_count or 2**62), lock=False)
        follow_chains(connection)
        block(connection, what)
        found: dict[tuple[str | None, bool], int] = {
            (result, created): count for result, created, count in counted(connection)
        }
        kept = {
            result: found.get((result, True), 0) + found.get((result, False), 0) for result in ("changed", "blocked")
        }
        in_part = importer.atomic and not partial and any(kept.values())
        return UndoPreview(
            to_delete=found.get((None, True), 0),
            to_restore=found.get((None, False), 0),
            fields=differing(connection, what),
            **kept,
            gone=found.get(("gone", True), 0) + found.get(("gone", False), 0),
            reverted=reverted,
            blocked_by=dependents(connection),
            samples=[row for result in kept for row in samples(connection, what, result, _SAMPLES)],
            refusal=incomplete(importer, sum(kept.values())).message if in_part else None,
            until=until,
        )
