"""Which rows of a target can be brought back to what they were before an import, and the statements that do it.

Outcomes say which row of the target is meant and what it was before. A row is as the import left it when the
transaction that wrote it last is the one that wrote its outcome (`xmin`), or an undo of a later import that brought it
back to that. Which is so is found set-wise in a temporary table, for a slice of a job with its rows locked, or for all
of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row, scalar_row
from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.model import Code
from rowcall.store.copying import jsonb_text
from rowcall.store.grid import Wanted
from rowcall.store.images import columns_of_image, image_of, json_of, value_of
from rowcall.store.referrers import Referrer
from rowcall.store.targets import Target, TargetColumn
from rowcall.store.trial import DROPPED

UNDOING = Identifier("pg_temp", "rowcall_undoing")
UNDONE = Identifier("pg_temp", "rowcall_undone")
_BLOCKING = Identifier("pg_temp", "rowcall_blocking")
_AT = SQL("t.ctid = u.tid AND t.tableoid = u.part AND t.xmin = u.now")
"""Where a row of the target is that was found."""
_LEFT = SQL("u.result IS NULL")
"""Whether a row is to be taken back, by all that is known so far."""
_CHANGED = {"code": Code.CHANGED_SINCE, "message": "The target's row was written since by somebody else; it was kept."}
_LOST = {"code": Code.CHANGED_SINCE, "message": "The table has no longer all columns that this row had; it was kept."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """What is taken back: rows of a job, from a target."""

    job_id: UUID
    target: Target
    referrers: Sequence[Referrer]
    which: Wanted


def prepare(connection: Connection[Any]) -> None:
    """Make the temporary tables of this session. Outside a transaction, so that they outlive one that is undone."""
    connection.execute(SQL("DROP TABLE IF EXISTS {}, {}, {}").format(UNDOING, UNDONE, _BLOCKING))
    # `created` in the target by this row, a version of another one included; `stamp` is its own transaction, `seen` the
    # one before, `now` the target's
    connection.execute(
        "CREATE TEMPORARY TABLE rowcall_undoing (row_number bigint, created boolean, key text[], stamp xid, seen xid, "
        "tid tid, part oid, now xid, result text, issue jsonb) ON COMMIT DELETE ROWS"
    )
    connection.execute("CREATE TEMPORARY TABLE rowcall_undone (row_number bigint, stamp xid) ON COMMIT DELETE ROWS")
    connection.execute(
        "CREATE TEMPORARY TABLE rowcall_blocking (row_number bigint, told jsonb, said text) ON COMMIT DELETE ROWS"
    )


def find(
    connection: Connection[Any], what: Undoing, first: int, last: int, *, lock: bool, kept_by: int | None = None
) -> None:
    """Find the rows between two numbers, with what stands against taking them back; only those that an undo kept."""
    for table in (UNDOING, UNDONE, _BLOCKING):
        connection.execute(SQL("DELETE FROM {}").format(table))
    connection.execute(finding(what, first, last, lock=lock, kept_by=kept_by))
    connection.execute(SQL("ANALYZE {} (row_number, tid)").format(UNDOING))


def finding(what: Undoing, first: int, last: int, *, lock: bool, kept_by: int | None) -> Composed:
    """The statement that finds them."""
    target = what.target
    return SQL(
        "INSERT INTO {undoing} SELECT o.row_number, o.status = 'created' OR {version}, o.target_key, o.xmin, o.seen, "
        "t.ctid, t.tableoid, t.xmin, "
        "CASE WHEN t.ctid IS NULL THEN 'gone' WHEN c.issue IS NOT NULL THEN 'changed' END, c.issue "
        "FROM rowcall.outcome o LEFT JOIN LATERAL "
        "(SELECT t.ctid, t.tableoid, t.xmin FROM {own} t WHERE {same}{lock}) t ON true CROSS JOIN LATERAL (SELECT "
        "CASE WHEN t.ctid IS NULL THEN NULL WHEN NOT {as_left} THEN {changed}::jsonb WHEN {lost} THEN {lacking}::jsonb "
        "END AS issue OFFSET 0) c "
        "WHERE o.job_id = {job} AND o.row_number BETWEEN {first} AND {last} AND o.attempt > 0 "
        "AND o.status IN ('created', 'updated') AND {which} AND {open}"
    ).format(
        undoing=UNDOING,
        version=_is_version(target),
        as_left=_AS_LEFT,
        lost=_lost_column(target),
        changed=Value(jsonb_text(_CHANGED)),
        lacking=Value(jsonb_text(_LOST)),
        own=target.own_rows,
        same=_same(target),
        lock=SQL(" FOR UPDATE" if lock else ""),
        job=Value(what.job_id),
        first=Value(first),
        last=Value(last),
        which=which_rows(what.which),
        open=_is_open(kept_by),
    )


def _is_open(kept_by: int | None) -> Composed:
    """Whether the row of an outcome `o` was not taken back; with an undo's number, whether that has kept it.

    Each row is looked up by itself. Of a table that an undo fills, statistics know nothing of the job: as a join it
    was planned for one row, and took minutes for a slice of 5,000, with their rows of the target locked.
    """
    result = SQL("SELECT {} FROM rowcall.reversal r WHERE r.job_id = o.job_id AND r.row_number = o.row_number")
    if kept_by is None:
        return SQL("({}) IS NOT TRUE").format(result.format(SQL("r.result IN ('deleted', 'restored')")))
    kept = SQL("r.undo = {} AND r.result IN ('changed', 'blocked', 'refused')").format(Value(kept_by))
    return SQL("({})").format(result.format(kept))


_AS_LEFT = SQL(
    "(t.xmin = o.xmin OR EXISTS (SELECT FROM rowcall.reversal v WHERE v.stamp IS NOT NULL "
    "AND v.target_key = o.target_key AND v.stamp = t.xmin AND v.stands_for = o.xmin))"
)


def _same(target: Target) -> Composed:
    """Whether an outcome `o` means the row `t`."""
    return SQL(" AND ").join(
        SQL("t.{} = o.target_key[{}]::{}").format(
            Identifier(name),
            place,
            SQL(target.columns[name].type),  # pyright: ignore[reportArgumentType] (the catalog's own words)
        )
        for place, name in enumerate(target.primary_key, 1)
    )


def _is_version(target: Target) -> Composed:
    """Whether an updated row was written beside the one before it."""
    key = [target.columns[name] for name in target.primary_key]
    values = SQL(", ").join(SQL("{}::text").format(value_of(column)) for column in key)
    return SQL("(o.before IS NOT NULL AND (SELECT ARRAY[{}] FROM {}) <> o.target_key)").format(
        values, columns_of_image(SQL("o.before"), key)
    )


def _lost_column(target: Target) -> Composed:
    """Whether a row had columns that the target has no longer."""
    return SQL(
        "(o.before IS NOT NULL AND EXISTS (SELECT FROM jsonb_object_keys(o.before) k WHERE k <> ALL ({}::text[])))"
    ).format(Value(list(target.columns)))


def which_rows(which: Wanted) -> Composed:
    """Whether an outcome `o` is of a row that is wanted."""
    conditions: list[Composable] = [SQL("true")]
    if which.statuses:
        conditions.append(SQL("o.status::text = ANY ({})").format(Value(list(which.statuses))))
    if which.rows is not None:
        conditions.append(SQL("o.row_number = ANY ({}::bigint[])").format(Value(list(which.rows))))
    if which.code is not None or which.field is not None:
        code = SQL("issue ->> 'code' = {}").format(Value(which.code)) if which.code is not None else SQL("true")
        field = SQL("true")
        if which.field is not None:
            field = SQL("{} = ANY (string_to_array(issue ->> 'field', ', '))").format(Value(which.field))
        conditions.append(
            SQL("EXISTS (SELECT FROM jsonb_array_elements(o.issues) issue WHERE {} AND {})").format(code, field)
        )
    if which.text is not None:
        conditions.append(
            SQL(
                "EXISTS (SELECT FROM rowcall.edited_row r, unnest(r.cells) cell WHERE r.job_id = o.job_id "
                "AND r.number = o.row_number AND strpos(lower(cell), lower({})) > 0)"
            ).format(Value(which.text))
        )
    return SQL(" AND ").join(conditions)


def follow_chains(connection: Connection[Any]) -> None:
    """Rows that only another row of the job has written since will be as they were left when that is taken back."""
    chain = SQL(
        "UPDATE {0} u SET result = NULL, issue = NULL FROM {0} x WHERE u.result = 'changed' AND x.result IS NULL "
        "AND x.key = u.key AND x.seen = u.stamp AND x.row_number <> u.row_number"
    ).format(UNDOING)
    while connection.execute(chain).rowcount:
        pass


# ------------------------------------------------------------------------------------------------------ what refers to


def block(connection: Connection[Any], what: Undoing) -> None:
    """Find the rows that others refer to: they can't be deleted, whatever the foreign key would do about it.

    What refers to a row and will be taken back itself doesn't count; who can't be taken back blocks others in turn.
    """
    for referrer in what.referrers:
        if not referrer.is_of(what.target):
            connection.execute(_unseen(referrer) if not referrer.seen else _blocking(what, referrer))
    _set_blocked(connection)
    own = [referrer for referrer in what.referrers if referrer.is_of(what.target)]
    while sum(connection.execute(_blocking(what, referrer)).rowcount for referrer in own):
        _set_blocked(connection)


def _set_blocked(connection: Connection[Any]) -> None:
    connection.execute(
        SQL(
            "UPDATE {undoing} u SET result = 'blocked', issue = jsonb_build_object('code', {code}, 'message', "
            "f.said || '; it was kept.', 'metadata', jsonb_build_object('dependents', f.told)) "
            "FROM (SELECT row_number, string_agg(said, '; ' ORDER BY said) AS said, "
            "jsonb_agg(told ORDER BY said) AS told FROM {blocking} GROUP BY 1) f "
            "WHERE u.row_number = f.row_number AND {left}"
        ).format(undoing=UNDOING, blocking=_BLOCKING, code=Value(Code.HAS_DEPENDENTS.value), left=_LEFT)
    )


def _blocking(what: Undoing, referrer: Referrer) -> Composed:
    pairs = list(zip(referrer.columns, referrer.target_columns, strict=True))
    refers = SQL(" AND ").join(SQL("d.{} = t.{}").format(Identifier(own), Identifier(other)) for own, other in pairs)
    told = SQL("jsonb_build_object('table', {}, 'constraint', {}, 'rows', count(*))").format(
        Value(referrer.table), Value(referrer.name)
    )
    said = SQL("CASE count(*) WHEN 1 THEN {} ELSE count(*) || {} END").format(
        Value(f"1 row of {referrer.table} refers to it ({referrer.name})"),
        Value(f" rows of {referrer.table} refer to it ({referrer.name})"),
    )
    return SQL(
        "INSERT INTO {blocking} SELECT u.row_number, {told}, {said} FROM {undoing} u JOIN {own} t ON {at} "
        "JOIN {table} d ON {refers} WHERE u.created AND {left}{others} GROUP BY 1"
    ).format(
        blocking=_BLOCKING,
        told=told,
        said=said,
        undoing=UNDOING,
        own=what.target.own_rows,
        at=_AT,
        table=referrer.identifier,
        refers=refers,
        left=_LEFT,
        others=_will_stay(what, referrer) if referrer.is_of(what.target) else SQL(""),
    )


def _will_stay(what: Undoing, referrer: Referrer) -> Composed:
    """That a row `d` of the target will still refer to `t` when all is taken back."""
    elsewhere = SQL(" OR ").join(
        SQL("(o.before -> {})::text IS DISTINCT FROM {}").format(Value(own), json_of(what.target.columns[other]))
        for own, other in zip(referrer.columns, referrer.target_columns, strict=True)
    )
    return SQL(
        " AND NOT EXISTS (SELECT FROM {} x WHERE x.tid = d.ctid AND x.part = d.tableoid AND x.result IS NULL AND "
        "(x.created OR EXISTS (SELECT FROM rowcall.outcome o WHERE o.job_id = {} AND o.row_number = x.row_number "
        "AND o.attempt > 0 AND ({}))))"
    ).format(UNDOING, Value(what.job_id), elsewhere)


def _unseen(referrer: Referrer) -> Composed:
    """Where it can't be seen who refers to a row: PostgreSQL would refuse, or else nothing may be deleted."""
    if referrer.refuses:
        return SQL("SELECT").format()
    said = f"Whether rows of {referrer.table} refer to it ({referrer.name}) can't be seen"
    told = jsonb_text({"table": referrer.table, "constraint": referrer.name, "rows": None})
    return SQL("INSERT INTO {} SELECT u.row_number, {}::jsonb, {} FROM {} u WHERE u.created AND {}").format(
        _BLOCKING, Value(told), Value(said), UNDOING, _LEFT
    )


