"""What the check of a job's fingerprint found."""

from uuid import UUID

from fastapi import APIRouter

from rowcall.api.models.receipts import FingerprintResult
from rowcall.api.models.wire import Wire
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


class FingerprintAnswer(FingerprintResult):
    """The same, with the rows that differ."""

    findings: list[FingerprintFinding]
    """The first hundred."""


@router.get("/fingerprint", responses=refusals(Code.JOB_NOT_FOUND))
def read_fingerprint(job_id: UUID, at: TheService, caller: TheCaller) -> FingerprintAnswer:
    """What the check of a job's fingerprint found, and who has acknowledged it."""
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        return FingerprintAnswer.model_validate(fingerprint_document(check_of(connection, job.id)))
