"""What a server answers about values, and what it is told of them."""

from datetime import datetime
from uuid import UUID

from rowcall.client.answers.wire import Wire


class Named(Wire, frozen=True, kw_only=True):
    """Something with a key, and what people call it."""

    id: str
    label: str


class Candidate(Wire, frozen=True, kw_only=True):
    """Something that a value can stand for; `score` is how alike they are, of a hundred."""

    id: str
    label: str
    score: int = 0
    scope: Named | None = None
    """What it is in, where the field has a scope; told where it was searched for."""


class Value(Wire, frozen=True, kw_only=True):
    """A distinct value of a field, and what it stands for; while it is unresolved, what is proposed."""

    id: int
    field: str
    scope: Named | None = None
    value: str
    group: str = ""
    """Without case and accents: near-duplicates have the same."""
    occurrences: int
    status: str
    action: str | None = None
    target: Candidate | None = None
    basis: str | None = None
    reason: str = ""
    candidates: list[Candidate] = []
    fixed: bool = False
    """Rows were written by it: it can't be changed any more."""
    decided_by: str | None = None
    decided_at: datetime | None = None


class ValueField(Wire, frozen=True, kw_only=True):
    """How far the values of a field are settled."""

    field: str
    type: str = ""
    table: str | None = None
    within: str | None = None
    on_missing: str = ""
    may_create: bool = False
    waits: bool = True
    values: int
    unresolved: int
    rows: int
    covered_rows: int
    covered_percent: float


class Values(Wire, frozen=True, kw_only=True):
    """Some values, the most frequent first, and how far the fields are settled."""

    items: list[Value]
    next: str | None = None
    fields: list[ValueField] = []

    @property
    def unresolved(self) -> int:
        """How many values the job waits for."""
        return sum(field.unresolved for field in self.fields if field.waits)


class Candidates(Wire, frozen=True, kw_only=True):
    """The best candidates; `next` leads to more."""

    items: list[Candidate]
    more: bool = False
    """Whether more fit: saying more of the text may be quicker."""
    next: str | None = None


class ValueSaid(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What is said of values: one of confirm, target_id, ignore, skip, create.

    Of those with these ids; else of a field's value, in a scope; else of all that fit field, status and text.
    """

    ids: list[int] | None = None
    field: str | None = None
    value: str | None = None
    scope: str | None = None
    status: str | None = None
    text: str | None = None
    alike: bool = False
    """Also of near-duplicates of those with these ids."""
    confirm: bool = False
    target_id: str | None = None
    ignore: bool = False
    """The field stays empty."""
    skip: bool = False
    """Rows with them are skipped."""
    create: bool = False


class ValuesUpdated(Wire, frozen=True, kw_only=True):
    """How many values it was taken for, and how far the fields are now."""

    updated: int
    fields: list[ValueField] = []


class JobNamed(Wire, frozen=True, kw_only=True):
    """A job, which may be gone by now."""

    id: UUID
    number: str


class ValueDecision(Wire, frozen=True, kw_only=True):
    """What was decided of a value, and is remembered."""

    id: UUID
    importer: str
    field: str
    scope: Named | None = None
    value: str
    action: str
    target: Named | None = None
    decided_by: str
    decided_at: datetime
    job: JobNamed


class DecisionUse(Wire, frozen=True, kw_only=True):
    """A job that used a decision."""

    id: UUID
    number: str
    state: str
    rows: int
    reprocessed: bool = False
    way_on: str = ""


class RevokedDecision(Wire, frozen=True, kw_only=True):
    """A decision that holds no more, and where it was used."""

    decision: ValueDecision
    rows: int
    jobs: list[DecisionUse] = []
