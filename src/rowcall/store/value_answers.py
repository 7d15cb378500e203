"""What people are shown of a job's values, and what they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, scalar_row

from rowcall.store.mappings import ColumnStatus
from rowcall.store.queries import query

Action = Literal["use", "empty", "skip", "create"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueMapping:
    """A distinct value of a field, and what it stands for."""

    id: int
    field: str
    scope: str
    """The key that it is looked up within, if any."""
    scope_label: str | None
    value: str
    folded: str
    """Without case and accents: near-duplicates have the same."""
    occurrences: int
    status: ColumnStatus
    action: Action | None
    target_key: str | None
    target_label: str | None
    confidence: float
    basis: str | None
    reason: str
    candidates: list[dict[str, Any]]
    """The likeliest: key, label and score."""
    fixed: bool
    """Rows were written by it: it doesn't change any more."""
    decided_by: str | None
    decided_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueField:
    """How far the values of a field are settled."""

    field: str
    asks: bool
    """Whether the job waits while some are not."""
    values: int
    unresolved: int
    rows: int
    covered: int
    """The rows whose value is settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedValues:
    """Which values. None: no matter."""

    field: str | None = None
    status: str | None = None
    text: str | None = None
    """Somewhere in them."""
    after: tuple[int, int] | None = None
    """Occurrences and id of the last one seen."""
    most: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a person says of some values."""

    ids: Sequence[int] | None = None
    field: str | None = None
    value: str | None = None
    scope: str | None = None
    status: str | None = None
    text: str | None = None
    alike: bool = False
    """Near-duplicates of those with these ids, too."""
    action: Action
    key: str | None = None
    """What they stand for; None: what is proposed."""
    label: str | None = None
    within: str | None = None
    """Only in this scope, or without one."""
    scoped: Sequence[str] = ()
    """Those of their fields that are looked up within something: nothing is created where that has no value."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """How many values were meant, how many it was taken for, how many can't change any more."""

    chosen: int
    said: int
    fixed: int
    first: str | None


def page_of_values(connection: Connection[Any], job_id: UUID, wanted: WantedValues) -> list[ValueMapping]:
    """The values of a job, the most frequent first."""
    count, last = wanted.after or (2**63 - 1, 0)
    statuses = [wanted.status] if wanted.status else list(get_args(ColumnStatus))
    given = {"field": wanted.field, "statuses": statuses, "text": wanted.text, "count": count, "last": last}
    cursor = connection.cursor(row_factory=class_row(ValueMapping))
    return cursor.execute(query("page_of_values"), {"id": job_id, "most": wanted.most, **given}).fetchall()


def value_fields(connection: Connection[Any], job_id: UUID) -> list[ValueField]:
    """How far the fields of a job are settled."""
    cursor = connection.cursor(row_factory=class_row(ValueField))
    return cursor.execute(query("counted_values"), {"id": job_id}).fetchall()


def fields_meant(connection: Connection[Any], job_id: UUID, said: Said) -> list[str]:
    """The fields of the values that are meant."""
    given = {"id": job_id, "ids": said.ids, "field": said.field}
    return connection.cursor(row_factory=scalar_row).execute(query("fields_of_values"), given).fetchall()


def decide_values(connection: Connection[Any], job_id: UUID, said: Said, who: str) -> Heard:
    """Keep what a person says."""
    given = {
        "ids": list(said.ids) if said.ids is not None else None,
        "field": said.field,
        "value": said.value,
        "scope": said.scope,
        "status": said.status,
        "text": said.text,
        "alike": said.alike,
        "action": said.action,
        "key": said.key,
        "label": said.label,
        "within": said.within,
        "scoped": list(said.scoped),
        "reason": said.reason,
    }
    cursor = connection.cursor(row_factory=class_row(Heard))
    heard = cursor.execute(query("decide_values"), {"id": job_id, "by": who, **given}).fetchone()
    return heard or Heard(chosen=0, said=0, fixed=0, first=None)


def remember_values(connection: Connection[Any], job_id: UUID) -> None:
    """Keep for the next file what people decided."""
    connection.execute(query("remember_values"), {"id": job_id})
