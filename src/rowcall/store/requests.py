"""Jobs as requests make and list them: once for each idempotency key, page by page."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.errors import Final, Retryable, RowcallError, WrongState
from rowcall.model import Code
from rowcall.store import jobs, scopes
from rowcall.store.cursors import decoded, encoded
from rowcall.store.files.filestore import StoredFile
from rowcall.store.jobs import Job, JobConfig, Origin
from rowcall.store.queries import query


@dataclass(frozen=True, slots=True)
class JobsPage:
    """Some jobs, how many there are, and what leads to more."""

    jobs: list[Job]
    total: int
    next: str | None


def create_or_find(
    connection: Connection[Any],
    importer: str,
    file: StoredFile | None,
    file_name: str,
    config: JobConfig,
    origin: Origin,
    scope: str | None = None,
) -> tuple[Job, bool]:
    """A new job, or the one that the same request made before; and whether it is new. Called in a transaction.

    What was made before supersedes nothing again, and stands in nobody's way.
    """
    if scope is not None and (found := _made_before(connection, origin)):
        return found, False
    try:
        made = jobs.create_job(
            connection, importer, file, file_name=file_name, config=config, origin=origin, scope=scope
        )
    except WrongState:  # the scope is busy, maybe with what this request made a moment ago
        if found := _made_before(connection, origin):
            return found, False
        raise
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == scopes.INDEX:  # rows of an older job are tried again, as of now
            raise _taken(connection, importer, origin, scope or "") from None
        if origin.idempotency_key is None:
            raise
        if found := _made_before(connection, origin):
            return found, False
        raise _reused(origin.idempotency_key) from None  # by another account, whose jobs the caller may not see
    return made, True


def foresee(
    connection: Connection[Any], importer: str, organisation: UUID, scope: str | None, *, key: str | None, marks: str
) -> None:
    """Refuse a request whose key was used for another one, or whose scope a job writes to, before its file is stored.

    `marks` is as much of its fingerprint as is known. What was made before stands in nobody's way.
    """
    if key is not None and (found := _by_key(connection, organisation, key)):
        if not found[1].startswith(marks):
            raise _reused(key)
        return
    if scope is not None:
        now = scopes.holder(connection, scopes.Place(organisation=organisation, importer=importer, scope=scope))
        if now and now.is_writing:
            raise scopes.busy(now)


def _by_key(connection: Connection[Any], organisation: UUID, key: str) -> tuple[UUID, str] | None:
    return connection.execute(query("job_by_key"), {"organisation": organisation, "key": key}).fetchone()


def _made_before(connection: Connection[Any], origin: Origin) -> Job | None:
    """The job that the same request made; raises if its key was used for another one."""
    if origin.idempotency_key is None:
        return None
    found = _by_key(connection, origin.organisation, origin.idempotency_key)
    if found is None:
        return None
    if found[1] != origin.fingerprint:
        raise _reused(origin.idempotency_key)
    return jobs.get_job(connection, str(found[0]))


def _reused(key: str) -> Final:
    told = f"The Idempotency-Key {key!r} was used for another import."
    return Final(Code.KEY_REUSED, told, hint="Send the same content, or another key.")


def _taken(connection: Connection[Any], importer: str, origin: Origin, scope: str) -> RowcallError:
    place = scopes.Place(organisation=origin.organisation, importer=importer, scope=scope)
    now = scopes.holder(connection, place)
    return scopes.busy(now) if now else Retryable(Code.DATABASE_BUSY, f"Another job of {importer} was just there.")


def page_of_jobs(
    connection: Connection[Any],
    organisation: UUID,
    *,
    state: str | None,
    importer: str | None,
    number: str | None = None,
    scope: str | None = None,
    after: str | None,
    size: int,
) -> JobsPage:
    """An organisation's jobs behind a cursor, the newest first."""
    at, last = decoded("jobs", after, tuple[datetime, UUID]) if after else (None, None)
    given = {
        "organisation": organisation,
        "state": state,
        "importer": importer,
        "number": number,
        "scope": scope,
        "at": at,
        "last": last,
        "most": size,
    }
    found = jobs.select_jobs(connection, "page_of_jobs", given)
    total = next(connection.cursor(row_factory=scalar_row).execute(query("count_jobs"), given))
    more = encoded("jobs", [found[-1].created_at, found[-1].id]) if len(found) == size else None
    return JobsPage(found, total, more)


def waiting_before(connection: Connection[Any], job: Job) -> int:
    """How many jobs of the same organisation are not through, as far as the caller sees them."""
    given = {"organisation": job.organisation_id, "id": job.id}
    return connection.execute(query("waiting_before"), given).fetchall()[0][0]
