"""What was found of rows that are to be taken back, to be told before it is done."""

from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.sql import SQL
from psycopg.sql import Literal as Value

from rowcall.store.images import image_of
from rowcall.store.queries import query
from rowcall.store.undoing.slices import Undoing


def counted(connection: Connection[Any]) -> list[tuple[str | None, bool, int]]:
    """What was found: results (none: can be taken back), whether the rows were created, how many."""
    return connection.execute(query("undoing_counts")).fetchall()


def take_results(connection: Connection[Any], what: Undoing) -> None:
    """Let the rows that were found be told as a trial has kept them."""
    connection.execute(query("undoing_kept"), {"id": what.job_id})


def dependents(connection: Connection[Any]) -> list[dict[str, Any]]:
    """What is in the way of rows that were created: foreign keys and later versions, with how many rows they block."""
    return connection.cursor(row_factory=dict_row).execute(query("undoing_dependents")).fetchall()


def samples(connection: Connection[Any], what: Undoing, result: str, most: int) -> list[dict[str, Any]]:
    """Some rows that are kept, as they were before the import and as they are now."""
    select = SQL(query("undoing_samples")).format(
        image=image_of(what.target),
        result=Value(result),
        most=Value(most),
        job=Value(what.job_id),
        target=what.row,
        outcome=what.outcome,
    )
    return connection.cursor(row_factory=dict_row).execute(select).fetchall()
