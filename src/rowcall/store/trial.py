"""Which rows can't be written, found by trying: in halves, until the guilty stand alone.

The halving runs inside the database, as one statement: from here, each attempt would cost a round trip and a plan.
"""

from dataclasses import dataclass
from typing import Any, Self

import psycopg
from psycopg import Connection
from psycopg.rows import class_row
from psycopg.sql import SQL, Composable, Composed
from psycopg.sql import Literal as Value

from rowcall.store.layout import Layout
from rowcall.store.writing import Dropped, counting, left_as_they_were, writing

DROPPED = "RC000"
"""The state of a row that a trigger or a rule drops without a word."""
NOT_THE_ROWS = ("08", "25P", "40", "53", "55P03", "57", "58", "XX")
"""How states begin that tell of the connection, a collision with others, the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What PostgreSQL says when it refuses."""

    state: str
    message: str
    detail: str
    context: str
    constraint: str | None
    column: str | None

    @classmethod
    def of(cls, error: psycopg.Error) -> Self:
        told = error.diag
        return cls(
            state=DROPPED if isinstance(error, Dropped) else error.sqlstate or "",
            message=told.message_primary or str(error),
            detail=told.message_detail or "",
            context=told.context or "",
            constraint=told.constraint_name,
            column=told.column_name,
        )


@dataclass(frozen=True, slots=True)
class Tried:
    """What a trial came to."""

    refused: dict[int, Refused]
    pieces: list[list[int]]
    """The others, as they could be written, one piece after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt(Refused):
    low: int
    high: int


def try_halves(connection: Connection[Any], layout: Layout, numbers: list[int]) -> Tried:
    """Write these staged rows as far as they can be written. What is written stays: the caller takes it back."""
    return try_in_halves(connection, _writing(layout), numbers)


def try_in_halves(connection: Connection[Any], attempt: Composable, numbers: list[int]) -> Tried:
    """Do to these rows what can be done to them; it stays. `attempt` is PL/pgSQL for the rows `rowcall_some`."""
    connection.execute(
        "CREATE TEMPORARY TABLE IF NOT EXISTS rowcall_tried (low int, high int, state text, message text, detail text, "
        'context text, "constraint" text, "column" text)'
    )
    connection.execute("DELETE FROM pg_temp.rowcall_tried")
    body = _HALVING.format(numbers=Value(numbers), attempt=attempt, not_the_rows=Value(f"^({'|'.join(NOT_THE_ROWS)})"))
    connection.execute(SQL("DO {}").format(Value(body.as_string(connection))))
    tried = (
        connection.cursor(row_factory=class_row(_Attempt))
        .execute("SELECT * FROM pg_temp.rowcall_tried ORDER BY low")
        .fetchall()
    )
    return Tried(
        {numbers[each.low - 1]: each for each in tried if each.state},
        [numbers[each.low - 1 : each.high] for each in tried if not each.state],
    )


def _writing(layout: Layout) -> Composed:
    only = SQL(" AND s.rowcall_number = ANY (rowcall_some)")
    return _WRITING.format(
        counting=counting(layout, only),
        both=writing(layout, only, create=True, update=True),
        creating=writing(layout, only, create=True, update=False),
        updating=writing(layout, only, create=False, update=True),
        left=left_as_they_were(layout, only),
        updates=Value(layout.on_match == "update"),
        dropped=Value(DROPPED),
    )


_WRITING = SQL("""
            DECLARE
                rowcall_to_create bigint; rowcall_to_update bigint; rowcall_created bigint; rowcall_updated bigint;
                rowcall_strayed bigint; rowcall_left bigint;
            BEGIN
                {counting} INTO rowcall_to_create, rowcall_to_update;
                rowcall_created := 0; rowcall_updated := 0; rowcall_strayed := 0;
                IF NOT {updates} THEN rowcall_to_update := 0; END IF;
                IF rowcall_to_create > 0 AND rowcall_to_update > 0 THEN
                    {both} INTO rowcall_created, rowcall_updated, rowcall_strayed;
                ELSIF rowcall_to_create > 0 THEN
                    {creating} INTO rowcall_created, rowcall_updated, rowcall_strayed;
                ELSIF rowcall_to_update > 0 THEN
                    {updating} INTO rowcall_created, rowcall_updated, rowcall_strayed;
                END IF;
                rowcall_left := 0;
                IF rowcall_updated < rowcall_to_update THEN {left} INTO rowcall_left; END IF;
                IF rowcall_created < rowcall_to_create OR rowcall_strayed > 0 OR rowcall_left > 0 THEN
                    RAISE EXCEPTION 'dropped' USING ERRCODE = {dropped};
                END IF;
            END;
""")
_HALVING = SQL("""
#variable_conflict use_column
DECLARE
    rowcall_all bigint[] := {numbers}::bigint[];
    rowcall_lows int[] := ARRAY[1];
    rowcall_highs int[] := ARRAY[cardinality(rowcall_all)];
    rowcall_low int; rowcall_high int; rowcall_some bigint[];
    rowcall_state text; rowcall_message text; rowcall_detail text; rowcall_context text;
    rowcall_constraint text; rowcall_column text;
BEGIN
    WHILE cardinality(rowcall_lows) > 0 LOOP
        rowcall_low := rowcall_lows[cardinality(rowcall_lows)];
        rowcall_high := rowcall_highs[cardinality(rowcall_highs)];
        rowcall_lows := trim_array(rowcall_lows, 1);
        rowcall_highs := trim_array(rowcall_highs, 1);
        rowcall_some := rowcall_all[rowcall_low:rowcall_high];
        BEGIN
            {attempt}
            INSERT INTO pg_temp.rowcall_tried VALUES (rowcall_low, rowcall_high, '', '', '', '');
        EXCEPTION WHEN OTHERS OR ASSERT_FAILURE THEN
            GET STACKED DIAGNOSTICS rowcall_state = RETURNED_SQLSTATE, rowcall_message = MESSAGE_TEXT,
                rowcall_detail = PG_EXCEPTION_DETAIL, rowcall_context = PG_EXCEPTION_CONTEXT,
                rowcall_constraint = CONSTRAINT_NAME, rowcall_column = COLUMN_NAME;
            IF rowcall_state ~ {not_the_rows} THEN
                RAISE;
            ELSIF rowcall_low = rowcall_high THEN
                INSERT INTO pg_temp.rowcall_tried VALUES (rowcall_low, rowcall_high, rowcall_state, rowcall_message,
                    rowcall_detail, rowcall_context, nullif(rowcall_constraint, ''), nullif(rowcall_column, ''));
            ELSE
                rowcall_lows := rowcall_lows || ((rowcall_low + rowcall_high + 1) / 2) || rowcall_low;
                rowcall_highs := rowcall_highs || rowcall_high || ((rowcall_low + rowcall_high + 1) / 2 - 1);
            END IF;
        END;
    END LOOP;
END
""")
