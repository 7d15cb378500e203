"""Imports: a file comes in and is a job; what became of it can be read."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from psycopg import Connection

from rowcall.api.asked import asked_for, foresee
from rowcall.api.audit import audit
from rowcall.api.columns import columns_told
from rowcall.api.idempotency import TheKey
from rowcall.api.models.columns import JobWithMappings
from rowcall.api.models.configs import ImportConfig
from rowcall.api.models.jobs import JobAnswer, JobPage
from rowcall.api.models.wire import Text
from rowcall.api.openapi import headers, links, ref, refusals
from rowcall.api.service import Caller, ListCaller, Service, TheCaller, TheService
from rowcall.api.uploads import Form, Upload, received
from rowcall.api.urls import UrlImport, named, names_url
from rowcall.engine import observe
from rowcall.engine.documents import job_document
from rowcall.errors import DoesNotFit, Final
from rowcall.model import Code, State
from rowcall.store import jobs, requests, results
from rowcall.store.files.filestore import file_store
from rowcall.store.jobs import Job, JobCounts, Origin
from rowcall.store.leftovers import discard_unless_of, unless_refused
from rowcall.store.templates import find_template
from rowcall.telemetry.tracing import traceparent
from rowcall.worker.queue import nudge

router = APIRouter(prefix="/v1/imports", tags=["imports"])
_READERS = ("readImport", "readEvents", "readItems", "readSummary", "readReceipt", "cancelImport")
_CREATED: dict[int | str, dict[str, Any]] = {
    200: {
        "model": JobAnswer,
        "description": "The job of an earlier request with the same `Idempotency-Key`.",
        "headers": headers("Location", "Idempotent-Replayed"),
    },
    202: {"description": "The job.", "headers": headers("Location"), "links": links("job_id", *_READERS)},
    **refusals(
        *(Code.BAD_REQUEST, Code.UNKNOWN_IMPORTER, Code.FILE_TOO_LARGE, Code.KEY_REUSED, Code.BAD_MAPPING),
        Code.TEMPLATE_NOT_FOUND,
        *(Code.TOO_SLOW, Code.BAD_OPTION, Code.URL_REFUSED, Code.URL_UNREACHABLE, Code.FILE_STORE_AWAY),
        *(Code.FOREIGN_FILE_STORE, Code.BAD_CONTEXT, Code.SCOPE_BUSY, Code.UNSUPPORTED_BODY),
    ),
}
_FILE = {"schema": {"type": "string", "format": "binary"}, "example": "email,name\nann@example.org,Ann\n"}
_BODY = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {
                    "file": {"type": "string", "format": "binary", "description": "The file, with its name."},
                    "importer": {
                        "type": "string",
                        "description": "What it is for; or `?importer=`.",
                        "examples": ["users"],
                    },
                    "config": {
                        "type": "string",
                        "contentMediaType": "application/json",
                        "contentSchema": ref(ImportConfig),
                        "description": "How to read it and what to do: an `ImportConfig` as JSON.",
                        "examples": ['{"mode": "upsert"}'],
                    },
                    "context": {
                        "type": "string",
                        "contentMediaType": "application/json",
                        "description": "What it is about, as its importer demands: a flat object of texts as JSON.",
                        "examples": ['{"registration": "R1"}'],
                    },
                },
            },
        },
        "application/json": {"schema": ref(UrlImport)},
        "text/csv": _FILE,
        "application/octet-stream": _FILE,
    },
}


@router.post("", status_code=202, responses=_CREATED, openapi_extra={"requestBody": _BODY})
async def create_import(
    request: Request,
    response: Response,
    at: TheService,
    caller: TheCaller,
    key: TheKey,
    importer: Annotated[
        Text | None, Query(description="What the file is for, where the body is the file itself.", examples=["users"])
    ] = None,
    file_name: Annotated[
        Text | None, Query(alias="fileName", description="The name of a file that is the body itself.")
    ] = None,
    config: Annotated[
        Text | None, Query(description="How to read such a file and what to do: an `ImportConfig` as JSON.")
    ] = None,
    context: Annotated[
        Text | None,
        Query(
            description="What such a file is about, as its importer demands: a flat object of texts as JSON.",
            examples=['{"registration": "R1"}'],
        ),
    ] = None,
) -> JobAnswer:
    """Bring a file: in a form, or as the body itself, with `?importer=`. It is durable when this answers.

    Or have it fetched: JSON without `?importer=` tells from where. The same `Idempotency-Key` with the same content
    gives the same job.
    """
    given = {"importer": importer, "config": config, "context": context}
    asked = {name: text for name, text in given.items() if text is not None}
    async with _upload(request, at, caller, file_name, asked, key) as upload:
        upload.config_at = _config_at(upload.fields, asked)
        upload.fields = _all_told(upload.fields, asked)
        job, is_new = await asyncio.to_thread(begin_import, at, caller, upload, upload.fields["importer"], key)
    response.headers["Location"] = f"/v1/imports/{job.id}"
    if not is_new:
        response.status_code = 200
        response.headers["Idempotent-Replayed"] = "true"
    return JobAnswer.model_validate(job_document(job, jobs.JobCounts(), None))


def _upload(
    request: Request, at: Service, caller: Caller, file_name: str | None, asked: Mapping[str, str], key: str | None
) -> AbstractAsyncContextManager[Upload]:
    if names_url(request):
        if file_name is not None:
            raise _twice("fileName")
        return named(request, at.settings)

    def check(fields: Mapping[str, str], name: str, sha256: str | None) -> None:
        told = _all_told(fields, asked)
        about = told.get("context", "{}")
        wanted = asked_for(at, told["importer"], told.get("config", "{}"), about, config_at=_config_at(fields, asked))
        foresee(at, caller, wanted, name, key, sha256)

    form = Form(frozenset({"importer", "config", "context"}), check)
    store, most = file_store(at.settings), at.settings.max_upload
    return received(request, store, name=file_name or "upload", most=most, form=form)


def _config_at(fields: Mapping[str, str], asked: Mapping[str, str]) -> str:
    """Where in the request the configuration is, or would be."""
    return "body/config" if fields and ("config" in fields or "config" not in asked) else "query/config"


def _all_told(fields: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """What a body and its address say together. Where they disagree, nobody knows what is meant."""
    for name in asked:
        if fields.get(name, asked[name]) != asked[name]:
            raise _twice(name)
    told = {**asked, **fields}
    if not told.get("importer"):
        raise Final(Code.BAD_REQUEST, "It isn't said which importer the file is for.", hint="Give `importer`.")
    return told


def _twice(name: str) -> Final:
    told = f"`{name}` is in the address, and something else in the body."
    wrong = [{"at": f"query/{name}", "message": "The body tells it"}]
    return DoesNotFit(Code.BAD_REQUEST, told, hint="Give it in one place.", errors=wrong)


def begin_import(
    at: Service,
    caller: Caller,
    upload: Upload,
    name: str,
    key: str | None,
    note: Callable[[Connection[Any], Job], None] | None = None,
) -> tuple[Job, bool]:
    """The job of a file that is stored or to be fetched, and whether it is new; `note` is part of its transaction."""
    about, told = upload.fields.get("context", "{}"), upload.fields.get("config", "{}")
    asked = asked_for(at, name, told, about, config_at=upload.config_at)
    origin = Origin(
        organisation=caller.organisation,
        account=caller.account,
        background=True,
        request_id=caller.request_id,
        client_address=caller.address,
        idempotency_key=key,
        hold=asked.told.hold,
        fingerprint=asked.fingerprint(upload.name, upload.file.sha256 if upload.file else upload.url_with_secrets),
        traceparent=traceparent(),
        url=upload.url,
        url_with_secrets=upload.url_with_secrets,
    )
    store = file_store(at.settings)
    guarded = unless_refused(store, upload.file, at.pool.connection) if upload.file else nullcontext()
    with guarded, at.connection(caller) as connection:
        if asked.config.template:
            find_template(connection, caller.organisation, asked.importer, asked.config.template)
        job, is_new = requests.create_or_find(
            connection, asked.importer, upload.file, upload.name, asked.config, origin, asked.scope
        )
        if is_new:
            nudge(connection, job.id, behind=requests.waiting_before(connection, job))
            audit(connection, caller, "import.create", job.id, {"number": job.number, "importer": asked.importer})
            for older in job.supersedes:
                audit(connection, caller, "import.supersede", UUID(older["id"]), {**_numbers(older, job)})
        if note:
            note(connection, job)
    if upload.file:
        discard_unless_of(store, job.file_location, upload.file, at.pool.connection)
    if is_new and job.supersedes:
        _tell_superseded(at, job)
    return job, is_new


def _numbers(older: Mapping[str, str], job: Job) -> dict[str, str]:
    return {"number": older["number"], "by": job.number}


def _tell_superseded(at: Service, job: Job) -> None:
    """Have it heard that older jobs are over, which may be of accounts that the caller doesn't see."""
    with at.pool.connection() as connection:
        for older in job.supersedes:
            after = jobs.get_job(connection, older["id"])
            observe.moved(connection, replace(after, state=State(older["state"])), after)


