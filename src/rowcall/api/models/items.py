"""Rows and what became of them, over the wire."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, Strict

from rowcall.api.models.jobs import Counts, JobAnswer
from rowcall.api.models.wire import Flag, RowNumber, RowStatus, Text, Wire


class IssueAnswer(Wire):
    """What is wrong with a row."""

    code: str
    """Stable: branch on this."""
    message: str
    field: str | None = None
    value: str | None = None
    """As it is in the file."""
    metadata: dict[str, Any] | None = None
    """What the code has to tell, such as the limit that was passed."""


class Item(Wire):
    """A row as it came in, and what became of it."""

    row: int
    """From 1."""
    line: int
    """Where in the file it begins, from 1."""
    status: RowStatus
    issues: list[IssueAnswer]
    values: dict[str, str | None]
    """The cells under their headers, as they are in the file or were corrected since."""
    original: dict[str, str | None] | None
    """Of corrected cells: what the file has."""
    revision: int
    """How often it was corrected: for `If-Match`."""
    target_key: list[str] | None
    """What the target knows it by."""
    attempt: int | None
    """How often it was tried."""
    at: datetime | None
    """When that became of it."""
    changes: dict[str, tuple[Any, Any]] | None = None
    """Of a row that is updated: each column of the target that changes, from what to what."""


class ItemPage(Wire):
    """Some rows; `next` leads to more."""

    items: list[Item]
    next: str | None


class PendingItem(Wire):
    """A row of some job that waits for something or somebody."""

    job_id: UUID
    job_number: str
    importer: str
    row: int
    line: int
    status: RowStatus
    issues: list[IssueAnswer]
    revision: int
    """How often it was corrected."""
    at: datetime | None


class PendingPage(Wire):
    """Some of them; `next` leads to more."""

    items: list[PendingItem]
    next: str | None


class AttemptAnswer(Wire):
    """What became of a row when it was tried."""

    attempt: int
    status: str
    issues: list[IssueAnswer]
    target_key: list[str] | None
    at: datetime


class IssueCountAnswer(Wire):
    """How many rows have an issue."""

    code: str
    field: str | None
    status: str
    count: int
    first_row: int


class ReprocessRequest(Wire):
    """Which rows to try again: those that failed, unless something else is said."""

    statuses: list[RowStatus] | None = None
    """With one of these; if none are named those that failed, and any of `rows` or with corrections (`edited`)."""
    code: Text | None = None
    """With an issue of this code."""
    field: Text | None = None
    """With an issue in this field."""
    text: Text | None = None
    """With this somewhere in a cell."""
    edited: Flag = False
    """Only those with corrections."""
    rows: Annotated[list[Annotated[RowNumber, Strict()]], Field(min_length=1, max_length=100_000)] | None = None
    """Numbers of rows."""


class RowFilter(Wire):
    """Which rows. None or nothing: no matter."""

    statuses: list[RowStatus] | None = None
    code: Text | None = None
    """With an issue of this code."""
    field: Text | None = None
    """With an issue in this field."""
    text: Annotated[Text, Field(max_length=200)] | None = None
    """With this somewhere in a cell."""
    edited: Flag = False
    """Only those with corrections."""
    rows: Annotated[list[Annotated[RowNumber, Strict()]], Field(min_length=1, max_length=100_000)] | None = None
    """Numbers of rows."""


class ReprocessAnswer(Wire):
    """The job, and how many of its rows are tried again."""

    job: JobAnswer
    rows: int


class ResultsSummary(Wire):
    """What became of the rows, counted."""

    counts: Counts
    issues: list[IssueCountAnswer]
