"""Templates of columns: made of a job, used for the next file, and told apart from a file that has drifted from one."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg import Connection

from rowcall.engine.columns.map import Known
from rowcall.engine.columns.saved import from_template
from rowcall.engine.columns.usable import usable
from rowcall.engine.moves import require
from rowcall.errors import Final, WrongState
from rowcall.formats.columns import normal
from rowcall.importer import Importer
from rowcall.model import Code, State
from rowcall.store import jobs
from rowcall.store.decisions import decisions_of
from rowcall.store.jobs import Job, JobConfig, TemplateKey
from rowcall.store.mappings import ColumnMapping, columns_of, decide_columns
from rowcall.store.templates import (
    NewTemplate,
    Template,
    TemplateColumn,
    find_template,
    save_template,
    templates_of,
)


@dataclass(frozen=True, slots=True)
class Drift:
    """How a file differs from those that a template was made for. Headers, as they are written."""

    missing: list[str]
    """In the template, and not in the file."""
    new: list[str]
    """In the file, and not in the template."""
    moved: list[str]
    """In both, in another order."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.new or self.moved)

    @property
    def breaks(self) -> bool:
        """Whether the template says nothing of some column, or says something of one that isn't there."""
        return bool(self.missing or self.new)


def known_of(connection: Connection[Any], job: Job, needed: frozenset[str]) -> Known:
    """What is known of a job's columns before its file is looked at."""
    decided = decisions_of(connection, job.organisation_id, importer=job.importer)
    key = job.config.template
    return Known(
        needed=needed,
        decisions={decision.header: decision.target_field or "" for decision in decided},
        template=find_template(connection, job.organisation_id, job.importer, key) if key else None,
    )


def usable_constants(importer: type[Importer], template: Template, config: JobConfig) -> dict[str, str]:
    """The constants of a job that a template is used for: its own count more."""
    fields = usable(importer, config)
    known = {name: value for name, value in template.constants.items() if name in fields}
    return {name: value for name, value in known.items() if name not in config.mapping.values()} | config.constants


def template_of(connection: Connection[Any], job: Job) -> Template | None:
    """The template that a job uses, if it is still there."""
    key = job.config.template
    if key is None:
        return None
    found = templates_of(
        connection, job.organisation_id, source_system=key.source_system, importer=job.importer, variant=key.variant
    )
    return found[0] if found else None


def drift_of(template: Template, columns: Sequence[ColumnMapping]) -> Drift:
    """How a file has drifted from a template."""
    saved = {normal(column.header): column.header for column in template.columns}
    found = {normal(column.header): column.header for column in columns}
    order = {header: place for place, header in enumerate(saved)}
    both = [header for header in found if header in saved]
    kept = _longest_in_order([order[header] for header in both])
    return Drift(
        missing=[written for header, written in saved.items() if header not in found],
        new=[written for header, written in found.items() if header not in saved],
        moved=[found[header] for header in both if order[header] not in kept],
    )


def _longest_in_order(places: Sequence[int]) -> set[int]:
    """The most of these that are in ascending order: the others have moved."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for place in places:
        length = bisect_left(ends, place)
        before[place] = ends[length - 1] if length else None
        ends[length:] = [place] if length == len(ends) else [place, *ends[length + 1 :]]
    kept: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        kept.add(last)
        last = before[last]
    return kept


# ------------------------------------------------------------------------------------------------ made of a job, used


def save_from(connection: Connection[Any], job: Job, key: TemplateKey, who: str) -> Template:
    """A template of a job's columns as they are. Called in a transaction.

    Refused while nothing is settled about them. What the file was about is for the next one to tell.
    """
    columns = columns_of(connection, job.id)
    if job.state is State.UPLOADED or not columns or any(column.status == "UNRESOLVED" for column in columns):
        told = f"The columns of job {job.number} are not settled yet."
        raise WrongState(Code.WRONG_STATE, told, hint="Settle them first.", state=job.state)
    if not key.source_system.strip() or not key.variant.strip():
        raise Final(Code.BAD_REQUEST, "A template needs a source system and a variant.", hint="Name both.")
    saved = [
        TemplateColumn(
            position=column.position,
            header=column.header,
            target_field=column.target_field,
            place=column.place,
            separator=column.separator,
            date_order=column.date_order,
            decimal_mark=column.decimal_mark,
        )
        for column in columns
    ]
    own = {name: text for name, text in job.config.constants.items() if name not in job.config.context}
    new = NewTemplate(key=key, importer=job.importer, columns=saved, constants=own)
    return save_template(connection, job.organisation_id, new, who)


def apply_template(
    connection: Connection[Any], job: Job, importer: type[Importer], key: TemplateKey, who: str
) -> list[ColumnMapping]:
    """The columns of a job that waits, with what a template says of them. Called in a transaction."""
    job = jobs.seize(connection, job)
    require(job, "map")
    template = find_template(connection, job.organisation_id, job.importer, key)
    columns = columns_of(connection, job.id)
    fields = usable(importer, job.config)
    constants = {name: value for name, value in (template.constants | job.config.context).items() if name in fields}
    applied = [replace(column, decided_by=who) for column in from_template(fields, template, columns, set(constants))]
    given = {*constants, *(column.target_field for column in applied)} - {None}
    touched = {column.position for column in applied}
    lost = [
        replace(column, target_field=None, status="UNRESOLVED", reason="the template says otherwise", place=0)
        for column in columns
        if column.position not in touched and column.target_field in given
    ]
    config = replace(job.config, constants=constants, template=key)
    jobs.change_config(connection, job, config)
    decide_columns(connection, job.id, [*applied, *lost])
    return columns_of(connection, job.id)
