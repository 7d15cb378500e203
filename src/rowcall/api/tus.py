"""Resumable uploads: tus 1.0 with creation, creation-with-upload, expiration, checksum and termination.

`Upload-Offset` is what is on disk. When the last byte is, the upload becomes an import, once; `Rowcall-Import` tells
which, also to a client that did not get the answer and comes back to ask.
"""

import base64
from collections.abc import MutableMapping
from datetime import datetime
from email.utils import format_datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from rowcall.api.asked import asked_for, foresee
from rowcall.api.idempotency import TheKey, bare_key
from rowcall.api.models.jobs import Told
from rowcall.api.models.wire import Wire
from rowcall.api.openapi import Answers, header_parameter, headers, refusals
from rowcall.api.problems import problem
from rowcall.api.service import TheCaller, TheService
from rowcall.api.uploads import aside, file_name, require_plain
from rowcall.api.visits import (
    ALGORITHMS,
    CONFIG_AT,
    Visit,
    added,
    completed,
    deleted,
    pieces_of,
    received_with,
    visited,
)
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.files.filestore import too_large
from rowcall.store.uploads import Upload, Wanted

_VERSION = "1.0.0"
_EXTENSIONS = "creation,creation-with-upload,expiration,checksum,termination"
_BODY = "application/offset+octet-stream"
SENT = (
    "Tus-Resumable",
    "Upload-Checksum",
    "Upload-Length",
    "Upload-Metadata",
    "Upload-Offset",
    "X-HTTP-Method-Override",
)
TOLD = (
    *("Rowcall-Import", "Tus-Checksum-Algorithm", "Tus-Extension", "Tus-Max-Size", "Tus-Resumable", "Tus-Version"),
    *("Upload-Expires", "Upload-Length", "Upload-Metadata", "Upload-Offset"),
)
"""Headers that pages of other origins need."""


_Header = Annotated[str | None, Header(include_in_schema=False)]
"""One of the protocol's own, which is told of below."""


class _TusRoute(APIRoute):
    """Speaks the protocol's version in every answer, and with nobody who speaks another."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def versioned(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Tus-Resumable"] = _VERSION
            await send(message)

        spoken = dict(scope["headers"]).get(b"tus-resumable", b"").decode("latin-1")
        if spoken == _VERSION or scope["method"] not in (self.methods or set()) - {"OPTIONS", "GET"}:
            await super().handle(scope, receive, versioned)
            return
        told = f"Tus-Resumable is {spoken!r}; {_VERSION} is spoken here."
        answer = problem(412, Code.UNSUPPORTED_VERSION, told)
        answer.headers["Tus-Version"] = _VERSION
        await answer(scope, receive, versioned)


router = APIRouter(prefix="/v1/uploads", tags=["uploads"], route_class=_TusRoute)

# ------------------------------------------------------------------------------------------- as the document tells them

_THERE = (Code.UPLOAD_NOT_FOUND, Code.UPLOAD_GONE)
_TAKEN = (
    *(Code.BAD_REQUEST, Code.UNKNOWN_IMPORTER, Code.TOO_SLOW, Code.UNSUPPORTED_VERSION, Code.FILE_TOO_LARGE),
    *(Code.UNSUPPORTED_BODY, Code.BAD_MAPPING, Code.BAD_OPTION, Code.KEY_REUSED, Code.CHECKSUM_MISMATCH),
    *(Code.FILE_STORE_AWAY, Code.FOREIGN_FILE_STORE, Code.BAD_CONTEXT, Code.SCOPE_BUSY, Code.TEMPLATE_NOT_FOUND),
)
"""What may be wrong with bytes and what they are for."""
_SPOKEN = header_parameter("Tus-Resumable", "The version of tus.", required=True, const=_VERSION, examples=[_VERSION])
_CHECKSUM = header_parameter(
    "Upload-Checksum",
    "`sha1` or `sha256`, and the body's in base64.",
    examples=["sha256 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="],
)
_METADATA = header_parameter(
    "Upload-Metadata",
    "`importer`, and `filename`, `config`, `context`, `idempotencyKey` if there are any; the values in base64.",
    required=True,
    examples=["importer dXNlcnM=,filename dXNlcnMuY3N2"],
)
_OVERRIDE = header_parameter(
    "X-HTTP-Method-Override", "The method that is meant.", required=True, enum=["PATCH", "DELETE", "HEAD"]
)
_ID = {"name": "upload_id", "in": "path", "required": True, "schema": {"type": "string"}}


def _count(name: str, description: str, *, required: bool = True) -> dict[str, Any]:
    return header_parameter(name, description, required=required, pattern="^[0-9]{1,18}$", examples=["0"])


def _asks(*parameters: dict[str, Any], body: bool = False) -> dict[str, Any]:
    content = {_BODY: {"schema": {"type": "string", "format": "binary"}, "example": "email,name\n"}}
    return {"parameters": list(parameters), **({"requestBody": {"content": content}} if body else {})}


def _answers(status: int, description: str, *names: str) -> Answers:
    return {status: {"description": description, "headers": headers("Tus-Resumable", *names)}}


_OFFERED = _answers(204, "What is spoken.", "Tus-Version", "Tus-Extension", "Tus-Max-Size", "Tus-Checksum-Algorithm")


class UploadAnswer(Wire):
    """An upload and how far it is."""

    id: UUID
    importer: str
    file_name: str
    length: int
    offset: int
    """Bytes that are on disk."""
    import_address: str | None
    """Where the import is that it has become."""
    error: Told | None
    """Why it can't become one."""
    expires_at: datetime | None
    """Until when it waits for more; None once it is an import."""


