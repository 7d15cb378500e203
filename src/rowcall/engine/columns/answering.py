"""What a person is asked about the columns of a file, and what they answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from psycopg import Connection

from rowcall.engine.columns.asking import asking, is_asked
from rowcall.engine.columns.constants import read_constants
from rowcall.engine.columns.map import near_miss, required_without
from rowcall.engine.columns.readings import settle_readings
from rowcall.engine.columns.templates import drift_of, template_of
from rowcall.engine.columns.usable import check_free, check_usable, usable
from rowcall.engine.moves import require
from rowcall.engine.work import needed_by
from rowcall.errors import Final, NotSettled
from rowcall.importer import Importer
from rowcall.model import Code
from rowcall.store import jobs
from rowcall.store.decisions import remember
from rowcall.store.jobs import Job, JobConfig
from rowcall.store.mappings import ColumnMapping, columns_of, decide_columns
from rowcall.store.queries import query

_SETTLED = ("AUTO_MATCHED", "USER_CONFIRMED", "USER_OVERRIDDEN")
_ASKED_ALWAYS = ("AUTO_MATCHED", "UNRESOLVED")
_NAMELESS = re.compile(r"column_\d+")
"""What columns without a header are called."""
_JOINED = "joined by hand: "
_MOST_JOINED = 20
_LONGEST_SEPARATOR = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUpdate:
    """What a person says of a column: one of confirm, a field, ignore; and how it is read, if that was asked."""

    position: int
    confirm: bool = False
    target_field: str | None = None
    ignore: bool = False
    date_order: Literal["dmy", "mdy", "ymd"] | None = None
    decimal_mark: Literal[".", ","] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Columns that are put together, in this order, for one field."""

    target_field: str
    positions: tuple[int, ...]
    separator: str = " "


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnAnswers:
    """All that a person says at once."""

    updates: Sequence[ColumnUpdate] = ()
    joins: Sequence[Join] = ()
    constants: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Field to a value for all rows; None takes it away."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A required field that no column goes to, with the header that is most like it."""

    field: str
    near: str | None


def asks(connection: Connection[Any], job: Job, importer: type[Importer]) -> bool:
    """Whether a person is to say something before the job goes on.

    A template that fits the file has said it all; a file that has drifted from its own is a question, until it is
    answered.
    """
    columns = columns_of(connection, job.id)
    if not is_asked(importer, job.config, columns):
        return False
    template = template_of(connection, job)
    drifted = template is not None and drift_of(template, columns).breaks
    always = drifted or (template is None and asking(importer, job.config) == "always")
    if any(column.status in (_ASKED_ALWAYS if always else ("UNRESOLVED",)) for column in columns):
        return True
    return bool(missing_fields(importer, columns, job.config, needed_by(connection, importer, job.config.mode)))


def missing_fields(
    importer: type[Importer],
    columns: Sequence[ColumnMapping],
    config: JobConfig,
    needed: frozenset[str],
    *,
    proposed: bool = False,
) -> list[Missing]:
    """The required fields that get no value. `proposed`: those that are only proposed count as decided."""
    if not columns:
        return []  # a file without records
    statuses = (*_SETTLED, "UNRESOLVED") if proposed else _SETTLED
    constant = {name for name, value in config.constants.items() if value.strip()}
    given = {*constant, *(column.target_field for column in columns if column.status in statuses)}
    return [
        Missing(name, _near(importer, name, columns))
        for name in required_without(usable(importer, config), given, needed)
    ]


def _near(importer: type[Importer], name: str, columns: Sequence[ColumnMapping]) -> str | None:
    free = [column for column in columns if column.status not in _SETTLED]
    likely = [column.header for column in free if name in (column.target_field, *(other for other, _ in column.others))]
    return likely[0] if likely else near_miss(name, importer.fields[name], [column.header for column in free])


def not_settled(importer: type[Importer], missing: Sequence[Missing]) -> NotSettled:
    """The error that lists what is missing."""
    listed = ", ".join(f"{each.field} (is it {each.near!r}?)" if each.near else each.field for each in missing)
    return NotSettled(
        Code.MISSING_COLUMNS,
        f"Required by {importer.name}, and no column goes to it: {listed}.",
        hint="Say which columns these are, or give them a value for all rows.",
        missing=[{"field": each.field, "nearMiss": each.near} for each in missing],
    )


# ----------------------------------------------------------------------------------------------------------- answers


