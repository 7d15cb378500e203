"""Jobs as requests make and list them: once for each idempotency key, page by page."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store import jobs
from rowcall.store.cursors import decoded, encoded
from rowcall.store.files import StoredFile
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
) -> tuple[Job, bool]:
    """A new job, or the one that the same request made before; and whether it is new. Called in a transaction."""
    try:
        return jobs.create_job(connection, importer, file, file_name=file_name, config=config, origin=origin), True
    except psycopg.errors.UniqueViolation:
        given = {"organisation": origin.organisation, "key": origin.idempotency_key}
        found = connection.execute(query("job_by_key"), given).fetchone()
        if found is None and origin.idempotency_key is None:
            raise
        job_id, fingerprint = found or (None, None)  # none: another account's, which the caller may not see
        if fingerprint != origin.fingerprint:
            raise Final(
                Code.KEY_REUSED,
                f"The Idempotency-Key {origin.idempotency_key!r} was used for another import.",
                hint="Send the same content, or another key.",
            ) from None
        return jobs.get_job(connection, str(job_id)), False


def page_of_jobs(
    connection: Connection[Any],
    organisation: UUID,
    *,
    state: str | None,
    importer: str | None,
    number: str | None = None,
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
