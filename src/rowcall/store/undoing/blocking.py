"""Which rows can't be deleted: others refer to them, whatever foreign keys would do about it, or are later versions."""

from typing import Any

from psycopg import Connection
from psycopg.sql import SQL, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.model import Code
from rowcall.store.copying import jsonb_text
from rowcall.store.images import json_of
from rowcall.store.queries import query
from rowcall.store.referrers import Referrer
from rowcall.store.undoing.slices import Undoing, Versions

_FREE = SQL("u.result IS NULL")
_KEPT = SQL("u.result IN ('blocked', 'refused')")


def block(connection: Connection[Any], what: Undoing) -> None:
    """Find the rows that others refer to, and those of which there are later versions.

    What is in a row's way and will be taken back itself doesn't count; who can't be taken back blocks others in turn.
    """
    for statement in _by_others(what, _FREE):
        connection.execute(statement)
    _set_blocked(connection, _FREE)
    own = _by_own(what, _FREE)
    while sum(connection.execute(statement).rowcount for statement in own):
        _set_blocked(connection, _FREE)


def tell_blocked(connection: Connection[Any], what: Undoing) -> None:
    """Say all that is in the way of rows that are kept, now that it is known which ones those are.

    Also of a row that was refused for rows of its own table that are kept, or besides: what is said of it is the same
    in whatever slices the rows came.
    """
    own = _by_own(what, _KEPT)
    if own and _some_kept(connection):
        connection.execute("ANALYZE pg_temp.rowcall_undoing (result)")  # nearly none was kept when they were found
        connection.execute(query("undoing_unblock"))
        for statement in (*_by_others(what, _KEPT), *own):
            connection.execute(statement)
        _set_blocked(connection, _KEPT)


def _some_kept(connection: Connection[Any]) -> bool:
    select = SQL("SELECT EXISTS (SELECT FROM pg_temp.rowcall_undoing u WHERE {})").format(_KEPT)
    return connection.execute(select).fetchone() == (True,)


def _by_others(what: Undoing, which: SQL) -> list[Composed | SQL]:
    """Find the rows that rows of other tables refer to."""
    others = [referrer for referrer in what.referrers if not referrer.is_of(what.target)]
    return [_blocking(what, each, which) if each.seen else _unseen(each, which) for each in others]


def _by_own(what: Undoing, which: SQL) -> list[Composed]:
    """Find the rows that rows of the target itself refer to, or are later versions of."""
    found = [_blocking(what, referrer, which) for referrer in what.referrers if referrer.is_of(what.target)]
    return found + ([_later(what, what.versions, key, which) for key in what.versions.keys] if what.versions else [])


def _set_blocked(connection: Connection[Any], which: SQL) -> None:
    codes = {"later": Value(Code.LATER_VERSION.value), "dependents": Value(Code.HAS_DEPENDENTS.value)}
    connection.execute(SQL(query("undoing_blocked")).format(**codes, which=which))


def _blocking(what: Undoing, referrer: Referrer, which: SQL) -> Composed:
    pairs = list(zip(referrer.columns, referrer.target_columns, strict=True))
    return SQL(query("undoing_blocking")).format(
        name=Value(referrer.table),
        constraint=Value(referrer.name),
        one=Value(f"1 row of {referrer.table} refers to it ({referrer.name})"),
        several=Value(f" rows of {referrer.table} refer to it ({referrer.name})"),
        target=what.row,
        which=which,
        table=referrer.identifier,
        refers=SQL(" AND ").join(SQL("d.{} = t.{}").format(Identifier(own), Identifier(other)) for own, other in pairs),
        stays=_will_stay(what, referrer) if referrer.is_of(what.target) else SQL("true"),
    )


def _will_stay(what: Undoing, referrer: Referrer) -> Composed:
    """That a row `d` of the target will still refer to `t` when all is taken back."""
    elsewhere = SQL(" OR ").join(
        SQL("(o.before -> {})::text IS DISTINCT FROM {}").format(Value(own), json_of(what.target.columns[other]))
        for own, other in zip(referrer.columns, referrer.target_columns, strict=True)
    )
    return SQL(query("undoing_stays")).format(job=Value(what.job_id), elsewhere=elsewhere)


def _later(what: Undoing, versions: Versions, key: tuple[str, ...], which: SQL) -> Composed:
    return SQL(query("undoing_later")).format(
        name=Value(f"{what.target.schema}.{what.target.name}"),
        own=what.target.own_rows,
        target=what.row,
        same=SQL(" AND ").join(
            what.target.columns[name].equal(Identifier("d", name), Identifier("t", name)) for name in key
        ),
        version=Identifier(versions.column),
        which=which,
        job=Value(what.job_id),
    )


def _unseen(referrer: Referrer, which: SQL) -> Composed | SQL:
    """Where it can't be seen who refers to a row: PostgreSQL would refuse, or else nothing may be deleted."""
    if referrer.refuses:
        return SQL("SELECT")
    said = f"Whether rows of {referrer.table} refer to it ({referrer.name}) can't be seen"
    told = jsonb_text({"table": referrer.table, "constraint": referrer.name, "rows": None})
    return SQL(query("undoing_unseen")).format(told=Value(told), said=Value(said), which=which)
