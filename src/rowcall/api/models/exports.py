"""Exports as they go over the wire."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from rowcall.api.items import statuses_in
from rowcall.api.models.jobs import Told
from rowcall.api.models.wire import Flag, Text, Wire
from rowcall.formats import WriteFormat
from rowcall.model import ExportState
from rowcall.store.exports import Export, ExportRequest
from rowcall.store.grid import Wanted


class View(Wire):
    """Which rows of a job, as the grid (`GET /v1/imports/{id}/items`) has them."""

    statuses: Annotated[list[Text], Field(max_length=20)] = []
    code: Text | None = None
    field: Text | None = None
    text: Annotated[Text | None, Field(max_length=200, description="Somewhere in a cell.")] = None
    sort: Literal["row", "-row", "updated", "-updated"] = "row"

    def wanted(self) -> Wanted:
        """The same for the store."""
        statuses = statuses_in(",".join(self.statuses))
        return Wanted(statuses=statuses, code=self.code, field=self.field, text=self.text or None, sort=self.sort)


class ExportOrder(Wire):
    """What to export: rows of a resource, or what became of the rows of a job."""

    format: WriteFormat
    resource: Text | None = Field(None, max_length=200, description="What a pack offers, such as `users`.")
    fields: list[Text] = Field([], max_length=2000, description="In this order; all of the resource if none are named.")
    filters: list[Text] = Field(
        [],
        max_length=100,
        description="`field=value`, or `!=`, `>=`, `<=`, `>`, `<`; `field=null` for none. Rows meet all of them; "
        "several `=` on one field are alternatives.",
    )
    job: UUID | None = Field(None, description="The job, instead of a resource.")
    view: View | None = Field(None, description="Which rows of the job.")
    bom: Flag = Field(False, description="Begin a CSV file with a byte order mark, for Excel.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.resource is None) == (self.job is None):
            raise ValueError("Either `resource` or `job` is expected.")
        if self.job is None and self.view is not None:
            raise ValueError("`view` goes with `job`.")
        if self.job is not None and (self.fields or self.filters):
            raise ValueError("`fields` and `filters` go with `resource`.")
        return self

    def request(self) -> ExportRequest:
        """The same for the store."""
        return ExportRequest(
            format=self.format,
            resource=self.resource,
            fields=tuple(self.fields),
            filters=tuple(self.filters),
            job=self.job,
            view=(self.view or View()).wanted(),
            bom=self.bom,
        )


class ExportProgress(Wire):
    """How much is written. `total` is null where it isn't known."""

    rows: int
    total: int | None
    bytes: int


class ExportAnswer(Wire):
    """An export and how far it is."""

    id: UUID
    state: ExportState
    resource: str | None
    job: UUID | None
    format: WriteFormat
    file_name: str
    account: str
    progress: ExportProgress
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    expires_at: datetime | None = Field(description="When the file goes.")
    download: str | None = Field(description="Where the file is, once it is there.")
    error: Told | None

    @classmethod
    def of(cls, export: Export) -> Self:
        return cls(
            id=export.id,
            state=export.state,
            resource=export.request.resource,
            job=export.request.job,
            format=export.format,
            file_name=export.file_name,
            account=export.account,
            progress=ExportProgress(rows=export.rows, total=export.total, bytes=export.bytes),
            created_at=export.created_at,
            started_at=export.started_at,
            completed_at=export.completed_at,
            expires_at=export.expires_at,
            download=f"/v1/exports/{export.id}/download" if export.state is ExportState.COMPLETED else None,
            error=Told(**export.last_error) if export.last_error else None,
        )


class ExportPage(Wire):
    """Some exports; `next` leads to more."""

    items: list[ExportAnswer]
    next: str | None
