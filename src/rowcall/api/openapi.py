"""The OpenAPI document: what routes say of their answers beyond their types, and what all of them have in common."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema

from rowcall.api.examples import EXAMPLES, REFUSALS
from rowcall.api.models.problems import Problem
from rowcall.api.problems import MEDIA_TYPE, UNFIT, problem, status_of, title_of
from rowcall.model import Code

Part = dict[str, Any]
"""A part of the document."""
Answers = dict[int | str, Part]
"""Answers by status, as FastAPI takes them."""

_REF = "#/components/schemas/{model}"
_KEY, _TOKEN = "key", "metricsToken"
_EVERYWHERE = (
    *(Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.TOO_MANY_REQUESTS, Code.INTERNAL_ERROR, Code.SYSTEM_ERROR),
    *(Code.DATABASE_UNREACHABLE, Code.DATABASE_GONE, Code.DATABASE_BUSY, Code.DATABASE_FULL, Code.SERVICE_STOPPING),
)
"""What any request of `/v1` may be answered."""
_HEADERS = {
    "X-Request-ID": ("The request's name in logs and audit: the sender's own if it sent a decent one.", "f3c1a7d2"),
    "Location": ("Where what was made is.", "/v1/imports/019a8c2e-5d0b-7c3a-9c41-2b7f6a1e0d11"),
    "Idempotent-Replayed": ("`true`: an earlier request with this key made it.", "true"),
    "X-Total-Count": ("How many there are on all pages.", "42"),
    "Retry-After": ("Seconds after which it may go better.", "1"),
    "WWW-Authenticate": ("What is expected.", 'Bearer realm="rowcall"'),
    "Content-Disposition": ("The name of the file.", "attachment; filename=\"users.csv\"; filename*=UTF-8''users.csv"),
    "Content-Range": ("Which part it is, of how many bytes.", "bytes 0-499/64120"),
    "Accept-Ranges": ("Parts can be asked for.", "bytes"),
    "ETag": ("Changes with what is answered: for `If-Range` or `If-Match`.", '"019a8c2e-5d0b-7c3a-9c41-2b7f6a1e0d11"'),
    "Tus-Resumable": ("The version of tus.", "1.0.0"),
    "Tus-Version": ("The versions of tus that are spoken.", "1.0.0"),
    "Tus-Extension": ("What is spoken of it.", "creation,creation-with-upload,expiration,checksum,termination"),
    "Tus-Max-Size": ("The most bytes that a file may have.", "10737418240"),
    "Tus-Checksum-Algorithm": ("How checksums may be made.", "sha1,sha256"),
    "Upload-Offset": ("How many bytes are on disk.", "1048576"),
    "Upload-Length": ("How many bytes the file has.", "4194304"),
    "Upload-Metadata": ("As it was sent when the upload began.", "importer dXNlcnM="),
    "Upload-Expires": ("Until when it waits for more.", "Mon, 23 Nov 2026 09:00:00 GMT"),
    "Rowcall-Import": ("The import that it has become.", "/v1/imports/019a8c2e-5d0b-7c3a-9c41-2b7f6a1e0d11"),
}
_ALWAYS = {401: ("WWW-Authenticate",), 403: (), 416: ("Content-Range",), 429: ("Retry-After",), 503: ("Retry-After",)}
_NAMES = {
    401: "Unauthenticated",
    403: "Forbidden",
    422: "DoesNotFit",
    429: "TooManyRequests",
    500: "InternalError",
    503: "NotNow",
}
_PARAMETERS = {
    "job_id": "The job's id, as `POST /v1/imports` told it.",
    "row": "The number of a row, from 1.",
    "upload_id": "The upload's id: the end of its `Location`.",
    "export_id": "The export's id.",
    "template_id": "The template's id.",
    "column_decision_id": "The decision's id.",
    "decision_id": "The decision's id.",
    "webhook_id": "The webhook's id.",
    "delivery_id": "The delivery's id.",
    "pageSize": "How many at most.",
    "name": "The importer's name, such as `users`.",
    "state": "Only those that are there.",
    "importer": "Only those of this importer.",
    "account": "Only what this account did.",
    "action": "Only this, such as `import.create`.",
}
TAGS = {
    "imports": "A file comes in and is a job; what became of it.",
    "uploads": "Large files over bad networks, piece by piece: [tus 1.0](https://tus.io/protocols/resumable-upload).",
    "preview": "What a job would do, and the word to do exactly that.",
    "moves": "Start, pause, resume, cancel a job, or try rows again.",
    "values": "What the values of a file stand for that are looked up or chosen; decisions that are remembered.",
    "undo": "Take back what a job wrote: look first, have it done, read what it did.",
    "columns": "Which column of a file is which field; templates, and decisions that are remembered.",
    "importers": "What files can be for, and what each importer takes.",
    "rows": "The rows of a job, each with what became of it, and what is pending in all jobs.",
    "exports": "Rows out: as a stream, or as a file that is written in the background.",
    "webhooks": "Be told of the moves of jobs.",
    "audit": "Who did what.",
    "operations": "For whoever keeps the service running.",
}
DESCRIPTION = """\
Bulk data into and out of PostgreSQL, with every row accounted for.

**Keys.** Send `Authorization: Bearer KEY`; `rowcall keys create` makes one. While there are no keys at all, the machine
that the service runs on needs none.

