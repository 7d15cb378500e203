"""What a job's rows go through: importer, target, columns and readings, put together once for all batches."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from psycopg import Connection

from rowcall.engine.columns.readings import readings_of
from rowcall.engine.lookup_tables import require_lookup_tables
from rowcall.engine.scratch import Scratch
from rowcall.engine.values.answers import Answers, answers_of
from rowcall.errors import Final
from rowcall.importer import (
    Choice,
    Fail,
    Field,
    Importer,
    Integer,
    ItemImporter,
    Lookup,
    Skip,
    Text,
    Update,
    Uuid,
    Version,
    WholeFileImporter,
)
from rowcall.importer.fields import ColumnLimits, ColumnReading
from rowcall.model import Code, Mode, State
from rowcall.store.edits import has_edits
from rowcall.store.jobs import Job
from rowcall.store.layout import Layout, OnMatch
from rowcall.store.mappings import columns_of, sources_of
from rowcall.store.plans import plan_of
from rowcall.store.rows import Sources
from rowcall.store.targets import Target, TargetColumn, describe, require_no_rule

NO_TARGET = Target(schema="", name="", columns={}, unique=(), foreign=(), checks=())
"""Of importers that process rows themselves."""
WRITTEN_ALIKE: dict[str, tuple[type[Field], ...]] = {
    "text": (Text, Choice, Lookup),
    "varchar": (Text, Choice, Lookup),
    "uuid": (Uuid, Lookup),
    "int2": (Integer, Lookup),
    "int4": (Integer, Lookup),
    "int8": (Integer, Lookup),
}
"""Types of a key, with the fields whose values are texts that PostgreSQL would give back as they are."""
_INTEGERS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A job with all that its batches need."""

    job: Job
    importer: type[Importer]
    target: Target
    layout: Layout
    sources: Sources
    """Where the texts of each field that the file brings come from."""
    readings: Mapping[str, ColumnReading]
    limits: Mapping[str, ColumnLimits]
    lookups: Mapping[str, Lookup]
    choices: Mapping[str, Choice]
    """Those whose texts may stand for something else."""
    answers: Answers
    dry: bool
    """Nothing stays but the outcomes."""
    scratch: Scratch
    edited: bool = False
    """Rows were corrected: they are read as they count now, and which of equal ones counts is decided by that."""
    planned: bool = False
    """There is a plan that somebody has agreed to, to which the commit has to keep."""

    @property
    def plans(self) -> bool:
        """Whether it is for a preview, which also tells what would change in rows that are there."""
        return self.job.state in (State.VALIDATING, State.VALIDATED)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that rows bring: from a column, from a constant, or by default."""
        return tuple(
            name
            for name, field in self.importer.fields.items()
            if name in self.sources or name in self.job.config.constants or field.default is not None
        )

    @property
    def own_lookups(self) -> list[str]:
        """The fields that are looked up in the target itself."""
        own = (self.importer.target, self.target.name, f"{self.target.schema}.{self.target.name}")
        return [name for name, lookup in self.lookups.items() if lookup.table in own]

    @property
    def creating(self) -> list[str]:
        """The fields for which rows of other tables may be created, those that others are looked up within first."""
        names = [name for name, lookup in self.lookups.items() if lookup.creates]
        return sorted(names, key=lambda name: self._depth(name, set()))

    def _depth(self, name: str, above: set[str]) -> int:
        within = self.lookups[name].within or ""
        return 0 if within not in self.lookups or within in above else 1 + self._depth(within, {*above, name})

    @property
    def unforeseen(self) -> bool:
        """Whether rows can collide in a way that shows only when they are written."""
        given = self.layout.given
        partly = any(not given.issuperset(index.columns) for index in self.target.odd_unique) or any(
            not given.issuperset(index.columns) and not given.isdisjoint(self._made_of(index.columns))
            for index in self.target.unique
        )
        unique = (*self.target.unique, *self.target.odd_unique)
        meddled = any(not self.target.meddled.isdisjoint(index.columns) for index in unique)
        return bool(self.target.exclusions) or partly or meddled or self.target.looks_around

    def _made_of(self, columns: list[str]) -> set[str]:
        """The columns, and for one that is generated all that it may be made of."""
        generated = any(self.target.columns[name].generated for name in columns)
        return set(self.target.columns) if generated else set(columns)


def prepare_work(
    connection: Connection[Any], job: Job, importer: type[Importer], scratch: Scratch, *, dry: bool
) -> Work:
    """Put a job's work together from what is stored about it."""
    target = checked_target(connection, importer)
    columns = columns_of(connection, job.id)
    sources = sources_of(columns)
    given = {*sources, *job.config.constants}
    _require_fields(importer, job, given)
    brought = [name for name, field in importer.fields.items() if name in given or field.default is not None]
    answers = answers_of(connection, job.id)
    return Work(
        job=job,
        importer=importer,
        target=target,
        layout=_layout(importer, target, brought, given, job.config.mode),
        sources=sources,
        readings=readings_of(columns),
        limits=limits_of(importer, target, job.config.mode),
        lookups={
            name: field for name, field in importer.fields.items() if isinstance(field, Lookup) and name in brought
        },
        choices={
            name: field
            for name, field in importer.fields.items()
            if isinstance(field, Choice) and name in given and (field.on_missing != "fail" or name in answers.fields)
        },
        answers=answers,
        dry=dry,
        scratch=scratch,
        edited=has_edits(connection, job.id),
        planned=not dry and is_submitted(connection, job),
    )


