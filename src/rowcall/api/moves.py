"""Moves of jobs over HTTP. Each is answered with the job as it is then; what is still to happen is its `wish`."""

from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Query
from psycopg import Connection

from rowcall.api.audit import audit
from rowcall.api.items import statuses_in
from rowcall.api.models.items import ReprocessAnswer, ReprocessRequest
from rowcall.api.models.jobs import JobAnswer
from rowcall.api.openapi import refusals
from rowcall.api.service import Caller, Service, TheCaller, TheService
from rowcall.engine import moves, observe
from rowcall.engine.documents import job_document
from rowcall.model import WORKING, Code
from rowcall.store import jobs
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job
from rowcall.worker.queue import nudge

router = APIRouter(prefix="/v1/imports/{job_id}", tags=["moves"])
_REFUSED = refusals(Code.JOB_NOT_FOUND, Code.WRONG_STATE, Code.SUPERSEDED)
_Move = Callable[[Connection[Any], Job], Job]


def moved(
    at: Service, caller: Caller, job_id: UUID, name: str, move: _Move, happened: Callable[[], bool] = lambda: True
) -> JobAnswer:
    """The job after a move, with workers told of it; `happened` tells whether it was not just asked for again."""
    with at.connection(caller) as connection:
        before = job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        job = move(connection, job)
        if job.state in WORKING:
            nudge(connection, job.id)
        if happened():
            audit(connection, caller, f"import.{name}", job.id, {"number": job.number})
        answer = JobAnswer.model_validate(
            job_document(job, jobs.counts_of(connection, job), at.registry.find(job.importer))
        )
    if job.state is not before.state and happened():
        with at.connection(caller) as connection:
            observe.moved(connection, before, job)
    return answer


@router.post("/start", status_code=202, responses=_REFUSED)
def start_import(job_id: UUID, at: TheService, caller: TheCaller) -> JobAnswer:
    """Begin a job that was uploaded with `hold`."""
    return moved(at, caller, job_id, "start", moves.start)


@router.post("/fingerprint/acknowledge", status_code=202, responses=_REFUSED)
def acknowledge_fingerprint(job_id: UUID, at: TheService, caller: TheCaller) -> JobAnswer:
    """Let a job go on in FINGERPRINT_WARN, though some of its rows differ from the target. Who and when is kept."""
    return moved(
        at, caller, job_id, "acknowledge", lambda connection, job: moves.acknowledge(connection, job, caller.account)
    )


@router.post("/pause", status_code=202, responses=_REFUSED)
def pause_import(job_id: UUID, at: TheService, caller: TheCaller) -> JobAnswer:
    """Stop a job for now: the batches under way end, and what is done stays."""
    return moved(at, caller, job_id, "pause", moves.pause)


@router.post("/resume", status_code=202, responses=_REFUSED)
def resume_import(job_id: UUID, at: TheService, caller: TheCaller) -> JobAnswer:
    """Let a paused job go on where it was."""
    return moved(at, caller, job_id, "resume", moves.resume)


@router.post("/kickoff", status_code=202, responses=_REFUSED)
def kickoff_import(
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    duration_ms: Annotated[int, Query(alias="durationMs", ge=100, le=86_400_000, description="How long.")] = 10_000,
) -> JobAnswer:
    """Let a held or paused job work for a while; then it pauses by itself."""
    return moved(at, caller, job_id, "kickoff", lambda connection, job: moves.kickoff(connection, job, duration_ms))


@router.post("/cancel", status_code=202, responses=_REFUSED)
@router.delete("", status_code=202, responses=_REFUSED, operation_id="deleteImport", summary="Delete import")
def cancel_import(job_id: UUID, at: TheService, caller: TheCaller) -> JobAnswer:
    """Stop a job for good: the batches under way end, what is done stays, the other rows are cancelled.

    In FINGERPRINT_ABORT it becomes FAILED, and what was found is kept.
    """
    return moved(at, caller, job_id, "cancel", moves.cancel)


@router.post(
    "/reprocess",
    status_code=202,
    responses=refusals(
        *(Code.BAD_REQUEST, Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE, Code.BODY_TOO_LARGE),
        *(Code.SCOPE_BUSY, Code.SUPERSEDED),
    ),
)
def reprocess_rows(
    job_id: UUID, at: TheService, caller: TheCaller, which: Annotated[ReprocessRequest, Body()]
) -> ReprocessAnswer:
    """Try rows again that failed or were skipped: by number, status, issue, text or corrections."""
    chosen: list[int] = []

    def again(connection: Connection[Any], job: Job) -> Job:
        wanted = Wanted(
            statuses=statuses_in(",".join(moves.to_try_again(which.statuses, which.rows, edited=which.edited))),
            code=which.code,
            field=which.field,
            text=which.text,
            edited=which.edited,
            rows=tuple(which.rows) if which.rows is not None else None,
        )
        job, count = moves.reprocess(connection, job, at.registry.importer(job.importer), wanted)
        chosen.append(count)
        return job

    return ReprocessAnswer(job=moved(at, caller, job_id, "reprocess", again), rows=chosen[0])
