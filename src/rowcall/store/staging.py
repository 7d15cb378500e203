"""The way into a target when a plain COPY won't do: a temporary table, and set statements from there.

All SQL with the names of an application's tables and columns is made here, quoted by psycopg.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal, LiteralString
from uuid import UUID

import polars as pl
import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.model import Code
from rowcall.store.copying import copy_in
from rowcall.store.targets import Target

STAGE = Identifier("pg_temp", "rowcall_stage")
MATCH = Identifier("pg_temp", "rowcall_match")
_COMPARED_AS: dict[str, LiteralString] = {
    **dict.fromkeys(("xml", "json", "point", "polygon"), "text"),  # they have no equality
    **dict.fromkeys(("circle", "box", "path", "interval", "citext"), "text"),  # theirs takes what differs for equal
}
_COPY_LINE = re.compile(r"^COPY .*?, line (\d+)", re.MULTILINE)
_PIECE = 500
OnMatch = Literal["skip", "fail", "update", "version"]


class Dropped(psycopg.DatabaseError):
    """The target took a statement but not all of its rows: a trigger or a rule drops some without a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What is written to a target: its columns, how rows are matched, what happens with a match."""

    target: Target
    columns: tuple[str, ...]
    """Columns of the target that rows which are created bring."""
    given: frozenset[str]
    """Those of them that the file gives: the others are defaults, and don't change a row that is there."""
    keys: tuple[tuple[str, ...], ...]
    """Columns that a match goes by: the first whose values are all there."""
    on_match: OnMatch
    version: str | None = None
    """The column that numbers the rows of one key, from 1 on."""
    keyed: bool = False
    """Each row brings a key that is taken once, for ever."""

    @property
    def staged(self) -> tuple[str, ...]:
        """The columns of the temporary table: those brought, and those that PostgreSQL fills for the target's key."""
        own = (*self.target.primary_key, *((self.version,) if self.version else ()))
        return tuple(dict.fromkeys((*self.columns, *own)))

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns that make a difference: not the keys that were matched by, nor the target's own numbers."""
        identity = [name for name, column in self.target.columns.items() if column.always]
        fixed = {*self.target.primary_key, *(self.keys[0] if self.keys else ()), self.version, *identity}
        return tuple(name for name in self.columns if name in self.given and name not in fixed)


def prepare(connection: Connection[Any], layout: Layout) -> None:
    """Make the temporary tables of this session. Outside a transaction, so that they outlive one that is undone."""
    typed = [
        SQL("{} {}").format(Identifier(name), SQL(layout.target.columns[name].type))  # pyright: ignore[reportArgumentType] (the catalog's own words)
        for name in layout.staged
    ]
    key = [SQL("rowcall_key text")] if layout.keyed else []
    connection.execute(SQL("DROP TABLE IF EXISTS {}, {}").format(STAGE, MATCH))
    connection.execute(
        SQL("CREATE TEMPORARY TABLE rowcall_stage ({}) ON COMMIT DELETE ROWS").format(
            SQL(", ").join([SQL("rowcall_number bigint"), *key, *typed])
        )
    )
    connection.execute(
        "CREATE TEMPORARY TABLE rowcall_match (number bigint, key text[], tid tid, part oid, stamp xid, "
        "version bigint, changed boolean, before jsonb) ON COMMIT DELETE ROWS"
    )


def load(connection: Connection[Any], rows: pl.DataFrame) -> list[tuple[int, psycopg.Error]]:
    """COPY rows into the temporary table; those that it refuses come back with the reason."""
    connection.execute(SQL("DELETE FROM {}").format(STAGE))  # batches that share a transaction share the table
    connection.execute(SQL("DELETE FROM {}").format(MATCH))
    refused = copy_taken(connection, STAGE, rows)
    # a planner that doesn't know numbers to be unique takes joins for huge, and reads all of the target for them
    connection.execute(SQL("ANALYZE {} (rowcall_number)").format(STAGE))
    return refused