def update(
    connection: Connection[Any], job: Job, importer: type[Importer], said: ColumnAnswers, who: str
) -> list[ColumnMapping]:
    """The columns with what a person says of some. Called in a transaction.

    A field that another column has is taken from it; that column is a question then. All of it is taken, or nothing.
    """
    job = jobs.seize(connection, job)
    require(job, "map")
    for name in _named(said):
        check_usable(importer, name, job.config)
        if name not in said.constants or said.constants[name] != job.config.context.get(name):
            check_free(name, job.config)
    columns = {column.position: column for column in columns_of(connection, job.id)}
    changed = _changed(columns, said, who)
    given = {column.target_field for column in changed.values()} - {None}
    constants = _constants(job.config, said.constants, given)
    new = {name: text for name, text in constants.items() if job.config.constants.get(name) != text}
    constants |= read_constants(importer, new, job.config.read)
    taken = given | {name for name, value in said.constants.items() if value is not None}
    for column in columns.values():
        if column.position not in changed and column.target_field in taken:
            changed[column.position] = _freed(column, who)
    if constants != job.config.constants:
        jobs.change_config(connection, job, replace(job.config, constants=constants))
    decide_columns(connection, job.id, _in_place(columns, changed))
    return columns_of(connection, job.id)


def _named(said: ColumnAnswers) -> list[str]:
    """The fields that somebody names."""
    columns = [each.target_field for each in (*said.updates, *said.joins) if each.target_field is not None]
    return [*columns, *said.constants]


def _changed(columns: Mapping[int, ColumnMapping], said: ColumnAnswers, who: str) -> dict[int, ColumnMapping]:
    positions = [*(each.position for each in said.updates), *(at for join in said.joins for at in join.positions)]
    if twice := {position for position in positions if positions.count(position) > 1}:
        told = f"Something is said twice of the column at position {min(twice)}."
        raise Final(Code.BAD_MAPPING, told, hint="Say it once.")
    changed = {each.position: _decided(columns, each, who) for each in said.updates}
    kept = [column.target_field for column in changed.values() if column.target_field and not column.place]
    given = [*kept, *(join.target_field for join in said.joins)]
    if rivals := {name for name in given if given.count(name) > 1}:
        told = f"Two columns can't both go to {min(rivals)!r}."
        raise Final(Code.BAD_MAPPING, told, hint="Leave one of them out, or join them.")
    for join in said.joins:
        changed |= _joined(columns, join, who)
    return changed


def _decided(columns: Mapping[int, ColumnMapping], said: ColumnUpdate, who: str) -> ColumnMapping:
    column = replace(_column(columns, said.position), decided_by=who)
    if [said.confirm, said.target_field is not None, said.ignore].count(True) != 1:
        told = f"Of column {column.header!r} one of confirm, targetField and ignore is to be said."
        raise Final(Code.BAD_MAPPING, told)
    if said.ignore:
        return replace(column, target_field=None, status="IGNORED", reason="left out by hand", place=0)
    name = said.target_field if said.target_field is not None else column.target_field
    if name is None:
        told = f"Nothing is proposed for column {column.header!r} that could be confirmed."
        hint = f"Say its field with --set '{column.header}=field', or leave it out with --ignore '{column.header}'."
        raise Final(Code.BAD_MAPPING, told, hint=hint, over_http="Say `targetField` or `ignore`.")
    same = name == column.target_field
    return replace(
        column,
        target_field=name,
        status="USER_CONFIRMED" if same else "USER_OVERRIDDEN",
        reason="confirmed by hand" if same else "chosen by hand",
        date_order=said.date_order or (column.date_order if same else None),
        decimal_mark=said.decimal_mark or (column.decimal_mark if same else None),
        doubtful=column.doubtful if same else None,
        place=column.place if said.confirm else 0,
    )


def _joined(columns: Mapping[int, ColumnMapping], join: Join, who: str) -> dict[int, ColumnMapping]:
    if not 2 <= len(join.positions) <= _MOST_JOINED:
        told = f"For {join.target_field!r} {len(join.positions)} columns are to be joined; 2 to {_MOST_JOINED} can be."
        raise Final(Code.BAD_MAPPING, told)
    if len(join.separator) > _LONGEST_SEPARATOR or "\0" in join.separator:
        told = f"What stands between the columns of {join.target_field!r} has at most {_LONGEST_SEPARATOR} characters."
        raise Final(Code.BAD_MAPPING, told)
    headers = [_column(columns, position).header for position in join.positions]
    return {
        position: replace(
            columns[position],
            target_field=join.target_field,
            status="USER_OVERRIDDEN",
            reason=_told_joined(headers),
            date_order=None,
            decimal_mark=None,
            doubtful=None,
            place=place,
            separator=join.separator,
            decided_by=who,
        )
        for place, position in enumerate(join.positions)
    }


