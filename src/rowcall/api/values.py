"""Values over HTTP: what each stands for, what a person says, and what they could say."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Query
from psycopg import Connection

from rowcall.api.audit import audit
from rowcall.api.models.jobs import JobAnswer
from rowcall.api.models.values import (
    CandidatePage,
    ValueFieldAnswer,
    ValuePage,
    ValueStatus,
    ValuesUpdated,
    ValueUpdates,
)
from rowcall.api.models.wire import Text
from rowcall.api.moves import moved
from rowcall.api.openapi import refusals
from rowcall.api.service import Caller, Service, TheCaller, TheService
from rowcall.engine.values import answering
from rowcall.engine.values.candidates import Sought
from rowcall.engine.values.documents import candidates_document, fields_document, values_document
from rowcall.importer import Importer
from rowcall.model import Code
from rowcall.store import jobs, value_answers
from rowcall.store.jobs import Job
from rowcall.store.value_answers import WantedValues

router = APIRouter(prefix="/v1/imports/{job_id}/cell-mappings", tags=["values"])
_ABOUT = (Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER)


@contextmanager
def _tables(at: Service) -> Generator[Connection[Any]]:
    """A connection that looks into the application's tables, which requests see nothing of."""
    with at.pool.connection() as connection:
        yield connection


@router.get("", responses=refusals(*_ABOUT, Code.BAD_CURSOR, Code.BAD_MAPPING))
def read_cell_mappings(
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    field: Annotated[Text | None, Query(description="Only values of this field.")] = None,
    status: Annotated[ValueStatus | None, Query(description="Only values that are so.")] = None,
    text: Annotated[Text | None, Query(description="Only values with this in them.")] = None,
    after: Annotated[Text | None, Query(description="The `next` of the page before.")] = None,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=1000)] = 50,
) -> ValuePage:
    """The distinct values of a job's fields, the most frequent first, and how far each field is settled."""
    wanted = WantedValues(field=field, status=status, text=text, most=page_size)
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        told = values_document(connection, job, at.registry.importer(job.importer), wanted, after)
    return ValuePage.model_validate(told)


def _fields(connection: Connection[Any], job: Job, importer: type[Importer]) -> list[ValueFieldAnswer]:
    told = fields_document(importer, value_answers.value_fields(connection, job.id))
    return [ValueFieldAnswer.model_validate(each) for each in told]


@router.put("", responses=refusals(*_ABOUT, Code.WRONG_STATE, Code.BAD_MAPPING, Code.BODY_TOO_LARGE))
def change_cell_mappings(
    job_id: UUID, at: TheService, caller: TheCaller, said: Annotated[ValueUpdates, Body()]
) -> ValuesUpdated:
    """Say what values stand for, some at once or all that fit. The job goes on waiting."""
    updates = [each.update() for each in said.updates]
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        importer = at.registry.importer(job.importer)
        named = answering.targets_named(connection, job, updates)
    with _tables(at) as tables:  # not inside the other: requests that each wait for a second connection get none
        targets = answering.find_targets(tables, importer, named)
    with at.connection(caller) as connection:
        count = answering.update(connection, job, importer, updates, targets, caller.account)
        audit(connection, caller, "import.values", job.id, {"number": job.number, "values": count})
        return ValuesUpdated(updated=count, fields=_fields(connection, job, importer))


@router.get("/candidates", responses=refusals(*_ABOUT, Code.BAD_MAPPING, Code.BAD_CURSOR))
def search_candidates(
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    target_field: Annotated[Text, Query(alias="targetField", description="The field.")],
    q: Annotated[Text, Query(max_length=200, description="What to look for; the first ones by name without it.")] = "",
    scope: Annotated[Text | None, Query(description="Only in this scope: the `scope.id` of a value.")] = None,
    after: Annotated[Text | None, Query(description="The `next` of the page before.")] = None,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=100)] = 20,
) -> CandidatePage:
    """Search for what values of a field can stand for, whatever case and accents, misspelt or not; the best first."""
    importer = _importer(at, caller, job_id)
    with _tables(at) as tables:
        sought = Sought(text=q, scope=scope, most=page_size)
        told = candidates_document(tables, importer, target_field, sought, after)
    return CandidatePage.model_validate(told)


def _importer(at: Service, caller: Caller, job_id: UUID) -> type[Importer]:
    with at.connection(caller) as connection:
        return at.registry.importer(jobs.get_job(connection, str(job_id), organisation=caller.organisation).importer)


@router.post(
    "/confirm", status_code=202, responses=refusals(Code.JOB_NOT_FOUND, Code.WRONG_STATE, Code.VALUES_UNRESOLVED)
)
def confirm_cell_mappings(job_id: UUID, at: TheService, caller: TheCaller) -> JobAnswer:
    """Let the job go on with what its values stand for. What was decided is remembered for the next file."""
    return moved(at, caller, job_id, "confirm-values", answering.confirm)
