"""Previews over HTTP: what a job would do, and the word to do exactly that."""

import re
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Response
from psycopg import Connection

from rowcall.api.models.jobs import JobAnswer
from rowcall.api.models.previews import PreviewAnswer
from rowcall.api.moves import moved
from rowcall.api.openapi import headers, refusals
from rowcall.api.service import TheCaller, TheService
from rowcall.engine import moves
from rowcall.engine.preview.documents import preview_of
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store import jobs
from rowcall.store.jobs import Job

router = APIRouter(prefix="/v1/imports/{job_id}", tags=["preview"])
_ETAG = re.compile(r'\s*(W/)?"([^"]*)"\s*')
_IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="The plan that is agreed to: the preview's `ETag`. `*` for whatever it is."),
]


@router.get(
    "/preview",
    responses={
        200: {"description": "What would happen.", "headers": headers("ETag")},
        **refusals(Code.JOB_NOT_FOUND, Code.WRONG_STATE),
    },
)
def read_preview(job_id: UUID, at: TheService, caller: TheCaller, response: Response) -> PreviewAnswer:
    """What a job would do, or what it was to do when it was submitted: counts, changed fields, problems.

    The rows themselves are `items`; those that would be updated have their `changes`.
    """
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        told = preview_of(connection, job, at.registry.by_name().get(job.importer))
    response.headers["ETag"] = f'"{told["digest"]}"'
    return PreviewAnswer.model_validate(told)


@router.post(
    "/submit",
    status_code=202,
    responses=refusals(
        *(Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE, Code.PLAN_STALE, Code.PLAN_REQUIRED),
        *(Code.BAD_REQUEST, Code.SUPERSEDED),
    ),
)
def submit_import(job_id: UUID, at: TheService, caller: TheCaller, if_match: _IfMatch = None) -> JobAnswer:
    """Commit what the preview says. A plan that was submitted already is answered with the job as it is."""
    now = False

    def submit(connection: Connection[Any], job: Job) -> Job:
        nonlocal now
        if if_match is None or not if_match.strip():
            moves.require(job, "submit")  # no plan would do
            raise _unsaid()
        job, now = moves.submit(connection, job, _digests(if_match), at.registry.find(job.importer))
        return job

    return moved(at, caller, job_id, "submit", submit, lambda: now)


def _unsaid() -> Final:
    hint = "Send `If-Match` with the `ETag` of the preview, or `If-Match: *` for whatever the plan is."
    return Final(Code.PLAN_REQUIRED, "Which plan is agreed to has to be said.", hint=hint)


def _digests(if_match: str) -> frozenset[str]:
    """The plans that are agreed to, as `If-Match` has them. Weak tags match nothing (RFC 9110, 13.1.1)."""
    if if_match.strip() == moves.ANY_PLAN:
        return frozenset({moves.ANY_PLAN})
    found = [_ETAG.fullmatch(part) for part in if_match.split(",")]
    if not all(found):
        raise Final(Code.BAD_REQUEST, "`If-Match` is not one or more digests in quotes.", hint='Such as "9f86d0…".')
    return frozenset(match[2] for match in found if match and not match[1])
