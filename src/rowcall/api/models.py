"""What goes over the wire, as the OpenAPI document tells it."""

from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, Strict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from rowcall.api.problems import unfit
from rowcall.engine.corrections.edit import MOST_TEXT
from rowcall.engine.corrections.replace import Replacing
from rowcall.errors import Final
from rowcall.formats import Format, ReadOptions
from rowcall.model import ROW_STATUSES, Code, Mode, State, Wish
from rowcall.store.grid import Wanted
from rowcall.store.jobs import JobConfig, TemplateKey

_MOST = 2**31 - 1
Flag = Annotated[bool, Strict()]
"""True or false in a body, and not 1 or "no"."""
Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""What PostgreSQL takes for a text: no NUL, and no half of a surrogate pair."""
RowStatus = Annotated[Text, Field(json_schema_extra={"enum": list(ROW_STATUSES)})]
RowNumber = Annotated[int, Field(ge=1, le=2**63 - 1)]
CellText = Annotated[Text, Field(max_length=MOST_TEXT)]


class Wire(BaseModel):
    """Names in camelCase; nothing beside what is declared."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", use_attribute_docstrings=True
    )


_CONTEXT = TypeAdapter(dict[Text, Text])
_READ_OPTIONS = {option.name for option in fields(ReadOptions)} - {"limits"}


Name = Annotated[Text, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f/]*[^\x00-\x1f/\s][^\x00-\x1f/]*$")]
"""What people call something: no control characters, no slash, not blank."""


class TemplateName(Wire):
    """A template: the system that writes such files, and which of its kinds."""

    source_system: Name
    variant: Name

    def key(self) -> TemplateKey:
        """The same for the engine."""
        return TemplateKey(self.source_system, self.variant)


class ImportConfig(Wire):
    """How a file is read and what is done with its rows. What isn't said is found out, or as the importer says."""

    mode: Mode | None = None
    """What is done with rows that are there already."""
    mapping: dict[Text, Text] = {}
    """Header to field; headers with a plus between are joined."""
    separators: dict[Text, Annotated[Text, Field(max_length=20)]] = {}
    """Field to what stands between its joined columns, if not a blank."""
    constants: dict[Text, Text] = {}
    """Field to a value for every row."""
    context: dict[Text, Text] = {}
    """What the file is about, as its importer demands; or beside `config`."""
    template: TemplateName | None = None
    """Map the columns as this template has them."""
    ask: Literal["never", "unsure", "always"] | None = None
    """Whether the job waits for a person to settle its columns; as the importer says if not said here."""
    dry_run: Flag = False
    """Do all but write: the outcomes tell what would happen."""
    preview: Flag = False
    """Wait when it is known what would happen, until that is submitted."""
    hold: Flag = False
    """Begin only on `start` or `kickoff`."""
    format: Format | None = None
    """What the file is, if its content doesn't tell."""
    encoding: Text | None = None
    """Such as `utf-8` or `windows-1252`."""
    delimiter: Annotated[Text, Field(min_length=1)] | None = None
    """What is between the cells of a CSV file."""
    quote: Annotated[Text, Field(max_length=1)] | None = None
    """The quote character; "" for none."""
    escape: Literal["doubled", "backslash"] | None = None
    """How a quote within quotes is written."""
    comment: Annotated[Text, Field(min_length=1)] | None = None
    """Lines that begin with it are none of the data."""
    sheet: Text | Annotated[int, Strict(), Field(ge=1, le=_MOST)] | None = None
    """Its name, or its position from 1."""
    header: Annotated[int, Strict(), Field(ge=0, le=_MOST)] | None = None
    """The line of the header, from 1; 0 when there is none."""
    records: Text | None = None
    """The key of a JSON document under which the records lie."""
    ragged: Literal["reject", "pad"] | None = None
    """What becomes of lines with too few cells."""
    date_order: Literal["dmy", "mdy", "ymd"] | None = None
    decimal: Literal[".", ","] | None = None

    @classmethod
    def from_text(cls, text: str, *, at: str) -> Self:
        """The configuration that is at some place of a request."""
        try:
            return cls.model_validate_json(text or "{}")
        except ValidationError as error:
            raise unfit(error, at=at) from error

    def about(self, context: str, *, at: str) -> Self:
        """The same with the context that came beside it."""
        try:
            told = _CONTEXT.validate_json(context or "{}")
        except ValidationError as error:
            raise unfit(error, at=at) from error
        for name in told.keys() & self.context.keys():
            if told[name] != self.context[name]:
                raise Final(Code.BAD_CONTEXT, f"`context` and `config` say different things of {name!r}.")
        return self.model_copy(update={"context": {**self.context, **told}})

    def job_config(self) -> JobConfig:
        """The same for the engine."""
        read = self.model_dump(include=_READ_OPTIONS)
        return JobConfig(
            mode=self.mode,
            mapping=self.mapping,
            separators=self.separators,
            constants=self.constants,
            context=self.context,
            template=self.template.key() if self.template else None,
            ask=self.ask,
            dry_run=self.dry_run,
            preview=self.preview,
            read=ReadOptions(**{name: value for name, value in read.items() if value is not None}),
        )


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
    """By the service's clock."""


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


