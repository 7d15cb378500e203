"""How many rows an export will have, if that is quickly known."""

from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.export.results import JobResults
from rowcall.export.selection import Selection
from rowcall.store.grid import Wanted
from rowcall.store.queries import query

_PATIENCE = "2s"


def count_rows(connection: Connection[Any], chosen: Selection | JobResults) -> int | None:
    """The rows to come; None if counting them would take long, or as long as reading them."""
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('statement_timeout', %s, true)", [_PATIENCE])
            cursor = connection.cursor(row_factory=scalar_row)
            if isinstance(chosen, Selection):
                return cursor.execute(chosen.counting).fetchone()
            if chosen.wanted != Wanted(sort=chosen.wanted.sort):
                return None
            return cursor.execute(query("count_rows"), {"id": chosen.job_id}).fetchone()
    except psycopg.errors.QueryCanceled:
        return None
