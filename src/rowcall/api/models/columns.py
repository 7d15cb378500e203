"""What goes over the wire about columns, templates and remembered decisions."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from rowcall.api.models.configs import TemplateName
from rowcall.api.models.jobs import JobAnswer
from rowcall.api.models.wire import Flag, Name, Text, Wire
from rowcall.engine.columns.answering import ColumnAnswers, ColumnUpdate, Join
from rowcall.model import State

_MOST = 16_384
Position = Annotated[int, Field(ge=0, lt=_MOST)]
DateOrder = Literal["dmy", "mdy", "ymd"]
DecimalMark = Literal[".", ","]


class OtherField(Wire):
    """A further field that a column could be."""

    field: str
    confidence: float


class ColumnMappingAnswer(Wire):
    """A column of the file, the field that takes its values, and why."""

    position: int
    """In the file, from 0."""
    header: str
    samples: list[str | None] | None
    """Its values in the first three rows, null where one is blank; null if all are."""
    filled: int | None
    """How many rows have a value in it."""
    fill_share: float | None
    """The same, as a part of all rows."""
    target_field: str | None
    status: Literal["UNRESOLVED", "AUTO_MATCHED", "USER_CONFIRMED", "USER_OVERRIDDEN", "IGNORED"]
    confidence: float
    reason: str
    others: list[OtherField]
    """What else it could be, the likeliest first."""
    place: int
    """Its place among the columns that are joined into its field."""
    separator: str | None
    """What stands between them."""
    date_order: DateOrder | None
    decimal_mark: DecimalMark | None
    decided_by: str | None


class MissingField(Wire):
    """A required field that gets no value, and the header that is most like it."""

    field: str
    near_miss: str | None


class ColumnMappings(Wire):
    """All columns of a job, and what is still open."""

    state: State
    waiting: bool
    """Whether the job waits for somebody to settle its columns."""
    allowed: list[str]
    """What can be asked of the job now."""
    rows: int | None
    columns: list[ColumnMappingAnswer]
    constants: dict[str, str]
    """Field to a value for all rows."""
    missing: list[MissingField]
    """What the job can't go on without."""
    template: TemplateName | None
    """What it was uploaded with, or was applied."""


class JobWithMappings(JobAnswer):
    """A job and how far it is."""

    mappings: ColumnMappings | None = None
    """With `include=mappings`: its columns."""


class ColumnUpdateRequest(Wire):
    """What is said of a column: one of `confirm`, `targetField`, `ignore`; and how it is read."""

    position: Position
    confirm: Flag = False
    """What is proposed is right."""
    target_field: Text | None = None
    ignore: Flag = False
    """It goes nowhere."""
    date_order: DateOrder | None = None
    decimal_mark: DecimalMark | None = None


class JoinRequest(Wire):
    """Columns that are put together, in this order, for one field. Blank ones are left out."""

    target_field: Text
    positions: Annotated[list[Position], Field(min_length=2, max_length=20)]
    separator: Annotated[Text, Field(max_length=20)] = " "


class ColumnMappingsRequest(Wire):
    """What a person says of columns. All of it is taken, or nothing."""

    updates: Annotated[list[ColumnUpdateRequest], Field(max_length=_MOST)] = []
    joins: Annotated[list[JoinRequest], Field(max_length=1000)] = []
    constants: dict[Text, Text | None] = {}
    """Field to a value for all rows; null takes it away."""

    def answers(self) -> ColumnAnswers:
        """The same for the engine."""
        return ColumnAnswers(
            updates=[ColumnUpdate(**update.model_dump()) for update in self.updates],
            joins=[
                Join(target_field=join.target_field, positions=tuple(join.positions), separator=join.separator)
                for join in self.joins
            ],
            constants=self.constants,
        )


class ColumnWarningAnswer(Wire):
    """Something about columns that may not be as it was meant."""

    kind: Literal["twoColumns", "partlyFilled", "unreadable", "ambiguous", "lost", "drifted"]
    message: str
    positions: list[int]
    """The columns that it is about."""
    field: str | None
    code: str | None
    """What an affected row would be told."""
    count: int | None
    """How many rows, of those that were looked at; of a lost column, of all."""
    examples: list[str]


class ColumnWarningsAnswer(Wire):
    """What should be known before columns are confirmed."""

    rows: int
    looked_at: int
    """So many of the rows were looked at: all, or many from all over a large file."""
    parsed: dict[str, int]
    """For each field that gets values, how many of those that were looked at fit it."""
    warnings: list[ColumnWarningAnswer]


class TargetField(Wire):
    """A field that a column can go to."""

    name: str
    label: str
    type: str
    help: str
    required: bool
    key: bool
    """Whether rows are known by it."""
    default: str | None
    choices: list[str]
    """What values it takes, where they are declared."""
    demands: dict[str, str]
    """What values have to meet."""
    mapped: bool
    """Whether a column goes to it now."""
    constant: str | None
    """The value that all rows get."""


class SaveTemplateRequest(Wire):
    """A template of a job's columns as they are. One of the same name is replaced."""

    job_id: UUID
    source_system: Name
    variant: Name


class TemplateColumnAnswer(Wire):
    """A column as the file had it that the template was made of."""

    position: int
    header: str
    target_field: str | None
    place: int
    separator: str
    date_order: DateOrder | None
    decimal_mark: DecimalMark | None


class TemplateAnswer(Wire):
    """A mapping of columns that is used again."""

    id: UUID
    source_system: str
    importer: str
    variant: str
    columns: list[TemplateColumnAnswer]
    constants: dict[str, str]
    saved_by: str
    saved_at: datetime


class TemplateList(Wire):
    """Templates, by source system, importer and variant."""

    items: list[TemplateAnswer]


class ColumnDecisionAnswer(Wire):
    """What was decided of columns with a header, and is proposed when one comes again."""

    id: UUID
    importer: str
    header: str
    target_field: str | None
    """Null: they are left out."""
    decided_by: str
    decided_at: datetime


class ColumnDecisionList(Wire):
    """Decisions, the latest first."""

    items: list[ColumnDecisionAnswer]
