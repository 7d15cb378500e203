"""Rows as they came in, and the batches they are worked on in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import polars as pl
from psycopg import Connection
from psycopg.rows import class_row, scalar_row
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from rowcall.model import Status
from rowcall.store.copying import copy_into_own, read_columns
from rowcall.store.jobs import Job
from rowcall.store.queries import query

PROBLEMS = "problems?"
"""The column with what the reader said of a row. No field can have such a name."""


BLANKS = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
"""What goes around texts: all that Unicode calls white space, as Polars has it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the texts of a field come from: a column of the file, or several that are joined in this order.

    Parts of a join lose the blanks around them; those that are blank are left out, with their separator.
    """

    positions: tuple[int, ...]
    separator: str = " "

    @property
    def is_joined(self) -> bool:
        return len(self.positions) > 1

    @property
    def sql(self) -> Composable:
        """The text of a row of `rowcall.row`."""
        cells = [SQL("cells[{}]").format(Literal(position + 1)) for position in self.positions]
        if not self.is_joined:
            return cells[0]
        parts = [SQL("nullif(btrim({}, {}), '')").format(cell, Literal(BLANKS)) for cell in cells]
        return SQL("nullif(concat_ws({}, {}), '')").format(Literal(self.separator), SQL(", ").join(parts))


Sources = Mapping[str, Source]
"""By field."""


@dataclass(frozen=True, slots=True)
class RowBatch:
    """A run of rows that is planned and committed together."""

    number: int
    first_row: int
    last_row: int

    def __len__(self) -> int:
        return self.last_row - self.first_row + 1


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far ingest has come."""

    batch: int = 0
    row: int = 0


def checkpoint_of(connection: Connection[Any], job_id: UUID) -> Checkpoint:
    """Where to go on reading the job's file. Batches behind a gap are dropped; they will be brought in again."""
    with connection.transaction():
        row = connection.execute(query("last_batch_before_a_gap"), {"id": job_id}).fetchone()
        done = Checkpoint(*row) if row else Checkpoint()
        connection.execute(query("drop_batches_behind"), {"id": job_id, "number": done.batch, "row": done.row})
    return done


def filled_before(connection: Connection[Any], job_id: UUID, width: int, done: Checkpoint) -> dict[int, int]:
    """How many of the rows up to a checkpoint have a value in each of the first columns, by position."""
    filled = dict.fromkeys(range(width), 0)
    if done.row:
        given = {"id": job_id, "last": done.row, "blanks": BLANKS}
        filled |= dict(connection.execute(query("filled_before"), given).fetchall())
    return filled


def add_batch(connection: Connection[Any], job_id: UUID, batch: RowBatch, rows: pl.DataFrame) -> None:
    """Rows with their batch, in one transaction. `rows` has number, line, cells (as arrays in binary), problems."""
    with connection.transaction():
        given = {"id": job_id, "number": batch.number, "first": batch.first_row, "last": batch.last_row}
        connection.execute(query("add_batch"), given)
        copy_into_own(connection, "row", job_id, rows)


def claim(connection: Connection[Any], job: Job, number: int | None = None) -> RowBatch | None:
    """The next waiting batch, or the one with that number, locked until the transaction ends.

    None, too, when others have moved the job on: whoever was cut off for a while has nothing to say any more.
    """
    cursor = connection.cursor(row_factory=class_row(RowBatch))
    given = {"id": job.id, "state": job.state, "number": number}
    return cursor.execute(query("claim_batch" if number is None else "claim_this_batch"), given).fetchone()


def hold_state(connection: Connection[Any], job: Job) -> bool:
    """Whether the job is still in the state that was seen; then it stays there until the transaction ends."""
    given = {"id": job.id, "state": job.state}
    return connection.execute(query("hold_state"), given).fetchone() is not None


def lease(connection: Connection[Any], job: Job, owner: str, seconds: float) -> RowBatch | None:
    """The next waiting batch that nobody has leased, leased to this owner."""
    given = {"id": job.id, "state": job.state, "owner": owner, "seconds": seconds}
    return connection.cursor(row_factory=class_row(RowBatch)).execute(query("lease_batch"), given).fetchone()


def renew(connection: Connection[Any], job_id: UUID, batch: RowBatch, owner: str, seconds: float) -> bool:
    """Whether the lease is still this owner's; then it lasts so much longer."""
    given = {"id": job_id, "number": batch.number, "owner": owner, "seconds": seconds}
    return connection.execute(query("renew_lease"), given).rowcount == 1


