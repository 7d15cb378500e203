"""The way into a target when a plain COPY won't do: a temporary table of the rows, and one of what they match.

SQL with the names of an application's tables and columns is made here and in the modules that read these tables
(matching, violations, writing, trial), quoted by psycopg.
"""

from collections.abc import Sequence, Set
from typing import Any
from uuid import UUID

import polars as pl
import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Identifier
from psycopg.sql import Literal as Value

from rowcall.store.copying import copy_taken
from rowcall.store.layout import Layout
from rowcall.store.targets import Target

STAGE = Identifier("pg_temp", "rowcall_stage")
MATCH = Identifier("pg_temp", "rowcall_match")


def prepare(connection: Connection[Any], layout: Layout) -> None:
    """Make the temporary tables of this session. Outside a transaction, so that they outlive one that is undone."""
    typed = [
        SQL("{} {}").format(Identifier(name), SQL(layout.target.columns[name].type))  # pyright: ignore[reportArgumentType] (the catalog's own words)
        for name in layout.staged
    ]
    key = [SQL("rowcall_key text")] if layout.keyed else []
    drop(connection)
    connection.execute(
        SQL("CREATE TEMPORARY TABLE rowcall_stage ({}) ON COMMIT DELETE ROWS").format(
            SQL(", ").join([SQL("rowcall_number bigint"), *key, *typed])
        )
    )
    connection.execute(
        "CREATE TEMPORARY TABLE rowcall_match (number bigint, key text[], tid tid, part oid, stamp xid, "
        "version bigint, changed boolean, before jsonb) ON COMMIT DELETE ROWS"
    )


def drop(connection: Connection[Any]) -> None:
    """Take the temporary tables away, where the session is lent to others."""
    connection.execute(SQL("DROP TABLE IF EXISTS {}, {}").format(STAGE, MATCH))


def load(connection: Connection[Any], layout: Layout, rows: pl.DataFrame) -> list[tuple[int, psycopg.Error]]:
    """COPY rows into the temporary table; those that it refuses come back with the reason."""
    _clear(connection)
    types = {**layout.target.types, "rowcall_number": "int8", "rowcall_key": "text"}
    refused = copy_taken(connection, STAGE, rows, types)
    # a planner that doesn't know numbers to be unique takes joins for huge, and reads all of the target for them
    connection.execute(SQL("ANALYZE {} (rowcall_number)").format(STAGE))
    return refused


def _clear(connection: Connection[Any]) -> None:
    """Empty the temporary tables of batches that share the transaction, and of such that were undone.

    Deleted rows would stay in them until the end, and be passed over by every statement.
    """
    sizes = SQL("SELECT pg_relation_size({}) > 0").format(Value(STAGE.as_string()))
    if connection.execute(sizes).fetchone() == (True,):
        connection.execute(SQL("TRUNCATE {}, {}").format(STAGE, MATCH))


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


def fillable(layout: Layout, rows: pl.DataFrame) -> list[str]:
    """The columns to which the target may have given values in these rows."""
    blank = [name for name in layout.staged if name not in rows.columns or rows[name].null_count()]
    columns = layout.target.columns
    return [name for name in blank if name == layout.version or (columns[name].default and columns[name].not_null)]


def texts_of(connection: Connection[Any], columns: Sequence[str], numbers: Sequence[int]) -> pl.DataFrame:
    """Columns of staged rows, as texts."""
    texts = [SQL("s.{}::text").format(Identifier(name)) for name in columns]
    select = SQL("SELECT s.rowcall_number, {} FROM {} s WHERE s.rowcall_number = ANY ({})").format(
        SQL(", ").join(texts), STAGE, Value(list(numbers))
    )
    schema = {"rowcall_number": pl.Int64, **dict.fromkeys(columns, pl.String)}
    return pl.DataFrame(connection.execute(select).fetchall(), schema=schema, orient="row")


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


def index_numbers(connection: Connection[Any]) -> None:
    """Have rows found by number without reading all. Of use where they are written piece by piece."""
    connection.execute(SQL("CREATE INDEX ON {} (rowcall_number)").format(STAGE))
    connection.execute(SQL("CREATE INDEX ON {} (number)").format(MATCH))


def staged_numbers(connection: Connection[Any]) -> list[int]:
    """The rows that are in the temporary table, in order."""
    rows = connection.execute(SQL("SELECT rowcall_number FROM {} ORDER BY 1").format(STAGE))
    return [number for (number,) in rows]


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