def _require_fields(importer: type[Importer], job: Job, names: Collection[str]) -> None:
    """Refuse to go on with a job whose importer has lost fields since its columns were mapped."""
    if gone := sorted(set(names) - set(importer.fields)):
        told = f"Job {job.number} has a column for {', '.join(gone)}, which importer {importer.name} no longer has."
        hint = f"Give it back to the importer, or `rowcall cancel {job.number}` and import the file again."
        over_http = "Give it back to the importer, or cancel the import and upload the file again."
        raise Final(Code.BAD_MAPPING, told, hint=hint, over_http=over_http)


def is_submitted(connection: Connection[Any], job: Job) -> bool:
    """Whether somebody has agreed to the job's plan."""
    plan = plan_of(connection, job.id)
    return plan is not None and plan.submitted_at is not None


def _on_match(importer: type[Importer], mode: Mode | None) -> OnMatch:
    how = importer.on_match
    if mode is Mode.INSERT:
        return "skip" if isinstance(how, Skip) else "fail"
    if isinstance(how, Version):
        return "version"
    if mode is Mode.UPSERT or isinstance(how, Update):
        return "update"
    return "fail" if isinstance(how, Fail) else "skip"


def _layout(importer: type[Importer], target: Target, brought: list[str], given: set[str], mode: Mode | None) -> Layout:
    how = importer.on_match
    keys = [key for key in importer.keys if set(key) <= set(brought)]
    return Layout(
        target=target,
        columns=tuple(importer.fields[name].column for name in brought),
        given=frozenset(importer.fields[name].column for name in given),
        keys=tuple(tuple(importer.fields[name].column for name in key) for key in keys),
        on_match=_on_match(importer, mode),
        version=how.column if isinstance(how, Version) else None,
        keyed=importer.once,
    )


# ------------------------------------------------------------------------------------------------------ the target


def checked_target(connection: Connection[Any], importer: type[Importer]) -> Target:
    """The importer's table, which must have what the importer counts on; so must those that it looks up in."""
    require_lookup_tables(connection, importer)
    if not importer.target:
        return NO_TARGET
    target = describe(connection, importer.target)
    if not target.takes_rows:
        told = f"{importer.target}, which {importer.name} writes to, is no table of yours."
        raise Final(Code.BAD_TARGET, told, hint="Name the table itself; a view can be exported, not written to.")
    require_no_rule(target, f"{importer.target}, which {importer.name} writes to,")
    for field in importer.fields.values():
        _require_column(importer, target, field.column)
    for column in target.columns.values():
        _require_field(importer, column)
    for key in importer.keys:
        _require_unique(importer, target, key)
    _require_known_key(importer, target)
    for field in importer.fields.values():
        if isinstance(field, Lookup) and field.creates:
            _require_creatable(connection, importer, field, field.creates)
    return target


