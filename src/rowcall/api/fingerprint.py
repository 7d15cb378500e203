"""What the check of a job's fingerprint found."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from fastapi import APIRouter

from rowcall.api.models import Wire
from rowcall.api.openapi import refusals
from rowcall.api.service import TheCaller, TheService
from rowcall.engine.documents import fingerprint_document
from rowcall.model import Code
from rowcall.store import jobs
from rowcall.store.fingerprints import check_of

router = APIRouter(prefix="/v1/imports/{job_id}", tags=["imports"])


class FingerprintFinding(Wire):
    """A row of the file whose key is somebody else's in the target."""

    row: int
    line: int | None
    key: list[str]
    field: str
    found: str | None
    """What the file says."""
    expected: str | None
    """What the target says."""


class FingerprintAnswer(Wire):
    """Whether a file is about the same things as the target, as a sample of its rows tells."""

    verdict: Literal["pass", "warn", "abort"] | None
    """null: nobody has looked, or the importer doesn't ask for it."""
    note: str
    """Why, in words."""
    sampled: int
    matched: int
    """Rows that could be compared with the target's row of the same key."""
    mismatched: int
    """Those of them that are about something else."""
    warn: float | None
    """From which share of them on a person is asked."""
    abort: float | None
    """From which share on the job goes no further."""
    findings: list[FingerprintFinding]
    """The first hundred."""
    checked_at: datetime | None
    acknowledged_by: str | None
    acknowledged_at: datetime | None


@router.get("/fingerprint", responses=refusals(Code.JOB_NOT_FOUND))
def read_fingerprint(job_id: UUID, at: TheService, caller: TheCaller) -> FingerprintAnswer:
    """What the check of a job's fingerprint found, and who has acknowledged it."""
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        return FingerprintAnswer.model_validate(fingerprint_document(check_of(connection, job.id)))
