"""What became of a job's rows, for whoever asks: row by row, and counted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row, scalar_row

from rowcall.model import Status
from rowcall.store.jobs import Job, JobCounts
from rowcall.store.queries import query

_PAGE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """A row as it came in, and what became of it."""

    row: int
    line: int
    status: str
    """One of `Status`, or pending."""
    issues: list[dict[str, Any]] | None
    cells: list[str | None]
    target_key: list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows of a job to give. None: no matter."""

    status: str | None = None
    code: str | None = None
    field: str | None = None
    after: int = 0
    """Only rows behind this one."""
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueCount:
    """How many rows have an issue in a field, and the first of them."""

    code: str
    field: str | None
    status: str
    count: int
    first_row: int


def results_of(connection: Connection[Any], job_id: UUID, wanted: Wanted) -> Iterator[RowResult]:
    """The rows in their order, fetched page by page: a reader may take its time, and memory doesn't grow."""
    name = "results_failed" if wanted.status == Status.FAILED else "results"
    given = {"id": job_id, "status": wanted.status, "code": wanted.code, "field": wanted.field}
    after, left = wanted.after, wanted.most
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        cursor = connection.cursor(row_factory=class_row(RowResult))
        page = cursor.execute(query(name), {**given, "after": after, "most": size}).fetchall()
        yield from page
        if len(page) < size:
            return
        after, left = page[-1].row, None if left is None else left - size


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