def _require_creatable(connection: Connection[Any], importer: type[Importer], field: Lookup, takes: str) -> None:
    """Whether rows can be created in a table that is looked up in, each once."""
    table = describe(connection, field.table)
    filled = {takes, *([field.within] if field.within else ())}
    where = f"{importer.name}.{field.name} may create rows of {field.table}"
    require_no_rule(table, f"{where}, which")
    needed = [column.name for column in table.columns.values() if column.needed and not column.generated]
    if empty := [name for name in (*needed, field.to) if name not in filled and not _fills_itself(table, name)]:
        told = f"{where}, of which column {empty[0]!r} would have no value."
        raise Final(Code.BAD_TARGET, told, hint="Give the column a default, or leave out `creates`.")
    odd = any(filled.issuperset(index.columns) and not index.condition for index in table.odd_unique)
    if not table.is_unique(frozenset(filled)) and not odd:
        listed = ", ".join(sorted(filled))
        told = f"{where}, which does not keep {listed} unique: two imports at once could create a row twice."
        raise Final(Code.BAD_TARGET, told, hint=f"CREATE UNIQUE INDEX ON {field.table} ({listed}).")


def _fills_itself(table: Target, name: str) -> bool:
    column = table.columns[name]
    return column.default is not None or column.generated


def _require_column(importer: type[Importer], target: Target, name: str) -> None:
    if name in target.columns and not target.columns[name].generated:
        return
    near = get_close_matches(name, list(target.columns), 1)
    hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(target.columns)}."
    raise Final(
        Code.BAD_TARGET, f"Table {importer.target} has no column {name!r} for {importer.name} to write.", hint=hint
    )


def _require_field(importer: type[Importer], column: TargetColumn) -> None:
    if isinstance(importer.on_match, Update):
        return  # rows that are there have a value
    written = {field.column for field in importer.fields.values()}
    version = importer.on_match.column if isinstance(importer.on_match, Version) else None
    if column.needed and not column.generated and column.name not in {*written, version}:
        raise Final(
            Code.BAD_TARGET,
            f"Column {column.name!r} of table {importer.target} must have a value, and {importer.name} has no field "
            "for it.",
            hint="Add a field, or give the column a default.",
        )


def _require_unique(importer: type[Importer], target: Target, key: tuple[str, ...]) -> None:
    columns = [importer.fields[name].column for name in key]
    version = [importer.on_match.column] if isinstance(importer.on_match, Version) else []
    if not target.is_unique(frozenset([*columns, *version])):
        listed = ", ".join([*columns, *version])
        raise Final(
            Code.BAD_TARGET,
            f"Importer {importer.name} matches rows by {listed}, which table {importer.target} does not keep "
            "unique: two imports at once could create a row twice.",
            hint=f"CREATE UNIQUE INDEX ON {importer.target} ({listed}).",
        )


def _require_known_key(importer: type[Importer], target: Target) -> None:
    made = [name for name in target.primary_key if target.columns[name].generated]
    if made:
        raise Final(
            Code.BAD_TARGET,
            f"Column {made[0]!r} of the primary key of {importer.target} is generated: which row became which "
            "could not be told.",
            hint="Make another column the primary key, and this one unique.",
        )


def needed_by(connection: Connection[Any], importer: type[Importer], mode: Mode | None) -> frozenset[str]:
    """The fields that the target can't do without."""
    return demanded(importer, checked_target(connection, importer), mode)


def demanded(importer: type[Importer], target: Target, mode: Mode | None) -> frozenset[str]:
    """The same of a target that is known."""
    return frozenset(name for name, limits in limits_of(importer, target, mode).items() if limits.required)


def limits_of(importer: type[Importer], target: Target, mode: Mode | None) -> dict[str, ColumnLimits]:
    """What the target's columns demand of the fields that fill them.

    Where rows update, values are demanded of new rows only, which is found out when they are staged, if they can be
    staged without; but nothing is found without its key.
    """
    if target is NO_TARGET:
        return {}
    staged = not issubclass(importer, ItemImporter | WholeFileImporter)  # they write for themselves
    updates = staged and _on_match(importer, mode) == "update"
    always = importer.keys[0] if len(importer.keys) == 1 else ()
    return {
        name: _limits(target.columns[field.column], may_be_blank=updates and name not in always)
        for name, field in importer.fields.items()
    }


def _limits(column: TargetColumn, *, may_be_blank: bool) -> ColumnLimits:
    required = column.needed and (column.never_null or not may_be_blank)
    if column.is_array:
        elements = ColumnLimits(max_length=column.max_length, precision=column.precision, scale=column.scale)
        return ColumnLimits(required=required, elements=elements)
    most = _INTEGERS.get(column.base)
    return ColumnLimits(
        required=required,
        max_length=column.max_length,
        minimum=-most if most else None,
        maximum=most - 1 if most else None,
        precision=column.precision,
        scale=column.scale,
        labels=tuple(column.labels) if column.labels else None,
    )
