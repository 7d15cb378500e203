"""Back to the columns: as long as nothing is written, a person may say otherwise."""

from typing import Any

from psycopg import Connection

from rowcall.engine.moves import require
from rowcall.errors import Final, WrongState
from rowcall.importer import Importer
from rowcall.model import Code, State, Wish
from rowcall.store import jobs, value_mappings
from rowcall.store.jobs import Job, counts_of
from rowcall.store.queries import query


def reopen_columns(connection: Connection[Any], job: Job, importer: type[Importer]) -> Job:
    """The job back in COLUMN_MAPPING, where it waits; what was derived from its columns is forgotten.

    Called in a transaction. Refused once rows were written, and while somebody works on the job.
    """
    job = jobs.seize(connection, job)
    require(job, "reopen")
    free = connection.execute(query("try_job"), {"id": job.id}).fetchone()
    if not free or not free[0]:
        told = f"Job {job.number} is being worked on by another process."
        raise Final(Code.JOB_BUSY, told, hint="Wait until it rests.")
    if not importer.atomic and (done := _done(connection, job, importer)):
        told = f"{done} already: its columns stay as they are."
        raise WrongState(Code.WRONG_STATE, told, hint="Import the file again for another job.", state=job.state)
    for forgotten in ("forget_plan", "forget_value_fields", "forget_proposals", "free_values"):
        connection.execute(query(forgotten), {"id": job.id})
    job = jobs.move(connection, job, State.COLUMN_MAPPING)
    connection.execute(query("set_wish"), {"id": job.id, "wish": Wish.HOLD})
    return jobs.get_job(connection, str(job.id))


def _done(connection: Connection[Any], job: Job, importer: type[Importer]) -> str | None:
    """What can't be done again. Of a job that is planned nothing is; one that asks may have begun to write."""
    if job.state is not State.CELL_MAPPING or value_mappings.asked_from(connection, job.id) != State.PROCESSING:
        return None
    counts = counts_of(connection, job)
    if counts.done:
        return f"Rows of job {job.number} are {'written' if counts.created + counts.updated else 'through'}"
    if importer.before is not Importer.before:
        return f"`before` of {importer.name} has run for job {job.number}"
    return None
