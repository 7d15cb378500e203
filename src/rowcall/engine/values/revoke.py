"""Takes back what was remembered of a value: rows left out for it are tried again, and jobs that wait ask anew."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from psycopg import Connection

from rowcall.errors import WrongState
from rowcall.importer import Importer, WholeFileImporter
from rowcall.importer.registry import Registry
from rowcall.model import State, Wish
from rowcall.store import jobs, value_decisions
from rowcall.store.jobs import Job
from rowcall.store.queries import query
from rowcall.store.value_decisions import Revoked, Used

_ENDED = (State.COMPLETED, State.COMPLETED_WITH_ERRORS)
_WAITS = (State.CELL_MAPPING, State.FINGERPRINT_WARN, State.VALIDATED)
_IN_VAIN = (State.INVALID, State.SUPERSEDED)


def revoke(
    connection: Connection[Any], organisation: UUID, decision_id: UUID, registry: Registry, *, reprocess: bool
) -> tuple[Revoked, list[Job]]:
    """Forget a decision; with `reprocess`, rows that were left out for it are tried again, after somebody was asked.

    So are jobs that wait and have written nothing. Also the jobs that go on. Called in a transaction.
    """
    revoked = value_decisions.revoke(connection, organisation, decision_id)
    importer = registry.by_name().get(revoked.decision.importer)
    if not reprocess or importer is None:
        return revoked, []
    going = [_again(connection, importer, revoked, used) for used in revoked.used]
    return revoked, [job for job in going if job]


def _by_rows(importer: type[Importer]) -> bool:
    return not importer.atomic and not issubclass(importer, WholeFileImporter)


def _again(connection: Connection[Any], importer: type[Importer], revoked: Revoked, used: Used) -> Job | None:
    """The job that goes on; None for one that has no such rows, is not through, or whose scope another has by now."""
    with suppress(WrongState), connection.transaction():
        job = jobs.seize(connection, jobs.get_job(connection, str(used.job_id)))
        if job.state in _WAITS and not used.processed and not job.config.dry_run:
            return _asks_anew(connection, job, revoked)
        left_out = job.state in _ENDED and _by_rows(importer)
        if left_out and value_decisions.question_again(connection, job.id, revoked.decision):
            return jobs.move(connection, job, State.PROCESSING)
    return None


def _asks_anew(connection: Connection[Any], job: Job, revoked: Revoked) -> Job | None:
    """The job, which has written nothing, where its values are gathered; None while somebody works on it.

    What else was said of its values stays.
    """
    free = connection.execute(query("try_job"), {"id": job.id}).fetchone()
    if not free or not free[0] or (job.state is State.CELL_MAPPING and job.wish is not Wish.HOLD):
        return None
    value_decisions.forget_value(connection, job.id, revoked.decision)
    for forgotten in ("forget_plan", "forget_value_fields"):
        connection.execute(query(forgotten), {"id": job.id})
    if job.state is not State.CELL_MAPPING:
        job = jobs.move(connection, job, State.CELL_MAPPING)
    connection.execute(query("set_wish"), {"id": job.id, "wish": None})
    return jobs.get_job(connection, str(job.id))


def way_on(revoked: Revoked, used: Used, *, again: bool) -> str:
    """How rows of a job that used a decision come to something else; `again` if the job goes on for that now."""
    if again:
        return "It asks anew what the value stands for, where its importer asks, and goes on then."
    if used.state == State.REVERTED:
        return "Nothing of it is left: what it wrote was taken back."
    if not used.processed:
        return _unwritten(used)
    if revoked.decision.action == "skip":
        return "Its rows were left out, and stay so. Import its file again: that asks anew."
    undo = "Undo the job" if used.state in (*_ENDED, State.CANCELLED) else "Undo the job when it is through"
    undo = "" if used.state == State.FAILED else f"{undo}, or "
    told = f"{undo}import its file again; with mode `upsert` the rows are changed."
    return f"Its rows are written by it. {told[0].upper()}{told[1:]}"


def _unwritten(used: Used) -> str:
    if used.dry_run or used.state in (*_IN_VAIN, State.CANCELLED, State.FAILED):
        return "It has written nothing, and won't."
    if used.state == State.CELL_MAPPING:
        return "It has written nothing yet: say what the value stands for now before its values are confirmed."
    return "It has written nothing yet, but would by it: cancel it, and import its file again, which asks anew."
