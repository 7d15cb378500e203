"""What the check of a job's fingerprint found, and who has seen it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from rowcall.decoding import converted
from rowcall.store.queries import query

Verdict = Literal["pass", "warn", "abort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row of the file whose key is somebody else's in the target."""

    row: int
    line: int | None
    key: list[str]
    field: str
    found: str | None
    expected: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintCheck:
    """What a sample of a job's rows told."""

    verdict: Verdict
    note: str
    """Why, in words."""
    sampled: int
    matched: int
    """Rows that could be compared with the target's row of the same key."""
    mismatched: int
    """Those of them that are about something else."""
    warn: float
    abort: float
    findings: Sequence[Finding]
    checked_at: datetime | None = None
    acknowledged_by: str | None = None
    acknowledged_at: datetime | None = None


def keep_check(connection: Connection[Any], job_id: UUID, check: FingerprintCheck) -> None:
    """Keep what was found, in the place of what was found before."""
    told = msgspec.to_builtins(check)
    given = {**told, "id": job_id, "findings": Jsonb(told["findings"])}
    connection.execute(query("keep_fingerprint"), given)


def check_of(connection: Connection[Any], job_id: UUID) -> FingerprintCheck | None:
    """What was found last, if it was looked."""
    found = connection.cursor(row_factory=dict_row).execute(query("fingerprint_of"), {"id": job_id}).fetchone()
    return converted(found, FingerprintCheck) if found else None


def forget_check(connection: Connection[Any], job_id: UUID) -> None:
    """The file is read in another way now: what was found, and seen, says nothing any more."""
    connection.execute(query("forget_fingerprint"), {"id": job_id})


def note_acknowledged(connection: Connection[Any], job_id: UUID, who: str) -> None:
    """Somebody has seen what was found, and lets the job go on."""
    connection.execute(query("acknowledge_fingerprint"), {"id": job_id, "who": who})


def lines_of(connection: Connection[Any], job_id: UUID, rows: Sequence[int]) -> dict[int, int]:
    """Where in the file some rows begin."""
    return dict(connection.execute(query("lines_of"), {"id": job_id, "rows": list(rows)}).fetchall())
