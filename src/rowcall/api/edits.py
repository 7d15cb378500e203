"""Corrections of rows over HTTP: of one, verified at once, and what was corrected before."""

import re
from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Response
from psycopg import Connection

from rowcall.api.audit import audit
from rowcall.api.models.edits import CellEditAnswer, EditAnswer, EditRequest, ReplaceAnswer, ReplaceRequest
from rowcall.api.models.items import Item
from rowcall.api.models.wire import RowNumber
from rowcall.api.openapi import headers, refusals
from rowcall.api.service import Caller, Service, TheCaller, TheService
from rowcall.engine import observe
from rowcall.engine.corrections.edit import Edited, edit_row, found_row, undo_edits
from rowcall.engine.corrections.replace import count_replaced, replace_cells
from rowcall.engine.documents import edit_document, job_document, row_document
from rowcall.errors import Final
from rowcall.importer import Importer
from rowcall.model import WORKING, Code
from rowcall.store import jobs
from rowcall.store.edits import edits_of
from rowcall.store.jobs import Job
from rowcall.store.mappings import columns_of
from rowcall.worker.queue import nudge

router = APIRouter(prefix="/v1/imports/{job_id}/items", tags=["rows"])
_TAGGED: dict[int | str, dict[str, Any]] = {200: {"headers": headers("ETag")}}
_REFUSED = refusals(
    *(Code.BAD_REQUEST, Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.ROW_NOT_FOUND, Code.WRONG_STATE),
    *(Code.ROW_DONE, Code.EDITED_MEANWHILE, Code.UNKNOWN_CELL, Code.DATABASE_REFUSED),
)
_REPLACED: dict[int | str, dict[str, Any]] = {200: {"description": "What would be replaced, or was."}}
_REPLACING = (
    *(Code.BAD_REQUEST, Code.JOB_NOT_FOUND, Code.UNKNOWN_IMPORTER, Code.WRONG_STATE, Code.ROW_DONE),
    *(Code.NOT_AS_COUNTED, Code.UNKNOWN_CELL, Code.BODY_TOO_LARGE),
)
_REVISION = re.compile(r'(W/)?"?(\d{1,9})"?')
_IfMatch = Annotated[
    str | None,
    Header(
        max_length=100,
        description="The revision that was seen, as the row's `ETag`; `*` for whichever. Left out: as it came in.",
        examples=['"1"'],
    ),
]
_Deed = Callable[[Connection[Any], Job, type[Importer], int | None], Edited]


@router.get("/{row}", responses={**_TAGGED, **refusals(Code.JOB_NOT_FOUND, Code.ROW_NOT_FOUND)})
def read_item(job_id: UUID, row: RowNumber, response: Response, at: TheService, caller: TheCaller) -> Item:
    """One row of a job, with what became of it."""
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        found = found_row(connection, job, row)
        told = row_document(found, _headers(connection, job))
    response.headers["ETag"] = f'"{found.revision}"'
    return Item.model_validate(told)


@router.patch("/{row}", responses={**_TAGGED, **_REFUSED, **refusals(Code.BODY_TOO_LARGE)})
def edit_item(
    job_id: UUID,
    row: RowNumber,
    asked: EditRequest,
    response: Response,
    at: TheService,
    caller: TheCaller,
    if_match: _IfMatch = None,
) -> EditAnswer:
    """Correct cells of a row. What came in stays; the row is verified at once, by the code that imports it.

    While the job is VALIDATED, what is planned for the row is replaced. When it is through, rows that failed or were
    skipped can be corrected, and `reprocess` runs them.
    """

    def edit(connection: Connection[Any], job: Job, importer: type[Importer], revision: int | None) -> Edited:
        return edit_row(connection, job, importer, row, asked.cells, who=caller.account, revision=revision)

    return _deed(at, caller, response, (job_id, row, if_match), "edit", edit)


@router.delete("/{row}/edits", responses={**_TAGGED, **_REFUSED})
def undo_item(
    job_id: UUID, row: RowNumber, response: Response, at: TheService, caller: TheCaller, if_match: _IfMatch = None
) -> EditAnswer:
    """Take back all corrections of a row. They stay in its history."""

    def undo(connection: Connection[Any], job: Job, importer: type[Importer], revision: int | None) -> Edited:
        return undo_edits(connection, job, importer, row, who=caller.account, revision=revision)

    return _deed(at, caller, response, (job_id, row, if_match), "undo-edit", undo)


