"""What a person is asked about the columns of a file, and what they answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from psycopg import Connection

from rowcall.engine.map import check_field, near_miss, required_without
from rowcall.engine.moves import require
from rowcall.errors import Final, NotSettled
from rowcall.importer import Importer
from rowcall.model import Code
from rowcall.store import jobs
from rowcall.store.jobs import Job, JobConfig
from rowcall.store.mappings import ColumnMapping, columns_of, decide_columns
from rowcall.store.queries import query

_SETTLED = ("AUTO_MATCHED", "USER_CONFIRMED", "USER_OVERRIDDEN")
_ASKED_ALWAYS = ("AUTO_MATCHED", "UNRESOLVED")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUpdate:
    """What a person says of a column: one of confirm, a field, ignore; and how it is read, if that was asked."""

    position: int
    confirm: bool = False
    target_field: str | None = None
    ignore: bool = False
    date_order: Literal["dmy", "mdy", "ymd"] | None = None
    decimal_mark: Literal[".", ","] | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A required field that no column goes to, with the header that is most like it."""

    field: str
    near: str | None


def asks(importer: type[Importer], columns: Sequence[ColumnMapping], config: JobConfig, needed: frozenset[str]) -> bool:
    """Whether a person is to say something before the job goes on, of an importer that has them asked."""
    asked = _ASKED_ALWAYS if importer.flow.columns == "always" else ("UNRESOLVED",)
    open_ = any(column.status in asked for column in columns)
    return open_ or bool(missing_fields(importer, columns, config, needed))


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
    given = {*config.constants, *(column.target_field for column in columns if column.status in statuses)}
    return [Missing(name, _near(importer, name, columns)) for name in required_without(importer, given, needed)]


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
        hint="Say which columns these are.",
        missing=[{"field": each.field, "nearMiss": each.near} for each in missing],
    )


# ----------------------------------------------------------------------------------------------------------- answers


def update(
    connection: Connection[Any], job: Job, importer: type[Importer], updates: Sequence[ColumnUpdate], who: str
) -> list[ColumnMapping]:
    """The columns with what a person says of some. Called in a transaction.

    A field that another column has is taken from it; that column is a question then.
    """
    require(job, "map")
    columns = {column.position: column for column in columns_of(connection, job.id)}
    changed = {each.position: _decided(importer, columns, each, who) for each in updates}
    given = [column.target_field for column in changed.values() if column.target_field]
    if twice := {name for name in given if given.count(name) > 1}:
        raise Final(Code.BAD_MAPPING, f"Two columns can't both go to {min(twice)!r}.", hint="Leave one of them out.")
    for column in columns.values():
        if column.position not in changed and column.target_field in given:
            told = f"{column.target_field} was given to another column"
            lost = replace(column, target_field=None, status="UNRESOLVED", reason=told, date_order=None)
            changed[column.position] = replace(lost, decimal_mark=None, decided_by=who)
    decide_columns(connection, job.id, list(changed.values()))
    return columns_of(connection, job.id)


def _decided(
    importer: type[Importer], columns: Mapping[int, ColumnMapping], said: ColumnUpdate, who: str
) -> ColumnMapping:
    column = columns.get(said.position)
    if column is None:
        told = f"The file has no column at position {said.position}."
        raise Final(Code.BAD_MAPPING, told, hint=f"Positions are 0 to {len(columns) - 1}.")
    if [said.confirm, said.target_field is not None, said.ignore].count(True) != 1:
        told = f"Of column {column.header!r} one of confirm, targetField and ignore is to be said."
        raise Final(Code.BAD_MAPPING, told)
    column = replace(column, decided_by=who)
    if said.ignore:
        return replace(column, target_field=None, status="IGNORED", reason="left out by hand")
    name = said.target_field if said.target_field is not None else column.target_field
    if name is None:
        told = f"Nothing is proposed for column {column.header!r} that could be confirmed."
        raise Final(Code.BAD_MAPPING, told, hint="Say `targetField` or `ignore`.")
    check_field(importer, name)
    same = name == column.target_field
    return replace(
        column,
        target_field=name,
        status="USER_CONFIRMED" if same else "USER_OVERRIDDEN",
        reason="confirmed by hand" if same else "chosen by hand",
        date_order=said.date_order or (column.date_order if same else None),
        decimal_mark=said.decimal_mark or (column.decimal_mark if same else None),
    )


def confirm(connection: Connection[Any], job: Job, importer: type[Importer], needed: frozenset[str], who: str) -> Job:
    """Let the job go on with its columns as they are: what is proposed is taken, what is not is left out.

    Called in a transaction. Raises `NotSettled` while a required field is missing.
    """
    require(job, "confirm")
    columns = columns_of(connection, job.id)
    if missing := missing_fields(importer, columns, job.config, needed, proposed=True):
        raise not_settled(importer, missing)
    open_ = [column for column in columns if column.status in _ASKED_ALWAYS]
    decide_columns(connection, job.id, [_accepted(column, who) for column in open_])
    connection.execute(query("set_wish"), {"id": job.id, "wish": None})
    return jobs.get_job(connection, str(job.id))


def _accepted(column: ColumnMapping, who: str) -> ColumnMapping:
    if column.target_field is None:
        return replace(column, status="IGNORED", reason="left out when the columns were confirmed", decided_by=who)
    return replace(column, status="USER_CONFIRMED", decided_by=who)
