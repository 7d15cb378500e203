"""The statements that restore rows and delete them: those that were found, and that nothing stands against."""

from collections.abc import Sequence
from typing import Any

from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.store.images import columns_of_image, image_of, json_of, value_of
from rowcall.store.queries import query
from rowcall.store.targets import TargetColumn
from rowcall.store.trial import DROPPED
from rowcall.store.undoing.finding import is_open, which_rows
from rowcall.store.undoing.slices import Undoing, same_row
from rowcall.store.undos import Slice
from rowcall.store.writing import Dropped

_ALL = SQL("true")


def delete_at_once(connection: Connection[Any], what: Undoing, undo: int, piece: Slice) -> tuple[int, int]:
    """Delete what can be deleted of a slice, and note it, in one statement; how many rows it has, and how many went.

    Only where PostgreSQL refuses to delete what others refer to: that isn't asked before.
    """
    due, found, deleted = connection.execute(deleting_at_once(what, undo, piece)).fetchone() or (0, 0, 0)
    if deleted < found:
        raise Dropped
    return due, deleted


def deleting_at_once(what: Undoing, undo: int, piece: Slice) -> Composed:
    """That statement."""
    target = what.target
    return SQL(query("undoing_at_once")).format(
        own=target.own_rows,
        same=same_row(target, SQL("o.target_key")),
        job=Value(what.job_id),
        first=Value(piece.first),
        last=Value(piece.last),
        which=which_rows(what.which),
        open=is_open(None),
        of_parts=SQL(query("undoing_of_parts") if target.kind == "p" else "true"),
        undo=Value(undo),
    )


def differing(connection: Connection[Any], what: Undoing) -> dict[str, int]:
    """The columns in which rows to be restored differ from what they were, with how many do."""
    return _written(what, dict(connection.execute(comparing(what)).fetchall()))


def _written(what: Undoing, found: dict[str, int]) -> dict[str, int]:
    """What was found of columns, without those that can't be written."""
    fixed = {name for name, column in what.target.columns.items() if column.generated or column.always}
    return {name: found[name] for name in what.target.columns if name in found and name not in fixed}


def come_out_otherwise(connection: Connection[Any], what: Undoing, undo: int) -> dict[str, int]:
    """The columns in which rows that an undo has restored are not as they were, with how many aren't."""
    key = [what.target.columns[name] for name in what.target.primary_key]
    select = SQL(query("undoing_otherwise")).format(
        job=Value(what.job_id),
        undo=Value(undo),
        outcome=what.outcome,
        key=columns_of_image(SQL("o.before"), key),
        image=image_of(what.target),
        own=what.target.own_rows,
        same=SQL(" AND ").join(each.equal(Identifier("t", each.name), value_of(each)) for each in key),
    )
    return _written(what, dict(connection.execute(select).fetchall()))


def comparing(what: Undoing) -> Composed:
    """The statement that tells them."""
    parts = {"target": what.row, "outcome": what.outcome, "image": image_of(what.target)}
    return SQL(query("undoing_differing")).format(**parts)


def statements(what: Undoing, columns: Sequence[str], only: Composable = _ALL) -> tuple[Composed, Composed]:
    """Restore rows in these columns, then delete rows: those that are left and fit. What is done is noted."""
    return _restoring(what, [what.target.columns[name] for name in columns], only), _deleting(what, only)


def _restoring(what: Undoing, columns: Sequence[TargetColumn], only: Composable) -> Composed:
    if not columns:
        return SQL(query("undoing_as_they_were")).format(only=only)
    assignments = SQL(", ").join(
        SQL(
            "{name} = CASE WHEN (o.before -> {key})::text IS DISTINCT FROM {now} THEN {value} ELSE t.{name} END"
        ).format(name=Identifier(column.name), key=Value(column.name), now=json_of(column), value=value_of(column))
        for column in columns
    )
    return SQL(query("undoing_restore")).format(
        own=what.target.own_rows,
        assignments=assignments,
        outcome=what.outcome,
        image=columns_of_image(SQL("o.before"), list(columns)),
        at=what.at,
        only=only,
    )


def _deleting(what: Undoing, only: Composable) -> Composed:
    return SQL(query("undoing_delete")).format(own=what.target.own_rows, at=what.at, only=only)


def attempt(what: Undoing, columns: Sequence[str]) -> Composed:
    """The same of the rows `rowcall_some`, for a trial in halves."""
    restoring, deleting = statements(what, columns, SQL("u.row_number = ANY (rowcall_some)"))
    return SQL(query("undoing_attempt")).format(restoring=restoring, deleting=deleting, dropped=Value(DROPPED))
