"""From the temporary table into the target: creating, updating, and an outcome for each row."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.model import Code
from rowcall.store.images import imaged
from rowcall.store.layout import Layout
from rowcall.store.matching import key_of, new_value
from rowcall.store.staging import MATCH, STAGE


class Dropped(psycopg.DatabaseError):
    """The target took a statement but not all of its rows: a trigger or a rule drops some, or changes their keys."""


def write(connection: Connection[Any], layout: Layout, numbers: Sequence[int] | None = None) -> int:
    """Create and update what the staged rows say, all of them or those with these numbers.

    Returns how many matches were changed by somebody else meanwhile: then nothing of this may stay.
    """
    only = SQL(" AND s.rowcall_number = ANY({})").format(Value(list(numbers))) if numbers is not None else SQL("")
    to_create, to_update = connection.execute(counting(layout, only)).fetchone() or (0, 0)
    if layout.on_match != "update":
        to_update = 0
    if not to_create and not to_update:
        return 0
    done = connection.execute(writing(layout, only, create=to_create > 0, update=to_update > 0)).fetchone()
    created, updated, strayed = done or (0, 0, 0)
    if created < to_create or strayed:
        raise Dropped
    return _left_out(connection, layout, only, to_update - updated) if updated < to_update else 0


def counting(layout: Layout, only: Composable) -> Composed:
    """How many of the staged rows are to be created, and how many to be updated if that is asked for."""
    return SQL(
        "SELECT count(*) FILTER (WHERE m.number IS NULL OR {}), count(*) FILTER (WHERE m.changed) "
        "FROM {} s LEFT JOIN {} m ON m.number = s.rowcall_number WHERE true{}"
    ).format(_new_version(layout), STAGE, MATCH, only)


def writing(layout: Layout, only: Composable, *, create: bool, update: bool) -> Composed:
    """Create and update, and say how many of each, and how many of them have another key than they were to have.

    One statement, so that triggers and foreign keys see the target when all of it is there.
    """
    nothing = SQL("SELECT false AS strayed WHERE false")
    update = update and bool(layout.compared)
    strayed = [SQL("0"), *_strayed(layout, only, create=create, update=update)]
    return SQL(
        "WITH {changed}, created AS ({created}), updated AS ({updated}) "
        "SELECT (SELECT count(*) FROM created), (SELECT count(*) FROM updated), {strayed}"
    ).format(
        changed=_changed_rows(only),
        created=_creating(layout, only) if create else nothing,
        updated=_updating(layout) if update else nothing,
        strayed=SQL(" + ").join(strayed),
    )


def _strayed(layout: Layout, only: Composable, *, create: bool, update: bool) -> Iterator[Composable]:
    """How many rows don't have the key by which their outcome names them, where a trigger may have changed it."""
    if not layout.target.keys_change:
        return
    if create:
        columns = [layout.target.columns[name] for name in layout.target.primary_key]
        same = SQL(" AND ").join(each.equal(Identifier("s", each.name), Identifier("t", each.name)) for each in columns)
        yield SQL(
            "(SELECT count(*) FROM (SELECT *, row_number() OVER () AS rowcall_place FROM created) t "
            "JOIN (SELECT s.*, row_number() OVER (ORDER BY s.rowcall_number) AS rowcall_place FROM {coming}) s "
            "USING (rowcall_place) WHERE ({same}) IS NOT TRUE)"
        ).format(coming=_coming(layout, only), same=same)
    if update:
        yield SQL("(SELECT count(*) FROM updated WHERE strayed)")


def _new_version(layout: Layout) -> SQL:
    """Whether a match is written as a row of its own."""
    return SQL("m.changed" if layout.version else "false")


def _creating(layout: Layout, only: Composable) -> Composed:
    return SQL(
        "INSERT INTO {target} ({written}) OVERRIDING SYSTEM VALUE SELECT {written} FROM {coming} "
        "ORDER BY s.rowcall_number RETURNING {told}"
    ).format(
        target=layout.target.identifier,
        written=SQL(", ").join(map(Identifier, layout.staged)),
        coming=_coming(layout, only),
        told=SQL(", ").join(map(Identifier, layout.target.primary_key)) if layout.target.keys_change else SQL("1"),
    )


def _coming(layout: Layout, only: Composable) -> Composed:
    """The staged rows that are to be created."""
    return SQL(
        "{stage} s WHERE NOT EXISTS (SELECT FROM {match} m WHERE m.number = s.rowcall_number AND NOT {new}){only}"
    ).format(stage=STAGE, match=MATCH, new=_new_version(layout), only=only)


_SEEN = SQL("t.ctid = s.rowcall_tid AND t.tableoid = s.rowcall_part AND t.xmin = s.rowcall_stamp")
"""Whether a row of the target is as it was when it was matched."""


def _changed_rows(only: Composable) -> Composed:
    return SQL(
        "changed AS MATERIALIZED ("
        "SELECT s.*, m.tid AS rowcall_tid, m.part AS rowcall_part, m.stamp AS rowcall_stamp, m.key AS rowcall_found "
        "FROM {match} m JOIN {stage} s ON s.rowcall_number = m.number WHERE m.changed{only})"
    ).format(match=MATCH, stage=STAGE, only=only)


def _updating(layout: Layout) -> Composed:
    assignments = SQL(", ").join(
        SQL("{} = {}").format(Identifier(name), new_value(layout, name)) for name in layout.compared
    )
    return SQL("UPDATE {} t SET {} FROM changed s WHERE {} RETURNING {} <> s.rowcall_found AS strayed").format(
        layout.target.identifier, assignments, _SEEN, key_of(layout, "t")
    )


