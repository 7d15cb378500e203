"""What goes over the wire, as the OpenAPI document tells it."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from rowcall.errors import Final
from rowcall.formats import ReadOptions
from rowcall.model import Code, Mode, State, Wish
from rowcall.store.jobs import JobConfig


class Wire(BaseModel):
    """Names in camelCase; nothing beside what is declared."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


def what_is_wrong(error: ValidationError) -> str:
    """The complaints about a document, each with its place."""
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())


class ImportConfig(Wire):
    """How a file is read and what is done with its rows. What isn't said is found out, or as the importer says."""

    mode: Mode | None = None
    mapping: dict[str, str] = {}
    """Header to field."""
    constants: dict[str, str] = {}
    """Field to a value for every row."""
    dry_run: bool = False
    hold: bool = False
    """Begin only on `start` or `kickoff`."""
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | int | None = None
    header: int | None = None
    date_order: Literal["dmy", "mdy", "ymd"] | None = None
    decimal: Literal[".", ","] | None = None

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The configuration in a form's field."""
        try:
            return cls.model_validate_json(text or "{}")
        except ValidationError as error:
            raise Final(Code.BAD_REQUEST, f"`config` doesn't fit: {what_is_wrong(error)}.") from error

    def job_config(self) -> JobConfig:
        """The same for the engine."""
        read = self.model_dump(include={"encoding", "delimiter", "sheet", "header", "date_order", "decimal"})
        return JobConfig(
            mode=self.mode,
            mapping=self.mapping,
            constants=self.constants,
            dry_run=self.dry_run,
            read=ReadOptions(**{name: value for name, value in read.items() if value is not None}),
        )


class FileAnswer(Wire):
    """A job's file."""

    name: str
    sha256: str | None
    """None, as the size, while the file is yet to be fetched."""
    size: int | None


class Counts(Wire):
    """What became of the rows: `rows` = created + updated + unchanged + skipped + failed once the job has ended."""

    rows: int
    created: int
    updated: int
    unchanged: int
    skipped: int
    failed: int
    cancelled: int
    blank: int
    header: int
    other: int


class Told(Wire):
    """Why work on a job stopped."""

    code: str
    message: str
    hint: str = ""


class JobAnswer(Wire):
    """A job and how far it is."""

    id: UUID
    number: str
    state: State
    importer: str
    dry_run: bool
    file: FileAnswer
    url: str | None
    """Where the file is fetched from, without login and query."""
    counts: Counts
    account: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    wish: Wish | None
    """What was asked for and is about to happen."""
    allowed: list[str]
    """The moves that are possible now."""
    error: Told | None


class JobPage(Wire):
    """Some jobs; `next` leads to more."""

    items: list[JobAnswer]
    next: str | None


class IssueAnswer(Wire):
    """What is wrong with a row."""

    code: str
    message: str
    field: str | None = None
    value: str | None = None
    metadata: dict[str, Any] | None = None


class Item(Wire):
    """A row as it came in, and what became of it."""

    row: int
    line: int
    status: str
    issues: list[IssueAnswer]
    values: dict[str, str | None]
    target_key: list[str] | None
    attempt: int | None
    at: datetime | None


class ItemPage(Wire):
    """Some rows; `next` leads to more."""

    items: list[Item]
    next: str | None


class PendingItem(Wire):
    """A row of some job that waits for something or somebody."""

    job_id: UUID
    job_number: str
    importer: str
    row: int
    line: int
    status: str
    issues: list[IssueAnswer]
    at: datetime | None


class PendingPage(Wire):
    """Some of them; `next` leads to more."""

    items: list[PendingItem]
    next: str | None


class AttemptAnswer(Wire):
    """What became of a row when it was tried."""

    attempt: int
    status: str
    issues: list[IssueAnswer]
    target_key: list[str] | None
    at: datetime


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


class ReprocessRequest(Wire):
    """Which rows to try again: those that failed, unless something else is said."""

    statuses: list[str] = ["failed"]
    code: str | None = None
    field: str | None = None
    rows: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=100_000)] | None = None
    """Numbers of rows."""


class ReprocessAnswer(Wire):
    """The job, and how many of its rows are tried again."""

    job: JobAnswer
    rows: int


class ColumnAnswer(Wire):
    """A column of the file and the field that it goes to."""

    position: int
    header: str
    field: str | None
    status: str
    reason: str
    date_order: str | None
    decimal: str | None


class IssueCountAnswer(Wire):
    """How many rows have an issue."""

    code: str
    field: str | None
    status: str
    count: int
    first_row: int


class ResultsSummary(Wire):
    """What became of the rows, counted."""

    counts: Counts
    issues: list[IssueCountAnswer]


class ReceiptAnswer(Wire):
    """A job on one page."""

    id: UUID
    number: str
    state: State
    importer: str
    target: str | None
    mode: Mode | None
    dry_run: bool
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
    error: Told | None


class Problem(BaseModel):
    """An error, as RFC 9457 has it."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
    state: str | None = None
    """Where a job is that can't be moved so."""
    allowed: list[str] | None = None
    """How it can be moved."""


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": what}
    for status, what in {
        400: "The request can't be understood",
        401: "A key is needed, or isn't good",
        403: "The key isn't for that",
        404: "There is no such thing",
        409: "Not in this state",
        413: "Too large",
        422: "Understood, and not acceptable",
        429: "Too often: try again after `Retry-After`",
        503: "Not now: try again",
    }.items()
}