def copy_taken(
    connection: Connection[Any], table: Composed | Identifier, rows: pl.DataFrame
) -> list[tuple[int, psycopg.Error]]:
    """COPY what the table takes of the rows; those that it refuses come back with the reason.

    COPY names the line where it stopped: what stands before goes in again, what stands behind is tried next, in pieces.
    """
    refused: list[tuple[int, psycopg.Error]] = []
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        try:
            with connection.transaction():
                copy_in(connection, table, part)
        except psycopg.Error as error:
            line = _COPY_LINE.search(error.diag.context or "")
            if line is None or (isinstance(error, psycopg.OperationalError) and not _is_beyond_limits(error)):
                raise
            guilty = int(line[1]) - 1
            refused.append((part.item(guilty, "rowcall_number"), error))
            waiting += [*part.slice(guilty + 1).iter_slices(_PIECE), part.head(guilty)]
    return refused


def _is_beyond_limits(error: psycopg.Error) -> bool:
    """Whether a value is more than PostgreSQL can work with, as opposed to what else psycopg calls operational."""
    return (error.sqlstate or "").startswith("54")


def match(connection: Connection[Any], layout: Layout) -> None:
    """Find the target's row for each staged one, and whether it would change."""
    for place, key in enumerate(layout.keys):
        connection.execute(_match_statement(layout, key, layout.keys[:place]))


def matched_meanwhile(connection: Connection[Any], layout: Layout, numbers: Sequence[Sequence[int]]) -> int:
    """How many staged rows had no match and have one by now: somebody else created it.

    `numbers` are the rows in question, for each key those that are matched by it.
    """
    count = 0
    for key, asked in zip(layout.keys, numbers, strict=True):
        select = SQL(
            "SELECT count(*) FROM unnest({numbers}::bigint[]) AS asked (number) "
            "JOIN {stage} s ON s.rowcall_number = asked.number "
            "CROSS JOIN {found} WHERE NOT EXISTS (SELECT FROM {match} m WHERE m.number = s.rowcall_number) "
            # what another staged row matched was there before
            "AND {unmatched}"
        ).format(
            numbers=Value(list(asked)),
            stage=STAGE,
            found=found_by(layout, key),
            match=MATCH,
            unmatched=_UNMATCHED,
        )
        row = connection.execute(select).fetchone()
        count += row[0] if row else 0
    return count


def keys_by(connection: Connection[Any], layout: Layout, rows: pl.DataFrame) -> pl.DataFrame:
    """The first key, as texts, of the target's rows that have the values of the second: by `rowcall_number`."""
    key, natural = layout.keys
    values = [SQL("t.{}::text").format(Identifier(name)) for name in key]
    select = SQL("SELECT DISTINCT s.rowcall_number, {} FROM {} s CROSS JOIN {}").format(
        SQL(", ").join(values), STAGE, found_by(layout, natural)
    )
    prepare(connection, layout)
    with connection.transaction():
        load(connection, rows)
        found = connection.execute(select).fetchall()
    return pl.DataFrame(found, schema={"rowcall_number": pl.Int64, **dict.fromkeys(key, pl.String)}, orient="row")


_UNMATCHED = SQL("NOT EXISTS (SELECT FROM {} m WHERE m.tid = t.ctid AND m.part = t.tableoid)").format(MATCH)


def found_by(layout: Layout, key: Sequence[str], *, latest: str | None = None) -> Composed:
    """The rows `t` of the target that have a staged row's values in unique columns; the one with the latest version.

    One look-up for each row: left to itself, the planner would rather read the whole target for every batch.
    """
    same = SQL(" AND ").join(SQL("t.{0} = s.{0}").format(Identifier(name)) for name in key)
    which = SQL("ORDER BY t.{} DESC LIMIT 1").format(Identifier(latest)) if latest else SQL("OFFSET 0")
    return SQL("LATERAL (SELECT t.*, t.ctid, t.xmin, t.tableoid FROM {} t WHERE {} {}) t").format(
        layout.target.own_rows, same, which
    )


def _without(keys: tuple[tuple[str, ...], ...]) -> Composed:
    """Whether a staged row lacks a value of each of these keys."""
    lacking = [
        SQL("({})").format(SQL(" OR ").join(SQL("s.{} IS NULL").format(Identifier(name)) for name in key))
        for key in keys
    ]
    return SQL(" AND ").join([SQL("true"), *lacking])


