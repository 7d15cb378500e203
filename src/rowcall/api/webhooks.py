"""Webhooks: where an organisation wants to be told of its jobs' moves, and what was sent there."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from psycopg import Connection
from pydantic import Field

from rowcall.api.audit import audit
from rowcall.api.models.wire import Flag, Text, Wire
from rowcall.api.openapi import headers, links, refusals
from rowcall.api.service import Caller, Service, TheCaller, TheService
from rowcall.errors import Final
from rowcall.model import Code, State
from rowcall.sources.guard import Guard
from rowcall.sources.place import parsed
from rowcall.store import webhooks
from rowcall.store.webhooks import Delivery, Webhook
from rowcall.worker.webhooks import TEST, body_of, new_secret

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
_BAD_URL = (Code.URL_REFUSED, Code.URL_UNREACHABLE, Code.BODY_TOO_LARGE)
_FOUND = refusals(Code.WEBHOOK_NOT_FOUND)
_SENT = refusals(Code.WEBHOOK_NOT_FOUND, Code.WRONG_STATE)
_HOOKS = ("readWebhook", "changeWebhook", "testWebhook", "listDeliveries", "deleteWebhook")
_BOTH_SECRETS = 24
"""Hours in which receivers can learn the new one."""
_States = Annotated[list[State], Field(min_length=1, max_length=len(State))]


class WebhookRequest(Wire):
    """Where to tell, and of what."""

    url: Text = Field(max_length=2000, examples=["https://example.org/hooks/rowcall"])
    states: _States | None = None
    """Told of moves into these; of all if it isn't said."""


class WebhookChange(Wire):
    """What is to be different."""

    url: Annotated[Text, Field(max_length=2000)] | None = None
    states: _States | None = None
    enabled: Flag | None = None


class WebhookAnswer(Wire):
    """A webhook."""

    id: UUID
    url: str
    """Without login and query."""
    states: list[State] | None
    enabled: bool
    disabled_because: str | None
    """Where it was not a person who disabled it."""
    failures: int
    """In a row."""
    last_success_at: datetime | None
    created_at: datetime


class NewWebhook(WebhookAnswer):
    """A webhook, with what its signatures are made with: shown this once."""

    secret: str


class WebhookList(Wire):
    """All of them."""

    items: list[WebhookAnswer]


class DeliveryAttempt(Wire):
    """How an attempt went."""

    at: datetime
    attempt: int
    status: int | None
    ms: int
    error: str | None


class DeliveryAnswer(Wire):
    """Something that was or is to be sent. `messageId` is the `webhook-id` of every attempt."""

    id: UUID
    message_id: str
    job_id: UUID | None
    after: State | None
    attempt: int
    status: int | None
    ms: int | None
    error: str | None
    next_attempt_at: datetime | None
    """None when it has arrived, or was given up."""
    delivered_at: datetime | None
    created_at: datetime
    log: list[DeliveryAttempt]
    """The latest attempts, the last one first."""


class DeliveryPage(Wire):
    """Some of them, the newest first; `next` leads to more."""

    items: list[DeliveryAnswer]
    next: str | None


@router.post(
    "",
    status_code=201,
    responses={
        201: {"description": "The webhook.", "headers": headers("Location"), "links": links("webhook_id", *_HOOKS)},
        **refusals(Code.BAD_REQUEST, *_BAD_URL),
    },
)
def create_webhook(asked: WebhookRequest, at: TheService, caller: TheCaller, response: Response) -> NewWebhook:
    """Have every move of a job told to a URL. The secret is shown this once."""
    _check(at, asked.url)
    with at.connection(caller) as connection:
        made = webhooks.create(connection, caller.organisation, asked.url, new_secret(), _texts(asked.states))
        audit(connection, caller, "webhook.create", made.id, {"url": parsed(made.url).shown})
    response.headers["Location"] = f"/v1/webhooks/{made.id}"
    return NewWebhook(**_document(made), secret=made.secret)


@router.get("")
def list_webhooks(at: TheService, caller: TheCaller) -> WebhookList:
    """All webhooks, and how they do."""
    with at.connection(caller) as connection:
        return WebhookList(items=[_answer(each) for each in webhooks.listed(connection, caller.organisation)])


@router.get("/{webhook_id}", responses=_FOUND)
def read_webhook(webhook_id: UUID, at: TheService, caller: TheCaller) -> WebhookAnswer:
    """A webhook, and how it does."""
    with at.connection(caller) as connection:
        return _answer(webhooks.get(connection, caller.organisation, webhook_id))