# ------------------------------------------------------------------------------------------------------------- writing


def differing(connection: Connection[Any], what: Undoing) -> dict[str, int]:
    """The columns in which rows to be restored differ from what they were, with how many do."""
    select = SQL(
        "SELECT e.key, count(*) FROM {undoing} u JOIN {own} t ON {at} "
        "JOIN rowcall.outcome o ON o.job_id = {job} AND o.row_number = u.row_number AND o.attempt > 0 "
        "CROSS JOIN LATERAL (SELECT {image} AS now OFFSET 0) i, jsonb_each(o.before) e "
        "WHERE NOT u.created AND {left} AND e.value::text IS DISTINCT FROM (i.now -> e.key)::text GROUP BY 1"
    ).format(
        undoing=UNDOING,
        own=what.target.own_rows,
        at=_AT,
        job=Value(what.job_id),
        image=image_of(what.target),
        left=_LEFT,
    )
    found = dict(connection.execute(select).fetchall())
    fixed = {name for name, column in what.target.columns.items() if column.generated or column.always}
    return {name: found[name] for name in what.target.columns if name in found and name not in fixed}


def statements(what: Undoing, columns: Sequence[str], only: Composable) -> tuple[Composed, Composed]:
    """Restore rows in these columns, then delete rows: those that are left and fit. What is done is noted."""
    return _restoring(what, [what.target.columns[name] for name in columns], only), _deleting(what, only)


