"""Exports: what is asked for, and how far they are."""

from datetime import datetime
from uuid import UUID

from msgspec import field

from rowcall.client.answers.items import View
from rowcall.client.answers.jobs import Told
from rowcall.client.answers.wire import Wire


class ExportProgress(Wire, frozen=True, kw_only=True):
    """How much is written. `total` is None where it isn't known."""

    rows: int = 0
    total: int | None = None
    bytes: int = 0


class Export(Wire, frozen=True, kw_only=True):
    """An export in the background, and how far it is."""

    id: UUID
    state: str
    resource: str | None = None
    job: UUID | None = None
    format: str
    file_name: str
    account: str
    progress: ExportProgress
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    error: Told | None = None


class ExportOrder(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What to export: rows of a resource, or what became of the rows of a job."""

    format: str = field(default_factory=lambda: "csv")  # always sent: the server wants it said
    resource: str | None = None
    fields: tuple[str, ...] = ()
    """In this order; all of the resource if none are named."""
    filters: tuple[str, ...] = ()
    """`field=value`, or `!=`, `>=`, `<=`, `>`, `<`; `field=null` for none."""
    job: UUID | None = None
    view: View | None = None
    bom: bool = False
    """Begin a CSV file with a byte order mark, for Excel."""
