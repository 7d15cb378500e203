"""What became of jobs, counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row, scalar_row

from rowcall.store.jobs import Job, JobCounts
from rowcall.store.queries import query


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueCount:
    """How many rows have an issue in a field, and the first of them."""

    code: str
    field: str | None
    status: str
    count: int
    first_row: int


def count_issues(connection: Connection[Any], job_id: UUID) -> list[IssueCount]:
    """What was wrong with the rows of a job, the most frequent first."""
    return (
        connection.cursor(row_factory=class_row(IssueCount)).execute(query("issue_counts"), {"id": job_id}).fetchall()
    )


def last_sign_of(connection: Connection[Any], job: Job) -> datetime:
    """When something last happened with a job."""
    cursor = connection.cursor(row_factory=scalar_row)
    return cursor.execute(query("last_sign"), {"id": job.id}).fetchone() or job.created_at


def counts_of_jobs(connection: Connection[Any], jobs: Sequence[Job]) -> dict[UUID, JobCounts]:
    """What happened to the rows of several jobs so far."""
    given = {"ids": [job.id for job in jobs]}
    rows = connection.cursor(row_factory=dict_row).execute(query("counts_of_jobs"), given)
    counted = {row.pop("job_id"): JobCounts(**row) for row in rows}
    return {job.id: counted.get(job.id, JobCounts()) for job in jobs}


def attempts_of(connection: Connection[Any], job_id: UUID, row: int) -> list[dict[str, Any]]:
    """What became of a row each time that it was tried, the latest first."""
    given = {"id": job_id, "number": row}
    found = connection.cursor(row_factory=dict_row).execute(query("attempts_of"), given).fetchall()
    return [{**attempt, "issues": attempt["issues"] or []} for attempt in found]


def events_of(connection: Connection[Any], job_id: UUID, after: int) -> list[dict[str, Any]]:
    """The moves that a job made behind one, the oldest first."""
    given = {"id": job_id, "after": after}
    return connection.cursor(row_factory=dict_row).execute(query("events_of"), given).fetchall()


def last_events(connection: Connection[Any], ids: Sequence[UUID]) -> dict[UUID, int]:
    """The number of each job's latest move."""
    return dict(connection.execute(query("last_events"), {"ids": list(ids)}).fetchall())