class IssueAnswer(Wire):
    """What is wrong with a row."""

    code: str
    """Stable: branch on this."""
    message: str
    field: str | None = None
    value: str | None = None
    """As it is in the file."""
    metadata: dict[str, Any] | None = None
    """What the code has to tell, such as the limit that was passed."""


class Item(Wire):
    """A row as it came in, and what became of it."""

    row: int
    """From 1."""
    line: int
    """Where in the file it begins, from 1."""
    status: RowStatus
    issues: list[IssueAnswer]
    values: dict[str, str | None]
    """The cells under their headers, as they are in the file or were corrected since."""
    original: dict[str, str | None] | None
    """Of corrected cells: what the file has."""
    revision: int
    """How often it was corrected: for `If-Match`."""
    target_key: list[str] | None
    """What the target knows it by."""
    attempt: int | None
    """How often it was tried."""
    at: datetime | None
    """When that became of it."""
    changes: dict[str, tuple[Any, Any]] | None = None
    """Of a row that is updated: each column of the target that changes, from what to what."""


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
    status: RowStatus
    issues: list[IssueAnswer]
    revision: int
    """How often it was corrected."""
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


class IssueCountAnswer(Wire):
    """How many rows have an issue."""

    code: str
    field: str | None
    status: str
    count: int
    first_row: int


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

    statuses: list[RowStatus] | None = None
    """With one of these; those that failed if none are named, and any of rows that are named."""
    code: Text | None = None
    """With an issue of this code."""
    field: Text | None = None
    """With an issue in this field."""
    text: Text | None = None
    """With this somewhere in a cell."""
    edited: Flag = False
    """Only those with corrections."""
    rows: Annotated[list[Annotated[RowNumber, Strict()]], Field(min_length=1, max_length=100_000)] | None = None
    """Numbers of rows."""


class EditRequest(Wire):
    """Corrections of a row's cells."""

    cells: Annotated[dict[Text, CellText | None], Field(min_length=1, max_length=16_384)]
    """By header, by field, or as `column 3`; null takes a correction back."""


class EditAnswer(Wire):
    """A corrected row, and what would become of it now."""

    item: Item
    status: RowStatus
    """What it would come to."""
    issues: list[IssueAnswer]
    """What is still wrong with it."""
    alone: bool
    """Whether the row could be judged by itself; else other rows count for it, and all are planned again."""
    job: JobAnswer


class CellEditAnswer(Wire):
    """A correction of a cell, as it was made."""

    revision: int
    position: int
    """Of the column, from 0."""
    header: str
    before: str | None
    after: str | None
    account: str
    at: datetime


class RowFilter(Wire):
    """Which rows. None or nothing: no matter."""

    statuses: list[RowStatus] | None = None
    code: Text | None = None
    """With an issue of this code."""
    field: Text | None = None
    """With an issue in this field."""
    text: Annotated[Text, Field(max_length=200)] | None = None
    """With this somewhere in a cell."""
    edited: Flag = False
    """Only those with corrections."""
    rows: Annotated[list[Annotated[RowNumber, Strict()]], Field(min_length=1, max_length=100_000)] | None = None
    """Numbers of rows."""


