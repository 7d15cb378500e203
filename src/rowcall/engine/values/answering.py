"""What a person is asked about the values of a file, and what they answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.moves import require
from rowcall.engine.values.known import Known, LookedUp, known_of
from rowcall.errors import Final, NotSettled
from rowcall.importer import Choice, Importer, Lookup
from rowcall.model import Code
from rowcall.store import jobs, value_answers, value_mappings
from rowcall.store.jobs import Job
from rowcall.store.queries import query
from rowcall.store.value_answers import Said
from rowcall.store.value_mappings import OpenField


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueUpdate:
    """What a person says of values: one of confirm, a target, ignore, skip, create.

    Of those with these ids, else of a field's value (in a scope), else of all values that fit field, status and text.
    """

    ids: Sequence[int] | None = None
    field: str | None = None
    value: str | None = None
    scope: str | None = None
    status: str | None = None
    text: str | None = None
    alike: bool = False
    """Near-duplicates of those with these ids, too."""
    confirm: bool = False
    """What is proposed is right."""
    target: str | None = None
    """The key of what they stand for, or what it is looked up by."""
    ignore: bool = False
    """They stand for nothing: the field stays empty."""
    skip: bool = False
    """Rows with them are skipped."""
    create: bool = False
    """What they name is to be created."""


@dataclass(frozen=True, slots=True)
class Target:
    """What values are to stand for."""

    key: str
    label: str
    within: str | None
    """The scope that it is in, where there are scopes."""


_REASONS = {
    "use": "chosen by hand",
    "empty": "left empty by hand",
    "skip": "rows left out by hand",
    "create": "to be created, as was said by hand",
}


Targets = Mapping[tuple[str, str], Target]
"""What values are to stand for, by field and key."""


def targets_named(connection: Connection[Any], job: Job, updates: Sequence[ValueUpdate]) -> set[tuple[str, str]]:
    """The field and key of everything that values are to stand for."""
    named: set[tuple[str, str]] = set()
    for each in updates:
        if each.target is not None:
            fields = value_answers.fields_meant(connection, job.id, _checked(each))
            if len(fields) > 1:
                raise Final(Code.BAD_MAPPING, f"Values of {' and '.join(fields)} can't stand for the same.")
            named |= {(field, each.target) for field in fields}
    return named


def find_targets(tables: Connection[Any], importer: type[Importer], named: Iterable[tuple[str, str]]) -> Targets:
    """The same, found in the application's tables; what isn't there is refused."""
    return {(field, key): _target(tables, importer, field, key) for field, key in named}


def update(
    connection: Connection[Any],
    job: Job,
    importer: type[Importer],
    updates: Sequence[ValueUpdate],
    targets: Targets,
    who: str,
) -> int:
    """Take what a person says of some values; of how many. Called in a transaction."""
    job = jobs.seize(connection, job)
    require(job, "decide")
    return sum(_taken(connection, job, importer, each, targets, who) for each in updates)


def _taken(
    connection: Connection[Any], job: Job, importer: type[Importer], each: ValueUpdate, targets: Targets, who: str
) -> int:
    said = _checked(each)
    fields = value_answers.fields_meant(connection, job.id, said)
    if not fields:
        raise _unknown(job, each)
    if each.target is not None:
        target = targets[fields[0], each.target]
        said = replace(said, key=target.key, label=target.label, within=target.within)
    if each.create:
        _require_creating(importer, fields)
        said = replace(said, scoped=[name for name in fields if _is_scoped(importer, name)])
    if each.value is not None and each.scope is None and not _is_scoped(importer, fields[0]):
        said = replace(said, scope="")  # then it is found by its digest
    heard = value_answers.decide_values(connection, job.id, said, who)
    if heard.said < heard.chosen or not heard.chosen:
        _refuse(job, each, heard)
    return heard.said


def _takes_some(each: ValueUpdate, heard: value_answers.Heard) -> bool:
    """Whether of all that are meant, something is said of those that it makes sense for, or that are still open."""
    if not heard.said or each.ids is not None:
        return False
    return each.value is None or (each.scope is None and heard.said + heard.fixed == heard.chosen)


def _unknown(job: Job, each: ValueUpdate) -> Final:
    return Final(
        Code.BAD_MAPPING,
        f"{_meant(each)} is none of the values of job {job.number}.",
        hint=f"`rowcall values {job.number}` lists them.",
        over_http="`GET …/cell-mappings` lists them.",
    )


def _checked(each: ValueUpdate) -> Said:
    """What is said, if it is one thing and of some values."""
    said = {
        "use": each.confirm or each.target is not None,
        "empty": each.ignore,
        "skip": each.skip,
        "create": each.create,
    }
    if [each.confirm, each.target is not None, each.ignore, each.skip, each.create].count(True) != 1:
        told = f"Of {_meant(each)} one of confirm, targetId, ignore, skip and create is to be said."
        raise Final(Code.BAD_MAPPING, told)
    if each.ids is None and each.field is None:
        raise Final(Code.BAD_MAPPING, "It isn't said which values are meant.", hint="Say `ids`, or `field`.")
    if each.alike and each.ids is None:
        raise Final(Code.BAD_MAPPING, "`alike` is about values that are meant by `ids`.")
    action = next(name for name, is_said in said.items() if is_said)
    return Said(
        ids=each.ids,
        field=each.field,
        value=each.value,
        scope=each.scope,
        status=each.status,
        text=each.text,
        alike=each.alike,
        action=action,  # pyright: ignore[reportArgumentType] (one of the four above)
        reason="confirmed by hand" if each.confirm else _REASONS[action],
    )


def _meant(each: ValueUpdate) -> str:
    if each.value is not None:
        return f"{each.value!r}"
    return f"id {', '.join(map(str, each.ids[:5]))}" if each.ids else "what is meant"


def _target(tables: Connection[Any], importer: type[Importer], name: str, said: str) -> Target:
    known = known_of(importer, name)
    key = said
    labels = known.labels(tables, [key])
    if key not in labels and (found := _looked_up(tables, known, said)):
        key, labels = found, known.labels(tables, [found])
    if key not in labels:
        choices = _choices(importer, name)
        raise Final(
            Code.BAD_MAPPING,
            f"{said!r} is not in {known.called} for {name}.",
            hint=choices or f"Search what there is with --search {name}:TEXT.",
            over_http=choices or "Search what there is with `candidates`.",
        )
    within = known.scopes(tables, [key]).get(key, "") if isinstance(known, LookedUp) and known.scoped else None
    return Target(key, labels[key], within)


def _looked_up(tables: Connection[Any], known: Known, text: str) -> str | None:
    """The key of the one row that a cell with this text would stand for. Within scopes, no text is one by itself."""
    if known.scoped:
        return None
    found = known.found(tables, pl.DataFrame({"value": [text], "scope": [""]}))
    return found.item(0, "key") if found.height == 1 and found.item(0, "keys") == 1 else None


def _choices(importer: type[Importer], name: str) -> str:
    field = importer.fields[name]
    return f"There are {', '.join(field.values)}." if isinstance(field, Choice) else ""


def _is_scoped(importer: type[Importer], name: str) -> bool:
    field = importer.fields.get(name)
    return isinstance(field, Lookup) and field.within is not None


def _require_creating(importer: type[Importer], fields: Sequence[str]) -> None:
    for name in fields:
        field = importer.fields[name]
        if not isinstance(field, Lookup) or not field.creates:
            told = f"{importer.name} doesn't have rows created for {name}."
            raise Final(Code.BAD_MAPPING, told, hint="Choose one that is there, or declare the field with `creates`.")


def _refuse(job: Job, each: ValueUpdate, heard: value_answers.Heard) -> None:
    if _takes_some(each, heard):
        return
    if not heard.chosen:
        raise _unknown(job, each)
    what = f"{heard.first!r}"
    if heard.fixed:
        told, hint = (
            f"What {what} stands for was settled when the job began to write.",
            "Undo the job, or reprocess these rows when it ends.",
        )
    elif each.confirm:
        told, hint = f"Nothing is proposed for {what} that could be confirmed.", "Say what it stands for."
    elif each.create:
        told = f"What {what} is looked up within has no value: nothing is created there, and rows with it would fail."
        hint = "Choose one that is there, leave it empty, or skip rows with it."
    else:
        told, hint = f"{each.target!r} is not in the scope that {what} is looked up within.", "Choose another."
    raise Final(Code.BAD_MAPPING, told, hint=hint)


def confirm(connection: Connection[Any], job: Job) -> Job:
    """Let the job go on with what its values stand for, and remember it. Called in a transaction.

    Raises `NotSettled` while something is unresolved.
    """
    job = jobs.seize(connection, job)
    require(job, "decide")
    if open_ := value_mappings.open_fields(connection, job.id):
        raise not_settled(job, open_)
    value_mappings.name_created(connection, job.id)
    value_answers.remember_values(connection, job.id)
    connection.execute(query("set_wish"), {"id": job.id, "wish": None})
    return jobs.get_job(connection, str(job.id))


def not_settled(job: Job, open_: Sequence[OpenField]) -> NotSettled:
    """The error that lists what nobody has said yet."""
    listed = "; ".join(f"{each.field}: {_some(each)}" for each in open_)
    return NotSettled(
        Code.VALUES_UNRESOLVED,
        f"Job {job.number} has values of which nobody has said what they stand for: {listed}.",
        hint="Say what each stands for, or that it is to be left empty, its rows skipped, or it created.",
        missing=[
            {"field": each.field, "unresolved": each.values, "rows": each.rows, "values": each.first} for each in open_
        ],
    )


def _some(each: OpenField) -> str:
    more = f" and {each.values - len(each.first):,} more" if each.values > len(each.first) else ""
    return ", ".join(repr(value[:60]) for value in each.first) + more
