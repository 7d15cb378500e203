"""Corrections, and what came of them."""

from datetime import datetime

from rowcall.client.answers.items import Issue, Item, View
from rowcall.client.answers.jobs import Job
from rowcall.client.answers.wire import Wire


class EditCount(Wire, frozen=True, kw_only=True):
    """What an account corrected."""

    account: str
    rows: int
    cells: int


class Edited(Wire, frozen=True, kw_only=True):
    """A corrected row, and what would become of it now."""

    item: Item
    status: str
    issues: list[Issue] = []
    alone: bool
    """Whether it could be judged by itself; else the job is planned again."""
    job: Job


class CellEdit(Wire, frozen=True, kw_only=True):
    """A correction of a cell, as it was made."""

    revision: int
    position: int
    header: str
    before: str | None = None
    after: str | None = None
    account: str
    at: datetime


class Sample(Wire, frozen=True, kw_only=True):
    """A cell as it is, and as it would be."""

    row: int
    before: str | None = None
    after: str


class Replaced(Wire, frozen=True, kw_only=True):
    """How many rows would be corrected, with the token to do it; or were, with the job."""

    rows: int
    samples: list[Sample] = []
    token: str | None = None
    job: Job | None = None


class NotMerged(Wire, frozen=True, kw_only=True):
    """A row of a workbook that was left alone."""

    line: int
    row: int | None = None
    code: str
    message: str


class Merged(Wire, frozen=True, kw_only=True):
    """What came of a workbook that was brought back."""

    job: Job
    rows: int
    changed: int
    cells: int
    unchanged: int
    refused: int
    not_merged: list[NotMerged] = []
    ignored_columns: list[str] = []


class Replacement(Wire, frozen=True, kw_only=True):
    """A text to be replaced in one column of the rows of a view."""

    field: str
    """The column: its field, its header, or `column 3`."""
    find: str
    """Nothing stands for cells that are empty."""
    text: str
    """What takes its place."""
    part: bool = False
    """Also where it is only a part of the cell."""
    view: View = View()
    rows: tuple[int, ...] | None = None