# ------------------------------------------------------------------------------------------------------- the requests


@router.options("", status_code=204, responses=_OFFERED)
@router.options(
    "/{upload_id}",
    status_code=204,
    responses=_OFFERED,
    openapi_extra=_asks(_ID),
    operation_id="askTusOfUpload",
)
def ask_tus(at: TheService, response: Response) -> None:
    """What this server can do."""
    response.headers["Tus-Version"] = _VERSION
    response.headers["Tus-Extension"] = _EXTENSIONS
    response.headers["Tus-Max-Size"] = str(at.settings.max_upload)
    response.headers["Tus-Checksum-Algorithm"] = ",".join(ALGORITHMS)


@router.post(
    "",
    status_code=201,
    response_class=Response,
    responses={
        **_answers(201, "The upload; with `Rowcall-Import` if all of it came.", "Location", "Upload-Offset"),
        **refusals(*_TAKEN),
    },
    openapi_extra=_asks(_SPOKEN, _count("Upload-Length", "Bytes of the whole file."), _METADATA, _CHECKSUM, body=True),
)
async def create_upload(
    request: Request,
    at: TheService,
    caller: TheCaller,
    key: TheKey,
    upload_length: _Header = None,
    upload_metadata: _Header = None,
    upload_checksum: _Header = None,
) -> Response:
    """Begin an upload, with the first bytes or none in the body. What it is for is checked before any byte comes."""
    if "upload-concat" in request.headers:  # a piece would be imported as if it were the file
        raise Final(Code.BAD_REQUEST, "Uploads can't be put together from others: Upload-Concat isn't spoken here.")
    length = _number("Upload-Length", upload_length)
    if length > at.settings.max_upload:
        raise too_large(at.settings.max_upload)
    has_body = "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"
    if has_body:
        _require_body(request)
    told = _metadata(upload_metadata or "")
    importer, about = told.get("importer") or _missing("importer"), told.get("context", "{}")
    asked = asked_for(at, importer, told.get("config", "{}"), about, config_at=CONFIG_AT)
    name, key = file_name(told.get("filename") or "upload"), bare_key(told.get("idempotencyKey")) or key
    await aside(foresee, at, caller, asked, name, key)
    wanted = Wanted(
        organisation=caller.organisation,
        account=caller.account,
        importer=asked.importer,
        config=asked.told.model_dump_json(by_alias=True, exclude_defaults=True),
        file_name=name,
        idempotency_key=key,
        metadata=upload_metadata or "",
        length=length,
    )
    visit = await visited(at, caller, await aside(added, at, caller, wanted))
    if has_body or length == 0:
        visit = await received_with(request, visit, 0, upload_checksum)
    return _answer(visit, 201, Location=f"/v1/uploads/{visit.upload.id}")


@router.head(
    "/{upload_id}",
    response_class=Response,
    responses={
        **_answers(200, "How far it is.", "Upload-Offset", "Upload-Length"),
        **refusals(*_THERE, Code.UNSUPPORTED_VERSION),
    },
    openapi_extra=_asks(_SPOKEN),
)
async def ask_upload(upload_id: UUID, at: TheService, caller: TheCaller) -> Response:
    """How much of it is on disk."""
    visit = await completed(await visited(at, caller, upload_id))
    answer = _answer(visit, 200, Upload_Length=str(visit.upload.length), Cache_Control="no-store")
    if visit.upload.metadata:
        answer.headers["Upload-Metadata"] = visit.upload.metadata
    return answer


@router.get("/{upload_id}", responses={**_answers(200, "How far it is.", "Tus-Resumable"), **refusals(*_THERE)})
async def read_upload(upload_id: UUID, at: TheService, caller: TheCaller, response: Response) -> UploadAnswer:
    """The same for people, and the import that it has become."""
    upload = (await completed(await visited(at, caller, upload_id))).upload
    response.headers["Cache-Control"] = "no-store"
    return UploadAnswer(
        id=upload.id,
        importer=upload.importer,
        file_name=upload.file_name,
        length=upload.length,
        offset=upload.received,
        import_address=_import_address(upload),
        error=Told(**upload.error) if upload.error else None,
        expires_at=None if upload.job_id else upload.expires_at,
    )


