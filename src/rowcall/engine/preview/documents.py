"""What a preview shows: the plan of a job, for a program."""

from typing import Any

from psycopg import Connection

from rowcall.engine.moves import allowed
from rowcall.errors import WrongState
from rowcall.importer import Importer, ItemImporter, Version, WholeFileImporter
from rowcall.model import Code, State
from rowcall.store.jobs import Job
from rowcall.store.plans import Plan, plan_of


def preview_of(connection: Connection[Any], job: Job, importer: type[Importer] | None) -> dict[str, Any]:
    """The plan of a job. One that has none is refused, with where it is."""
    plan = plan_of(connection, job.id)
    if plan is None or job.state is State.VALIDATING:  # then it is another's, until it is made anew
        told = f"Job {job.number} is {job.state} and has no preview."
        hint = "There is one when it is VALIDATED: upload with `preview`, or to an importer that waits there."
        raise WrongState(Code.WRONG_STATE, told, hint=hint, state=job.state, allowed=allowed(job))
    return preview_document(job, plan, importer)


def preview_document(job: Job, plan: Plan, importer: type[Importer] | None) -> dict[str, Any]:
    """A plan for a program."""
    fields = {field.column: name for name, field in importer.fields.items()} if importer else {}
    return {
        "id": job.id,
        "number": job.number,
        "state": job.state,
        "importer": job.importer,
        "digest": plan.digest,
        "asOf": plan.as_of,
        "submittedAt": plan.submitted_at,
        "atomic": importer.atomic if importer else None,
        "counts": {"rows": sum(plan.counts.values()), **plan.counts},
        "fields": [
            {"field": fields.get(column, column), "column": column, "rows": rows}
            for column, rows in sorted(plan.fields.items(), key=lambda each: (-each[1], each[0]))
        ],
        "problems": [
            {"firstRow": problem["first_row"], **{name: problem[name] for name in ("code", "field", "status", "count")}}
            for problem in plan.problems
        ],
        "drifted": plan.drifted,
        "undo": _undo(plan, importer),
    }


def _undo(plan: Plan, importer: type[Importer] | None) -> dict[str, int] | None:
    """How many rows could be taken back afterwards; none where an importer's own code writes, unless it keeps more."""
    if importer is None or issubclass(importer, WholeFileImporter | ItemImporter):
        return None
    created, updated = plan.counts["created"], plan.counts["updated"]
    if isinstance(importer.on_match, Version):  # what it updates is a row beside the one before, and goes again
        return {"deletes": created + updated, "restores": 0}
    return {"deletes": created, "restores": updated}
