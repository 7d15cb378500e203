"""What would happen."""

from datetime import datetime
from uuid import UUID

from rowcall.client.answers.items import IssueCount
from rowcall.client.answers.jobs import Counts
from rowcall.client.answers.wire import Wire


class ChangedField(Wire, frozen=True, kw_only=True):
    """A field that would change in so many rows that are there."""

    field: str
    column: str
    rows: int


class Undo(Wire, frozen=True, kw_only=True):
    """How many rows could be taken back when it is done."""

    deletes: int
    restores: int


class Preview(Wire, frozen=True, kw_only=True):
    """What a job would do."""

    id: UUID
    number: str
    state: str
    importer: str
    digest: str
    as_of: datetime
    """The one moment that the preview and its commit are of."""
    submitted_at: datetime | None = None
    atomic: bool | None = None
    counts: Counts
    fields: list[ChangedField] = []
    problems: list[IssueCount] = []
    drifted: int = 0
    """Rows that were planned otherwise when this job was submitted before."""
    undo: Undo | None = None
