"""Removes jobs: out of sight first, then their rows in slices, at last the job itself and its file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.rows import class_row, scalar_row

from rowcall.model import ENDED, State
from rowcall.store.files.filestore import FileStore
from rowcall.store.queries import query

_PAGE = 100
_NEVER = [State.PROCESSING, State.REVERTING]
"""Unfinished work that may have changed the target is for a person to end, however long ago it stopped.

So is a job that has, and then was paused or stopped to ask: `jobs_due` looks for what it wrote.
"""
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How many days jobs are kept; None for ever."""

    ended_days: int | None
    abandoned_days: int | None
    own_days: Mapping[str, int]
    """Of importers that say so themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A job that is due to go. Its reason: ended or abandoned long ago, or its removal has begun."""

    id: UUID
    number: str
    importer: str
    state: str
    rows: int
    bytes: int
    reason: str


def due_jobs(connection: Connection[Any], policy: Policy) -> Iterator[Due]:
    """The jobs that are due, the oldest first."""
    after = _FIRST
    while page := _page(connection, policy, after=after):
        yield from page
        after = page[-1].id


def begin_removal(connection: Connection[Any], policy: Policy, job: Due) -> bool:
    """Whether the job is still due, and gone from everybody's sight now. Called by whoever has it locked."""
    if not _page(connection, policy, only=job.id):
        return False
    return connection.execute(query("begin_removal"), {"id": job.id, "state": job.state}).rowcount == 1


def _page(connection: Connection[Any], policy: Policy, *, after: UUID = _FIRST, only: UUID | None = None) -> list[Due]:
    given = {
        "importers": list(policy.own_days),
        "days": list(policy.own_days.values()),
        "ended_days": policy.ended_days,
        "abandoned_days": policy.abandoned_days,
        "ended": [*ENDED],
        "never": _NEVER,
        "after": after,
        "only": only,
        "most": _PAGE,
    }
    return connection.cursor(row_factory=class_row(Due)).execute(query("jobs_due"), given).fetchall()


def remove_rows(connection: Connection[Any], job_id: UUID, *, at_once: int) -> Iterator[int]:
    """Remove a job's rows and outcomes, each slice by itself; how many rows each had."""
    last = connection.cursor(row_factory=scalar_row).execute(query("last_row"), {"id": job_id}).fetchone() or 0
    for first in range(1, last + 1, at_once):
        given = {"id": job_id, "first": first, "last": first + at_once - 1}
        yield connection.execute(query("remove_slice"), given).rowcount


def remove_job(connection: Connection[Any], store: FileStore, job_id: UUID) -> int | None:
    """Remove a job without rows, and its file if no other job has it; the file's size if it went.

    The file goes while its row is locked, so that an upload of the same content, which locks it too, comes before or
    after: before, the row is needed again; after, the upload puts the file back.
    """
    with connection.transaction():
        found = connection.execute(query("remove_job"), {"id": job_id}).fetchone()
        return _remove_file(connection, store, found[0]) if found and found[0] else None


def _remove_file(connection: Connection[Any], store: FileStore, sha256: str) -> int | None:
    try:
        with connection.transaction():
            found = connection.execute(query("remove_file"), {"sha256": sha256}).fetchone()
    except psycopg.errors.ForeignKeyViolation:
        return None
    if found is None:
        return None
    store.remove(found[0])
    return found[1]


def lock_retention(connection: Connection[Any]) -> bool:
    """Whether this session is the one that removes jobs now."""
    return connection.execute(query("lock_retention")).fetchone() == (True,)