def _restoring(what: Undoing, columns: Sequence[TargetColumn], only: Composable) -> Composed:
    if not columns:  # they are as they were
        return SQL("INSERT INTO {} SELECT u.row_number, u.now FROM {} u WHERE NOT u.created AND {}{}").format(
            UNDONE, UNDOING, _LEFT, only
        )
    assignments = SQL(", ").join(
        SQL(
            "{name} = CASE WHEN (o.before -> {key})::text IS DISTINCT FROM {now} THEN {value} ELSE t.{name} END"
        ).format(name=Identifier(column.name), key=Value(column.name), now=json_of(column), value=value_of(column))
        for column in columns
    )
    return SQL(
        "WITH done AS (UPDATE {own} t SET {assignments} FROM {undoing} u "
        "JOIN rowcall.outcome o ON o.job_id = {job} AND o.row_number = u.row_number AND o.attempt > 0, {image} "
        "WHERE {at} AND NOT u.created AND {left}{only} RETURNING u.row_number, t.xmin) "
        "INSERT INTO {undone} SELECT * FROM done"
    ).format(
        own=what.target.own_rows,
        assignments=assignments,
        undoing=UNDOING,
        job=Value(what.job_id),
        image=columns_of_image(SQL("o.before"), list(columns)),
        at=_AT,
        left=_LEFT,
        only=only,
        undone=UNDONE,
    )


