"""The end of a job: only when every row has its outcome, by query."""

from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from rowcall.engine.failures import own_code
from rowcall.engine.preview.plan import close_plan
from rowcall.errors import Final
from rowcall.importer import Importer
from rowcall.model import Code, State
from rowcall.store.edits import has_edits
from rowcall.store.jobs import Job, move, seize
from rowcall.store.queries import query


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """A job's rows, outcomes and batches, each counted for itself."""

    row_count: int | None
    rows: int
    done: int
    outcomes: int
    created: int
    updated: int
    unchanged: int
    skipped: int
    failed: int
    reverted: int
    cancelled: int
    """Rows of a cancelled job that nothing became of."""

    @property
    def holds(self) -> bool:
        parts = self.created + self.updated + self.unchanged + self.skipped + self.failed + self.reverted
        accounted = {self.done, self.outcomes, parts}
        return self.row_count == self.rows and accounted == {self.rows - self.cancelled}


def balance_of(connection: Connection[Any], job: Job) -> Balance:
    """The counts of a job, asked of the database."""
    found = connection.cursor(row_factory=class_row(Balance)).execute(query("balance"), {"id": job.id}).fetchone()
    if found is None:
        raise Final(Code.JOB_NOT_FOUND, f"There is no job {job.number}.")
    return found


def finish_job(connection: Connection[Any], job: Job, importer: type[Importer]) -> Job:
    """The job in its next state, when all of its batches are done. Called in a transaction."""
    balance = balance_of(connection, job)
    if not balance.holds:
        raise Final(
            Code.OUT_OF_BALANCE,
            f"Job {job.number} does not add up: {balance}.",
            hint=f"Look at it with `rowcall doctor --verify {job.number}`.",
            over_http="Whoever runs the service can have it looked at: it is a defect.",
        )
    if job.state is State.PROCESSING:
        with own_code(importer, "after"):
            importer().after(connection, job)
        return move(connection, job, State.COMPLETED_WITH_ERRORS if balance.failed else State.COMPLETED)
    seize(connection, job)  # before its plan, as whoever supersedes it does
    if importer.atomic and balance.failed and not (shows_plan(job, importer) and has_edits(connection, job.id)):
        connection.execute(query("not_applied"), {"id": job.id})
        connection.execute(query("recount_batches"), {"id": job.id, "first": 1, "last": job.row_count})
        return move(connection, job, State.INVALID)
    if shows_plan(job, importer):  # of all or nothing, also a plan that somebody's corrections spoiled: they mend it
        close_plan(connection, job)
        return move(connection, job, State.VALIDATED)
    connection.execute(query("forget_plan"), {"id": job.id})  # nobody has seen it
    return start_processing(connection, job, importer)


def shows_plan(job: Job, importer: type[Importer]) -> bool:
    """Whether the job waits after its preview."""
    return job.config.dry_run or job.config.preview or importer.flow.preview


def start_processing(connection: Connection[Any], job: Job, importer: type[Importer]) -> Job:
    """The job in PROCESSING. Called in a transaction."""
    job = move(connection, job, State.PROCESSING)
    _let_know(connection, job, importer)
    return job


def _let_know(connection: Connection[Any], job: Job, importer: type[Importer]) -> None:
    with own_code(importer, "before"):
        importer().before(connection, job)


def begin_processing(connection: Connection[Any], job: Job, importer: type[Importer]) -> None:
    """Let the importer know of a plan that was submitted: who did so need not be able to do what it does then."""
    with connection.transaction():
        if job.state is State.PROCESSING and connection.execute(query("begin_plan"), {"id": job.id}).rowcount:
            _let_know(connection, job, importer)


def count_drifted(connection: Connection[Any], job: Job) -> int:
    """How many rows would have come out otherwise than was agreed to."""
    row = connection.execute(query("count_drifted"), {"id": job.id}).fetchone()
    return row[0] if row else 0


def plan_again(connection: Connection[Any], job: Job, drifted: int) -> Job:
    """The job, which takes all rows or none, back where it is planned: it can't be done as it was planned."""
    with connection.transaction():
        connection.execute(query("plan_again"), {"id": job.id, "drifted": drifted})
        return move(connection, job, State.VALIDATING)
