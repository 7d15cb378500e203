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

from rowcall.decoding import converted
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
    left_in: State | None = None
    """Where it left the job; only of undos that are listed."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows that are taken back together."""

    first: int
    last: int


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
        "which": _asked(which),
        "partial": partial,
        "came_from": job.state,
    }
    connection.execute(query("begin_undo"), given)


def begin_trial(connection: Connection[Any], job: Job, which: Wanted) -> Undo:
    """An undo that is tried: in a transaction that is undone."""
    connection.execute(query("try_undo"), {"id": job.id, "which": _asked(which), "came_from": job.state})
    return tried(connection, job.id)


def tried(connection: Connection[Any], job_id: UUID) -> Undo:
    """The undo that is tried, and how far it is."""
    (found,) = connection.cursor(row_factory=dict_row).execute(query("tried_undo"), {"id": job_id}).fetchall()
    return _undo(found)


def _asked(which: Wanted) -> Jsonb:
    return Jsonb({name: getattr(which, name) for name in _ASKED})


def under_way(connection: Connection[Any], job_id: UUID) -> Undo | None:
    """The undo that a job is in, held until the transaction ends; None when others have moved the job on."""
    found = connection.cursor(row_factory=dict_row).execute(query("undo_under_way"), {"id": job_id}).fetchone()
    return _undo(found) if found else None


def undos_of(connection: Connection[Any], job: Job) -> list[Undone]:
    """The undos of a job, the first one first."""
    found = connection.cursor(row_factory=dict_row).execute(query("undos_of"), {"id": job.id}).fetchall()
    return [_undone(connection, job, _undo(row)) for row in found]


def _undo(row: dict[str, Any]) -> Undo:
    told: dict[str, Any] = {"which": converted(row["which"], Wanted), "came_from": State(row["came_from"])}
    if left_in := row.get("left_in"):
        told["left_in"] = State(left_in)
    return Undo(**{**row, **told})


def _undone(connection: Connection[Any], job: Job, undo: Undo) -> Undone:
    results = undo.results or results_of(connection, undo)
    told = [str(job.id), job.file_sha256, undo.number, sorted(results.items())]
    digest = hashlib.sha256(msgspec.json.encode(told)).hexdigest()
    return Undone(undo=undo, **{name: value for name, value in results.items() if name != "sum"}, digest=digest)


def results_of(connection: Connection[Any], undo: Undo) -> dict[str, Any]:
    """What an undo has come to so far."""
    given = {"id": undo.job_id, "number": undo.number}
    return connection.cursor(row_factory=dict_row).execute(query("undo_results"), given).fetchone() or {}


def hold(connection: Connection[Any], job_id: UUID) -> Undo | None:
    """The undo that a job is in, for a slice of it; None when others have moved the job on."""
    found = connection.cursor(row_factory=dict_row).execute(query("hold_undo"), {"id": job_id}).fetchone()
    return _undo(found) if found else None


def slices(connection: Connection[Any], undo: Undo, most: int) -> list[Slice]:
    """What a first round has yet to come to: so many rows of a batch at once, the last ones first."""
    given = {"id": undo.job_id, "below": undo.next_row}
    return [
        Slice(max(first, last - most + 1), last)
        for first, end in connection.execute(query("batches_to_undo"), given).fetchall()
        for last in range(end, first - 1, -most)
    ]


def next_kept(connection: Connection[Any], undo: Undo, most: int) -> Slice | None:
    """What a later round comes to next: rows that were kept; None at its end."""
    given = {"id": undo.job_id, "number": undo.number, "below": undo.next_row}
    last = connection.cursor(row_factory=scalar_row).execute(query("next_kept"), given).fetchone() or 0
    return Slice(max(1, last - most + 1), last) if last > 0 else None


def hold_slice(connection: Connection[Any], undo: Undo, piece: Slice) -> None:
    """Keep others from a slice until the transaction ends."""
    connection.execute(query("hold_batches"), {"id": undo.job_id, "first": piece.first, "last": piece.last})


def record(connection: Connection[Any], undo: Undo, piece: Slice) -> None:
    """Keep what became of a slice, which is in the temporary tables."""
    given = {"id": undo.job_id, "number": undo.number, "first": piece.first, "last": piece.last}
    for name in ("reversals", "free_row_keys", "count_reverted"):
        connection.execute(query(name), given)


def record_deleted(connection: Connection[Any], undo: Undo, piece: Slice, count: int) -> None:
    """Keep that rows of a slice, which is of one batch, were created and are deleted now; they are noted already."""
    given = {"id": undo.job_id, "number": undo.number, "first": piece.first, "last": piece.last, "count": count}
    for name in ("free_deleted", "count_deleted"):
        connection.execute(query(name), given)


def go_on(connection: Connection[Any], undo: Undo, below: int) -> None:
    """Note how far the undo is: its round has been through all rows above."""
    given = {"id": undo.job_id, "number": undo.number, "round": undo.round, "next_row": below}
    connection.execute(query("go_on_below"), given)


def next_round(connection: Connection[Any], undo: Undo) -> bool:
    """Whether there is another round: rows that were kept may be free now."""
    return connection.execute(query("next_round"), {"id": undo.job_id, "number": undo.number}).rowcount == 1


def end(connection: Connection[Any], undo: Undo) -> None:
    """The undo is over."""
    results = Jsonb(results_of(connection, undo))
    connection.execute(query("end_undo"), {"id": undo.job_id, "number": undo.number, "results": results})


def asks(connection: Connection[Any], name: str, job_id: UUID) -> bool:
    """What a query of this name answers about a job."""
    return bool(connection.cursor(row_factory=scalar_row).execute(query(name), {"id": job_id}).fetchone())