def pending_batches(connection: Connection[Any], job_id: UUID) -> int:
    """How many batches are not done."""
    return connection.cursor(row_factory=scalar_row).execute(query("pending_batches"), {"id": job_id}).fetchone() or 0


def all_batches(connection: Connection[Any], job_id: UUID) -> list[RowBatch]:
    """All batches of a job."""
    cursor = connection.cursor(row_factory=class_row(RowBatch))
    return cursor.execute(query("all_batches"), {"id": job_id}).fetchall()


def split(connection: Connection[Any], job_id: UUID, batch: RowBatch) -> None:
    """Make two batches of one that is too much for one statement."""
    middle = (batch.first_row + batch.last_row) // 2
    given = {"id": job_id, "number": batch.number, "middle": middle, "last": batch.last_row}
    with connection.transaction():
        connection.execute(query("lock_batch_numbers"), given)
        connection.execute(query("split_batch"), given)


def finish(connection: Connection[Any], job_id: UUID, batch: RowBatch, counts: dict[Status, int]) -> None:
    """Mark a batch as done. PostgreSQL refuses counts that don't add up to its rows."""
    given = {status.value: counts.get(status, 0) for status in Status}
    connection.execute(query("finish_batch"), {"id": job_id, "number": batch.number, **given})


def count_outcomes(connection: Connection[Any], job_id: UUID, batch: RowBatch) -> dict[Status, int]:
    """What happened to the rows of a batch."""
    given = {"id": job_id, "first": batch.first_row, "last": batch.last_row}
    return {Status(status): count for status, count in connection.execute(query("batch_counts"), given)}


def outcomes_select(job_id: UUID, batch: RowBatch, numbers: Sequence[int] | None = None) -> Composed:
    """The query for a batch's outcomes, or for those of some rows of it."""
    return SQL(
        "SELECT row_number, status, target_key, issues, before, result FROM rowcall.outcome "
        "WHERE job_id = {} AND row_number BETWEEN {} AND {} AND attempt > 0{}"
    ).format(Literal(job_id), Literal(batch.first_row), Literal(batch.last_row), _only(SQL("row_number"), numbers))


def _only(number: SQL, numbers: Sequence[int] | None) -> Composable:
    return SQL(" AND {} = ANY({})").format(number, Literal(list(numbers))) if numbers is not None else SQL("")


def brought(connection: Connection[Any], job_id: UUID, sources: Sequence[Source], texts: Sequence[str]) -> list[str]:
    """Those of the lower-case texts that come from one of these sources in the job's file, in whatever case.

    All texts of the columns are gathered once in a session: they are asked for piece by piece.
    """
    table = Identifier("rowcall_brought_" + "_".join("x".join(map(str, source.positions)) for source in sources))
    cells = SQL(", ").join(source.sql for source in sources)
    if connection.execute("SELECT to_regclass(%s)", ["pg_temp." + table.as_string()]).fetchone() == (None,):
        connection.execute(
            SQL(
                r"CREATE TEMPORARY TABLE {} AS SELECT DISTINCT lower(btrim(cell, E' \t\n\r\f\v\u00a0')) AS text "
                "FROM rowcall.edited_row, unnest(ARRAY[{}]) AS cell WHERE job_id = {}"
            ).format(table, cells, Literal(job_id))
        )
        connection.execute(SQL("CREATE INDEX ON {} USING hash (text)").format(table))
    select = SQL("SELECT text FROM {} WHERE text = ANY({})").format(table, Literal(list(texts)))
    return [text for (text,) in connection.execute(select)]


def read_rows(
    connection: Connection[Any],
    job_id: UUID,
    sources: Sources,
    *,
    first: int,
    last: int,
    numbers: Sequence[int] | None = None,
    edited: bool,
) -> pl.DataFrame:
    """Rows by number: `number`, `PROBLEMS`, and the texts from these sources under the given names.

    `edited`: rows of the job have corrections, which count. To look for them costs jobs that have none a little.
    """
    columns: dict[str, Composable] = {PROBLEMS: SQL("problems::text")}
    for name, source in sources.items():
        columns[name] = source.sql
    table = Identifier("rowcall", "edited_row" if edited else "row")
    source = SQL("{} WHERE job_id = {} AND number BETWEEN {} AND {}{} ORDER BY number").format(
        table, Literal(job_id), Literal(first), Literal(last), _only(SQL("number"), numbers)
    )
    return read_columns(connection, source, "number", columns)