def _match_statement(layout: Layout, key: tuple[str, ...], earlier: tuple[tuple[str, ...], ...]) -> Composed:
    left = [_without(earlier), *([_UNMATCHED] if earlier else [])]  # a row of the target is matched once
    changed = _changed(layout)
    image = SQL("to_jsonb(t.*) - 'ctid' - 'xmin' - 'tableoid'")
    before = SQL("CASE WHEN {} THEN {} END").format(changed, image) if _writes(layout) else SQL("NULL::jsonb")
    return SQL(
        "INSERT INTO {match} SELECT s.rowcall_number, {key}, t.ctid, t.tableoid, t.xmin, {version}, {changed}, "
        "{before} FROM {stage} s CROSS JOIN {found} WHERE {only}"
    ).format(
        match=MATCH,
        key=_key_of(layout, "t"),
        version=SQL("t.{}").format(Identifier(layout.version)) if layout.version else SQL("NULL"),
        changed=changed if _writes(layout) else SQL("false"),
        before=before,
        stage=STAGE,
        found=found_by(layout, key, latest=layout.version),
        only=SQL(" AND ").join(left),
    )


def _writes(layout: Layout) -> bool:
    return layout.on_match in ("update", "version")


def _changed(layout: Layout) -> Composable:
    """Whether a staged row says something new about its match."""
    pairs = [
        SQL("t.{0}{2} IS DISTINCT FROM {1}{2}").format(Identifier(name), _new(layout, name), _comparable(layout, name))
        for name in layout.compared
    ]
    return SQL("({})").format(SQL(" OR ").join(pairs)) if pairs else SQL("false")


def _comparable(layout: Layout, name: str) -> Composable:
    cast = _COMPARED_AS.get(layout.target.columns[name].base)
    return SQL("::{}").format(SQL(cast)) if cast else SQL("")


def _new(layout: Layout, name: str) -> Composable:
    """A row's new value: where there must be one and none is given, the old one stays."""
    keep = "COALESCE(s.{0}, t.{0})" if layout.target.columns[name].not_null else "s.{0}"
    return SQL(keep).format(Identifier(name))


def _key_of(layout: Layout, alias: Literal["s", "t"]) -> Composable:
    """The target's key as an array of texts."""
    parts = [SQL(alias + ".{}::text").format(Identifier(name)) for name in layout.target.primary_key]
    return SQL("ARRAY[{}]::text[]").format(SQL(", ").join(parts)) if parts else SQL("NULL::text[]")


def fill(connection: Connection[Any], layout: Layout, full: Set[str]) -> None:
    """Give rows that will be created what the target gives by default, where it must have a value and none came.

    The columns of `full` have a value in every row.
    """
    new = SQL("NOT EXISTS (SELECT FROM {} m WHERE m.number = s.rowcall_number{})").format(
        MATCH, SQL(" AND NOT m.changed") if layout.version else SQL("")
    )
    for name in layout.staged:
        column = layout.target.columns[name]
        if name not in full and column.default is not None and column.not_null and name != layout.version:
            connection.execute(
                SQL("UPDATE {} s SET {} = {} WHERE s.{} IS NULL AND {}").format(
                    STAGE,
                    Identifier(name),
                    SQL(column.default),  # pyright: ignore[reportArgumentType] (the catalog's own expression)
                    Identifier(name),
                    new,
                )
            )
    if layout.version:
        connection.execute(
            SQL(
                "UPDATE {stage} s SET {version} = 1 + coalesce(m.version, 0) FROM {stage} x "
                "LEFT JOIN {match} m ON m.number = x.rowcall_number WHERE x.rowcall_number = s.rowcall_number"
            ).format(stage=STAGE, match=MATCH, version=Identifier(layout.version))
        )