class ReplaceRequest(Wire):
    """A text to be replaced in one column: to be counted first, then done with the token of that."""

    filter: RowFilter = RowFilter()
    field: Text
    """The column: its field, its header, or `column 3`."""
    find: CellText
    """Nothing stands for cells that are empty."""
    replacement: Annotated[CellText, Field(alias="with")]
    match: Literal["cell", "part"] = "cell"
    """Whether the whole cell has to be it, or it may be a part of it."""
    preview: Flag = False
    """Only count."""
    token: Text | None = None
    """Of the count; without `preview` it has to be there."""

    def replacing(self) -> Replacing:
        """The same for the engine."""
        which = Wanted(
            statuses=tuple(self.filter.statuses or ()),
            code=self.filter.code,
            field=self.filter.field,
            text=self.filter.text or None,
            edited=self.filter.edited,
            rows=tuple(self.filter.rows) if self.filter.rows is not None else None,
        )
        return Replacing(
            which=which, column=self.field, find=self.find, text=self.replacement, part=self.match == "part"
        )


class SampleAnswer(Wire):
    """A cell as it is, and as it would be."""

    row: int
    before: str | None
    after: str


class ReplaceAnswer(Wire):
    """How many rows would be corrected or were."""

    rows: int
    samples: list[SampleAnswer] = []
    """Of a preview: some of them."""
    token: str | None = None
    """Of a preview: to do just that."""
    job: JobAnswer | None = None
    """When it was done."""


class NotMergedAnswer(Wire):
    """A row of a workbook that was left alone."""

    line: int
    """In the sheet or the file that came."""
    row: int | None
    code: str
    message: str


class MergedAnswer(Wire):
    """What came of a workbook that was brought back."""

    job: JobAnswer
    rows: int
    """Rows in it."""
    changed: int
    """Rows that were corrected by it, and run again."""
    cells: int
    unchanged: int
    """Rows that are as they were."""
    refused: int
    not_merged: list[NotMergedAnswer]
    """The first thousand of those."""
    ignored_columns: list[str]
    """Columns that the job's file doesn't have."""


class ReprocessAnswer(Wire):
    """The job, and how many of its rows are tried again."""

    job: JobAnswer
    rows: int


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
    """Rows that refer to rows of the target, which therefore stay."""

    table: str
    constraint: str
    """The foreign key."""
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
    changed: int
    """Rows that were written since by somebody else: they are kept."""
    blocked: int
    """Rows that others refer to: they are kept."""
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
    """Where the job is."""
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


class ColumnAnswer(Wire):
    """A column of the file and the field that it goes to."""

    position: int
    header: str
    field: str | None
    status: str
    reason: str
    date_order: str | None
    decimal: str | None


class ResultsSummary(Wire):
    """What became of the rows, counted."""

    counts: Counts
    issues: list[IssueCountAnswer]


class EditCountAnswer(Wire):
    """What an account corrected: rows that nobody corrected after it, and how many of their cells."""

    account: str
    rows: int
    cells: int


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


class Wrong(Wire):
    """What doesn't fit in a request."""

    at: str
    """Where: `query/pageSize`, `body/config/mode`."""
    message: str


class Problem(BaseModel):
    """An error, as RFC 9457 has it. There may be more in it than is told here."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: Literal["about:blank"]
    title: str
    """What the status means."""
    status: int
    code: str
    """Stable: branch on this."""
    detail: str
    """What went wrong, for a person."""
    hint: str = ""
    """What to do about it."""
    command_hint: str = ""
    """The same for those who use the command line, where that is something else."""
    state: str = ""
    """Where a job or an export is that can't be moved so."""
    allowed: list[str] = []
    """How it can be moved."""
    job: OtherJob | None = None
    """The other job that is in the way."""
    missing: list[dict[str, Any]] = []
    """What has to be said before a job can go on."""
    errors: list[Wrong] = []
    """All that doesn't fit in the request."""
    digest: str = ""
    """The plan that a job has now, where another was submitted."""