def _column(columns: Mapping[int, ColumnMapping], position: int) -> ColumnMapping:
    if position not in columns:
        told = f"The file has no column at position {position}."
        raise Final(Code.BAD_MAPPING, told, hint=f"Positions are 0 to {len(columns) - 1}.")
    return columns[position]


def _freed(column: ColumnMapping, who: str) -> ColumnMapping:
    told = f"{column.target_field} was given another value"
    lost = replace(column, target_field=None, status="UNRESOLVED", reason=told, date_order=None, place=0)
    return replace(lost, decimal_mark=None, decided_by=who)


def _constants(config: JobConfig, said: Mapping[str, str | None], given: set[str | None]) -> dict[str, str]:
    """The constants as they are then. A field that a column is given to has none any more."""
    for name, value in said.items():
        if value is not None and name in given:
            raise Final(Code.BAD_MAPPING, f"{name!r} can't have both a column and a value for all rows.")
    constants = {**config.constants, **said}
    return {name: value for name, value in constants.items() if value is not None and name not in given}


def _in_place(columns: Mapping[int, ColumnMapping], changed: Mapping[int, ColumnMapping]) -> list[ColumnMapping]:
    """What changed, and the columns that have another place in their join because one has left it."""
    now = {**columns, **changed}
    parts: dict[str, list[ColumnMapping]] = {}
    for column in now.values():
        if column.target_field:
            parts.setdefault(column.target_field, []).append(column)
    for joined in parts.values():
        in_order = sorted(joined, key=lambda part: part.place)
        for place, column in enumerate(in_order):
            now[column.position] = replace(column, place=place, reason=_reason_now(column, in_order))
    return [column for position, column in now.items() if position in changed or column != columns[position]]


def _reason_now(column: ColumnMapping, joined: Sequence[ColumnMapping]) -> str:
    """Why a column goes to its field, in a join that others may have left."""
    if not column.reason.startswith(_JOINED):
        return column.reason
    return _told_joined([part.header for part in joined]) if len(joined) > 1 else "the one that is left of a join"


def _told_joined(headers: Sequence[str]) -> str:
    return f"{_JOINED}{' + '.join(headers)}"


def confirm(connection: Connection[Any], job: Job, importer: type[Importer], needed: frozenset[str], who: str) -> Job:
    """Let the job go on with its columns as they are: what is proposed is taken, what is not is left out.

    Called in a transaction. Raises `NotSettled` while a required field is missing, or values of a column can be
    read in two ways. What a person decided is remembered.
    """
    job = jobs.seize(connection, job)
    require(job, "map")
    columns = columns_of(connection, job.id)
    if missing := missing_fields(importer, columns, job.config, needed, proposed=True):
        raise not_settled(importer, missing)
    open_ = {column.position: _accepted(column, who) for column in columns if column.status in _ASKED_ALWAYS}
    decide_columns(connection, job.id, list(open_.values()))
    settle_readings(connection, job, importer)
    connection.execute(query("set_wish"), {"id": job.id, "wish": None})
    settled = [open_.get(column.position, column) for column in columns]
    remember(connection, job.organisation_id, job.importer, _worth_remembering(settled), who)
    return jobs.get_job(connection, str(job.id))


def _accepted(column: ColumnMapping, who: str) -> ColumnMapping:
    """The column as it is taken when nothing more is said of it. One that is open was left out by nobody."""
    if column.target_field is None:
        return replace(column, status="IGNORED", reason="left out when the columns were confirmed", decided_by=None)
    return replace(column, status="USER_CONFIRMED", decided_by=who)


def _worth_remembering(columns: Sequence[ColumnMapping]) -> list[tuple[str, str | None]]:
    """Headers with the field that a person gave them. Parts of joins are left to templates."""
    joined = {column.target_field for column in columns if column.place}
    return [
        (column.header, column.target_field)
        for column in columns
        if column.decided_by
        and not _NAMELESS.fullmatch(column.header)
        and (column.target_field is None or column.target_field not in joined)
    ]
