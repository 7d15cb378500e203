"""One active job for each scope: newer ones supersede those that have written nothing, and wait for those that have."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rowcall.errors import WrongState
from rowcall.model import Code
from rowcall.store.queries import query

INDEX = "job_scope"
"""What PostgreSQL holds it by."""


@dataclass(frozen=True, slots=True)
class InScope:
    """A job that holds a scope, or held it."""

    job_id: UUID
    job_number: str
    job_state: str
    """As it was before anything happened to it."""
    is_writing: bool

    @property
    def named(self) -> dict[str, str]:
        return {"id": str(self.job_id), "number": self.job_number}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A scope of an importer in an organisation."""

    organisation: UUID
    importer: str
    scope: str

    def given(self) -> dict[str, Any]:
        return {"organisation": self.organisation, "importer": self.importer, "scope": self.scope}


def supersede(connection: Connection[Any], place: Place, newer: dict[str, str]) -> list[InScope]:
    """End the jobs that hold a scope, in the transaction that makes the newer one; raises while one writes."""
    cursor = connection.cursor(row_factory=class_row(InScope))
    found = cursor.execute(query("supersede"), place.given() | {"newer": Jsonb(newer)}).fetchall()
    for job in found:
        if job.is_writing:
            raise busy(job)
    return found


def holder(connection: Connection[Any], place: Place) -> InScope | None:
    """The job that holds a scope now."""
    cursor = connection.cursor(row_factory=class_row(InScope))
    return cursor.execute(query("active_in_scope"), place.given()).fetchone()


def busy(job: InScope) -> WrongState:
    """The error that says which job is in the way."""
    doing = "writing to the same" if job.is_writing else "in the place for the same"
    return WrongState(
        Code.SCOPE_BUSY,
        f"Job {job.job_number} is {doing}: it is {job.job_state}.",
        hint="Try again when it has ended, or cancel it.",
        state=job.job_state,
        job=job.named,
    )
