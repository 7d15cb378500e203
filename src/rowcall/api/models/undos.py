"""Undos over the wire."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, Strict

from rowcall.api.models.items import IssueAnswer
from rowcall.api.models.jobs import FileAnswer
from rowcall.api.models.wire import Flag, RowNumber, RowStatus, Text, Wire
from rowcall.model import State


class UndoRequest(Wire):
    """Which rows to take back: all that the job wrote, unless something is said."""

    statuses: list[RowStatus] | None = None
    """Only rows that were `created`, or `updated`."""
    code: Text | None = None
    """With an issue of this code."""
    field: Text | None = None
    """With an issue in this field."""
    text: Text | None = None
    """With this somewhere in a cell."""
    rows: Annotated[list[Annotated[RowNumber, Strict()]], Field(min_length=1, max_length=100_000)] | None = None
    """Numbers of rows."""
    partial: Flag = False
    """Of an import that is all or nothing: also if some rows have to stay."""


class DependentsAnswer(Wire):
    """Rows that refer to rows of the target, or are later versions of them: these therefore stay."""

    table: str
    constraint: str | None
    """The foreign key; null for later versions."""
    job: str | None = None
    """The number of the job that wrote later versions, where that is known: take it back first."""
    blocked: int
    """How many rows stay because of it."""
    dependents: int | None
    """How many rows refer to them; null where that can't be seen."""


class UndoField(Wire):
    """A column of the target that is not as it was."""

    name: str
    before: Any
    """Before the import; null for a row that it created."""
    now: Any


class UndoSample(Wire):
    """A row that would be kept."""

    row: int
    line: int
    status: RowStatus
    target_key: list[str] | None
    issue: IssueAnswer
    fields: list[UndoField]


class UndoPreviewAnswer(Wire):
    """What an undo would do now."""

    possible: bool
    reason: str | None
    """Why not."""
    reversible: int
    """Rows that would be taken back: `toDelete` and `toRestore`."""
    to_delete: int
    to_restore: int
    fields: dict[str, int]
    """The columns that would be restored, with in how many rows."""
    not_restored: dict[str, int]
    """The columns that a trigger of the target would write otherwise, with in how many rows that are restored."""
    changed: int
    """Rows that were written since by somebody else: they are kept."""
    blocked: int
    """Rows that others refer to: they are kept."""
    refused: int
    """Rows that the database would refuse to change, by a constraint or a trigger: they are kept."""
    gone: int
    """Rows that are no longer there."""
    reverted: int
    """Rows of the job that were taken back already."""
    blocked_by: list[DependentsAnswer]
    samples: list[UndoSample]
    until: datetime | None
    """When the job is removed, and can't be taken back any more."""


class UndoReceiptAnswer(Wire):
    """An undo on one page."""

    job_id: UUID
    job_number: str
    importer: str
    file: FileAnswer
    number: int
    """From 1: a job can be taken back in parts."""
    state: State
    """Where the undo left the job; until it is over, where the job is."""
    account: str
    request_id: str | None
    created_at: datetime
    completed_at: datetime | None
    which: dict[str, Any]
    """What was asked for; empty for all."""
    partial: bool
    deleted: int
    restored: int
    changed: int
    blocked: int
    refused: int
    """Rows that the database refused to change; their issues tell why."""
    gone: int
    blocked_by: list[DependentsAnswer]
    digest: str
    """Tells this undo from any other: of the file, the job, and what became of each row."""