@router.patch(
    "/{upload_id}",
    status_code=204,
    response_class=Response,
    responses={
        **_answers(204, "It is on disk; with `Rowcall-Import` if that was the last of it.", "Upload-Offset"),
        **refusals(*_THERE, *_TAKEN, Code.WRONG_OFFSET, Code.UPLOAD_BUSY),
    },
    openapi_extra=_asks(_SPOKEN, _count("Upload-Offset", "Where in the file the body begins."), _CHECKSUM, body=True),
)
async def continue_upload(
    request: Request,
    upload_id: UUID,
    at: TheService,
    caller: TheCaller,
    upload_offset: _Header = None,
    upload_checksum: _Header = None,
) -> Response:
    """Bring more of it. If the connection is cut, what came is kept."""
    _require_body(request)
    offset = _number("Upload-Offset", upload_offset)
    visit = await visited(at, caller, upload_id)
    return _answer(await received_with(request, visit, offset, upload_checksum), 204)


@router.delete(
    "/{upload_id}",
    status_code=204,
    response_class=Response,
    responses={
        **_answers(204, "It is given up."),
        **refusals(*_THERE, Code.UNSUPPORTED_VERSION, Code.UPLOAD_BUSY),
    },
    openapi_extra=_asks(_SPOKEN),
)
async def end_upload(upload_id: UUID, at: TheService, caller: TheCaller) -> Response:
    """Give it up. An import that it has become stays."""
    visit = await visited(at, caller, upload_id)
    async with pieces_of(visit) as pieces:
        await aside(deleted, visit, pieces)
    return Response(status_code=204)


@router.post(
    "/{upload_id}",
    status_code=204,
    response_class=Response,
    responses={
        **_answers(200, "As HEAD answers.", "Upload-Offset", "Upload-Length"),
        **_answers(204, "As PATCH or DELETE answers."),
        **refusals(*_THERE, *_TAKEN, Code.WRONG_OFFSET, Code.UPLOAD_BUSY),
    },
    openapi_extra=_asks(
        *(_SPOKEN, _OVERRIDE, _count("Upload-Offset", "For PATCH.", required=False), _CHECKSUM), body=True
    ),
)
async def override_method(request: Request, upload_id: UUID, at: TheService, caller: TheCaller) -> Response:
    """For clients that can't send other methods: X-HTTP-Method-Override says which one is meant."""
    match request.headers.get("x-http-method-override", ""):
        case "PATCH":
            given = (request.headers.get(name) for name in ("upload-offset", "upload-checksum"))
            return await continue_upload(request, upload_id, at, caller, *given)
        case "DELETE":
            return await end_upload(upload_id, at, caller)
        case "HEAD":
            return await ask_upload(upload_id, at, caller)
        case other:
            raise Final(Code.BAD_REQUEST, f"X-HTTP-Method-Override is {other!r}; PATCH, DELETE or HEAD is expected.")


# ---------------------------------------------------------------------------------------------------------- the headers


def _answer(visit: Visit, status: int, **headers: str) -> Response:
    upload = visit.upload
    told: MutableMapping[str, str] = {name.replace("_", "-"): value for name, value in headers.items()}
    told["Upload-Offset"] = str(upload.received)
    if address := _import_address(upload):
        told["Rowcall-Import"] = address
    else:
        told["Upload-Expires"] = format_datetime(upload.expires_at, usegmt=True)
    return Response(status_code=status, headers=told)


def _import_address(upload: Upload) -> str | None:
    return f"/v1/imports/{upload.job_id}" if upload.job_id else None


def _number(name: str, text: str | None) -> int:
    if text is None:
        raise Final(Code.BAD_REQUEST, f"{name} is missing; a whole number from 0 is expected.")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Final(Code.BAD_REQUEST, f"{name} is {text!r}; a whole number from 0 is expected.")
    return int(text)


def _missing(name: str) -> str:
    told = f"Upload-Metadata doesn't tell the {name}."
    raise Final(Code.BAD_REQUEST, told, hint="Send `importer` and its name in base64, with a blank between.")


def _require_body(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != _BODY:
        raise Final(Code.UNSUPPORTED_BODY, f"The body's content type is {kind!r}; {_BODY} is expected.")
    require_plain(request)


def _metadata(text: str) -> dict[str, str]:
    """Names and values; a value may be missing."""
    told: dict[str, str] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = pair.partition(" ")
        if name in told:
            raise Final(Code.BAD_REQUEST, f"Upload-Metadata has {name!r} twice.")
        try:
            told[name] = base64.b64decode(value, validate=True).decode()
        except ValueError as error:
            told_so = f"Upload-Metadata has a value of {name!r} that is no text in base64."
            raise Final(Code.BAD_REQUEST, told_so) from error
    return told
