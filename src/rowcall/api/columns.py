"""Columns over HTTP: what each is thought to be, what a person says, and what they should know before they confirm."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body
from psycopg import Connection

from rowcall.api.audit import audit
from rowcall.api.models.columns import (
    ColumnMappings,
    ColumnMappingsRequest,
    ColumnWarningsAnswer,
    TargetField,
)
from rowcall.api.models.configs import TemplateName
from rowcall.api.models.jobs import JobAnswer
from rowcall.api.moves import moved
from rowcall.api.openapi import refusals
from rowcall.api.service import Caller, Service, TheCaller, TheService
from rowcall.engine.columns import answering
from rowcall.engine.columns.documents import columns_document, target_fields_document, warnings_document
from rowcall.engine.columns.reopen import reopen_columns
from rowcall.engine.columns.templates import apply_template
from rowcall.engine.columns.warnings import warnings_of
from rowcall.engine.work import checked_target, limits_of
from rowcall.importer import Importer
from rowcall.importer.fields import ColumnLimits
from rowcall.model import Code
from rowcall.store import jobs
from rowcall.store.jobs import Job
from rowcall.store.mappings import columns_of

router = APIRouter(prefix="/v1/imports/{job_id}", tags=["columns"])
_READ = refusals(Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.BAD_TARGET)
_CHANGED = refusals(
    *(Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE, Code.BAD_MAPPING, Code.BODY_TOO_LARGE),
    *(Code.BAD_TARGET, Code.BAD_REQUEST),
)


@router.get("/column-mappings", responses=_READ)
def read_column_mappings(job_id: UUID, at: TheService, caller: TheCaller) -> ColumnMappings:
    """The columns of a job's file: the field each goes to, how sure that is, why, and what is still open."""
    return columns_told(at, caller, job_id)


def columns_told(at: Service, caller: Caller, job_id: UUID) -> ColumnMappings:
    """The columns of a job that the caller sees."""
    importer, limits = declared(at, caller, job_id)
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        return mappings_of(connection, job, importer, limits)


@router.put("/column-mappings", responses=_CHANGED)
def change_column_mappings(
    job_id: UUID, at: TheService, caller: TheCaller, said: Annotated[ColumnMappingsRequest, Body()]
) -> ColumnMappings:
    """Say which column is which field, join columns, give fields a value for all rows. The job goes on waiting."""
    importer, limits = declared(at, caller, job_id)
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        answering.update(connection, job, importer, said.answers(), caller.account)
        audit(connection, caller, "import.columns", job.id, {"number": job.number})
        return mappings_of(connection, jobs.get_job(connection, str(job.id)), importer, limits)


@router.post(
    "/column-mappings/template",
    responses=refusals(
        *(Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE, Code.TEMPLATE_NOT_FOUND, Code.BODY_TOO_LARGE),
        *(Code.BAD_TARGET, Code.BAD_REQUEST),
    ),
)
def apply_column_template(
    job_id: UUID, at: TheService, caller: TheCaller, name: Annotated[TemplateName, Body()]
) -> ColumnMappings:
    """Map the columns of a job that waits as a template has them."""
    importer, limits = declared(at, caller, job_id)
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        apply_template(connection, job, importer, name.key(), caller.account)
        audit(connection, caller, "import.template", job.id, {"number": job.number, **name.model_dump()})
        return mappings_of(connection, jobs.get_job(connection, str(job.id)), importer, limits)


@router.post(
    "/column-mappings/confirm",
    status_code=202,
    responses=refusals(
        *(Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE, Code.BAD_TARGET),
        *(Code.MISSING_COLUMNS, Code.AMBIGUOUS_DATES, Code.AMBIGUOUS_NUMBERS),
    ),
)
def confirm_column_mappings(job_id: UUID, at: TheService, caller: TheCaller) -> JobAnswer:
    """Let the job go on with its columns as they are: what is proposed is taken, other columns are left out.

    What was decided is remembered for the next file of the importer.
    """
    importer, limits = declared(at, caller, job_id)
    needed = needed_of(limits)

    def confirm(connection: Connection[Any], job: Job) -> Job:
        return answering.confirm(connection, job, importer, needed, caller.account)

    return moved(at, caller, job_id, "confirm-columns", confirm)


@router.post(
    "/column-mappings/reopen",
    status_code=202,
    responses=refusals(*(Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE, Code.JOB_BUSY, Code.BAD_TARGET)),
)
def reopen_column_mappings(job_id: UUID, at: TheService, caller: TheCaller) -> JobAnswer:
    """Go back to the columns of a job that has written nothing. What was found out after them is forgotten."""
    importer, _ = declared(at, caller, job_id)
    return moved(
        at, caller, job_id, "reopen-columns", lambda connection, job: reopen_columns(connection, job, importer)
    )


@router.get("/column-mappings/warnings", responses=_READ)
def read_column_warnings(job_id: UUID, at: TheService, caller: TheCaller) -> ColumnWarningsAnswer:
    """What should be known before the columns are confirmed: values that don't fit, columns that are lost."""
    importer, limits = declared(at, caller, job_id)
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        found = warnings_of(connection, job, importer, limits)
    return ColumnWarningsAnswer.model_validate(warnings_document(found))


@router.get("/target-fields", responses=_READ)
def read_target_fields(job_id: UUID, at: TheService, caller: TheCaller) -> list[TargetField]:
    """The fields that columns of the job can go to, the required ones first."""
    importer, limits = declared(at, caller, job_id)
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        found = columns_of(connection, job.id)
    return [TargetField.model_validate(field) for field in target_fields_document(job, importer, found, limits)]


def declared(at: Service, caller: Caller, job_id: UUID) -> tuple[type[Importer], dict[str, ColumnLimits]]:
    """The importer of a job that the caller sees, and what its target demands.

    Callers don't see targets: that is asked for on a connection of the service's own.
    """
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
    importer = at.registry.importer(job.importer)
    with at.pool.connection() as connection:
        return importer, limits_of(importer, checked_target(connection, importer), job.config.mode)


def needed_of(limits: dict[str, ColumnLimits]) -> frozenset[str]:
    """The fields that the target can't do without."""
    return frozenset(name for name, limit in limits.items() if limit.required)


def mappings_of(
    connection: Connection[Any], job: Job, importer: type[Importer], limits: dict[str, ColumnLimits]
) -> ColumnMappings:
    """The columns of a job as they are told."""
    found, counts = columns_of(connection, job.id), jobs.counts_of(connection, job)
    return ColumnMappings.model_validate(columns_document(job, counts, importer, found, needed_of(limits)))
