"""Webhooks: who wants to be told of jobs' moves, what is sent to them, and what became of it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, scalar_row

from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.cursors import decoded, encoded
from rowcall.store.jobs import new_id
from rowcall.store.queries import query

MOST = 20
"""Of one organisation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where an organisation wants to be told."""

    id: UUID
    organisation_id: UUID
    url: str = field(repr=False)
    secret: str = field(repr=False)
    states: list[str] | None
    enabled: bool
    disabled_because: str | None
    failures: int
    last_success_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Something that was or is to be sent, and how its latest attempt went."""

    id: UUID
    job_id: UUID | None
    after: str | None
    attempt: int
    status: int | None
    ms: int | None
    error: str | None
    next_attempt_at: datetime | None
    delivered_at: datetime | None
    log: list[dict[str, Any]]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Something to send now, by whoever has this."""

    id: UUID
    webhook_id: UUID
    event_id: int | None
    body: str | None
    attempt: int
    url: str = field(repr=False)
    secret: str = field(repr=False)
    old_secret: str | None = field(repr=False)
    """The one before, while it is still good."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What to sign it with."""
        return (self.secret, self.old_secret) if self.old_secret else (self.secret,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How an attempt went. `wait` is how many seconds later there is another; None: there is none."""

    status: int | None
    ms: int
    error: str | None
    delivered: bool
    wait: float | None


def create(connection: Connection[Any], organisation: UUID, url: str, secret: str, states: list[str] | None) -> Webhook:
    """A new webhook."""
    id_ = new_id()
    given = {"id": id_, "organisation": organisation, "url": url, "secret": secret, "states": states, "most": MOST}
    if not connection.execute(query("add_webhook"), given).rowcount:
        raise Final(Code.BAD_REQUEST, f"An organisation has at most {MOST} webhooks.", hint="Delete one first.")
    return get(connection, organisation, id_)


def listed(connection: Connection[Any], organisation: UUID) -> list[Webhook]:
    """The webhooks of an organisation."""
    return _select(connection, organisation, None)


def get(connection: Connection[Any], organisation: UUID, webhook: UUID) -> Webhook:
    """A webhook of an organisation."""
    found = _select(connection, organisation, webhook)
    if not found:
        raise _unknown(f"webhook {webhook}")
    return found[0]


def _select(connection: Connection[Any], organisation: UUID, webhook: UUID | None) -> list[Webhook]:
    given = {"organisation": organisation, "id": webhook}
    return connection.cursor(row_factory=class_row(Webhook)).execute(query("list_webhooks"), given).fetchall()


def change(
    connection: Connection[Any], webhook: Webhook, *, url: str, states: list[str] | None, enabled: bool
) -> Webhook:
    """The webhook as it is then."""
    given = {"id": webhook.id, "organisation": webhook.organisation_id}
    connection.execute(query("change_webhook"), {**given, "url": url, "states": states, "enabled": enabled})
    return get(connection, webhook.organisation_id, webhook.id)


def rotate_secret(connection: Connection[Any], webhook: Webhook, secret: str, *, hours: int) -> Webhook:
    """The webhook with another secret; for so many hours, what is sent is signed with both."""
    given = {"id": webhook.id, "organisation": webhook.organisation_id, "secret": secret, "hours": hours}
    connection.execute(query("rotate_webhook_secret"), given)
    return get(connection, webhook.organisation_id, webhook.id)


def delete(connection: Connection[Any], organisation: UUID, webhook: UUID) -> None:
    """Forget a webhook, and what was sent to it."""
    if not connection.execute(query("delete_webhook"), {"id": webhook, "organisation": organisation}).rowcount:
        raise _unknown(f"webhook {webhook}")


def add_test(connection: Connection[Any], webhook: Webhook, body: str) -> Delivery:
    """Have something sent that is about no job."""
    id_ = new_id()
    given = {"id": id_, "webhook": webhook.id, "organisation": webhook.organisation_id, "body": body}
    connection.execute(query("add_test_delivery"), given)
    return delivery(connection, webhook, id_)


def redeliver(connection: Connection[Any], webhook: Webhook, id_: UUID) -> Delivery:
    """Have something sent again, with the same id and body."""
    given = {"id": id_, "webhook": webhook.id, "organisation": webhook.organisation_id}
    connection.execute(query("redeliver"), given)
    return delivery(connection, webhook, id_)


def delivery(connection: Connection[Any], webhook: Webhook, id_: UUID) -> Delivery:
    """Something that was or is to be sent to a webhook."""
    found = _deliveries(connection, webhook, {"id": id_, "at": None, "last": None, "most": 1})
    if not found:
        raise _unknown(f"delivery {id_}")
    return found[0]


def deliveries(
    connection: Connection[Any], webhook: Webhook, *, after: str | None, size: int
) -> tuple[list[Delivery], str | None]:
    """What was or is to be sent to a webhook behind a cursor, the newest first; and the next cursor."""
    about = f"deliveries {webhook.id}"
    at, last = decoded(about, after, tuple[datetime, UUID]) if after else (None, None)
    found = _deliveries(connection, webhook, {"id": None, "at": at, "last": last, "most": size})
    return found, encoded(about, [found[-1].created_at, found[-1].id]) if len(found) == size else None


def _deliveries(connection: Connection[Any], webhook: Webhook, given: dict[str, Any]) -> list[Delivery]:
    whose = {"webhook": webhook.id, "organisation": webhook.organisation_id}
    cursor = connection.cursor(row_factory=class_row(Delivery))
    return cursor.execute(query("page_of_deliveries"), given | whose).fetchall()


def _unknown(what: str) -> Final:
    return Final(Code.WEBHOOK_NOT_FOUND, f"There is no {what}.")


# ------------------------------------------------------------------------------------------------- for whoever sends


def due(connection: Connection[Any], *, without: list[UUID], most: int) -> list[UUID]:
    """Webhooks for which there is something to send now."""
    given = {"without": without, "most": most}
    return connection.cursor(row_factory=scalar_row).execute(query("due_webhooks"), given).fetchall()


def claim(connection: Connection[Any], webhook: UUID) -> Claim | None:
    """The next thing to send to a webhook; for a minute nobody else sends it."""
    cursor = connection.cursor(row_factory=class_row(Claim))
    return cursor.execute(query("claim_delivery"), {"webhook": webhook}).fetchone()


def record(
    connection: Connection[Any], claimed: Claim, attempt: Attempt, *, disable: str | None, at_once: bool
) -> bool:
    """Keep how an attempt went; whether the webhook was disabled for the reason `disable`."""
    webhook = {"webhook": claimed.webhook_id}
    with connection.transaction():
        went = {name: getattr(attempt, name) for name in ("status", "ms", "error", "delivered", "wait")}
        connection.execute(query("record_delivery"), {"id": claimed.id, "attempt": claimed.attempt, **went})
        connection.execute(query("note_success" if attempt.delivered else "note_failure"), webhook)
        given = {**webhook, "id": claimed.id, "why": disable, "at_once": at_once}
        return disable is not None and connection.execute(query("disable_webhook"), given).rowcount > 0