@router.get("/{row}/edits", responses=refusals(Code.JOB_NOT_FOUND))
def read_edits(job_id: UUID, row: RowNumber, at: TheService, caller: TheCaller) -> list[CellEditAnswer]:
    """All corrections of a row with who made them and when, the latest first; those taken back included."""
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        titles, found = _headers(connection, job), edits_of(connection, job.id, row)
    return [CellEditAnswer.model_validate(edit_document(edit, titles)) for edit in found]


def _deed(
    at: Service, caller: Caller, response: Response, which: tuple[UUID, int, str | None], name: str, deed: _Deed
) -> EditAnswer:
    """Do it on a session that may try the row on the target, once the caller is known to have the job."""
    job_id, row, if_match = which
    seen = _seen(if_match)
    with at.connection(caller) as connection:
        before = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
    importer = at.registry.importer(before.importer)
    with at.pool.connection() as connection, connection.transaction():
        edited = deed(connection, before, importer, seen)
        if edited.job.state in WORKING:
            nudge(connection, before.id)
        about = {"number": before.number, "row": row, "revision": edited.row.revision}
        audit(connection, caller, f"import.{name}", before.id, about)
        told = {
            "item": row_document(edited.row, _headers(connection, before)),
            "status": edited.status,
            "issues": edited.issues,
            "alone": edited.alone,
            "job": job_document(edited.job, jobs.counts_of(connection, edited.job), importer),
        }
    if edited.job.state is not before.state:
        with at.connection(caller) as connection:
            observe.moved(connection, before, edited.job)
    response.headers["ETag"] = f'"{edited.row.revision}"'
    return EditAnswer.model_validate(told)


def _seen(if_match: str | None) -> int | None:
    """The revision that the caller saw; None: whichever it is at."""
    if if_match is None:
        return 0
    if if_match.strip() == "*":
        return None
    found = _REVISION.fullmatch(if_match.strip())
    if found is None:
        raise Final(Code.BAD_REQUEST, f'If-Match is {if_match!r}; a revision such as "1" is expected.')
    if found[1]:  # RFC 9110, 13.1.1
        hint = 'Send the `revision` of the item in quotes: "1".'
        raise Final(Code.EDITED_MEANWHILE, f"If-Match is {if_match!r}; a weak tag matches no revision.", hint=hint)
    return int(found[2])


def _headers(connection: Connection[Any], job: Job) -> list[str]:
    return [column.header for column in columns_of(connection, job.id)]


@router.post("/replace", responses={**_REPLACED, **refusals(*_REPLACING)})
def replace_items(job_id: UUID, asked: ReplaceRequest, at: TheService, caller: TheCaller) -> ReplaceAnswer:
    """Replace a text in one column of many rows: with `preview` it is counted, with the `token` of that it is done.

    Just the cells that were counted are replaced; if it would be others by now, nothing is, and it is told (409).
    Corrections are kept and taken back like those of single rows. A job that is VALIDATED is planned again.
    """
    with at.connection(caller) as connection:
        before = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        if asked.preview:
            counted = count_replaced(connection, before, asked.replacing())
            samples = [{"row": each.row, "before": each.before, "after": each.after} for each in counted.samples]
            return ReplaceAnswer.model_validate({"rows": counted.rows, "samples": samples, "token": counted.token})
    importer = at.registry.importer(before.importer)
    with at.pool.connection() as connection, connection.transaction():
        done = replace_cells(
            connection, before, importer, asked.replacing(), token=asked.token or "", who=caller.account
        )
        if done.job.state in WORKING:
            nudge(connection, before.id)
        audit(connection, caller, "import.replace", before.id, {"number": before.number, "rows": done.laid.rows})
        job = job_document(done.job, jobs.counts_of(connection, done.job), importer)
    if done.job.state is not before.state:
        with at.connection(caller) as connection:
            observe.moved(connection, before, done.job)
    return ReplaceAnswer.model_validate({"rows": done.laid.rows, "job": job})
