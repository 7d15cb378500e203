"""A job on one page."""

from datetime import datetime
from uuid import UUID

from rowcall.client.answers.edits import EditCount
from rowcall.client.answers.items import IssueCount
from rowcall.client.answers.jobs import Counts, File, OtherJob, Told
from rowcall.client.answers.undos import UndoReceipt
from rowcall.client.answers.wire import Wire


class FingerprintFinding(Wire, frozen=True, kw_only=True):
    """A row of the file whose key is somebody else's in the target."""

    row: int
    line: int | None = None
    key: list[str] = []
    field: str
    found: str | None = None
    expected: str | None = None


class Fingerprint(Wire, frozen=True, kw_only=True):
    """Whether a file is about the same things as the target, as a sample of its rows tells."""

    verdict: str | None = None
    """pass, warn or abort; None: nobody has looked."""
    note: str = ""
    sampled: int = 0
    matched: int = 0
    mismatched: int = 0
    warn: float | None = None
    abort: float | None = None
    findings: list[FingerprintFinding] = []
    checked_at: datetime | None = None
    acknowledged_by: str | None = None
    acknowledged_at: datetime | None = None


class Column(Wire, frozen=True, kw_only=True):
    """A column of the file and the field that it goes to."""

    position: int
    header: str
    field: str | None = None
    status: str
    reason: str
    date_order: str | None = None
    decimal: str | None = None


class Receipt(Wire, frozen=True, kw_only=True):
    """A job on one page."""

    id: UUID
    number: str
    state: str
    importer: str
    target: str | None = None
    mode: str | None = None
    dry_run: bool
    context: dict[str, str] = {}
    superseded_by: OtherJob | None = None
    file: File
    account: str
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_ms: int
    rows_per_second: int | None = None
    columns: list[Column] = []
    constants: dict[str, str] = {}
    counts: Counts
    balanced: bool
    issues: list[IssueCount] = []
    undos: list[UndoReceipt] = []
    edits: list[EditCount] = []
    """Who corrected how much."""
    fingerprint: Fingerprint | None = None
    """Without its findings; None: nobody has looked."""
    error: Told | None = None

    @property
    def unused_columns(self) -> list[str]:
        """The columns that no field takes; a processor of whole files or items sees all of them."""
        return [column.header for column in self.columns if not column.field] if self.target else []
