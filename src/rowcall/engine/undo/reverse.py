"""A slice of rows taken back, with its record, in one transaction.

A row that was written since by somebody else stays as it is, and so does one that others refer to or that the database
refuses to change; it is noted why.
"""

from typing import Any

import psycopg
from psycopg import Connection

from rowcall.engine.refusals import is_refusal, issue_of_undo
from rowcall.store import undos
from rowcall.store.copying import jsonb_text
from rowcall.store.trial import try_in_halves
from rowcall.store.undoing.blocking import block
from rowcall.store.undoing.finding import find
from rowcall.store.undoing.slices import Undoing, count_done, left, refuse
from rowcall.store.undoing.writing import attempt, differing, statements
from rowcall.store.writing import Dropped


def take_slice(connection: Connection[Any], what: Undoing, most: int) -> bool:
    """Take back the next slice; false when nothing is left to try, or others have moved the job on."""
    with connection.transaction():
        undo = undos.under_way(connection, what.job_id)
        if undo is None:
            return False
        piece = undos.next_slice(connection, undo, most)
        if piece is None:
            return undos.next_round(connection, undo)
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        kept_by = undo.number if undo.round > 1 else None
        find(connection, what, *piece, lock=True, kept_by=kept_by)
        block(connection, what)
        _reverse(connection, what)
        undos.record(connection, undo, *piece)
        return True


def _reverse(connection: Connection[Any], what: Undoing) -> None:
    """Take back what can be taken back of the rows that were found; note why the others can't."""
    numbers = left(connection)
    if not numbers:
        return
    columns = list(differing(connection, what))
    try:
        with connection.transaction():
            for statement in statements(what, columns):
                connection.execute(statement)
            if count_done(connection) < len(numbers):
                raise Dropped
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        tried = try_in_halves(connection, attempt(what, columns), numbers)
        issues = {row: issue_of_undo(refused, what.target.name) for row, refused in tried.refused.items()}
        refuse(connection, {row: jsonb_text(issue) for row, issue in issues.items()})
