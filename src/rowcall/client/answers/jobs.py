"""Jobs as a server tells of them, and how a file is to be read."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from rowcall.client.answers.wire import Wire
from rowcall.errors import Final
from rowcall.model import WORKING, Mode, State, Wish


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
    """Of work on its rows. Time that it is paused, or waits for somebody, is not counted."""


class OtherJob(Wire, frozen=True, kw_only=True):
    """A job that another one is told of with; with who brought it, if it took that one's place."""

    id: UUID
    number: str
    account: str = ""


_HELD = (State.UPLOADED, State.COLUMN_MAPPING, State.CELL_MAPPING)


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
