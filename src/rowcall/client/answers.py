"""What a server answers with, and what it is asked for. Fields that a newer server adds are passed over.

The command line shows these too, wherever they come from.
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct, field

from rowcall.errors import Final
from rowcall.model import WORKING, Mode, State, Wish


class Wire(Struct, rename="camel", frozen=True):
    """Names in camelCase on the wire. States and statuses are texts: a newer server may have more of them."""


class File(Wire, frozen=True, kw_only=True):
    """A job's file. While it is yet to be fetched, nothing but its name is known."""

    name: str
    sha256: str | None = None
    size: int | None = None


class Counts(Wire, frozen=True, kw_only=True):
    """What became of the rows, and the lines beside them."""

    rows: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0
    failed: int = 0
    reverted: int = 0
    cancelled: int = 0
    blank: int = 0
    header: int = 0
    other: int = 0

    @property
    def done(self) -> int:
        return self.created + self.updated + self.unchanged + self.skipped + self.failed + self.reverted


class Told(Wire, frozen=True, kw_only=True):
    """Why work stopped."""

    code: str
    message: str
    hint: str = ""
    command_hint: str = ""
    """The same for those who use the command line, where that is something else."""

    def failure(self) -> Final:
        """The same as an error of the command line."""
        return Final(self.code, self.message, hint=self.command_hint or self.hint)


class Progress(Wire, frozen=True, kw_only=True):
    """How far a job is, since its rows began to be worked on."""

    percent: float | None = None
    """Of its rows; None while the file is still read."""
    rows_per_second: int | None = None
    elapsed_ms: int | None = None
    """By the service's clock."""


class OtherJob(Wire, frozen=True, kw_only=True):
    """A job that another one is told of with; with who brought it, if it took that one's place."""

    id: UUID
    number: str
    account: str = ""


class Job(Wire, frozen=True, kw_only=True):
    """One file going through one importer, and how far it is."""

    id: UUID
    number: str
    state: str
    importer: str
    dry_run: bool
    context: dict[str, str] = {}
    """What the file is about."""
    scope: str | None = None
    """What it has to itself as long as it is active."""
    supersedes: list[OtherJob] = []
    superseded_by: OtherJob | None = None
    file: File
    url: str | None = None
    counts: Counts
    progress: Progress = Progress()
    account: str
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    background: bool = True
    """Whether workers go on with it by themselves."""
    wish: str | None = None
    """What was asked for and is about to happen."""
    allowed: list[str] = []
    """What can be asked of it now."""
    error: Told | None = None

    @property
    def rests(self) -> bool:
        """Whether nothing happens to it until somebody asks for something."""
        if self.wish:
            return self.wish == Wish.HOLD and self.state in _HELD
        return self.state not in WORKING


_HELD = (State.UPLOADED, State.COLUMN_MAPPING, State.CELL_MAPPING)


