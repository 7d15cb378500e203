"""Values over the wire, as the OpenAPI document tells it."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, Strict

from rowcall.api.models.wire import Flag, Text, Wire
from rowcall.engine.values.answering import ValueUpdate

ValueStatus = Literal["UNRESOLVED", "AUTO_MATCHED", "USER_CONFIRMED", "USER_OVERRIDDEN", "IGNORED"]
ValueId = Annotated[int, Strict(), Field(ge=1, le=2**63 - 1)]


class Scoped(Wire):
    """What a value is looked up within."""

    id: str
    label: str


class CandidateAnswer(Wire):
    """Something that a value can stand for."""

    id: str
    """What `targetId` takes: the row's key, or the choice."""
    label: str
    score: int
    """How alike they are, of a hundred."""


class FoundCandidate(CandidateAnswer):
    """A candidate that was searched for."""

    scope: Scoped | None
    """The row that it is in, where the field has a scope."""


class ValueAnswer(Wire):
    """A distinct value of a field, and what it stands for."""

    id: int
    field: str
    scope: Scoped | None
    """The row that it is looked up within, where the field has a scope."""
    value: str
    group: str
    """The value without case and accents: near-duplicates have the same."""
    occurrences: int
    """How many rows have it."""
    status: ValueStatus
    action: Literal["use", "empty", "skip", "create"] | None
    """What becomes of it; null while nobody has said so."""
    target: CandidateAnswer | None
    """What it stands for; while it is unresolved, what is proposed."""
    basis: Literal["exact", "synonym", "folded", "remembered", "similar", "new", "person"] | None
    """How that is known."""
    reason: str
    candidates: list[CandidateAnswer]
    """The likeliest. `candidates` searches for others."""
    fixed: bool
    """Rows were written by it: it can't be changed any more."""
    decided_by: str | None
    decided_at: datetime | None


class ValueFieldAnswer(Wire):
    """How far the values of a field are settled."""

    field: str
    type: str
    table: str | None
    """Where they are looked up."""
    within: str | None
    on_missing: str
    may_create: bool
    waits: bool
    """Whether the job waits while some are unresolved."""
    values: int
    """How many different ones."""
    unresolved: int
    rows: int
    """How many have a value."""
    covered_rows: int
    """How many have one that is settled."""
    covered_percent: float


class ValuePage(Wire):
    """Some values, the most frequent first; `next` leads to more."""

    items: list[ValueAnswer]
    next: str | None
    fields: list[ValueFieldAnswer]


class CandidatePage(Wire):
    """The best candidates; `next` leads to more."""

    items: list[FoundCandidate]
    more: bool
    """Whether more fit: saying more of the text may be quicker."""
    next: str | None


class ValueSaid(Wire):
    """What is said of values: one of confirm, targetId, ignore, skip, create.

    Of those with these ids; else of a field's `value`, in a `scope`; else of all that fit field, status and text.
    """

    ids: Annotated[list[ValueId], Field(min_length=1, max_length=10_000)] | None = None
    field: Text | None = None
    value: Text | None = None
    scope: Text | None = None
    """The id of the row that the value is looked up within."""
    status: ValueStatus | None = None
    text: Text | None = None
    """Somewhere in the value."""
    alike: Flag = False
    """Also of near-duplicates of those with these ids."""
    confirm: Flag = False
    """What is proposed is right."""
    target_id: Text | None = None
    """What they stand for: a candidate's id."""
    ignore: Flag = False
    """They stand for nothing: the field stays empty."""
    skip: Flag = False
    """Rows with them are skipped."""
    create: Flag = False
    """What they name is created, where the importer allows it."""

    def update(self) -> ValueUpdate:
        """The same for the engine."""
        given: dict[str, Any] = self.model_dump(exclude={"target_id"})
        return ValueUpdate(**given, target=self.target_id)


class ValueUpdates(Wire):
    """What is said of values; all of it is taken, or nothing."""

    updates: Annotated[list[ValueSaid], Field(min_length=1, max_length=1000)]


class ValuesUpdated(Wire):
    """How many values it was taken for, and how far the fields are now."""

    updated: int
    fields: list[ValueFieldAnswer]


class TargetAnswer(Wire):
    """What a value stands for."""

    id: str
    label: str


class JobNamed(Wire):
    """A job, which may be gone by now."""

    id: UUID
    number: str


class DecisionAnswer(Wire):
    """What was decided of a value, and is remembered."""

    id: UUID
    importer: str
    field: str
    scope: Scoped | None
    value: str
    action: Literal["use", "empty", "skip"]
    target: TargetAnswer | None
    decided_by: str
    decided_at: datetime
    job: JobNamed


class DecisionPage(Wire):
    """Some decisions, the latest first; `next` leads to more."""

    items: list[DecisionAnswer]
    next: str | None


class DecisionUse(Wire):
    """A job that used a decision."""

    id: UUID
    number: str
    state: str
    rows: int
    """How many have the value."""
    reprocessed: bool
    """Whether rows are tried again now, or the job asks anew before it writes any."""
    way_on: str
    """How they come to something else."""


class RevokedAnswer(Wire):
    """A decision that holds no more, and where it was used."""

    decision: DecisionAnswer
    rows: int
    jobs: list[DecisionUse]
