"""The rejects workbook over HTTP: taken away, corrected, brought back."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import UUID

from fastapi import APIRouter, Request, Response
from psycopg import Connection

from rowcall.api.audit import audit
from rowcall.api.downloads import MEDIA_TYPES, disposition
from rowcall.api.models.edits import MergedAnswer
from rowcall.api.openapi import headers, refusals
from rowcall.api.service import Caller, Service, TheCaller, TheService
from rowcall.api.streams import ExportStream
from rowcall.api.uploads import Upload, received
from rowcall.engine import observe
from rowcall.engine.corrections.rejects import merge_rejects, open_returned
from rowcall.engine.documents import merged_document
from rowcall.export.rejects import select_rejects, write_rejects
from rowcall.export.request import snapshot
from rowcall.formats import WriteFormat
from rowcall.importer import Importer
from rowcall.model import WORKING, Code
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.files.passing import PassingStore
from rowcall.store.jobs import Job
from rowcall.worker.queue import nudge

router = APIRouter(prefix="/v1/imports/{job_id}", tags=["rows"])
_XLSX = MEDIA_TYPES[WriteFormat.XLSX]
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_WORKBOOK: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The workbook. The connection is cut if it can't be given to the end.",
        "headers": headers("Content-Disposition"),
        "content": {_XLSX: _BINARY},
    }
}
_CSV = {
    "schema": {"type": "string"},
    "example": "email,rowcall_key\nb@example.org,BU202611160001.2.1.0.9f86d081884c7d65\n",
}
_FORM = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"multipart/form-data": {"schema": _FORM}, _XLSX: _BINARY, "text/csv": _CSV},
    }
}


@router.get(
    "/rejects.xlsx",
    response_class=Response,
    responses={**_WORKBOOK, **refusals(Code.JOB_NOT_FOUND, Code.DATABASE_REFUSED, Code.HTTP_TOO_OLD)},
)
def read_rejects(job_id: UUID, at: TheService, caller: TheCaller) -> Response:
    """The rows that failed, in the file's own columns, with a comment on each cell that something is wrong with.

    Choices and look-ups can be picked. Correct it and send it back: a hidden column has the key of each row.
    """
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
    told = {"content-type": _XLSX, "content-disposition": disposition(f"{job.number}-rejects.xlsx")}
    database = Database(cast("str", at.pool.conninfo))  # a text, as Database.pool makes it
    write = partial(_write, job, at.registry.by_name().get(job.importer), caller.organisation)
    connect = partial(database.connect, "stream")
    told["cache-control"] = "no-store"
    return ExportStream(write, connect, told, organisation=caller.organisation, kind=WriteFormat.XLSX)


def _write(
    job: Job, importer: type[Importer] | None, organisation: UUID, connection: Connection[Any], target: BinaryIO
) -> int:
    with snapshot(connection, organisation):
        return write_rejects(connection, select_rejects(connection, job, importer), target)


_UNREADABLE = (
    *(Code.EMPTY_FILE, Code.NO_RECORDS, Code.TOO_MANY_COLUMNS, Code.HEADER_TOO_LONG, Code.PASSWORD_PROTECTED),
    *(Code.WORKBOOK_TOO_LARGE, Code.ARCHIVE_CORRUPT, Code.ARCHIVE_TOO_LARGE, Code.ARCHIVE_NOT_ONE_FILE),
    *(Code.PARQUET_CORRUPT, Code.PARQUET_TOO_LARGE, Code.READER_FAILED),
)


@router.post(
    "/rejects",
    responses=refusals(
        *(Code.BAD_REQUEST, Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE, Code.ROW_DONE),
        *(Code.NO_ROW_KEY, Code.FILE_TOO_LARGE, Code.TOO_SLOW, Code.UNKNOWN_FORMAT, Code.WORKBOOK_CORRUPT),
        *(Code.UNSUPPORTED_BODY, *_UNREADABLE),
    ),
    openapi_extra=_BODY,
)
async def merge_workbook(request: Request, job_id: UUID, at: TheService, caller: TheCaller) -> MergedAnswer:
    """Bring the workbook back, corrected: XLSX, or CSV with the column of keys, in a form or as the body itself.

    What was changed is laid over the rows, and just these run again. Rows whose key is unknown, another job's, or of an
    earlier state are told and left alone; rows that were deleted or not changed are left alone, too. The same workbook
    twice changes nothing the second time.
    """
    job, importer = await asyncio.to_thread(_found, at, caller, job_id)
    async with received(request, PassingStore(), name="rejects", most=at.settings.max_upload) as upload:
        return await asyncio.to_thread(_merge, at, caller, job, importer, upload)


def _found(at: Service, caller: Caller, job_id: UUID) -> tuple[Job, type[Importer]]:
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
    return job, at.registry.importer(job.importer)


def _merge(at: Service, caller: Caller, before: Job, importer: type[Importer], upload: Upload) -> MergedAnswer:
    path = Path(upload.file.location if upload.file else "")
    with (
        open_returned(path, upload.name, at.settings.limits) as reading,
        at.pool.connection() as connection,
        connection.transaction(),
    ):
        merged = merge_rejects(connection, before, importer, reading, who=caller.account)
        if merged.job.state in WORKING:
            nudge(connection, before.id)
        about = {"number": before.number, "rows": merged.laid.rows, "sha256": upload.file and upload.file.sha256}
        audit(connection, caller, "import.merge", before.id, about)
        told = merged_document(merged, jobs.counts_of(connection, merged.job), importer)
    if merged.job.state is not before.state:
        with at.connection(caller) as connection:
            observe.moved(connection, before, merged.job)
    return MergedAnswer.model_validate(told)