class Issue(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What is wrong with a row."""

    code: str
    message: str = ""
    field: str | None = None
    value: str | None = None
    metadata: dict[str, Any] | None = None


class Item(Wire, frozen=True, kw_only=True):
    """A row as it came in, and what became of it."""

    row: int
    line: int
    status: str
    issues: list[Issue] = []
    values: dict[str, str | None] = {}
    """As they are in the file, or were corrected since."""
    original: dict[str, str | None] | None = None
    """Of corrected cells: what the file has."""
    revision: int = 0
    """How often it was corrected."""
    target_key: list[str] | None = None
    attempt: int | None = None
    at: datetime | None = None
    changes: dict[str, tuple[Any, Any]] | None = None
    """Of a row that is updated: each column of the target that changes, from what to what."""


class PendingItem(Wire, frozen=True, kw_only=True):
    """A row of some job that waits for something or somebody."""

    job_id: UUID
    job_number: str
    importer: str
    row: int
    line: int
    status: str
    issues: list[Issue] = []
    revision: int = 0
    at: datetime | None = None


class IssueCount(Wire, frozen=True, kw_only=True):
    """How many rows have an issue, and the first of them."""

    code: str
    field: str | None = None
    status: str
    count: int
    first_row: int


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


class Summary(Wire, frozen=True, kw_only=True):
    """What became of the rows, counted."""

    counts: Counts
    issues: list[IssueCount] = []


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


class Column(Wire, frozen=True, kw_only=True):
    """A column of the file and the field that it goes to."""

    position: int
    header: str
    field: str | None = None
    status: str
    reason: str
    date_order: str | None = None
    decimal: str | None = None


class Dependents(Wire, frozen=True, kw_only=True):
    """Rows that refer to rows of the target, which therefore stay."""

    table: str
    constraint: str
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
    changed: int
    blocked: int
    gone: int
    reverted: int
    """Rows of the job that were taken back already."""
    blocked_by: list[Dependents] = []
    samples: list[UndoSample] = []
    until: datetime | None = None
    """When the job is removed, and can't be taken back any more."""


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


class EditCount(Wire, frozen=True, kw_only=True):
    """What an account corrected."""

    account: str
    rows: int
    cells: int


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


class Edited(Wire, frozen=True, kw_only=True):
    """A corrected row, and what would become of it now."""

    item: Item
    status: str
    issues: list[Issue] = []
    alone: bool
    """Whether it could be judged by itself; else the job is planned again."""
    job: Job


class CellEdit(Wire, frozen=True, kw_only=True):
    """A correction of a cell, as it was made."""

    revision: int
    position: int
    header: str
    before: str | None = None
    after: str | None = None
    account: str
    at: datetime


class Sample(Wire, frozen=True, kw_only=True):
    """A cell as it is, and as it would be."""

    row: int
    before: str | None = None
    after: str


class Replaced(Wire, frozen=True, kw_only=True):
    """How many rows would be corrected, with the token to do it; or were, with the job."""

    rows: int
    samples: list[Sample] = []
    token: str | None = None
    job: Job | None = None


class NotMerged(Wire, frozen=True, kw_only=True):
    """A row of a workbook that was left alone."""

    line: int
    row: int | None = None
    code: str
    message: str


class Merged(Wire, frozen=True, kw_only=True):
    """What came of a workbook that was brought back."""

    job: Job
    rows: int
    changed: int
    cells: int
    unchanged: int
    refused: int
    not_merged: list[NotMerged] = []
    ignored_columns: list[str] = []


class Reprocessed(Wire, frozen=True, kw_only=True):
    """The job, and how many of its rows are tried again."""

    job: Job
    rows: int


class ImporterSummary(Wire, frozen=True, kw_only=True):
    """An importer in a list."""

    name: str
    description: str
    target: str = ""


class ImporterField(Wire, frozen=True, kw_only=True):
    """What an importer takes."""

    name: str
    type: str
    column: str | None = None
    required: bool = False
    default: str | None = None
    aliases: list[str] = []
    help: str = ""
    demands: dict[str, str] = {}


class ImporterRule(Wire, frozen=True, kw_only=True):
    """What a row of an importer has to meet."""

    name: str
    field: str | None = None
    code: str
    message: str


class Importer(Wire, frozen=True, kw_only=True):
    """All about an importer."""

    name: str
    description: str
    target: str = ""
    keys: list[list[str]] = []
    on_match: str
    preview: bool = False
    atomic: bool = False
    once: bool = False
    timezone: str | None = None
    context: list[ImporterField] = []
    """What an upload has to say of its file, or may."""
    scope: list[str] | None = None
    """The context by which one job is active at a time; None: as many as come."""
    fields: list[ImporterField] = []
    rules: list[ImporterRule] = []


class ExportProgress(Wire, frozen=True, kw_only=True):
    """How much is written. `total` is None where it isn't known."""

    rows: int = 0
    total: int | None = None
    bytes: int = 0


class Export(Wire, frozen=True, kw_only=True):
    """An export in the background, and how far it is."""

    id: UUID
    state: str
    resource: str | None = None
    job: UUID | None = None
    format: str
    file_name: str
    account: str
    progress: ExportProgress
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    error: Told | None = None


# ----------------------------------------------------------------------------------------------- what it is asked for


class TemplateName(Wire, frozen=True, kw_only=True):
    """A template: the system that writes such files, and which of its kinds."""

    source_system: str
    variant: str


class ImportConfig(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """How a file is read and what is done with its rows. What isn't said is found out, or as the importer says."""

    mode: Mode | None = None
    mapping: dict[str, str] = {}
    """Header to field; headers with a plus between are joined."""
    separators: dict[str, str] = {}
    """Field to what stands between its joined columns, if not a blank."""
    constants: dict[str, str] = {}
    """Field to a value for every row."""
    context: dict[str, str] = {}
    """What the file is about, as the importer demands."""
    template: TemplateName | None = None
    ask: Literal["never", "unsure", "always"] | None = None
    """Whether the job waits for a person to settle its columns; None: as the importer says."""
    dry_run: bool = False
    preview: bool = False
    """Wait when it is known what would happen, until that is submitted."""
    hold: bool = False
    """Begin only on `start` or `kickoff`."""
    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    escape: Literal["doubled", "backslash"] | None = None
    comment: str | None = None
    header: int | None = None
    sheet: str | int | None = None
    records: str | None = None
    ragged: Literal["reject", "pad"] = "reject"
    decimal: Literal[".", ","] | None = None
    date_order: Literal["dmy", "mdy", "ymd"] | None = None


class Check(Wire, frozen=True):
    """What a server found of one thing that it stands on."""

    ok: bool
    required: bool = True
    """Whether it can't take work without it."""
    detail: str = ""


class Readiness(Wire, frozen=True):
    """`ready`; `degraded`: work is taken, but nobody does it; `unready`: no work can be taken."""

    status: str
    checks: dict[str, Check]


class View(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Which rows of a job. None or nothing: no matter."""

    statuses: tuple[str, ...] = ()
    code: str | None = None
    field: str | None = None
    text: str | None = None
    """Somewhere in a cell."""
    edited: bool = False
    """Only rows with corrections."""
    sort: Literal["row", "-row", "updated", "-updated"] = "row"


class Replacement(Wire, frozen=True, kw_only=True):
    """A text to be replaced in one column of the rows of a view."""

    field: str
    """The column: its field, its header, or `column 3`."""
    find: str
    """Nothing stands for cells that are empty."""
    text: str
    """What takes its place."""
    part: bool = False
    """Also where it is only a part of the cell."""
    view: View = View()
    rows: tuple[int, ...] | None = None


class ExportOrder(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What to export: rows of a resource, or what became of the rows of a job."""

    format: str = field(default_factory=lambda: "csv")  # always sent: the server wants it said
    resource: str | None = None
    fields: tuple[str, ...] = ()
    """In this order; all of the resource if none are named."""
    filters: tuple[str, ...] = ()
    """`field=value`, or `!=`, `>=`, `<=`, `>`, `<`; `field=null` for none."""
    job: UUID | None = None
    view: View | None = None
    bom: bool = False
    """Begin a CSV file with a byte order mark, for Excel."""
