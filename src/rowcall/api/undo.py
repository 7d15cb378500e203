"""Undo over HTTP: what it would do, have it done, what it did."""

from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Query
from psycopg import Connection

from rowcall.api.items import statuses_in
from rowcall.api.models.jobs import JobAnswer
from rowcall.api.models.undos import UndoPreviewAnswer, UndoReceiptAnswer, UndoRequest
from rowcall.api.models.wire import RowNumber, RowStatus, Text
from rowcall.api.moves import moved
from rowcall.api.openapi import refusals
from rowcall.api.service import TheCaller, TheService
from rowcall.engine import moves
from rowcall.engine.documents import undo_preview_document, undo_receipt_document
from rowcall.engine.undo.preview import preview_undo
from rowcall.engine.undo.take_back import undo_of
from rowcall.model import Code
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job

router = APIRouter(prefix="/v1/imports/{job_id}/undo", tags=["undo"])
_Partial = Annotated[bool, Query(description="Of an import that is all or nothing: also if some rows have to stay.")]


def _wanted(
    statuses: str | None, code: str | None, field: str | None, text: str | None, rows: list[int] | None
) -> Wanted:
    numbers = tuple(rows) if rows else None
    return Wanted(statuses=statuses_in(statuses), code=code, field=field, text=text or None, rows=numbers)


async def _asked(
    statuses: Annotated[Text | None, Query(description="Only rows that were `created`, or `updated`.")] = None,
    code: Annotated[Text | None, Query(description="Only rows with an issue of this code.")] = None,
    field: Annotated[Text | None, Query(description="Only rows with an issue in this field.")] = None,
    text: Annotated[Text | None, Query(max_length=200, description="Only rows with this text in a cell.")] = None,
    rows: Annotated[list[RowNumber] | None, Query(max_length=1000, description="Only these rows, by number.")] = None,
) -> Wanted:
    return _wanted(statuses, code, field, text, rows)


@router.get("", responses=refusals(Code.BAD_REQUEST, Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE))
def preview_undo_of_import(
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    which: Annotated[Wanted, Depends(_asked)],
    partial: _Partial = False,
) -> UndoPreviewAnswer:
    """What an undo would do now: how many rows it would delete and restore, which it would keep, and why.

    Nothing is changed. Where constraints or triggers may refuse, it is done in a transaction that is undone, and rows
    of the target are locked meanwhile. Rows that somebody changes before the undo comes to them are kept then.
    """
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        moves.require(job, "undo")
    importer = at.registry.importer(job.importer)
    # The pool's connections are for requests that are over soon, and see nothing of the application's tables.
    database = Database(cast("str", at.pool.conninfo))  # a text, as Database.pool makes it
    with database.connect("preview", idle_timeout=60) as connection:
        days = at.settings.retention_ended_days
        seen = preview_undo(connection, job, importer, which, partial=partial, retention_days=days)
    return UndoPreviewAnswer.model_validate(undo_preview_document(seen))


@router.post(
    "",
    status_code=202,
    responses=refusals(
        *(Code.BAD_REQUEST, Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE, Code.UNDO_NOT_POSSIBLE),
        *(Code.SCOPE_BUSY, Code.BODY_TOO_LARGE),
    ),
)
def undo_import(job_id: UUID, at: TheService, caller: TheCaller, which: Annotated[UndoRequest, Body()]) -> JobAnswer:
    """Take back what a job wrote, or some rows of it: created rows are deleted, updated ones restored.

    Rows that were changed since, that others refer to or that the database refuses to change are kept. The job is
    REVERTED when nothing of it is left, else where it was before.
    """
    statuses: list[RowStatus] = which.statuses or []
    wanted = _wanted(",".join(statuses), which.code, which.field, which.text, which.rows)

    def undo(connection: Connection[Any], job: Job) -> Job:
        return moves.undo(
            connection,
            job,
            at.registry.importer(job.importer),
            wanted,
            partial=which.partial,
            account=caller.account,
            request_id=caller.request_id,
        )

    return moved(at, caller, job_id, "undo", undo)


@router.get("/receipt", responses=refusals(Code.JOB_NOT_FOUND, Code.UNDO_NOT_FOUND))
def read_undo_receipt(
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    number: Annotated[int | None, Query(ge=1, le=32767, description="Which undo, from 1; else the latest.")] = None,
) -> UndoReceiptAnswer:
    """An undo on one page: who and when, what was asked for, what was taken back, what was kept and why."""
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        done = undo_of(connection, job, number)
    return UndoReceiptAnswer.model_validate(undo_receipt_document(job, done))
