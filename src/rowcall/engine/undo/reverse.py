"""A slice of rows taken back, with its record, in one transaction.

A row that was written since by somebody else stays as it is, and so does one that others refer to or that the database
refuses to change; it is noted why.
"""

from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import Connection

from rowcall.engine.refusals import is_refusal, issue_of_undo
from rowcall.store import undos
from rowcall.store.copying import jsonb_text
from rowcall.store.trial import try_in_halves
from rowcall.store.undoing.blocking import block, tell_blocked
from rowcall.store.undoing.finding import find
from rowcall.store.undoing.slices import Undoing, count_done, left, refuse
from rowcall.store.undoing.writing import attempt, delete_at_once, differing, statements
from rowcall.store.undos import Slice, Undo
from rowcall.store.writing import Dropped


@dataclass(slots=True)
class Boldness:
    """Whether to try the short way: for a while not, after it was refused. Says nothing about what comes out."""

    waits: int = 0
    """Slices until it is tried again."""
    patience: int = 1

    def dares(self) -> bool:
        self.waits = max(0, self.waits - 1)
        return not self.waits

    def learn(self, *, refused: bool) -> None:
        self.patience = min(64, 2 * self.patience) if refused else 1
        self.waits = self.patience if refused else 0


AT_ONCE = 20_000
"""The most rows of a slice."""


def take_all(connection: Connection[Any], what: Undoing, undo: Undo) -> None:
    """Take back all rows, round after round, as a trial. In a transaction."""
    boldness = Boldness()
    for piece in undos.slices(connection, undo, AT_ONCE):
        take_slice(connection, what, undo, piece, boldness)
    while undos.next_round(connection, undo):
        undo = undos.tried(connection, what.job_id)
        while piece := undos.next_kept(connection, undo, AT_ONCE):
            take_slice(connection, what, undo, piece, boldness)
            undo = replace(undo, next_row=piece.first - 1)


def take_slice(connection: Connection[Any], what: Undoing, undo: Undo, piece: Slice, boldness: Boldness) -> None:
    """Take back what can be taken back of a slice, and note it. In a transaction."""
    undos.hold_slice(connection, undo, piece)
    connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    again = undo.round > 1
    if not again and what.needs_no_asking and boldness.dares() and _at_once(connection, what, undo, piece, boldness):
        return
    find(connection, what, piece, lock=True, kept_by=undo.number if again else None)
    block(connection, what)
    _reverse(connection, what)
    tell_blocked(connection, what)
    undos.record(connection, undo, piece)


def _at_once(connection: Connection[Any], what: Undoing, undo: Undo, piece: Slice, boldness: Boldness) -> bool:
    """Delete rows that were created without asking first what is in the way; whether nothing is left of the slice."""
    try:
        with connection.transaction():
            due, deleted = delete_at_once(connection, what, undo.number, piece)
            if deleted:
                undos.record_deleted(connection, undo, piece, deleted)
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        boldness.learn(refused=True)
        return False
    boldness.learn(refused=False)
    return due == deleted


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
