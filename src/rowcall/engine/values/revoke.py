"""Takes back what was remembered of a value, and has the rows tried again that were left out for it."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from psycopg import Connection

from rowcall.errors import WrongState
from rowcall.importer import Importer, WholeFileImporter
from rowcall.importer.registry import Registry
from rowcall.model import State
from rowcall.store import jobs, value_decisions
from rowcall.store.jobs import Job
from rowcall.store.value_decisions import Revoked, Used

_ENDED = (State.COMPLETED, State.COMPLETED_WITH_ERRORS)


def revoke(
    connection: Connection[Any], organisation: UUID, decision_id: UUID, registry: Registry, *, reprocess: bool
) -> tuple[Revoked, list[Job]]:
    """Forget a decision; with `reprocess`, rows that were left out for it are tried again, after somebody was asked.

    Also the jobs that go on. Called in a transaction.
    """
    revoked = value_decisions.revoke(connection, organisation, decision_id)
    if not reprocess:
        return revoked, []
    importer = registry.by_name().get(revoked.decision.importer)
    if importer is None or not _may_go_on(importer):
        return revoked, []
    going = [_again(connection, revoked, used) for used in revoked.used]
    return revoked, [job for job in going if job]


def _may_go_on(importer: type[Importer]) -> bool:
    return not importer.atomic and not issubclass(importer, WholeFileImporter)


def _again(connection: Connection[Any], revoked: Revoked, used: Used) -> Job | None:
    """The job that goes on; None for one that has no such rows, is not through, or whose scope another has by now."""
    with suppress(WrongState), connection.transaction():
        job = jobs.seize(connection, jobs.get_job(connection, str(used.job_id)))
        if job.state in _ENDED and value_decisions.question_again(connection, job.id, revoked.decision):
            return jobs.move(connection, job, State.PROCESSING)
    return None


def way_on(revoked: Revoked, used: Used) -> str:
    """How rows of a job that used a decision come to something else."""
    if revoked.decision.action == "skip":
        return f"Its rows were left out: with `reprocess` they are tried again, or by reprocessing job {used.number}."
    return (
        "Its rows were written by it. Undo the job, or import its file again; with mode `upsert` the rows are changed."
    )