def take_keys(connection: Connection[Any], importer: str, job_id: UUID) -> list[tuple[int, str, int]]:
    """Take the keys of rows that will be created; those that were taken come back, with the job and row that did."""
    connection.execute(
        SQL(
            "INSERT INTO rowcall.row_key (importer, key, job_id, row_number) "
            "SELECT %s, s.rowcall_key, %s, s.rowcall_number FROM {} s "
            "WHERE NOT EXISTS (SELECT FROM {} m WHERE m.number = s.rowcall_number) "
            "ORDER BY s.rowcall_key, s.rowcall_number ON CONFLICT DO NOTHING"
        ).format(STAGE, MATCH),
        [importer, job_id],
    )
    taken = connection.execute(
        SQL(
            "SELECT s.rowcall_number, coalesce(j.number, k.job_id::text), k.row_number FROM {} s "
            "JOIN rowcall.row_key k ON k.importer = %s AND k.key = s.rowcall_key "
            "LEFT JOIN rowcall.job j ON j.id = k.job_id WHERE (k.job_id, k.row_number) <> (%s, s.rowcall_number)"
        ).format(STAGE),
        [importer, job_id],
    ).fetchall()
    remove(connection, [number for number, _, _ in taken])
    return taken


def remove(connection: Connection[Any], numbers: Sequence[int]) -> None:
    """Take rows out of the temporary table."""
    if numbers:
        connection.execute(
            SQL(
                "DELETE FROM {} s USING unnest(%s::bigint[]) AS gone (number) WHERE s.rowcall_number = gone.number"
            ).format(STAGE),
            [list(numbers)],
        )


def give_back_keys(connection: Connection[Any], job_id: UUID, numbers: Sequence[int]) -> None:
    """Rows that were not created after all have no key."""
    connection.execute(
        "DELETE FROM rowcall.row_key WHERE job_id = %s AND row_number = ANY(%s)", [job_id, list(numbers)]
    )


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
    created, updated = done or (0, 0)
    if created < to_create:
        raise Dropped
    return _left_out(connection, layout, only, to_update - updated) if updated < to_update else 0


def counting(layout: Layout, only: Composable) -> Composed:
    """How many of the staged rows are to be created, and how many to be updated if that is asked for."""
    return SQL(
        "SELECT count(*) FILTER (WHERE m.number IS NULL OR {}), count(*) FILTER (WHERE m.changed) "
        "FROM {} s LEFT JOIN {} m ON m.number = s.rowcall_number WHERE true{}"
    ).format(_new_version(layout), STAGE, MATCH, only)


def writing(layout: Layout, only: Composable, *, create: bool, update: bool) -> Composed:
    """Create and update, and say how many of each.

    One statement, so that triggers and foreign keys see the target when all of it is there.
    """
    nothing = SQL("SELECT 0 AS number WHERE false")
    return SQL(
        "WITH {changed}, created AS ({created}), updated AS ({updated}) "
        "SELECT (SELECT count(*) FROM created), (SELECT count(*) FROM updated)"
    ).format(
        changed=_changed_rows(only),
        created=_creating(layout, only) if create else nothing,
        updated=_updating(layout) if update else nothing,
    )


def _new_version(layout: Layout) -> SQL:
    """Whether a match is written as a row of its own."""
    return SQL("m.changed" if layout.version else "false")


def _creating(layout: Layout, only: Composable) -> Composed:
    written = SQL(", ").join(map(Identifier, layout.staged))
    return SQL(
        "INSERT INTO {target} ({written}) OVERRIDING SYSTEM VALUE SELECT {written} FROM {stage} s "
        "WHERE NOT EXISTS (SELECT FROM {match} m WHERE m.number = s.rowcall_number AND NOT {new}){only} "
        "ORDER BY s.rowcall_number RETURNING 1"
    ).format(
        target=layout.target.identifier,
        written=written,
        stage=STAGE,
        match=MATCH,
        new=_new_version(layout),
        only=only,
    )


_SEEN = SQL("t.ctid = s.rowcall_tid AND t.tableoid = s.rowcall_part AND t.xmin = s.rowcall_stamp")
"""Whether a row of the target is as it was when it was matched."""