@router.patch("/{webhook_id}", responses=refusals(Code.BAD_REQUEST, Code.WEBHOOK_NOT_FOUND, *_BAD_URL))
def change_webhook(webhook_id: UUID, asked: WebhookChange, at: TheService, caller: TheCaller) -> WebhookAnswer:
    """Change where, of what, or whether it tells. Enabled again, it goes on with what waits."""
    if asked.url is not None:
        _check(at, asked.url)
    with at.connection(caller) as connection:
        now = webhooks.get(connection, caller.organisation, webhook_id)
        changed = webhooks.change(
            connection,
            now,
            url=now.url if asked.url is None else asked.url,
            states=_texts(asked.states) if "states" in asked.model_fields_set else now.states,
            enabled=now.enabled if asked.enabled is None else asked.enabled,
        )
        audit(connection, caller, "webhook.change", changed.id, {"changed": sorted(asked.model_fields_set)})
        return _answer(changed)


@router.post("/{webhook_id}/rotate-secret", responses=_FOUND)
def rotate_webhook_secret(webhook_id: UUID, at: TheService, caller: TheCaller) -> NewWebhook:
    """Give it another secret, which is shown this once. For a day, what is sent is signed with both."""
    with at.connection(caller) as connection:
        webhook = webhooks.get(connection, caller.organisation, webhook_id)
        rotated = webhooks.rotate_secret(connection, webhook, new_secret(), hours=_BOTH_SECRETS)
        audit(connection, caller, "webhook.rotate-secret", webhook_id)
    return NewWebhook(**_document(rotated), secret=rotated.secret)


@router.delete("/{webhook_id}", status_code=204, responses=_FOUND)
def delete_webhook(webhook_id: UUID, at: TheService, caller: TheCaller) -> None:
    """Forget a webhook, and what was sent to it."""
    with at.connection(caller) as connection:
        webhooks.delete(connection, caller.organisation, webhook_id)
        audit(connection, caller, "webhook.delete", webhook_id)


@router.post("/{webhook_id}/test", status_code=202, responses=_SENT)
def test_webhook(webhook_id: UUID, at: TheService, caller: TheCaller) -> DeliveryAnswer:
    """Send something to see whether it arrives."""
    with at.connection(caller) as connection:
        webhook = _enabled(connection, caller, webhook_id)
        audit(connection, caller, "webhook.test", webhook.id)
        body = body_of(TEST, datetime.now(UTC), {"webhookId": webhook.id})
        return _delivery(webhooks.add_test(connection, webhook, body))


@router.get("/{webhook_id}/deliveries", responses=refusals(Code.BAD_CURSOR, Code.WEBHOOK_NOT_FOUND))
def list_deliveries(
    webhook_id: UUID,
    at: TheService,
    caller: TheCaller,
    after: Annotated[Text | None, Query(description="The `next` of the page before.")] = None,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=1000)] = 50,
) -> DeliveryPage:
    """What was and is to be sent, the newest first."""
    with at.connection(caller) as connection:
        webhook = webhooks.get(connection, caller.organisation, webhook_id)
        found, more = webhooks.deliveries(connection, webhook, after=after, size=page_size)
    return DeliveryPage(items=[_delivery(each) for each in found], next=more)


@router.post("/{webhook_id}/deliveries/{delivery_id}/redeliver", status_code=202, responses=_SENT)
def redeliver_webhook(webhook_id: UUID, delivery_id: UUID, at: TheService, caller: TheCaller) -> DeliveryAnswer:
    """Send something again: the same body under the same id."""
    with at.connection(caller) as connection:
        again = webhooks.redeliver(connection, _enabled(connection, caller, webhook_id), delivery_id)
        audit(connection, caller, "webhook.redeliver", webhook_id, {"delivery": str(delivery_id)})
        return _delivery(again)


def _check(at: Service, url: str) -> None:
    """The guard is asked again at every attempt; here it tells whoever can still mend it."""
    Guard(at.settings.url_allow).addresses(parsed(url))


def _enabled(connection: Connection[Any], caller: Caller, webhook_id: UUID) -> Webhook:
    webhook = webhooks.get(connection, caller.organisation, webhook_id)
    if not webhook.enabled:
        raise Final(Code.WRONG_STATE, "The webhook is disabled: nothing is sent to it.", hint="Enable it first.")
    return webhook


def _texts(states: list[State] | None) -> list[str] | None:
    return None if states is None else [state.value for state in states]


def _document(webhook: Webhook) -> dict[str, Any]:
    names = ("id", "states", "enabled", "disabled_because", "failures", "last_success_at", "created_at")
    return {**{name: getattr(webhook, name) for name in names}, "url": parsed(webhook.url).shown}


def _answer(webhook: Webhook) -> WebhookAnswer:
    return WebhookAnswer(**_document(webhook))


def _delivery(delivery: Delivery) -> DeliveryAnswer:
    told = {name: getattr(delivery, name) for name in Delivery.__slots__}
    return DeliveryAnswer(**told, message_id=f"msg_{delivery.id.hex}")