def _left_out(connection: Connection[Any], layout: Layout, only: Composable, count: int) -> int:
    """How many matches somebody else has changed: all that were not updated, unless a trigger dropped some of them."""
    as_they_were = connection.execute(left_as_they_were(layout, only)).fetchone()
    if as_they_were and as_they_were[0]:
        raise Dropped
    return count


def left_as_they_were(layout: Layout, only: Composable) -> Composed:
    """How many matches that were to be updated are as they were when they were matched."""
    return SQL("WITH {} SELECT count(*) FROM changed s JOIN {} t ON {}").format(
        _changed_rows(only), layout.target.identifier, _SEEN
    )


def add_outcomes(
    connection: Connection[Any], layout: Layout, job_id: UUID, key_fields: Sequence[str | None], *, changes: bool
) -> None:
    """An outcome for every staged row. `changes`: with what is changed in rows that are there, from what to what."""
    connection.execute(
        SQL(
            "INSERT INTO rowcall.outcome (job_id, row_number, status, target_key, issues, before, result, seen) "
            "SELECT {job}, outcome.* FROM ({outcomes}) outcome ORDER BY row_number"
        ).format(
            job=Value(job_id),  # no parameter: a percent sign in a column's name would be taken for one
            outcomes=outcomes_of(layout, key_fields, changes=changes),
        )
    )


def unchanged(connection: Connection[Any], layout: Layout) -> npt.NDArray[np.int64]:
    """The numbers of the staged rows that say nothing new about their match, where that would be written."""
    if not layout.overwrites:
        return np.empty(0, np.int64)
    # as one value: a message for each would cost more than finding them
    select = SQL("SELECT coalesce(string_agg(int8send(number), ''), '') FROM {} WHERE NOT changed").format(MATCH)
    (numbers,) = connection.execute(select, binary=True).fetchone() or (b"",)
    return np.frombuffer(numbers, ">i8").astype(np.int64)


def outcomes_of(layout: Layout, key_fields: Sequence[str | None], *, changes: bool, telling: bool = False) -> Composed:
    """The outcomes of the staged rows. What a skip or a refusal of a match says is added to it.

    `key_fields` names the fields of each key. `telling`: without those of rows that are created or unchanged.
    """
    said = {
        "skip": ("skipped", "A row with this key exists; it was left as it is."),
        "fail": ("failed", "A row with this key exists already."),
    }.get(layout.on_match)
    matched: Composable = SQL("CASE WHEN m.changed THEN 'updated' ELSE 'unchanged' END")
    issues: Composable = SQL("NULL::jsonb")
    if said and layout.keys:
        matched = Value(said[0])
        values = [
            SQL(" || ', ' || ").join(SQL("s.{}::text").format(Identifier(name)) for name in key) for key in layout.keys
        ]
        field = SQL("CASE WHEN {} IS NULL THEN {} ELSE {} END").format(
            values[0], Value(key_fields[-1]), Value(key_fields[0])
        )
        value = SQL("coalesce({}, {})").format(values[0], values[-1])
        issues = SQL(
            "CASE WHEN m.number IS NOT NULL THEN jsonb_build_array(jsonb_build_object("
            "'code', {code}, 'field', {field}, 'value', {value}, 'message', {message})) END"
        ).format(code=Value(Code.ALREADY_EXISTS.value), field=field, value=value, message=Value(said[1]))
    return SQL(
        "SELECT s.rowcall_number AS row_number, "
        "(CASE WHEN m.number IS NULL THEN 'created' ELSE {matched} END)::rowcall.status AS status, "
        "{key} AS target_key, {issues} AS issues, m.before, {changes} AS result, "
        "CASE WHEN m.before IS NOT NULL THEN m.stamp END AS seen "
        "FROM {stage} s {join} {match} m ON m.number = s.rowcall_number WHERE {only}"
    ).format(
        only=SQL("m.changed" if telling and layout.overwrites else "true"),
        join=SQL("JOIN" if telling else "LEFT JOIN"),
        matched=matched,
        key=SQL("CASE WHEN m.number IS NULL OR {} THEN {} ELSE m.key END").format(
            SQL("m.changed" if layout.version else "false"), key_of(layout, "s")
        ),
        issues=issues,
        changes=_changes(layout) if changes else SQL("NULL::jsonb"),
        stage=STAGE,
        match=MATCH,
    )


def _changes(layout: Layout) -> Composed:
    """What a row changes in its match: {"changes": {column: [before, after]}}."""
    each = [
        SQL(
            "CASE WHEN m.before -> {name} IS DISTINCT FROM {value} "
            "THEN jsonb_build_object({name}, jsonb_build_array(m.before -> {name}, {value})) ELSE '{{}}' END"
        ).format(name=Value(name), value=_new_json(layout, name))
        for name in layout.compared
    ]
    if not each:
        return SQL("NULL::jsonb").format()
    return SQL("CASE WHEN m.changed THEN jsonb_build_object('changes', {}) END").format(SQL(" || ").join(each))


def _new_json(layout: Layout, name: str) -> Composed:
    """A row's new value as its match's image would have it: where there must be one and none is given, the old one."""
    column = layout.target.columns[name]
    blank = SQL("m.before -> {}").format(Value(name)) if column.not_null else SQL("'null'::jsonb")
    return SQL("coalesce({}, {})").format(imaged(column, "s"), blank)
