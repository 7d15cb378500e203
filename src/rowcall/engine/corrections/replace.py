"""A text replaced in one column of many rows: counted first, then done for exactly the rows that were counted."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
from psycopg import Connection
from psycopg.sql import SQL

from rowcall.engine.corrections.edit import OPEN, lock_for_edit, places_of, plan_again
from rowcall.engine.moves import require
from rowcall.errors import Final
from rowcall.importer import Importer
from rowcall.model import Code, State
from rowcall.store.edits import Laid, lay_over
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job
from rowcall.store.queries import query
from rowcall.words import counted

_SAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacing:
    """What to replace, and where: in a column named by header, field or `column N`, of the rows that are wanted."""

    which: Wanted
    column: str
    find: str
    """Nothing stands for a cell that is empty or missing."""
    text: str
    part: bool = False
    """Also where it is only a part of the cell."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A cell as it is, and as it would be."""

    row: int
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class Counted:
    """How many cells would be replaced, some of them, and what stands for just these."""

    rows: int
    samples: list[Sample]
    token: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """The job, and how much was corrected."""

    job: Job
    laid: Laid


def count_replaced(connection: Connection[Any], job: Job, asked: Replacing) -> Counted:
    """What a replacement would do, if nothing changes until it is done."""
    require(job, "edit")
    given, found = _given(connection, job, asked), SQL(query("cells_to_replace"))
    counted = connection.execute(SQL(query("count_wanted")).format(source=SQL("({})").format(found)), given).fetchone()
    first = SQL("SELECT row_number, before, after FROM ({}) each ORDER BY row_number LIMIT %(samples)s").format(found)
    samples = [Sample(*row) for row in connection.execute(first, {**given, "samples": _SAMPLES})]
    rows, digest = counted or (0, 0)
    return Counted(rows, samples, _token(job, asked, rows, digest))


def replace_cells(
    connection: Connection[Any], job: Job, importer: type[Importer], asked: Replacing, *, token: str, who: str
) -> Replaced:
    """Replace just what was counted; if it is something else by now, nothing happens and it is said so.

    Called in a transaction. A job that waits for its preview to be submitted is planned again.
    """
    job = lock_for_edit(connection, job, importer)
    found = SQL(query("cells_to_replace"))
    making = SQL("CREATE TEMPORARY TABLE rowcall_wanted ON COMMIT DROP AS {}").format(found)
    connection.execute(making, _given(connection, job, asked))
    rows, digest = connection.execute(
        SQL(query("count_wanted")).format(source=SQL("pg_temp.rowcall_wanted"))
    ).fetchone() or (0, 0)
    if token != _token(job, asked, rows, digest):
        now = counted(rows, "cell")
        told = f"It is not what was counted: by now {now} would be replaced, or something else."
        raise Final(Code.NOT_AS_COUNTED, told, hint="Count again, and send the token of that.")
    connection.execute("ANALYZE pg_temp.rowcall_wanted")
    laid = lay_over(connection, job.id, "pg_temp.rowcall_wanted", who)
    if laid.rows and job.state is State.VALIDATED:
        job = plan_again(connection, job)
    return Replaced(job, laid)


def _given(connection: Connection[Any], job: Job, asked: Replacing) -> dict[str, Any]:
    if asked.part and not asked.find:
        raise Final(
            Code.BAD_REQUEST, "Nothing can't be a part of a cell.", hint="Say what to find, or take whole cells."
        )
    place = places_of(connection, job, [asked.column])[asked.column]
    which = asked.which
    return {
        "id": job.id,
        "position": place,
        "find": asked.find,
        "with": asked.text,
        "part": asked.part,
        "statuses": list(which.statuses),
        "open": [] if job.state is State.VALIDATED else OPEN,
        "code": which.code,
        "field": which.field,
        "text": which.text,
        "edited": which.edited,
        "numbers": list(which.rows) if which.rows is not None else None,
    }


def _token(job: Job, asked: Replacing, rows: int, digest: int) -> str:
    about = msgspec.json.encode([str(job.id), asdict(asked), rows, digest])
    return hashlib.sha256(about).hexdigest()[:32]
