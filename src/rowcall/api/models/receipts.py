"""A job on one page, over the wire."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from rowcall.api.models.edits import EditCountAnswer
from rowcall.api.models.items import IssueCountAnswer
from rowcall.api.models.jobs import Counts, FileAnswer, NewerJob, Told
from rowcall.api.models.undos import UndoReceiptAnswer
from rowcall.api.models.wire import Wire
from rowcall.model import Mode, State


class ColumnAnswer(Wire):
    """A column of the file and the field that it goes to."""

    position: int
    header: str
    field: str | None
    status: str
    reason: str
    date_order: str | None
    decimal: str | None


class FingerprintResult(Wire):
    """Whether a file is about the same things as the target, as a sample of its rows tells."""

    verdict: Literal["pass", "warn", "abort"] | None
    """null: nobody has looked, or the importer doesn't ask for it."""
    note: str
    """Why, in words."""
    sampled: int
    matched: int
    """Rows that could be compared with the target's row of the same key."""
    mismatched: int
    """Those of them that are about something else."""
    warn: float | None
    """From which share of them on a person is asked."""
    abort: float | None
    """From which share on the job goes no further."""
    checked_at: datetime | None
    acknowledged_by: str | None
    """Who let the job go on all the same."""
    acknowledged_at: datetime | None


class ReceiptAnswer(Wire):
    """A job on one page."""

    id: UUID
    number: str
    state: State
    importer: str
    target: str | None
    mode: Mode | None
    dry_run: bool
    context: dict[str, str]
    superseded_by: NewerJob | None
    file: FileAnswer
    account: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    duration_ms: int
    rows_per_second: int | None
    columns: list[ColumnAnswer]
    constants: dict[str, str]
    counts: Counts
    balanced: bool
    issues: list[IssueCountAnswer]
    edits: list[EditCountAnswer]
    """Who corrected how much."""
    undos: list[UndoReceiptAnswer]
    """What was taken back of it."""
    fingerprint: FingerprintResult | None
    """null: nobody has looked, or the importer doesn't ask for it."""
    error: Told | None
