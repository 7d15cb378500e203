"""The rows of jobs with what became of each, page by page.

A page costs the same wherever it is and whatever is asked for. Batches know which statuses they hold: those that have
none of the wanted rows are passed over. Of the others, the numbers of rows that may be wanted are found first. And no
page examines more than so many rows; then it has fewer than were asked for, and says where to go on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Literal

from rowcall.model import Status
from rowcall.store.queries import query

SORTS = ("row", "-row", "updated", "-updated")
_PAGE = 2_000
_BATCHES = 50
_EXAMINED = 20_000
_OUTCOMES = [status.value for status in Status]
_IMPLIED = {Status.CREATED.value, Status.UNCHANGED.value}
"""Of a plan that is shown, rows without a stored outcome may have these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """A row as it came in, and what became of it."""

    row: int
    line: int
    status: str
    """One of `ROW_STATUSES`."""
    issues: list[dict[str, Any]] | None
    cells: list[str | None]
    target_key: list[str] | None
    attempt: int | None
    at: datetime | None
    original: list[str | None] | None = None
    """The cells as they came in, where some were corrected since."""
    revision: int = 0
    """How often it was corrected."""
    changes: dict[str, list[Any]] | None = None
    """Of a row that is updated: each column that changes, from what to what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page ended: in a batch, behind a row."""

    at: datetime
    job: UUID
    batch: int
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows to give. None or nothing: no matter."""

    statuses: tuple[str, ...] = ()
    code: str | None = None
    field: str | None = None
    text: str | None = None
    """Somewhere in a cell, in small letters or capitals."""
    edited: bool = False
    """Only those with corrections."""
    rows: tuple[int, ...] | None = None
    """These numbers; only where rows are tried again."""
    sort: str = "row"
    after: Place | None = None
    most: int | None = None

    def behind(self, place: Place | None) -> "Wanted":
        """The same, from another place on."""
        return replace(self, after=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """One job, or all jobs of an organisation, or those of one account of it."""

    job: UUID | None = None
    organisation: UUID | None = None
    account: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, each with its job, and where to go on; None at the end."""

    rows: list[tuple[UUID, RowResult]]
    next: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    job_id: UUID
    number: int
    first_row: int
    last_row: int
    updated_at: datetime
    is_plan: bool
    """Whether a plan is shown, in which most outcomes are implied."""


def results_of(connection: Connection[Any], job_id: UUID, wanted: Wanted) -> Iterator[RowResult]:
    """All rows of a job that are wanted, fetched page by page: a reader may take its time, and memory doesn't grow."""
    left = wanted.most
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        page = page_of(connection, Whose(job=job_id), replace(wanted, most=size), examined=None)
        yield from (row for _, row in page.rows)
        if page.next is None:
            return
        wanted, left = replace(wanted, after=page.next), None if left is None else left - len(page.rows)


def page_of(connection: Connection[Any], whose: Whose, wanted: Wanted, *, examined: int | None = _EXAMINED) -> Page:
    """At most `wanted.most` rows behind a place. At most about `examined` rows are looked at for it."""
    found: list[tuple[UUID, RowResult]] = []
    place, left, most = wanted.after, examined, wanted.most or _PAGE
    while True:
        batches = _batches(connection, whose, wanted, place)
        for batch in batches:
            first, last = _left_of(batch, wanted, place)
            rows = _rows(connection, batch, wanted, first, last, most - len(found)) if first <= last else []
            found += [(batch.job_id, row) for row in rows]
            end = rows[-1].row if len(found) == most else _end(batch, backwards=wanted.sort == "-row")
            place = Place(at=batch.updated_at, job=batch.job_id, batch=batch.number, row=end)
            left = None if left is None else left - (last - first + 1)
            if len(found) == most or (left is not None and left <= 0):
                return Page(found, place)
        if len(batches) < _BATCHES:
            return Page(found, None)


