"""Undos of jobs: what was asked for, how far it is, what it came to."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from psycopg import Connection
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from rowcall.model import State
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job
from rowcall.store.queries import query

_ASKED = ("statuses", "code", "field", "text", "rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """What was asked to be taken back, and how far that is."""

    job_id: UUID
    number: int
    account: str
    request_id: str | None
    which: Wanted
    partial: bool
    """Of a job that is all or nothing: also if some rows have to stay."""
    came_from: State
    """Where the job goes back to if something of it is left."""
    round: int
    next_row: int
    standing: int
    created_at: datetime
    completed_at: datetime | None
    results: dict[str, Any] | None
    """What it came to, when it is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """An undo, and what it came to."""

    undo: Undo
    deleted: int
    restored: int
    changed: int
    blocked: int
    refused: int
    gone: int
    blocked_by: list[dict[str, Any]]
    """The foreign keys that stood in the way, with how many rows each kept."""
    digest: str
    """Of all that it did: file, job, and each row with its result."""

    @property
    def kept(self) -> int:
        return self.changed + self.blocked + self.refused


def begin(
    connection: Connection[Any], job: Job, which: Wanted, *, partial: bool, account: str, request_id: str | None = None
) -> None:
    """Note an undo, to be done by whoever works on the job."""
    given = {
        "id": job.id,
        "account": account,
        "request_id": request_id,
        "which": Jsonb({name: getattr(which, name) for name in _ASKED}),
        "partial": partial,
        "came_from": job.state,
    }
    connection.execute(query("begin_undo"), given)


def under_way(connection: Connection[Any], job_id: UUID) -> Undo | None:
    """The undo that a job is in, held until the transaction ends; None when others have moved the job on."""
    found = connection.cursor(row_factory=dict_row).execute(query("undo_under_way"), {"id": job_id}).fetchone()
    return _undo(found) if found else None


def undos_of(connection: Connection[Any], job: Job) -> list[Undone]:
    """The undos of a job, the first one first."""
    found = connection.cursor(row_factory=dict_row).execute(query("undos_of"), {"id": job.id}).fetchall()
    return [_undone(connection, job, _undo(row)) for row in found]


def _undo(row: dict[str, Any]) -> Undo:
    told: dict[str, Any] = {"which": msgspec.convert(row["which"], Wanted), "came_from": State(row["came_from"])}
    return Undo(**{**row, **told})


def _undone(connection: Connection[Any], job: Job, undo: Undo) -> Undone:
    results = undo.results or _results(connection, undo)
    told = [str(job.id), job.file_sha256, undo.number, sorted(results.items())]
    digest = hashlib.sha256(msgspec.json.encode(told)).hexdigest()
    return Undone(undo=undo, **{name: value for name, value in results.items() if name != "sum"}, digest=digest)


def _results(connection: Connection[Any], undo: Undo) -> dict[str, Any]:
    given = {"id": undo.job_id, "number": undo.number}
    return connection.cursor(row_factory=dict_row).execute(query("undo_results"), given).fetchone() or {}


def record(connection: Connection[Any], undo: Undo, first: int, last: int) -> None:
    """Keep what became of a slice, which is in the temporary tables, and how far the undo is."""
    given = {"id": undo.job_id, "number": undo.number, "first": first, "last": last, "next_row": first - 1}
    for name in ("reversals", "free_row_keys", "count_reverted", "go_on_below"):
        connection.execute(query(name), given)


def next_slice(connection: Connection[Any], undo: Undo, most: int) -> tuple[int, int] | None:
    """The first and last row of what comes next; None at the end of a round. Last rows go first."""
    last = undo.next_row
    if undo.round > 1:
        given = {"id": undo.job_id, "number": undo.number, "below": last}
        last = connection.cursor(row_factory=scalar_row).execute(query("next_kept"), given).fetchone() or 0
    return (max(1, last - most + 1), last) if last > 0 else None


def next_round(connection: Connection[Any], undo: Undo) -> bool:
    """Whether there is another round: rows that were kept may be free now."""
    return connection.execute(query("next_round"), {"id": undo.job_id, "number": undo.number}).rowcount == 1


def end(connection: Connection[Any], undo: Undo) -> None:
    """The undo is over."""
    results = Jsonb(_results(connection, undo))
    connection.execute(query("end_undo"), {"id": undo.job_id, "number": undo.number, "results": results})


def asks(connection: Connection[Any], name: str, job_id: UUID) -> bool:
    """What a query of this name answers about a job."""
    return bool(connection.cursor(row_factory=scalar_row).execute(query(name), {"id": job_id}).fetchone())