def _deleting(what: Undoing, only: Composable) -> Composed:
    return SQL(
        "WITH done AS (DELETE FROM {} t USING {} u WHERE {} AND u.created AND {}{} RETURNING u.row_number) "
        "INSERT INTO {} SELECT row_number, NULL FROM done"
    ).format(what.target.own_rows, UNDOING, _AT, _LEFT, only, UNDONE)


def attempt(what: Undoing, columns: Sequence[str]) -> Composed:
    """The same of the rows `rowcall_some`, for a trial in halves."""
    restoring, deleting = statements(what, columns, SQL(" AND u.row_number = ANY (rowcall_some)"))
    return SQL(
        "{}; {}; IF (SELECT count(*) FROM {} WHERE row_number = ANY (rowcall_some)) < cardinality(rowcall_some) THEN "
        "RAISE EXCEPTION 'dropped' USING ERRCODE = {}; END IF;"
    ).format(restoring, deleting, UNDONE, Value(DROPPED))


def left(connection: Connection[Any]) -> list[int]:
    """The rows that are to be taken back, in order."""
    select = SQL("SELECT u.row_number FROM {} u WHERE {} ORDER BY 1").format(UNDOING, _LEFT)
    return connection.cursor(row_factory=scalar_row).execute(select).fetchall()