def _changed_rows(only: Composable) -> Composed:
    return SQL(
        "changed AS MATERIALIZED ("
        "SELECT s.*, m.tid AS rowcall_tid, m.part AS rowcall_part, m.stamp AS rowcall_stamp "
        "FROM {match} m JOIN {stage} s ON s.rowcall_number = m.number WHERE m.changed{only})"
    ).format(match=MATCH, stage=STAGE, only=only)


def _updating(layout: Layout) -> Composed:
    assignments = SQL(", ").join(
        SQL("{} = {}").format(Identifier(name), _new(layout, name)) for name in layout.compared
    )
    return SQL("UPDATE {} t SET {} FROM changed s WHERE {} RETURNING 1").format(
        layout.target.identifier, assignments, _SEEN
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


def index_numbers(connection: Connection[Any]) -> None:
    """Have rows found by number without reading all. Of use where they are written piece by piece."""
    connection.execute(SQL("CREATE INDEX ON {} (rowcall_number)").format(STAGE))
    connection.execute(SQL("CREATE INDEX ON {} (number)").format(MATCH))


def staged_numbers(connection: Connection[Any]) -> list[int]:
    """The rows that are in the temporary table, in order."""
    rows = connection.execute(SQL("SELECT rowcall_number FROM {} ORDER BY 1").format(STAGE))
    return [number for (number,) in rows]


def add_outcomes(connection: Connection[Any], layout: Layout, job_id: UUID, key_fields: str | None) -> None:
    """An outcome for every staged row. What a skip or a refusal of a match says is added to it."""
    said = {
        "skip": ("skipped", "A row with this key exists; it was left as it is."),
        "fail": ("failed", "A row with this key exists already."),
    }.get(layout.on_match)
    matched: Composable = SQL("CASE WHEN m.changed THEN 'updated' ELSE 'unchanged' END")
    issues: Composable = SQL("NULL::jsonb")
    if said and layout.keys:
        matched = Value(said[0])
        key = layout.keys[0]
        value = SQL(" || ', ' || ").join(SQL("s.{}::text").format(Identifier(name)) for name in layout.keys[-1])
        if len(layout.keys) > 1:
            first = SQL(" || ', ' || ").join(SQL("s.{}::text").format(Identifier(name)) for name in key)
            value = SQL("coalesce({}, {})").format(first, value)
        issues = SQL(
            "CASE WHEN m.number IS NOT NULL THEN jsonb_build_array(jsonb_build_object("
            "'code', {code}, 'field', {field}, 'value', {value}, 'message', {message})) END"
        ).format(code=Value(Code.ALREADY_EXISTS.value), field=Value(key_fields), value=value, message=Value(said[1]))
    connection.execute(
        SQL(
            "INSERT INTO rowcall.outcome (job_id, row_number, status, target_key, issues, before) "
            "SELECT {job}, s.rowcall_number, "
            "(CASE WHEN m.number IS NULL THEN 'created' ELSE {matched} END)::rowcall.status, "
            "{key}, {issues}, m.before FROM {stage} s LEFT JOIN {match} m ON m.number = s.rowcall_number"
        ).format(
            job=Value(job_id),  # no parameter: a percent sign in a column's name would be taken for one
            matched=matched,
            key=SQL("CASE WHEN m.number IS NULL OR {} THEN {} ELSE m.key END").format(
                SQL("m.changed" if layout.version else "false"), _key_of(layout, "s")
            ),
            issues=issues,
            stage=STAGE,
            match=MATCH,
        )
    )


def has_rows(connection: Connection[Any], target: Target) -> bool:
    """Whether there is anything in the target."""
    row = connection.execute(SQL("SELECT EXISTS (SELECT FROM {})").format(target.identifier)).fetchone()
    return bool(row and row[0])


def default_values(connection: Connection[Any], expression: str, count: int) -> list[str]:
    """So many values of a column's default."""
    # no parameters: a percent sign in the expression would be taken for one
    select = SQL("SELECT ({})::text FROM generate_series(1, {})").format(
        SQL(expression),  # pyright: ignore[reportArgumentType] (the catalog's own expression)
        Value(count),
    )
    return [value for (value,) in connection.execute(select)]