def _left_of(batch: _Batch, wanted: Wanted, place: Place | None) -> tuple[int, int]:
    """The first and last row of a batch that are behind a place, which may be inside of it."""
    by_row = wanted.sort.endswith("row")
    if place is None or not (by_row or (place.job, place.batch) == (batch.job_id, batch.number)):
        return batch.first_row, batch.last_row
    if wanted.sort == "-row":
        return batch.first_row, min(batch.last_row, place.row - 1)
    return max(batch.first_row, place.row + 1), batch.last_row


def _end(batch: _Batch, *, backwards: bool) -> int:
    return batch.first_row if backwards else batch.last_row


def _batches(connection: Connection[Any], whose: Whose, wanted: Wanted, place: Place | None) -> list[_Batch]:
    """The next batches that hold wanted rows, in the order of the page; the one where the last page ended is first."""
    backwards = wanted.sort.startswith("-")
    way, than = (SQL("DESC"), SQL("<=")) if backwards else (SQL("ASC"), SQL(">="))
    if wanted.sort.endswith("row"):
        order = SQL("b.first_row {}").format(way)
        reach = SQL("b.first_row < %(row)s") if backwards else SQL("b.last_row > %(row)s")
    else:
        order = SQL("b.updated_at {0}, b.job_id {0}, b.number {0}").format(way)
        reach = SQL("(b.updated_at, b.job_id, b.number) {} (%(at)s, %(job)s, %(batch)s)").format(than)
    scope = [SQL("true")]
    if whose.job:
        scope.append(SQL("b.job_id = %(whose_job)s"))
    if whose.organisation:
        scope.append(SQL("j.organisation_id = %(organisation)s"))
    if whose.account:
        scope.append(SQL("j.account = %(account)s"))
    select = SQL(query("batches_to_show")).format(
        whose=SQL(" AND ").join(scope), behind=reach if place else SQL("true"), order=order
    )
    given = {
        "statuses": list(wanted.statuses),
        "whose_job": whose.job,
        "organisation": whose.organisation,
        "account": whose.account,
        "most": _BATCHES,
        **({"at": place.at, "job": place.job, "batch": place.batch, "row": place.row} if place else {}),
    }
    return connection.cursor(row_factory=class_row(_Batch)).execute(select, given).fetchall()


def _rows(
    connection: Connection[Any], batch: _Batch, wanted: Wanted, first: int, last: int, most: int
) -> list[RowResult]:
    given = {
        "id": batch.job_id,
        "first": first,
        "last": last,
        "statuses": list(wanted.statuses),
        "code": wanted.code,
        "field": wanted.field,
        "text": wanted.text,
        "edited": wanted.edited,
        "most": most,
    }
    cursor = connection.cursor(row_factory=class_row(RowResult))
    return cursor.execute(_select(wanted, is_plan=batch.is_plan), given).fetchall()


def _select(wanted: Wanted, *, is_plan: bool) -> Composed:
    order = SQL("number DESC" if wanted.sort == "-row" else "number ASC")
    numbers = [SQL("({})").format(found) for found in _numbers(wanted, is_plan=is_plan)]
    among = SQL(query("among_some" if numbers else "among_all"))
    return SQL(query("rows_to_show")).format(
        among=among.format(numbers=SQL(" INTERSECT ").join(numbers), order=order), order=order
    )


def _numbers(wanted: Wanted, *, is_plan: bool) -> Iterator[Composed]:
    """What tells the numbers of rows that may be wanted, more quickly than all that is shown of each row would."""
    stored = set(_OUTCOMES) - (_IMPLIED if is_plan else set())
    if wanted.code or wanted.field:
        yield SQL(query("with_issue")).format()
    elif wanted.statuses and stored.issuperset(wanted.statuses):
        yield SQL(query("with_status")).format(statuses=SQL(", ").join(map(Literal, wanted.statuses)))
    if wanted.text:
        yield SQL(query("with_text")).format()
    if wanted.edited:
        yield SQL(query("with_edit")).format()
