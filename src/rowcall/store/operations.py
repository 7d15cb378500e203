"""What an operator wants to know of all jobs and processes together."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.model import ENDED
from rowcall.store.queries import query


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How much there is, waits and works."""

    jobs: dict[str, int] = field(default_factory=dict[str, int])
    """By state."""
    exports: dict[str, int] = field(default_factory=dict[str, int])
    """In the background, by state."""
    queue: dict[str, int] = field(default_factory=dict[str, int])
    """Nudges: todo, doing."""
    oldest_seconds: float = 0.0
    """Since the oldest file came that nobody has begun."""
    pending_rows: int = 0
    workers: int = 0


def standing_of(connection: Connection[Any]) -> Standing:
    """How things stand."""
    scalar = connection.cursor(row_factory=scalar_row)
    return Standing(
        jobs=dict(connection.execute(query("jobs_by_state")).fetchall()),
        exports=dict(connection.execute(query("exports_by_state")).fetchall()),
        queue={"todo": 0, "doing": 0, **dict(connection.execute(query("queue_depth")).fetchall())},
        oldest_seconds=scalar.execute(query("oldest_waiting")).fetchone() or 0.0,
        pending_rows=scalar.execute(query("rows_pending"), {"ended": [*ENDED]}).fetchone() or 0,
        workers=workers_seen(connection)[0],
    )


def workers_seen(connection: Connection[Any]) -> tuple[int, float | None]:
    """Workers seen within a minute, and the seconds since any was seen. Procrastinate keeps their heartbeats."""
    if not has_queue(connection):
        return 0, None
    count, seconds = connection.execute(query("workers_seen")).fetchone() or (0, None)
    return count, seconds


def has_queue(connection: Connection[Any]) -> bool:
    """Whether a service was ever started on this database."""
    return connection.execute(query("queue_exists")).fetchone() == (True,)


def count_not_found(connection: Connection[Any], job_id: UUID) -> int:
    """Rows of a job that failed because what they name isn't there."""
    return connection.cursor(row_factory=scalar_row).execute(query("count_not_found"), {"id": job_id}).fetchone() or 0
