"""What would happen, over the wire."""

from datetime import datetime
from uuid import UUID

from rowcall.api.models.items import IssueCountAnswer
from rowcall.api.models.wire import Wire
from rowcall.model import State


class PlannedCounts(Wire):
    """What would become of the rows."""

    rows: int
    created: int
    updated: int
    unchanged: int
    skipped: int
    failed: int


class ChangedField(Wire):
    """A field that would change in rows that are there."""

    field: str
    column: str
    """What the target calls it."""
    rows: int


class UndoAnswer(Wire):
    """What could be taken back when it is done."""

    deletes: int
    """Rows that would be created."""
    restores: int
    """Rows that would be updated."""


class PreviewAnswer(Wire):
    """What a job would do."""

    id: UUID
    number: str
    state: State
    importer: str
    digest: str
    """Of file, mapping, decisions, and what is planned for each row. Submit it as `If-Match`."""
    as_of: datetime
    """The one moment that the preview and its commit are of."""
    submitted_at: datetime | None
    atomic: bool | None
    """Whether all rows are committed or none; null where the importer isn't known any more."""
    counts: PlannedCounts
    fields: list[ChangedField]
    problems: list[IssueCountAnswer]
    drifted: int
    """Rows that were planned otherwise when this job was submitted before: then it was planned anew."""
    undo: UndoAnswer | None
    """Null where an importer's own code writes."""