def count_done(connection: Connection[Any]) -> int:
    """How many were."""
    select = SQL("SELECT count(*) FROM {}").format(UNDONE)
    return connection.cursor(row_factory=scalar_row).execute(select).fetchone() or 0


def refuse(connection: Connection[Any], issues: dict[int, str]) -> None:
    """Note why rows can't be taken back: issues as JSON."""
    connection.execute(
        SQL(
            "UPDATE {} u SET result = 'refused', issue = f.issue "
            "FROM unnest(%s::bigint[], %s::jsonb[]) f (number, issue) WHERE u.row_number = f.number"
        ).format(UNDOING),
        [list(issues), list(issues.values())],
    )


# ------------------------------------------------------------------------------------------------------------- telling


def counted(connection: Connection[Any]) -> list[tuple[str | None, bool, int]]:
    """What was found: results (none: can be taken back), whether the rows were created, how many."""
    return connection.execute(SQL("SELECT result, created, count(*) FROM {} GROUP BY 1, 2").format(UNDOING)).fetchall()


def dependents(connection: Connection[Any]) -> list[dict[str, Any]]:
    """What refers to rows that were created: the foreign keys, how many rows they block, by how many rows of theirs."""
    select = SQL(
        "SELECT b.told ->> 'table' AS table, b.told ->> 'constraint' AS constraint, count(*) AS blocked, "
        "sum((b.told ->> 'rows')::bigint)::bigint AS dependents FROM {} b GROUP BY 1, 2 ORDER BY 1, 2"
    ).format(_BLOCKING)
    return connection.cursor(row_factory=dict_row).execute(select).fetchall()


def samples(connection: Connection[Any], what: Undoing, result: str, most: int) -> list[dict[str, Any]]:
    """Some rows that are kept, as they were before the import and as they are now."""
    select = SQL(
        "SELECT u.row_number AS row, r.line, u.key AS target_key, o.status::text, u.issue, o.before, {image} AS now "
        "FROM (SELECT * FROM {undoing} WHERE result = {result} ORDER BY row_number LIMIT {most}) u "
        "JOIN rowcall.outcome o ON o.job_id = {job} AND o.row_number = u.row_number AND o.attempt > 0 "
        "JOIN rowcall.edited_row r ON r.job_id = {job} AND r.number = u.row_number "
        "JOIN {own} t ON {at} ORDER BY 1"
    ).format(
        image=image_of(what.target),
        undoing=UNDOING,
        result=Value(result),
        most=Value(most),
        job=Value(what.job_id),
        own=what.target.own_rows,
        at=_AT,
    )
    return connection.cursor(row_factory=dict_row).execute(select).fetchall()
