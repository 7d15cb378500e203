"""Errors as RFC 9457 problems: a status, a stable code, a sentence, and what to do."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from rowcall.api.places import methods_of
from rowcall.api.refused import as_of_now
from rowcall.engine.failures import failure_of
from rowcall.errors import DoesNotFit, NotSettled, PlanStale, Retryable, RowcallError, UnsupportedEncoding, WrongState
from rowcall.model import Code
from rowcall.telemetry.logs import logger

_STATUSES = {
    Code.JOB_NOT_FOUND: 404,
    Code.UNKNOWN_IMPORTER: 404,
    Code.UNKNOWN_RESOURCE: 404,
    Code.EXPORT_NOT_FOUND: 404,
    Code.EXPORT_EXPIRED: 410,
    Code.HTTP_TOO_OLD: 426,
    Code.WEBHOOK_NOT_FOUND: 404,
    Code.TEMPLATE_NOT_FOUND: 404,
    Code.DECISION_NOT_FOUND: 404,
    Code.MISSING_COLUMNS: 406,
    Code.AMBIGUOUS_DATES: 406,
    Code.AMBIGUOUS_NUMBERS: 406,
    Code.VALUES_UNRESOLVED: 406,
    Code.WRONG_STATE: 409,
    Code.ROW_NOT_FOUND: 404,
    Code.ROW_DONE: 409,
    Code.NOT_AS_COUNTED: 409,
    Code.EDITED_MEANWHILE: 412,
    Code.JOB_BUSY: 409,
    Code.UNDO_NOT_POSSIBLE: 409,
    Code.UNDO_INCOMPLETE: 409,
    Code.UNDO_NOT_FOUND: 404,
    Code.SCOPE_BUSY: 409,
    Code.SUPERSEDED: 409,
    Code.FILE_TOO_LARGE: 413,
    Code.TOO_MANY_REQUESTS: 429,
    Code.KEY_REUSED: 422,
    Code.PLAN_STALE: 412,
    Code.PLAN_REQUIRED: 428,
    Code.UPLOAD_NOT_FOUND: 404,
    Code.UPLOAD_GONE: 410,
    Code.UPLOAD_BUSY: 423,
    Code.WRONG_OFFSET: 409,
    Code.CHECKSUM_MISMATCH: 460,
    Code.TOO_SLOW: 408,
    Code.UNSUPPORTED_BODY: 415,
    Code.BAD_REQUEST: 400,
    Code.BAD_CURSOR: 400,
    Code.UNAUTHENTICATED: 401,
    Code.FORBIDDEN: 403,
    Code.BODY_TOO_LARGE: 413,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.UNSUPPORTED_VERSION: 412,
    Code.NO_SUCH_PLACE: 404,
    Code.RANGE_NOT_SATISFIABLE: 416,
    Code.DATABASE_UNREACHABLE: 503,
    Code.DATABASE_GONE: 503,
    Code.DATABASE_BUSY: 503,
    Code.DATABASE_FULL: 503,
    Code.FILE_STORE_AWAY: 503,
    Code.SERVICE_STOPPING: 503,
    Code.FOREIGN_FILE_STORE: 503,
    Code.SYSTEM_ERROR: 500,
    Code.INTERNAL_ERROR: 500,
}
_TITLES = {
    400: "Bad request",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not settled yet",
    408: "Too slow",
    409: "Conflict",
    410: "Gone",
    412: "Another version is expected",
    413: "Too large",
    415: "Unsupported media type",
    416: "Range not satisfiable",
    422: "Not acceptable as it is",
    423: "Locked",
    426: "Upgrade required",
    428: "Say which version is meant",
    429: "Too many requests",
    460: "Checksum mismatch",
    500: "Internal error",
    503: "Not now",
}
_CODES = {404: Code.NO_SUCH_PLACE, 405: Code.METHOD_NOT_ALLOWED, 413: Code.BODY_TOO_LARGE}
_KEPT_BACK: dict[str, str] = {
    Code.INTERNAL_ERROR: "Something went wrong here.",
    Code.SYSTEM_ERROR: "The machine that this runs on refused something.",
    Code.DATABASE_UNREACHABLE: "The database can't be reached.",
    Code.FILE_STORE_AWAY: "The file store did not do it.",
    Code.FOREIGN_FILE_STORE: "The file store is not the one that the database belongs to.",
}
"""What is told of troubles of our own. What errors say in words may name paths, hosts and values."""
_LATER = {429: "5", 503: "1"}
"""Seconds after which to come back, where nobody knows better."""
MEDIA_TYPE = "application/problem+json"
UNFIT = "The request doesn't fit what is expected."
_log = logger(__name__)


def install(app: FastAPI) -> None:
    """Have every error of the application answered as a problem."""
    app.add_exception_handler(RowcallError, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)


def problem(status: int, code: str, detail: str, *, hint: str = "", **more: Any) -> JSONResponse:
    """The answer that tells of an error."""
    body = {"type": "about:blank", "title": title_of(status), "status": status, "code": code}
    told = {"detail": detail, **({"hint": hint} if hint else {}), **more}
    later = {"Retry-After": _LATER[status]} if status in _LATER else None
    return JSONResponse({**body, **told}, status, later, media_type=MEDIA_TYPE)


def status_of(code: Code) -> int:
    """The status of answers that tell of it."""
    return _STATUSES.get(code, 422)


def title_of(status: int) -> str:
    """What a status means."""
    return _TITLES.get(status, "Error")


def _failed(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, RowcallError) and error.code == Code.WRONG_STATE:
        error = as_of_now(request, error)
    return problem_of(error, request.scope)


def problem_of(error: Exception, scope: Scope) -> JSONResponse:
    """The answer that tells of an exception."""
    failure = failure_of(error)
    if isinstance(failure, DoesNotFit):
        return problem(422, failure.code, failure.message, hint=failure.hint, errors=failure.errors)
    status = 503 if isinstance(failure, Retryable) else status_of(Code(failure.code))
    if failure.code in _KEPT_BACK:
        if failure.code != Code.INTERNAL_ERROR:  # that one goes on from here, and is logged where it arrives
            _log.error("kept back", code=failure.code, reason=failure.message)
        return problem(status, failure.code, _KEPT_BACK[failure.code], hint=see_logs(scope["state"]["request_id"]))
    where: dict[str, Any] = {}
    if isinstance(failure, WrongState):
        where = {"state": failure.state, "allowed": failure.allowed, **({"job": failure.job} if failure.job else {})}
    elif isinstance(failure, NotSettled):
        where = {"missing": failure.missing}
    elif isinstance(failure, PlanStale):
        where = {"digest": failure.digest}
    told = failure.told(over_http=True)
    if command := told.get("commandHint"):
        where["commandHint"] = command
    answer = problem(status, told["code"], told["message"], hint=told["hint"], **where)
    if isinstance(failure, UnsupportedEncoding):
        answer.headers["Accept-Encoding"] = failure.taken
    return answer


def see_logs(request_id: str) -> str:
    """Where more is told of a request that failed."""
    return f"Whoever runs the service finds more in its logs: request {request_id}."


def _invalid(_: Request, error: Exception) -> JSONResponse:
    found: Sequence[Mapping[str, Any]] = error.errors() if isinstance(error, RequestValidationError) else []
    return problem(422, Code.BAD_REQUEST, UNFIT, errors=places(found))


def unfit(found: ValidationError, *, at: str, hint: str = "") -> DoesNotFit:
    """The refusal of a document that is at some place of the request."""
    return DoesNotFit(Code.BAD_REQUEST, UNFIT, hint=hint, errors=places(found.errors(), at))


def places(found: Iterable[Mapping[str, Any]], *before: str) -> list[dict[str, str]]:
    """What is wrong, each with its place."""
    return [{"at": "/".join([*before, *map(str, each["loc"])]), "message": each["msg"]} for each in found]


def _refused(request: Request, error: Exception) -> JSONResponse:
    status, detail = (error.status_code, str(error.detail)) if isinstance(error, HTTPException) else (500, str(error))
    allow = ", ".join(methods_of(request)) if status == 405 else ""
    if status in (404, 405):
        detail = "Nothing is served at this address." if status == 404 else f"{request.method} is not possible here."
    answer = problem(
        status, _CODES.get(status, Code.BAD_REQUEST), detail, hint=f"Possible is: {allow}." if allow else ""
    )
    if allow:
        answer.headers["Allow"] = allow
    return answer
