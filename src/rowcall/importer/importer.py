"""An importer: a class that declares what a file may bring into a table, and what becomes of each row."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from rowcall.importer.declaration import declare
from rowcall.importer.fields import Field
from rowcall.importer.fingerprint import Compared, Fingerprint
from rowcall.importer.matching import Flow, OnMatch, Skip
from rowcall.importer.outcomes import ItemResult, RowOutcome
from rowcall.importer.rules import Rule

if TYPE_CHECKING:  # importing it takes a third of a second, which reading a file needn't wait for
    from psycopg import Connection


class Importer:
    """Declares what a file may bring into a table. Subclass it, set the attributes, add fields and rules.

    A base class for several importers says `class Base(Importer, abstract=True)` and needs no target.
    The underscore at the end of a field's attribute is not part of its name: `name_ = Text()` is the field `name`.
    """

    name: ClassVar[str] = ""
    """What jobs call it; the class's name in snake_case unless set."""
    target: ClassVar[str] = ""
    """The table that rows go to: "table" or "schema.table"."""
    key: ClassVar[str | tuple[str, ...]] = ()
    """The fields by which a row is known to be in the target already."""
    natural_key: ClassVar[str | tuple[str, ...]] = ()
    """The fields that rows without a value for `key` are matched by."""
    on_match: ClassVar[OnMatch] = Skip()
    flow: ClassVar[Flow] = Flow()
    atomic: ClassVar[bool] = False
    """All rows or none."""
    once: ClassVar[bool] = False
    """A row is taken once for ever, in whatever job it comes again."""
    timezone: ClassVar[str] = "UTC"
    """Where times without offset are from, those of files and those of columns without time zone."""

    undo: ClassVar[bool | str] = True
    """Whether its imports can be taken back; False or the reason if not."""
    context: ClassVar[str | tuple[str, ...] | Mapping[str, Field]] = ()
    """What an upload has to say of its file: names, or names with the fields that read them."""
    only_when: ClassVar[Mapping[str, Mapping[str, str | tuple[str, ...]]]] = MappingProxyType({})
    """Fields that only some jobs have: by `mode`, or by names of the context; of several values any will do."""
    scope: ClassVar[str | tuple[str, ...] | None] = None
    """The names of its context by which one job is active at a time; `()`: one of all. None: as many as come."""

    fingerprint: ClassVar[Fingerprint | Callable[..., Fingerprint | None] | None] = None
    """Whether a file is about the same things as the target; or a method that says so for a job."""

    retention_days: ClassVar[int | None] = None
    """How many days its jobs are kept, if longer or shorter than others."""

    fields: ClassVar[Mapping[str, Field]] = MappingProxyType({})
    rules: ClassVar[tuple[Rule, ...]] = ()
    keys: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """`key`, then `natural_key`: those that are set."""
    context_fields: ClassVar[Mapping[str, Field]] = MappingProxyType({})
    """What an upload may say, and how it is read."""
    scope_keys: ClassVar[tuple[str, ...]] = ()
    description: ClassVar[str] = ""
    """The first line of the docstring."""
    abstract: ClassVar[bool] = True
    """Whether it is a base for importers, not one itself."""

    def __init_subclass__(cls, *, abstract: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.abstract = abstract
        declare(cls)

    def refuse(self, context: Mapping[str, str]) -> str | None:
        """Why no job is made with a context whose parts are right by themselves; None: it is."""

    def compare(self, connection: "Connection[Any]", job: Any, rows: pl.DataFrame) -> Compared:
        """Compare the sample of `fingerprint` in another way: `number`, and a column per field that the file brings."""
        raise NotImplementedError

    def before(self, connection: "Connection[Any]", job: Any) -> None:
        """Called in the transaction that starts processing a job."""

    def after(self, connection: "Connection[Any]", job: Any) -> None:
        """Called in the transaction that ends processing a job."""


class WholeFileImporter(Importer, abstract=True):
    """An importer that gets all good rows of a file at once and says what became of each."""

    def process(self, rows: pl.DataFrame, connection: "Connection[Any]") -> Iterable[RowOutcome]:
        """Process the rows; `number` and a column per field."""
        raise NotImplementedError


class ItemImporter(Importer, abstract=True):
    """An importer that asks an outside service about each row; calls that fail are tried again."""

    concurrency: ClassVar[int] = 8
    """How many items are under way at the same time."""
    attempts: ClassVar[int] = 5
    """How often an item is tried before it fails."""
    lease_seconds: ClassVar[float] = 60.0
    """How long an item may take before another worker takes it over."""

    async def process(self, row: Mapping[str, object]) -> ItemResult:
        """Process one row. Raise `Retryable` to have it tried again later."""
        raise NotImplementedError
