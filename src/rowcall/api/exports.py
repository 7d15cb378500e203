"""Exports: rows as a stream, or as a file that is written in the background and can be downloaded."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, BinaryIO, cast
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query, Request, Response
from psycopg import Connection

from rowcall.api.audit import audit
from rowcall.api.downloads import MEDIA_TYPES, Download, disposition, file_answer
from rowcall.api.idempotency import TheKey
from rowcall.api.items import TheView
from rowcall.api.models.exports import ExportAnswer, ExportOrder, ExportPage
from rowcall.api.models.wire import Text
from rowcall.api.openapi import header_parameter, headers, links, refusals
from rowcall.api.service import Caller, Service, TheCaller, TheService
from rowcall.api.streams import ExportStream
from rowcall.engine import observe
from rowcall.engine.observe import ExportEnd
from rowcall.errors import Final, WrongState
from rowcall.export import Resource, known_resources
from rowcall.export.request import choose, export_request, resource_of, snapshot
from rowcall.formats import WriteFormat
from rowcall.model import Code, ExportState
from rowcall.store import exports
from rowcall.store.db import Database
from rowcall.store.exports import Export, ExportRequest
from rowcall.store.files.filestore import file_store
from rowcall.store.jobs import Origin, get_job
from rowcall.worker.queue import EXPORT, nudge

router = APIRouter(tags=["exports"])
_ALLOWED = {
    ExportState.QUEUED: ["cancel"],
    ExportState.RUNNING: ["cancel"],
    ExportState.COMPLETED: ["download"],
}


_BINARY = {"type": "string", "format": "binary"}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The rows. The connection is cut if they can't be given to the end.",
        "headers": headers("Content-Disposition"),
        "content": {
            "text/csv": {"schema": {"type": "string"}, "example": "id,email\n1,ann@example.org\n"},
            "application/x-ndjson": {"schema": {"type": "string"}, "example": '{"id":1,"email":"ann@example.org"}\n'},
            "application/json": {
                "schema": {"type": "array", "items": {"type": "object"}},
                "example": [{"id": 1, "email": "ann@example.org"}],
            },
            **{MEDIA_TYPES[kind]: {"schema": _BINARY} for kind in (WriteFormat.XLSX, WriteFormat.PARQUET)},
        },
    }
}
_STREAMED = (Code.BAD_REQUEST, Code.BAD_OPTION, Code.DATABASE_REFUSED, Code.HTTP_TOO_OLD)
_CREATED: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ExportAnswer,
        "description": "The export of an earlier request with the same `Idempotency-Key`.",
        "headers": headers("Location", "Idempotent-Replayed"),
    },
    202: {
        "description": "The export.",
        "headers": headers("Location"),
        "links": links("export_id", "readExport", "downloadExport", "cancelExport"),
    },
}
_PARTS: dict[int | str, dict[str, Any]] = {
    200: {
        **_FILE[200],
        "description": "The whole file.",
        "headers": headers("Content-Disposition", "ETag", "Accept-Ranges"),
    },
    206: {
        "description": "The part that was asked for, or several in one `multipart/byteranges`.",
        "headers": headers("Content-Disposition", "ETag", "Accept-Ranges"),
        "content": {**_FILE[200]["content"], "multipart/byteranges": {"schema": _BINARY}},
    },
    304: {"description": "It is the file that the sender has.", "headers": headers("ETag")},
    **refusals(Code.EXPORT_NOT_FOUND, Code.WRONG_STATE, Code.EXPORT_EXPIRED, Code.RANGE_NOT_SATISFIABLE),
}
_RANGE = {
    "parameters": [
        header_parameter("Range", "The part that is wanted.", examples=["bytes=500-", "bytes=0-499"]),
        header_parameter("If-None-Match", "The `ETag` of a file that the sender has: it isn't sent again."),
        header_parameter("If-Range", "The `ETag` that the part has to be of; else the whole file is given."),
    ]
}
AskedFormat = Annotated[WriteFormat, Query(description="csv, ndjson, json, xlsx or parquet.")]
Bom = Annotated[bool, Query(description="Begin a CSV file with a byte order mark, for Excel.")]


# -- as a stream


@router.get(
    "/v1/exports",
    response_class=Response,
    responses={**_FILE, **refusals(*_STREAMED, Code.UNKNOWN_RESOURCE)},
)
def stream_export(
    at: TheService,
    caller: TheCaller,
    resource: Annotated[Text, Query(max_length=200, description="What a pack offers, such as `users`.")],
    format: AskedFormat = WriteFormat.CSV,  # noqa: A002 (the product's word)
    fields: Annotated[
        Text, Query(description="Fields, in this order, with commas between; all if none are named.")
    ] = "",
    filter: Annotated[  # noqa: A002 (the product's word)
        list[Text] | None,
        Query(
            max_length=100,
            description="`field=value`, or `!=`, `>=`, `<=`, `>`, `<`; `field=null` for none. Repeat it to narrow "
            "down; several `=` on one field are alternatives.",
            examples=[["role=author", "created_at>=2024-01-01"]],
        ),
    ] = None,
    bom: Bom = False,
) -> Response:
    """The rows of a resource as they are at one moment, sent as they are read."""
    chosen = tuple(name.strip() for name in fields.split(",") if name.strip())
    asked = ExportRequest(format=format, resource=resource, fields=chosen, filters=tuple(filter or ()), bom=bom)
    return _stream(at, caller, asked, _file_name(resource_of(resource, _resources(at)).name, format))


@router.get(
    "/v1/imports/{job_id}/results/export",
    response_class=Response,
    responses={**_FILE, **refusals(*_STREAMED, Code.JOB_NOT_FOUND)},
)
def stream_results(
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    view: TheView,
    format: AskedFormat = WriteFormat.CSV,  # noqa: A002 (the product's word)
    bom: Bom = False,
) -> Response:
    """What became of the rows of a job, sent as they are read: just what the grid shows."""
    asked = ExportRequest(format=format, job=job_id, view=view, bom=bom)
    with at.connection(caller) as connection:
        number = get_job(connection, str(job_id), organisation=caller.organisation).number
    return _stream(at, caller, asked, _file_name(number, format))


def _stream(at: Service, caller: Caller, asked: ExportRequest, name: str) -> Response:
    headers = {"content-type": MEDIA_TYPES[asked.format], "content-disposition": disposition(name)}
    # The pool's connections are for requests that are over soon.
    database = Database(cast("str", at.pool.conninfo))  # a text, as Database.pool makes it
    write = partial(_write, asked, _resources(at), caller.organisation)
    headers["cache-control"] = "no-store"
    connect = partial(database.connect, "stream")
    return ExportStream(write, connect, headers, organisation=caller.organisation, kind=asked.format)


def _write(
    asked: ExportRequest,
    resources: Mapping[str, Resource],
    organisation: UUID,
    connection: Connection[Any],
    target: BinaryIO,
) -> int:
    with snapshot(connection, organisation):
        chosen = choose(connection, asked, resources, organisation)
        return export_request(connection, chosen, asked, target, small=True)  # there may be dozens


# -- in the background


@router.post(
    "/v1/exports",
    status_code=202,
    responses={
        **_CREATED,
        **refusals(
            *(Code.BAD_REQUEST, Code.UNKNOWN_RESOURCE, Code.JOB_NOT_FOUND, Code.BAD_OPTION, Code.KEY_REUSED),
            Code.BODY_TOO_LARGE,
        ),
    },
)
def create_export(
    order: ExportOrder, response: Response, at: TheService, caller: TheCaller, key: TheKey
) -> ExportAnswer:
    """Have an export written in the background.

    The same `Idempotency-Key` with the same content gives the same export.
    """
    return _created(response, at, caller, order.request(), key)


@router.post(
    "/v1/imports/{job_id}/export",
    status_code=202,
    responses={**_CREATED, **refusals(Code.BAD_REQUEST, Code.JOB_NOT_FOUND, Code.KEY_REUSED)},
)
def create_results_export(
    job_id: UUID,
    response: Response,
    at: TheService,
    caller: TheCaller,
    key: TheKey,
    view: TheView,
    format: AskedFormat = WriteFormat.CSV,  # noqa: A002 (the product's word)
    bom: Bom = False,
) -> ExportAnswer:
    """Have what became of the rows of a job written in the background: just what the grid shows."""
    asked = ExportRequest(format=format, job=job_id, view=view, bom=bom)
    return _created(response, at, caller, asked, key)


def _created(response: Response, at: Service, caller: Caller, asked: ExportRequest, key: str | None) -> ExportAnswer:
    origin = Origin(
        organisation=caller.organisation,
        account=caller.account,
        request_id=caller.request_id,
        client_address=caller.address,
        idempotency_key=key,
        fingerprint=hashlib.sha256(msgspec.json.encode(asked)).hexdigest(),
    )
    name = _checked(at, caller, asked)
    with at.connection(caller) as connection:
        export, is_new = exports.create_or_find(connection, asked, _file_name(name, asked.format), origin)
        if is_new:
            nudge(connection, export.id, EXPORT)
            audit(
                connection,
                caller,
                "export.create",
                export.id,
                {"resource": asked.resource, "job": asked.job and str(asked.job)},
            )
    response.headers["Location"] = f"/v1/exports/{export.id}"
    if not is_new:
        response.status_code = 200
        response.headers["Idempotent-Replayed"] = "true"
    return ExportAnswer.of(export)


def _checked(at: Service, caller: Caller, asked: ExportRequest) -> str:
    """What to call the export; whatever is wrong with it is said at once."""
    if asked.job is not None:
        with at.connection(caller) as connection:
            return get_job(connection, str(asked.job), organisation=caller.organisation).number
    with at.pool.connection() as connection:  # requests see nothing of the application's tables
        choose(connection, asked, _resources(at), caller.organisation)
    return asked.resource or ""


@router.get("/v1/exports/jobs", responses=refusals(Code.BAD_CURSOR))
def list_exports(
    at: TheService,
    caller: TheCaller,
    state: ExportState | None = None,
    after: Annotated[Text | None, Query(description="The `next` of the page before.")] = None,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=1000)] = 50,
) -> ExportPage:
    """The exports in the background, the newest first."""
    with at.connection(caller) as connection:
        found, more = exports.page_of_exports(connection, caller.organisation, state=state, after=after, size=page_size)
    return ExportPage(items=[ExportAnswer.of(export) for export in found], next=more)


@router.get("/v1/exports/{export_id}", responses=refusals(Code.EXPORT_NOT_FOUND))
def read_export(export_id: UUID, at: TheService, caller: TheCaller) -> ExportAnswer:
    """An export and how far it is."""
    return ExportAnswer.of(_export(at, caller, export_id))


@router.head(
    "/v1/exports/{export_id}/download",
    response_class=Response,
    responses=_PARTS,
    openapi_extra=_RANGE,
    operation_id="askDownload",
    summary="Ask download",
)
@router.get("/v1/exports/{export_id}/download", response_class=Response, responses=_PARTS, openapi_extra=_RANGE)
def download_export(export_id: UUID, request: Request, at: TheService, caller: TheCaller) -> Response:
    """The file, whole or in parts (`Range`, `If-Range`): a download that broke off can go on."""
    export = _export(at, caller, export_id)
    if export.state is ExportState.EXPIRED:
        raise _expired(export)
    if export.location is None:
        raise _wrong_state(export, "it has no file to download")
    try:
        return _file(request, at, export)
    except FileNotFoundError as error:
        raise _expired(export) from error


def _file(request: Request, at: Service, export: Export) -> Response:
    file = Download(export.file_name, export.format, export.bytes, tag=str(export.claim))
    return file_answer(request, file, file_store(at.settings).export_file(export.location or ""))


@router.post("/v1/exports/{export_id}/cancel", responses=refusals(Code.EXPORT_NOT_FOUND, Code.WRONG_STATE))
def cancel_export(export_id: UUID, at: TheService, caller: TheCaller) -> ExportAnswer:
    """Stop an export that hasn't ended. Nothing of its file stays."""
    with at.connection(caller) as connection:
        export, cancelled = exports.cancel(connection, export_id, caller.organisation)
        if cancelled:
            audit(connection, caller, "export.cancel", export.id)
    if not cancelled:
        raise _wrong_state(export, "it can't be cancelled")
    observe.exported(ExportEnd(format=export.format, way="file", state=export.state, rows=0, bytes=0, seconds=0))
    return ExportAnswer.of(export)


def _export(at: Service, caller: Caller, export_id: UUID) -> Export:
    with at.connection(caller) as connection:
        return exports.get_export(connection, export_id, caller.organisation)


def _wrong_state(export: Export, so: str) -> WrongState:
    allowed = _ALLOWED.get(export.state, [])
    return WrongState(Code.WRONG_STATE, f"The export is {export.state}: {so}.", state=export.state, allowed=allowed)


def _expired(export: Export) -> Final:
    return Final(Code.EXPORT_EXPIRED, f"The file of export {export.id} is gone.", hint="Ask for the export again.")


def _resources(at: Service) -> dict[str, Resource]:
    return known_resources(at.registry)


def _file_name(what: str, kind: WriteFormat) -> str:
    return f"{what}.{kind}"