@router.get(
    "",
    responses={
        200: {"description": "A page of jobs.", "headers": headers("X-Total-Count")},
        **refusals(Code.BAD_CURSOR),
    },
)
def list_imports(
    at: TheService,
    caller: ListCaller,
    response: Response,
    state: State | None = None,
    importer: Text | None = None,
    number: Annotated[Text | None, Query(max_length=50, description="The job with this number.")] = None,
    scope: Annotated[Text | None, Query(description="Only those with this `scope`.")] = None,
    after: Annotated[Text | None, Query(description="The `next` of the page before.")] = None,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=1000)] = 50,
) -> JobPage:
    """The jobs, the newest first."""
    with at.connection(caller) as connection:
        page = requests.page_of_jobs(
            connection,
            caller.organisation,
            state=state,
            importer=importer,
            number=number and number.upper(),
            scope=scope,
            after=after,
            size=page_size,
        )
        counted = results.counts_of_jobs(connection, page.jobs)
    response.headers["X-Total-Count"] = str(page.total)
    items = [
        JobAnswer.model_validate(job_document(job, counted[job.id], at.registry.find(job.importer)))
        for job in page.jobs
    ]
    return JobPage(items=items, next=page.next)


@router.get(
    "/{job_id}", response_model_exclude_unset=True, responses=refusals(Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER)
)
def read_import(
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    include: Annotated[Literal["mappings"] | None, Query(description="`mappings`: with its columns.")] = None,
) -> JobWithMappings:
    """A job and how far it is."""
    found, counted = at.read(caller, "get_job", "job_counts", id=job_id, number=None, organisation=caller.organisation)
    job, counts = jobs.job_in(found, str(job_id)), JobCounts(**counted[0])
    told = job_document(job, counts, at.registry.find(job.importer))
    return JobWithMappings.model_validate({**told, "mappings": columns_told(at, caller, job_id)} if include else told)
