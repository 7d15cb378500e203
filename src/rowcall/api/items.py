"""Rows over HTTP: the grid of a job, what became of its rows, and what is pending everywhere."""

from dataclasses import replace
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from rowcall.api.models.items import AttemptAnswer, Item, ItemPage, PendingItem, PendingPage, ResultsSummary
from rowcall.api.models.receipts import ReceiptAnswer
from rowcall.api.models.wire import RowNumber, Text
from rowcall.api.openapi import refusals
from rowcall.api.service import Caller, Service, TheCaller, TheService, narrowed
from rowcall.engine.documents import counts_document, issue_count_document, receipt_document, row_document
from rowcall.engine.receipt import receipt_of
from rowcall.errors import Final
from rowcall.model import ROW_STATUSES, Code
from rowcall.store import grid, jobs, results
from rowcall.store.cursors import decoded, encoded
from rowcall.store.grid import Place, Wanted, Whose
from rowcall.store.mappings import columns_of

router = APIRouter(prefix="/v1", tags=["rows"])
_GRID = refusals(Code.BAD_REQUEST, Code.BAD_CURSOR, Code.JOB_NOT_FOUND)
_PENDING = "pending,failed"
_Statuses = Annotated[
    Text | None, Query(description=f"Some of {', '.join(ROW_STATUSES)}, with commas between.", examples=["failed"])
]
_Code = Annotated[Text | None, Query(description="Only rows with an issue of this code.", examples=["REQUIRED"])]
_Field = Annotated[Text | None, Query(description="Only rows with an issue in this field.", examples=["email"])]
_Text = Annotated[Text | None, Query(max_length=200, description="Only rows with this text in a cell.")]
_Edited = Annotated[bool, Query(description="Only rows with corrections.")]
_Sort = Annotated[Literal["row", "-row", "updated", "-updated"], Query(description="A minus in front turns it round.")]
_After = Annotated[Text | None, Query(max_length=500, description="The `next` of the page before.")]
_PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=1000)]


def statuses_in(text: str | None) -> tuple[str, ...]:
    """The statuses that a request names."""
    names = tuple(name for name in (text or "").split(",") if name)
    if unknown := [name for name in names if name not in ROW_STATUSES]:
        told = f"There is no status {unknown[0][:50]!r}."
        raise Final(Code.BAD_REQUEST, told, hint=f"The statuses are {', '.join(ROW_STATUSES)}.")
    return names


async def _view(
    statuses: _Statuses = None,
    code: _Code = None,
    field: _Field = None,
    text: _Text = None,
    edited: _Edited = False,
    sort: _Sort = "row",
) -> Wanted:
    return Wanted(statuses=statuses_in(statuses), code=code, field=field, text=text or None, edited=edited, sort=sort)


TheView = Annotated[Wanted, Depends(_view)]
"""Which rows of a job, in the grid and in an export of it."""


@router.get("/imports/{job_id}/items", responses=_GRID)
def read_items(
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    view: TheView,
    after: _After = None,
    page_size: _PageSize = 100,
) -> ItemPage:
    """The rows of a job with what became of each.

    A page may have fewer rows than fit, even none, where many had to be looked at: there may be more as long as there
    is a `next`.
    """
    return _page(at, caller, job_id, replace(view, most=page_size), after)


@router.get("/imports/{job_id}/results", responses=_GRID)
def read_results(
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    outcome: _Statuses = None,
    after: _After = None,
    page_size: _PageSize = 100,
) -> ItemPage:
    """What became of the rows of a job, by outcome."""
    return _page(at, caller, job_id, Wanted(statuses=statuses_in(outcome), most=page_size), after)


def _page(at: Service, caller: Caller, job_id: UUID, wanted: Wanted, after: str | None) -> ItemPage:
    about = f"items {job_id} {wanted.sort}"
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        headers = [column.header for column in columns_of(connection, job.id)]
        place = decoded(about, after, Place) if after else None
        page = grid.page_of(connection, Whose(job=job.id), wanted.behind(place))
    items = [Item.model_validate(row_document(row, headers)) for _, row in page.rows]
    return ItemPage(items=items, next=encoded(about, page.next) if page.next else None)


@router.get("/imports/{job_id}/results/summary", responses=refusals(Code.JOB_NOT_FOUND))
def read_summary(job_id: UUID, at: TheService, caller: TheCaller) -> ResultsSummary:
    """How many rows came to what, and what was wrong with how many."""
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        counts = counts_document(job, jobs.counts_of(connection, job))
        issues = [issue_count_document(issue) for issue in results.count_issues(connection, job.id)]
    return ResultsSummary.model_validate({"counts": counts, "issues": issues})


@router.get("/imports/{job_id}/items/{row}/attempts", responses=refusals(Code.JOB_NOT_FOUND))
def read_attempts(job_id: UUID, row: RowNumber, at: TheService, caller: TheCaller) -> list[AttemptAnswer]:
    """What became of a row each time that it was tried, the latest first."""
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        found = results.attempts_of(connection, job.id, row)
    return [AttemptAnswer.model_validate(attempt) for attempt in found]


@router.get("/imports/{job_id}/receipt", responses=refusals(Code.JOB_NOT_FOUND))
def read_receipt(job_id: UUID, at: TheService, caller: TheCaller) -> ReceiptAnswer:
    """A job on one page: file, mapping, balance, who and when."""
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        made = receipt_of(connection, job, at.registry.by_name().get(job.importer))
    return ReceiptAnswer.model_validate(receipt_document(made))


@router.get("/pending", responses=refusals(Code.BAD_REQUEST, Code.BAD_CURSOR))
def read_pending(
    at: TheService,
    caller: TheCaller,
    statuses: _Statuses = _PENDING,
    user: Annotated[Literal["me", "all"], Query(alias="userId", description="Whose jobs.")] = "me",
    code: _Code = None,
    field: _Field = None,
    text: _Text = None,
    edited: _Edited = False,
    after: _After = None,
    page_size: _PageSize = 100,
) -> PendingPage:
    """Rows of all jobs that wait for something or somebody, those that something happened to last first."""
    caller = narrowed(caller, user)
    account = caller.account if user == "me" else None
    whose = Whose(organisation=caller.organisation, account=account)
    about = f"pending {caller.organisation} {account}"
    place = decoded(about, after, Place) if after else None
    named = statuses_in(statuses)
    wanted = Wanted(
        statuses=named, code=code, field=field, text=text or None, edited=edited, sort="-updated", most=page_size
    )
    with at.connection(caller) as connection:
        page = grid.page_of(connection, whose, wanted.behind(place))
        theirs = {job_id: jobs.get_job(connection, str(job_id)) for job_id in {job_id for job_id, _ in page.rows}}
    items = [
        PendingItem.model_validate(
            {
                "jobId": job_id,
                "jobNumber": theirs[job_id].number,
                "importer": theirs[job_id].importer,
                "row": row.row,
                "line": row.line,
                "status": row.status,
                "issues": row.issues or [],
                "revision": row.revision,
                "at": row.at,
            }
        )
        for job_id, row in page.rows
    ]
    return PendingPage(items=items, next=encoded(about, page.next) if page.next else None)
