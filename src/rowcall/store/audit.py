"""Who did what, written in the transaction of the deed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rowcall.store.queries import query


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who does something, and where the word to do so came from."""

    organisation: UUID
    account: str
    request_id: str | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that was done."""

    id: int
    account: str
    action: str
    subject: str
    details: dict[str, Any]
    request_id: str | None
    client_address: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedEntries:
    """Which entries to give. None: no matter."""

    account: str | None = None
    action: str | None = None
    subject: str | None = None
    before: int | None = None
    """Only entries older than this one."""
    most: int = 100


def add_entry(
    connection: Connection[Any], actor: Actor, action: str, subject: object, details: Mapping[str, Any] | None = None
) -> None:
    """Keep that somebody did something. Cell values and secrets don't belong into the details."""
    given = {"organisation": actor.organisation, "account": actor.account, "request_id": actor.request_id}
    what = {"action": action, "subject": str(subject), "details": Jsonb(dict(details or {}))}
    connection.execute(query("add_audit"), {**given, **what, "client_address": actor.address})


def page_of_entries(connection: Connection[Any], organisation: UUID, wanted: WantedEntries) -> list[Entry]:
    """What was done in an organisation, the latest first."""
    about = {"account": wanted.account, "action": wanted.action, "subject": wanted.subject}
    given = {"organisation": organisation, **about, "before": wanted.before, "most": wanted.most}
    return connection.cursor(row_factory=class_row(Entry)).execute(query("page_of_audit"), given).fetchall()
