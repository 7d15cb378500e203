"""Corrections over the wire."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from rowcall.api.models.items import IssueAnswer, Item, RowFilter
from rowcall.api.models.jobs import JobAnswer
from rowcall.api.models.wire import CellText, Flag, RowStatus, Text, Wire
from rowcall.engine.corrections.replace import Replacing
from rowcall.store.grid import Wanted


class EditRequest(Wire):
    """Corrections of a row's cells."""

    cells: Annotated[dict[Text, CellText | None], Field(min_length=1, max_length=16_384)]
    """By header, by field, or as `column 3`; null takes a correction back."""


class EditAnswer(Wire):
    """A corrected row, and what would become of it now."""

    item: Item
    status: RowStatus
    """What it would come to."""
    issues: list[IssueAnswer]
    """What is still wrong with it."""
    alone: bool
    """Whether the row could be judged by itself; else other rows count for it, and all are planned again."""
    job: JobAnswer


class CellEditAnswer(Wire):
    """A correction of a cell, as it was made."""

    revision: int
    position: int
    """Of the column, from 0."""
    header: str
    before: str | None
    after: str | None
    account: str
    at: datetime


class ReplaceRequest(Wire):
    """A text to be replaced in one column: to be counted first, then done with the token of that."""

    filter: RowFilter = RowFilter()
    field: Text
    """The column: its field, its header, or `column 3`."""
    find: CellText
    """Nothing stands for cells that are empty."""
    replacement: Annotated[CellText, Field(alias="with")]
    match: Literal["cell", "part"] = "cell"
    """Whether the whole cell has to be it, or it may be a part of it."""
    preview: Flag = False
    """Only count."""
    token: Text | None = None
    """Of the count; without `preview` it has to be there."""

    def replacing(self) -> Replacing:
        """The same for the engine."""
        which = Wanted(
            statuses=tuple(self.filter.statuses or ()),
            code=self.filter.code,
            field=self.filter.field,
            text=self.filter.text or None,
            edited=self.filter.edited,
            rows=tuple(self.filter.rows) if self.filter.rows is not None else None,
        )
        return Replacing(
            which=which, column=self.field, find=self.find, text=self.replacement, part=self.match == "part"
        )


class SampleAnswer(Wire):
    """A cell as it is, and as it would be."""

    row: int
    before: str | None
    after: str


class ReplaceAnswer(Wire):
    """How many rows would be corrected or were."""

    rows: int
    samples: list[SampleAnswer] = []
    """Of a preview: some of them."""
    token: str | None = None
    """Of a preview: to do just that."""
    job: JobAnswer | None = None
    """When it was done."""


class NotMergedAnswer(Wire):
    """A row of a workbook that was left alone."""

    line: int
    """In the sheet or the file that came."""
    row: int | None
    code: str
    message: str


class MergedAnswer(Wire):
    """What came of a workbook that was brought back."""

    job: JobAnswer
    rows: int
    """Rows in it."""
    changed: int
    """Rows that were corrected by it, and run again."""
    cells: int
    unchanged: int
    """Rows that are as they were."""
    refused: int
    not_merged: list[NotMergedAnswer]
    """The first thousand of those."""
    ignored_columns: list[str]
    """Columns that the job's file doesn't have."""


class EditCountAnswer(Wire):
    """What an account corrected: rows that nobody corrected after it, and how many of their cells."""

    account: str
    rows: int
    cells: int
