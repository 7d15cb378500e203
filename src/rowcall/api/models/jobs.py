"""Jobs and their moves over the wire."""

from datetime import datetime
from uuid import UUID

from rowcall.api.models.wire import Wire
from rowcall.model import State, Wish


class FileAnswer(Wire):
    """A job's file."""

    name: str
    sha256: str | None
    """None, as the size, while the file is yet to be fetched."""
    size: int | None


class Counts(Wire):
    """What became of the rows.

    Once the job has ended, `rows` = created + updated + unchanged + skipped + failed + reverted + cancelled.
    """

    rows: int
    created: int
    updated: int
    unchanged: int
    skipped: int
    failed: int
    reverted: int
    """Rows that were created or updated, and taken back since."""
    cancelled: int
    """Rows that weren't worked on any more."""
    blank: int
    """Empty lines, which are no rows."""
    header: int
    """Lines of the header."""
    other: int
    """Lines above the header or below the rows."""


class Told(Wire):
    """Why work on a job stopped."""

    code: str
    message: str
    hint: str = ""
    command_hint: str = ""
    """The same for those who use the command line, where that is something else."""


class ProgressAnswer(Wire):
    """How far a job is, since its rows began to be worked on."""

    percent: float | None
    """Of the file while it is brought in, then of its rows; null while nothing is known yet."""
    rows_per_second: int | None
    elapsed_ms: int | None
    """Of work on its rows. Time that it is paused, or waits for somebody, is not counted."""


class OtherJob(Wire):
    """A job that another one is told of with."""

    id: UUID
    number: str


class NewerJob(OtherJob):
    """The job that took the place of one."""

    account: str
    """Who brought it."""


class JobAnswer(Wire):
    """A job and how far it is."""

    id: UUID
    number: str
    """For people: the day, and a number."""
    state: State
    importer: str
    dry_run: bool
    context: dict[str, str]
    """What the file is about, as the upload said."""
    scope: str | None
    """What it has to itself as long as it is active; null where there may be many."""
    supersedes: list[OtherJob]
    """Those that it took the place of."""
    superseded_by: NewerJob | None
    """The one that took its place."""
    file: FileAnswer
    url: str | None
    """Where the file is fetched from, without login and query."""
    counts: Counts
    progress: ProgressAnswer
    account: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    background: bool
    """Whether workers go on with it by themselves."""
    wish: Wish | None
    """What was asked for and is about to happen."""
    allowed: list[str]
    """The moves that are possible now."""
    error: Told | None


class JobPage(Wire):
    """Some jobs; `next` leads to more."""

    items: list[JobAnswer]
    next: str | None


class EventAnswer(Wire):
    """A move that a job made."""

    id: int
    before: State | None
    after: State
    at: datetime


class EventsAnswer(Wire):
    """The moves of a job behind one that was seen, and the job as it is."""

    items: list[EventAnswer]
    job: JobAnswer
