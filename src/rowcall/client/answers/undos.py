"""What an undo would bring back, and what it has brought back."""

from datetime import datetime
from typing import Any
from uuid import UUID

from rowcall.client.answers.items import Issue
from rowcall.client.answers.jobs import File
from rowcall.client.answers.wire import Wire


class Dependents(Wire, frozen=True, kw_only=True):
    """Rows that refer to rows of the target, or are later versions of them: these therefore stay."""

    table: str
    constraint: str | None = None
    """The foreign key; none for later versions."""
    job: str | None = None
    """The number of the job that wrote later versions, where that is known: take it back first."""
    blocked: int
    dependents: int | None = None


class UndoField(Wire, frozen=True, kw_only=True):
    """A column of the target that is not as it was."""

    name: str
    before: Any = None
    now: Any = None


class UndoSample(Wire, frozen=True, kw_only=True):
    """A row that would be kept."""

    row: int
    line: int
    status: str
    target_key: list[str] | None = None
    issue: Issue
    fields: list[UndoField] = []


class UndoPreview(Wire, frozen=True, kw_only=True):
    """What an undo would do now."""

    possible: bool
    reason: str | None = None
    reversible: int
    to_delete: int
    to_restore: int
    fields: dict[str, int] = {}
    """The columns that would be restored, with in how many rows."""
    not_restored: dict[str, int] = {}
    """The columns that a trigger of the target would write otherwise, with in how many rows that are restored."""
    changed: int
    blocked: int
    refused: int = 0
    """Rows that the database would refuse to change."""
    gone: int
    reverted: int
    """Rows of the job that were taken back already."""
    blocked_by: list[Dependents] = []
    samples: list[UndoSample] = []
    until: datetime | None = None
    """When the job is removed, and can't be taken back any more."""

    @property
    def kept(self) -> int:
        """Rows that should be taken back and would stay as they are."""
        return self.changed + self.blocked + self.refused


class UndoReceipt(Wire, frozen=True, kw_only=True):
    """What an undo did."""

    job_id: UUID
    job_number: str
    importer: str
    file: File
    number: int
    state: str
    account: str
    request_id: str | None = None
    created_at: datetime
    completed_at: datetime | None = None
    which: dict[str, Any] = {}
    partial: bool = False
    deleted: int
    restored: int
    changed: int
    blocked: int
    refused: int
    gone: int
    blocked_by: list[Dependents] = []
    digest: str

    @property
    def kept(self) -> int:
        """Rows that should have been taken back and are as they were."""
        return self.changed + self.blocked + self.refused