**Errors** are problems (RFC 9457): branch on `code`, show `detail` and `hint`. After 429 and 503, and when no answer
came, the same request may be sent again; `Idempotency-Key` keeps it from being done twice. Other methods than those
told here are answered with 405 and `Allow`.

**Pages** have a `next`: send it as `after`, with the same filters, until it is null.
"""


# ------------------------------------------------------------------------------------------ what routes say of answers


def refusals(*codes: Code, invalid: bool = True) -> Answers:
    """The problems that a route may answer with, beside those of all routes.

    Unless told otherwise, it also has parameters or a body that may not fit.
    """
    found: defaultdict[int, list[Code]] = defaultdict(list)
    for code in codes:
        found[status_of(code)].append(code)
    answers: Answers = {status: _problems(status, of) for status, of in found.items()}
    if invalid:
        answers[422] = _problems(422, [Code.BAD_REQUEST, *found.get(422, [])])
    return answers


def _problems(status: int, codes: list[Code]) -> Part:
    common = [code for code in _EVERYWHERE if status_of(code) == status]
    codes = [*codes, *(code for code in common if code not in codes)]
    content = {"schema": ref(Problem), "examples": {code: {"value": _example(status, code)} for code in codes}}
    told = f"{title_of(status)}: {', '.join(f'`{code}`' for code in codes)}."
    return {"description": told, "headers": headers(*_ALWAYS.get(status, ())), "content": {MEDIA_TYPE: content}}


def _example(status: int, code: Code) -> Any:
    if status == 422 and code is Code.BAD_REQUEST:
        wrong = {"at": "query/pageSize", "message": "Input should be less than or equal to 1000"}
        answer = problem(422, code, UNFIT, errors=[wrong])
    else:
        answer = problem(status, code, **REFUSALS[code])
    return json.loads(bytes(answer.body))


def headers(*names: str) -> Part:
    """Headers that an answer always has."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def links(parameter: str, *operations: str) -> Part:
    """Operations on what an answer tells of, by its `id`."""
    return {name: {"operationId": name, "parameters": {parameter: "$response.body#/id"}} for name in operations}


def ref(model: type[BaseModel]) -> Part:
    """Where the document has a model."""
    return {"$ref": _REF.format(model=model.__name__)}


def header_parameter(name: str, description: str, *, required: bool = False, **schema: Any) -> Part:
    """A header that a route reads by itself."""
    told: Part = {"name": name, "in": "header", "required": required, "description": description}
    return {**told, "schema": {"type": "string", **schema}}


# -------------------------------------------------------------------------------------------------------- the document


def operation_id(route: APIRoute) -> str:
    """The name of a route in generated clients."""
    return to_camel(route.name)


def install(app: FastAPI, *more: type[BaseModel]) -> None:
    """Have the application serve the whole document; `more` are models that routes read by themselves."""
    made = app.openapi

    def openapi() -> Part:
        if app.openapi_schema is None:
            app.openapi_schema = _finished(made(), more)
        return app.openapi_schema

    app.openapi = openapi


def _finished(document: Part, more: tuple[type[BaseModel], ...]) -> Part:
    components: Part = document["components"]
    schemas: Part = components["schemas"]
    schemas |= models_json_schema([(model, "validation") for model in (*more, Problem)], ref_template=_REF)[1]["$defs"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for name, example in EXAMPLES.items():
        schemas[name]["examples"] = [example]
    components["headers"] = {
        name: {"description": told, "schema": {"type": "string"}, "required": True, "example": example}
        for name, (told, example) in _HEADERS.items()
    }
    components["responses"] = {name: _problems(status, []) for status, name in _NAMES.items()}
    components["responses"][_NAMES[422]] = _problems(422, [Code.BAD_REQUEST])
    components["securitySchemes"] = {
        _KEY: {"type": "http", "scheme": "bearer", "description": "A key of `rowcall keys create`."},
        _TOKEN: {"type": "http", "scheme": "bearer", "description": "The service's `ROWCALL_METRICS_TOKEN`."},
    }
    for path, operation in _operations(document):
        _finish(path, operation)
    for answer in components["responses"].values():
        answer["headers"] |= headers("X-Request-ID")
    return document


def _operations(document: Part) -> Iterator[tuple[str, Part]]:
    for path, item in cast("Mapping[str, Part]", document["paths"]).items():
        for operation in item.values():
            yield path, operation


def _finish(path: str, operation: Part) -> None:
    operation["summary"] = operation["summary"].capitalize()
    for parameter in operation.get("parameters", []):
        parameter.setdefault("description", _PARAMETERS.get(parameter["name"]))
    answers: Part = operation["responses"]
    if "HTTPValidationError" in str(answers.get("422")):
        del answers["422"]
    if "application/json" in operation.get("requestBody", {}).get("content", {}):  # may be no text at all
        answers.setdefault("400", _problems(400, [Code.BAD_REQUEST]))
    for answer in answers.values():
        answer["headers"] = {**answer.get("headers", {}), **headers("X-Request-ID")}
    if path.startswith("/v1/"):
        operation["security"] = [{_KEY: []}]
        for status, name in _NAMES.items():
            answers.setdefault(str(status), {"$ref": f"#/components/responses/{name}"})
    elif path == "/metrics":
        operation["security"] = [{_TOKEN: []}, {}]
    operation["responses"] = dict(sorted(answers.items()))
