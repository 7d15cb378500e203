"""What a preview came to: its digest, its counts, and a mark for each row by which a change of plan is seen."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rowcall.model import Status
from rowcall.store.queries import query
from rowcall.store.results import IssueCount
from rowcall.store.rows import RowBatch

Marks = npt.NDArray[np.uint64]
_MARK = np.dtype("<u8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would happen to the rows of a job."""

    job_id: UUID
    digest: str
    as_of: datetime
    counts: dict[str, int]
    fields: dict[str, int]
    """In how many rows a column of the target would change."""
    problems: list[dict[str, Any]]
    drifted: int
    """Rows whose plan had changed when this job was submitted before."""
    submitted_at: datetime | None


def add_piece(connection: Connection[Any], job_id: UUID, batch: RowBatch, marks: Marks, implied: Status | None) -> None:
    """Keep what is planned for a batch; the outcomes that are not implied are kept already."""
    given = {"id": job_id, "first": batch.first_row, "last": batch.last_row}
    connection.execute(query("add_piece"), {**given, "implied": implied, "marks": marks.astype(_MARK).tobytes()})


def marks_of(connection: Connection[Any], job_id: UUID, batch: RowBatch) -> Marks:
    """The marks of a batch's rows, in their order."""
    given = {"id": job_id, "first": batch.first_row, "last": batch.last_row}
    found = connection.execute(query("pieces_between"), given, binary=True).fetchall()
    marks = np.concatenate([np.frombuffer(piece, _MARK) for _, piece in found])
    begin = batch.first_row - found[0][0]
    return marks[begin : begin + len(batch)]


def pieces_of(connection: Connection[Any], job_id: UUID, numbers: Sequence[int]) -> Iterator[tuple[RowBatch, Marks]]:
    """The pieces that have some of these rows, with marks that can be changed."""
    given = {"id": job_id, "numbers": list(numbers)}
    for first, last, marks in connection.execute(query("pieces_with"), given, binary=True).fetchall():
        yield RowBatch(0, first, last), np.frombuffer(marks, _MARK).copy()


def replace_piece(connection: Connection[Any], job_id: UUID, batch: RowBatch, marks: Marks) -> None:
    """Keep what is planned for the rows of a batch now."""
    given = {"id": job_id, "first": batch.first_row, "last": batch.last_row}
    connection.execute(query("replace_piece"), {**given, "marks": marks.astype(_MARK).tobytes()})


def recount(connection: Connection[Any], job_id: UUID, batch: RowBatch, counts: Mapping[str, int]) -> None:
    """What a batch would come to now."""
    given = {status.value: counts.get(status.value, 0) for status in Status}
    connection.execute(query("recount_planned"), {"id": job_id, "first": batch.first_row, **given})


def said_by_people(connection: Connection[Any], job_id: UUID) -> list[str | None]:
    """Hashes of what people said: of values, of cells."""
    return list(connection.execute(query("said_by_people"), {"id": job_id}).fetchone() or ())


def digest_of(connection: Connection[Any], job_id: UUID, what: bytes) -> str:
    """The digest of a plan: of what it is made from, and of the marks of all rows, however they were cut."""
    digest = hashlib.sha256(what)
    with connection.transaction(), connection.cursor("rowcall_pieces", binary=True) as cursor:
        cursor.itersize = 20
        for _, marks in cursor.execute(query("pieces"), {"id": job_id}):
            digest.update(marks)
    return digest.hexdigest()


def set_plan(
    connection: Connection[Any],
    job_id: UUID,
    *,
    digest: str,
    counts: Mapping[str, int],
    problems: Sequence[IssueCount],
) -> None:
    """Keep the plan of a job whose pieces are complete."""
    fields = dict(connection.execute(query("changed_fields"), {"id": job_id}).fetchall())
    told = {"counts": dict(counts), "fields": fields, "problems": [asdict(problem) for problem in problems]}
    given = {"id": job_id, "digest": digest}
    connection.execute(query("set_plan"), given | {name: Jsonb(value) for name, value in told.items()})


def plan_of(connection: Connection[Any], job_id: UUID) -> Plan | None:
    """The plan of a job, if it has one."""
    return connection.cursor(row_factory=class_row(Plan)).execute(query("plan_of"), {"id": job_id}).fetchone()
