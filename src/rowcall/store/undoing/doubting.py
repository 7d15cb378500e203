"""Whether PostgreSQL may refuse to take back what is free otherwise. It is asked, as far as questions tell."""

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.store.images import columns_of_image, value_of
from rowcall.store.queries import query
from rowcall.store.targets import ForeignKey, Target, UniqueIndex
from rowcall.store.undoing.slices import Undoing


def may_be_refused(connection: Connection[Any], what: Undoing, restored: Iterable[str], *, deletes: bool) -> bool:
    """Whether rows that were found to be free may be refused all the same, by who can't be asked or said so.

    `restored` are the columns that would be written; `deletes`, whether rows would be deleted.
    """
    table = what.target.identifier.as_string(connection)
    sways_deletes, sways_updates = connection.execute(query("undoing_swayed"), {"table": table}).fetchone() or (
        True,
        True,
    )
    if deletes and (sways_deletes or not all(referrer.seen for referrer in what.referrers)):
        return True
    columns = {*restored}
    if not columns:
        return False
    return sways_updates or _is_beyond_asking(what.target, columns) or _refuses(connection, what, columns)


def _is_beyond_asking(target: Target, columns: set[str]) -> bool:
    """Whether constraints that can't be asked about single rows look at these columns."""
    looked_at = {name for index in target.odd_unique for name in index.columns}
    looked_at |= {name for check in target.checks for name in check.columns}
    looked_at |= {name for key in target.foreign if _is_hidden(target, key) for name in key.columns}
    deferred = {name for index in target.unique if not index.immediate for name in index.columns}
    return bool(target.exclusions) or not columns.isdisjoint(looked_at | deferred | target.referred_to)


def _is_hidden(target: Target, key: ForeignKey) -> bool:
    """Whether what a foreign key refers to can't be seen, or goes and comes with the rows themselves."""
    return not key.seen or (key.table_schema, key.table_name) == (target.schema, target.name)


def _refuses(connection: Connection[Any], what: Undoing, columns: set[str]) -> bool:
    """Whether a constraint would refuse what a row had, as the target is now."""
    target = what.target
    unique = [index for index in target.unique if not columns.isdisjoint(index.columns)]
    foreign = [key for key in target.foreign if not columns.isdisjoint(key.columns)]
    named = {*columns, *(name for each in (*unique, *foreign) for name in each.columns)}
    image = [column for name, column in target.columns.items() if name in named and not column.generated]
    refused = [
        # whether they can be read is told by reading them
        SQL("num_nulls({}) < 0").format(SQL(", ").join(map(value_of, image))),
        *_emptied(target, columns),
        *(_taken(target, index) for index in unique),
        *(_lost(target, key) for key in foreign),
    ]
    select = SQL(query("undoing_in_doubt")).format(
        job=Value(what.job_id), image=columns_of_image(SQL("o.before"), image), refused=SQL(" OR ").join(refused)
    )
    try:
        with connection.transaction():
            return bool(connection.cursor(row_factory=scalar_row).execute(select).fetchone())
    except psycopg.DataError:
        return True


def _emptied(target: Target, columns: set[str]) -> Iterator[Composable]:
    """Where there must be a value now, and was none."""
    for name in sorted(columns):
        if target.columns[name].not_null:
            yield SQL("{} IS NULL").format(value_of(target.columns[name]))


def _taken(target: Target, index: UniqueIndex) -> Composed:
    """That another row has the values which were this one's."""
    same = SQL(" AND ").join(
        SQL("x.{} = {}").format(Identifier(name), value_of(target.columns[name])) for name in index.columns
    )
    return SQL("EXISTS (SELECT FROM {} x WHERE {} AND (x.ctid, x.tableoid) <> (u.tid, u.part) OFFSET 0)").format(
        target.own_rows, same
    )


def _lost(target: Target, key: ForeignKey) -> Composed:
    """That there is no longer what a row referred to."""
    values = [value_of(target.columns[name]) for name in key.columns]
    same = SQL(" AND ").join(
        SQL("x.{} = {}").format(Identifier(name), value) for name, value in zip(key.table_columns, values, strict=True)
    )
    return SQL("(num_nulls({}) = 0 AND NOT EXISTS (SELECT FROM {} x WHERE {} OFFSET 0))").format(
        SQL(", ").join(values), Identifier(key.table_schema, key.table_name), same
    )
