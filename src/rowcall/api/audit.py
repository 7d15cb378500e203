"""The audit: who did what. Written in the transaction of the deed, read by admins."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from psycopg import Connection

from rowcall.api.models.wire import Text, Wire
from rowcall.api.openapi import refusals
from rowcall.api.service import Caller, TheCaller, TheService
from rowcall.store.audit import Actor, WantedEntries, add_entry, page_of_entries

router = APIRouter(prefix="/v1/audit", tags=["audit"])


class AuditEntry(Wire):
    """Something that was done."""

    id: int
    at: datetime
    account: str
    action: str
    subject: str
    details: dict[str, Any]
    request_id: str | None
    client_address: str | None


class AuditPage(Wire):
    """Some entries; `next` leads to more."""

    items: list[AuditEntry]
    next: int | None


def audit(
    connection: Connection[Any],
    caller: Caller,
    action: str,
    subject: object,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Keep that the caller did something: `import.create` and the like, on what. Called in the deed's transaction."""
    actor = Actor(
        organisation=caller.organisation,
        account=caller.account,
        request_id=caller.request_id,
        address=caller.address,
    )
    add_entry(connection, actor, action, subject, details)


@router.get("", responses=refusals())
def read_audit(
    at: TheService,
    caller: TheCaller,
    account: Text | None = None,
    action: Annotated[Text | None, Query(examples=["import.create"])] = None,
    subject: Annotated[Text | None, Query(description="What it was done to, such as a job's id.")] = None,
    after: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="The `next` of the page before.")] = None,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=1000)] = 100,
) -> AuditPage:
    """Who did what in the organisation, the latest first. For keys with the scope `admin`."""
    wanted = WantedEntries(account=account, action=action, subject=subject, before=after, most=page_size)
    with at.connection(caller) as connection:
        found = page_of_entries(connection, caller.organisation, wanted)
    items = [AuditEntry.model_validate(entry, from_attributes=True) for entry in found]
    return AuditPage(items=items, next=found[-1].id if len(found) == page_size else None)
