"""Which rows of a target are as an import left them.

That is so when the transaction that wrote a row last is the one that wrote its outcome (`xmin`), or an undo of a later
import that brought it back to that.
"""

from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Composable, Composed
from psycopg.sql import Literal as Value

from rowcall.model import Code
from rowcall.store.copying import jsonb_text
from rowcall.store.grid import Wanted
from rowcall.store.images import columns_of_image, value_of
from rowcall.store.queries import query
from rowcall.store.targets import Target
from rowcall.store.undoing.slices import Undoing, same_row
from rowcall.store.undos import Slice

_CHANGED = {"code": Code.CHANGED_SINCE, "message": "The target's row was written since by somebody else; it was kept."}
_LOST = {"code": Code.CHANGED_SINCE, "message": "The table has no longer all columns that this row had; it was kept."}


def find(connection: Connection[Any], what: Undoing, piece: Slice, *, lock: bool, kept_by: int | None = None) -> None:
    """Find the rows of a slice, with what stands against taking them back; only those that an undo kept."""
    connection.execute(query("undoing_forget"))
    connection.execute(finding(what, piece, lock=lock, kept_by=kept_by))
    connection.execute("ANALYZE pg_temp.rowcall_undoing (row_number, created, tid, result)")


def finding(what: Undoing, piece: Slice, *, lock: bool, kept_by: int | None) -> Composed:
    """The statement that finds them."""
    target = what.target
    return SQL(query("undoing_find")).format(
        version=_is_version(target),
        as_left=SQL(query("undoing_as_left")),
        lost=_lost_column(target),
        changed=Value(jsonb_text(_CHANGED)),
        lacking=Value(jsonb_text(_LOST)),
        own=target.own_rows,
        same=same_row(target, SQL("o.target_key")),
        lock=SQL(" FOR UPDATE" if lock else ""),
        job=Value(what.job_id),
        first=Value(piece.first),
        last=Value(piece.last),
        which=which_rows(what.which),
        open=is_open(kept_by),
    )


def one_fits(connection: Connection[Any], job_id: UUID, which: Wanted) -> bool:
    """Whether a job has written a row that is wanted and was not taken back."""
    select = SQL(query("undoing_fitting")).format(job=Value(job_id), which=which_rows(which), open=is_open(None))
    return bool(connection.cursor(row_factory=scalar_row).execute(select).fetchone())


def follow_chains(connection: Connection[Any]) -> None:
    """Rows that only another row of the job has written since will be as they were left when that is taken back."""
    while connection.execute(query("undoing_chains")).rowcount:
        pass


def is_open(kept_by: int | None) -> Composed:
    """Whether the row of an outcome `o` was not taken back; with an undo's number, whether that has kept it.

    Each row is looked up by itself. Of a table that an undo fills, statistics know nothing of the job: as a join it
    was planned for one row, and took minutes for a slice of 5,000, with their rows of the target locked.
    """
    result = SQL("SELECT {} FROM rowcall.reversal r WHERE r.job_id = o.job_id AND r.row_number = o.row_number")
    if kept_by is None:
        return SQL("({}) IS NOT TRUE").format(result.format(SQL("r.result IN ('deleted', 'restored')")))
    kept = SQL("r.undo = {} AND r.result IN ('changed', 'blocked', 'refused')").format(Value(kept_by))
    return SQL("({})").format(result.format(kept))


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
                "AND r.number = o.row_number AND strpos(lower(cell), lower({})) > 0 OFFSET 0)"
            ).format(Value(which.text))
        )
    return SQL(" AND ").join(conditions)
