"""What people of an organisation decided of values, remembered for the next file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.queries import query
from rowcall.store.value_mappings import count_values


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDecision:
    """What a value of a field stands for: who said so, when, in which job."""

    id: UUID
    importer: str
    field: str
    scope: str
    scope_label: str | None
    value: str
    action: str
    target_key: str | None
    target_label: str | None
    decided_by: str
    decided_at: datetime
    from_job: UUID
    job_number: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedDecisions:
    """Which decisions. None: no matter."""

    importer: str | None = None
    field: str | None = None
    text: str | None = None
    after: tuple[datetime, UUID] | None = None
    most: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """A job that used a decision, and for how many rows."""

    job_id: UUID
    number: str
    state: str
    dry_run: bool
    processed: bool
    """Whether it has ever begun to write."""
    rows: int


@dataclass(frozen=True, slots=True)
class Revoked:
    """A decision that holds no more, and where it was used."""

    decision: ValueDecision
    used: Sequence[Used]


def page_of_decisions(connection: Connection[Any], organisation: UUID, wanted: WantedDecisions) -> list[ValueDecision]:
    """The decisions of an organisation, the latest first."""
    at, last = wanted.after or (None, None)
    given = {"importer": wanted.importer, "field": wanted.field, "text": wanted.text, "at": at, "last": last}
    cursor = connection.cursor(row_factory=class_row(ValueDecision))
    given |= {"organisation": organisation, "most": wanted.most}
    return cursor.execute(query("page_of_decisions"), given).fetchall()


def revoke(connection: Connection[Any], organisation: UUID, decision_id: UUID) -> Revoked:
    """Forget a decision, and tell where it was used. Called in a transaction."""
    given = {"organisation": organisation, "id": decision_id}
    used = connection.cursor(row_factory=class_row(Used)).execute(query("decision_used"), given).fetchall()
    cursor = connection.cursor(row_factory=class_row(ValueDecision))
    decision = cursor.execute(query("revoke_decision"), given).fetchone()
    if decision is None:
        hint = "`GET /v1/value-decisions`, or `rowcall decisions`, lists them."
        raise Final(Code.DECISION_NOT_FOUND, f"There is no decision {str(decision_id)!r}.", hint=hint)
    return Revoked(decision, used)


def forget_value(connection: Connection[Any], job_id: UUID, decision: ValueDecision) -> None:
    """Have a job find out anew what a value stands for, when its values are gathered again."""
    given = {"id": job_id, "field": decision.field, "scope": decision.scope, "value": decision.value}
    connection.execute(query("forget_value"), given)


def question_again(connection: Connection[Any], job_id: UUID, decision: ValueDecision) -> int:
    """Have a job ask anew what a value stands for, for rows that were left out; how many those are."""
    given = {"id": job_id, "field": decision.field, "scope": decision.scope, "value": decision.value}
    count = connection.execute(query("retry_left_out"), given).rowcount
    if count:
        connection.execute(query("question_value"), given)
        count_values(connection, job_id, decision.field)
    return count
