"""Whether PostgreSQL may refuse to take back what is free otherwise. It is asked, as far as questions tell."""

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Composed, Identifier

from rowcall.store.images import columns_of_image, value_of
from rowcall.store.queries import query
from rowcall.store.targets import Check, ForeignKey, Target, UniqueIndex
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
    looked_at |= {name for check in target.checks if _is_made(target, check) for name in check.columns}
    looked_at |= {name for key in target.foreign if _is_hidden(target, key) for name in key.columns}
    deferred = {name for index in target.unique if not index.immediate for name in index.columns}
    return bool(target.exclusions) or not columns.isdisjoint(looked_at | deferred | target.referred_to)


def _is_made(target: Target, check: Check) -> bool:
    """Whether a check looks at what the table makes of other columns, or at the row as a whole."""
    return not check.columns or any(target.columns[name].generated for name in check.columns)


def _is_hidden(target: Target, key: ForeignKey) -> bool:
    """Whether what a foreign key refers to can't be seen, or goes and comes with the rows themselves."""
    return not key.seen or (key.table_schema, key.table_name) == (target.schema, target.name)


def _refuses(connection: Connection[Any], what: Undoing, columns: set[str]) -> bool:
    """Whether a constraint would refuse rows with what they had, as the target is now."""
    try:
        with connection.transaction():
            return bool(connection.cursor(row_factory=scalar_row).execute(doubting(what, columns)).fetchone())
    except (psycopg.DataError, psycopg.errors.RaiseException):  # as a check may say that divides by one of them
        return True


def doubting(what: Undoing, columns: set[str]) -> Composed:
    """The statement that asks that."""
    target = what.target
    restored = [column for name, column in target.columns.items() if name in columns]
    values = {name: SQL("t.{}").format(Identifier(name)) for name in target.columns}
    values |= {column.name: value_of(column) for column in restored}

    def concerned(constraint: UniqueIndex | ForeignKey | Check) -> bool:
        return not columns.isdisjoint(constraint.columns)

    refused = [
        # whether they can be read is told by reading them
        SQL("num_nulls({}) < 0").format(SQL(", ").join(values[column.name] for column in restored)),
        *(SQL("{} IS NULL").format(values[column.name]) for column in restored if column.not_null),
        *(_taken(target, values, index) for index in filter(concerned, target.unique)),
        *(_lost(values, key) for key in filter(concerned, target.foreign)),
        *(_broken(values, check) for check in filter(concerned, target.checks)),
    ]
    return SQL(query("undoing_in_doubt")).format(
        target=what.row,
        outcome=what.outcome,
        image=columns_of_image(SQL("o.before"), restored),
        refused=SQL(" OR ").join(refused),
    )


def _taken(target: Target, values: Mapping[str, Composed], index: UniqueIndex) -> Composed:
    """That another row has the values which were this one's."""
    same = SQL(" AND ").join(target.columns[name].equal(Identifier("x", name), values[name]) for name in index.columns)
    return SQL("EXISTS (SELECT FROM {} x WHERE {} AND (x.ctid, x.tableoid) <> (u.tid, u.part) OFFSET 0)").format(
        target.own_rows, same
    )


def _lost(values: Mapping[str, Composed], key: ForeignKey) -> Composed:
    """That there is no longer what a row referred to."""
    pairs = zip(key.table_columns, key.columns, strict=True)
    same = SQL(" AND ").join(SQL("x.{} = {}").format(Identifier(one), values[other]) for one, other in pairs)
    return SQL("(num_nulls({}) = 0 AND NOT EXISTS (SELECT FROM {} x WHERE {} OFFSET 0))").format(
        SQL(", ").join(values[name] for name in key.columns), Identifier(key.table_schema, key.table_name), same
    )


def _broken(values: Mapping[str, Composed], check: Check) -> Composed:
    """That a check doesn't hold of what a row had."""
    named = SQL(", ").join(SQL("{} AS {}").format(values[name], Identifier(name)) for name in check.columns)
    expression = SQL(check.expression)  # pyright: ignore[reportArgumentType] (the catalog's own expression)
    return SQL("(SELECT NOT ({}) FROM (SELECT {}) s)").format(expression, named)
