"""What a server tells of columns, templates and remembered decisions, and what it is told."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from rowcall.client.answers import TemplateName, Wire


class OtherField(Wire, frozen=True, kw_only=True):
    """A further field that a column could be."""

    field: str
    confidence: float


class ColumnMapping(Wire, frozen=True, kw_only=True):
    """A column of the file, the field that takes its values, and why."""

    position: int
    header: str
    samples: list[str | None] | None = None
    filled: int | None = None
    fill_share: float | None = None
    target_field: str | None = None
    status: str
    confidence: float = 1.0
    reason: str = ""
    others: list[OtherField] = []
    place: int = 0
    separator: str | None = None
    date_order: str | None = None
    decimal_mark: str | None = None
    decided_by: str | None = None


class MissingField(Wire, frozen=True, kw_only=True):
    """A required field that gets no value, and the header that is most like it."""

    field: str
    near_miss: str | None = None


class ColumnMappings(Wire, frozen=True, kw_only=True):
    """All columns of a job, and what is still open."""

    state: str
    waiting: bool = False
    allowed: list[str] = []
    rows: int | None = None
    columns: list[ColumnMapping] = []
    constants: dict[str, str] = {}
    missing: list[MissingField] = []
    template: TemplateName | None = None


class ColumnWarning(Wire, frozen=True, kw_only=True):
    """Something about columns that may not be as it was meant."""

    kind: str
    message: str
    positions: list[int] = []
    field: str | None = None
    code: str | None = None
    count: int | None = None
    examples: list[str] = []


class ColumnWarnings(Wire, frozen=True, kw_only=True):
    """What should be known before columns are confirmed. So many of the rows were looked at."""

    rows: int
    looked_at: int
    parsed: dict[str, int] = {}
    warnings: list[ColumnWarning] = []


class TargetField(Wire, frozen=True, kw_only=True):
    """A field that a column can go to."""

    name: str
    label: str
    type: str
    help: str = ""
    required: bool = False
    key: bool = False
    default: str | None = None
    choices: list[str] = []
    demands: dict[str, str] = {}
    mapped: bool = False
    constant: str | None = None


class TemplateColumn(Wire, frozen=True, kw_only=True):
    """A column as the file had it that the template was made of."""

    position: int
    header: str
    target_field: str | None = None
    place: int = 0
    separator: str = " "
    date_order: str | None = None
    decimal_mark: str | None = None


class Template(Wire, frozen=True, kw_only=True):
    """A mapping of columns that is used again."""

    id: UUID
    source_system: str
    importer: str
    variant: str
    columns: list[TemplateColumn] = []
    constants: dict[str, str] = {}
    saved_by: str
    saved_at: datetime


class ColumnDecision(Wire, frozen=True, kw_only=True):
    """What was decided of columns with a header; without a field, they are left out."""

    id: UUID
    importer: str
    header: str
    target_field: str | None = None
    decided_by: str
    decided_at: datetime


# ----------------------------------------------------------------------------------------------- what it is told


class ColumnUpdate(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What is said of a column: one of confirm, a field, ignore; and how it is read."""

    position: int
    confirm: bool = False
    target_field: str | None = None
    ignore: bool = False
    date_order: Literal["dmy", "mdy", "ymd"] | None = None
    decimal_mark: Literal[".", ","] | None = None


class Join(Wire, frozen=True, kw_only=True):
    """Columns that are put together, in this order, for one field."""

    target_field: str
    positions: list[int]
    separator: str = " "


class ColumnAnswers(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What a person says of columns. All of it is taken, or nothing."""

    updates: list[ColumnUpdate] = []
    joins: list[Join] = []
    constants: dict[str, str | None] = {}
    """Field to a value for all rows; None takes it away."""
