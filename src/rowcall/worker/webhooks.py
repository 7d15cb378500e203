"""Sends news of jobs to webhooks, as Standard Webhooks has it: signed, at least once, each time with the same id.

What is to be sent is made with the event itself, in one transaction. It is claimed for a minute, sent outside of any
transaction, and then marked: whoever is killed in between leaves it to be sent again.
"""

import base64
import hashlib
import hmac
import logging
import random
import secrets
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg import Connection

from rowcall.config import Settings
from rowcall.engine.documents import job_document
from rowcall.errors import Final, Retryable, RowcallError
from rowcall.model import Code
from rowcall.sources.guard import Guard
from rowcall.sources.place import parsed
from rowcall.sources.url import Fetching, Posted, post
from rowcall.store import jobs, webhooks
from rowcall.store.db import Database
from rowcall.store.queries import query
from rowcall.store.webhooks import Attempt, Claim

EVENT = "import.state_changed"
TEST = "webhook.test"
SCHEDULE = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Seconds before each further attempt, as the specification has it: three days in all."""
_LONGEST = 86_400
_SECONDS = 15.0
"""For one attempt."""
_GRACE = 2.0
"""Seconds that an attempt has to end when the process is told to stop; else it is made again by another."""
_EVERY = 1.0
_AT_ONCE = 8
"""Webhooks that are sent to at the same time; each of them gets one thing after the other."""
_GONE = 410
_SECRET_BYTES = 32
_PREFIX = "whsec_"
_UNTOLD = ("allowed", "wish")
_log = logging.getLogger(__name__)


def new_secret() -> str:
    """What signatures are made with, as receivers' libraries take it."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed(id_: str, at: int, body: str, *secrets: str) -> dict[str, str]:
    """The headers that say what this is, when it was sent, and that it is ours, by each of these secrets."""
    signatures = " ".join(_signature(f"{id_}.{at}.{body}", secret) for secret in secrets)
    return {"webhook-id": id_, "webhook-timestamp": str(at), "webhook-signature": signatures}


def _signature(text: str, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return f"v1,{base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()}"


def body_of(kind: str, at: Any, data: Any) -> str:
    """What is sent."""
    return msgspec.json.encode({"type": kind, "timestamp": at, "data": data}).decode()


@dataclass(slots=True)
class Sender:
    """Sends what is due, from one process."""

    database: Database
    settings: Settings
    _at_work: set[UUID] = field(default_factory=set[UUID])
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _patience: float = 0

    @contextmanager
    def running(self) -> Generator[None]:
        """Meanwhile, send. At the end, what is on its way has a moment to arrive."""
        thread = threading.Thread(target=self._run, name="webhooks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._patience = time.monotonic() + _GRACE
            self._stop.set()
            thread.join(_GRACE + 5)

    def _run(self) -> None:
        with ThreadPoolExecutor(_AT_ONCE, "webhook") as pool:
            while not self._stop.wait(_EVERY):
                with suppress(psycopg.Error, Retryable), self.database.connect("webhooks") as connection:
                    while not self._stop.wait(_EVERY):
                        for webhook in self._due(connection):
                            pool.submit(self._attend, webhook)

    def _due(self, connection: Connection[Any]) -> list[UUID]:
        """Webhooks to attend to now; they are ours until that is done."""
        with self._guard:
            found = webhooks.due(connection, without=list(self._at_work), most=_AT_ONCE - len(self._at_work))
            self._at_work |= set(found)
        return found

    def _attend(self, webhook: UUID) -> None:
        try:
            self.send_all(webhook)
        except (psycopg.Error, Retryable) as error:  # it is due again in a minute
            _log.info("webhook %s: %s", webhook, error)
        except Exception:
            _log.exception("webhook %s", webhook)
        finally:
            with self._guard:
                self._at_work.discard(webhook)

    def send_all(self, webhook: UUID) -> None:
        """Send what is due to a webhook, in order, until something fails."""
        with self.database.connect("webhooks") as connection:
            while not self._stop.is_set() and (claimed := webhooks.claim(connection, webhook)):
                if not self._send(connection, claimed):
                    return

    def _send(self, connection: Connection[Any], claimed: Claim) -> bool:
        """Whether it has arrived."""
        body = claimed.body or _body(connection, claimed)
        began = time.monotonic()
        try:
            went: Posted | RowcallError = self._post(claimed, body)
        except RowcallError as error:
            if error.code == Code.INTERRUPTED:
                raise
            went = error
        ms = round((time.monotonic() - began) * 1000)
        attempt = _attempt(went, claimed.attempt, ms)
        gone = attempt.status == _GONE
        disable = None if attempt.delivered or (attempt.wait is not None and not gone) else _why(attempt, claimed)
        if webhooks.record(connection, claimed, attempt, disable=disable, at_once=gone):
            _log.warning("webhook %s is disabled: %s", claimed.webhook_id, disable)
        return attempt.delivered

    def _post(self, claimed: Claim, body: str) -> Posted:
        how = Fetching(
            guard=Guard(self.settings.url_allow), most=0, seconds=_SECONDS, connect=5, quiet=_SECONDS, check=self._check
        )
        headers = signed(f"msg_{claimed.id.hex}", int(time.time()), body, *claimed.secrets)
        return post(parsed(claimed.url), body.encode(), {"Content-Type": "application/json", **headers}, how)

    def _check(self) -> None:
        if self._stop.is_set() and time.monotonic() > self._patience:
            raise Retryable(Code.INTERRUPTED, "Told to stop.")


def _body(connection: Connection[Any], claimed: Claim) -> str:
    """What is told of an event: the move, and the job as it is at the first attempt."""
    found = connection.execute(query("event_to_tell"), {"id": claimed.event_id}).fetchone()
    if found is None:
        raise Final(Code.JOB_NOT_FOUND, "The job is gone.")
    job_id, before, after, at = found
    job = jobs.get_job(connection, str(job_id))
    told = {
        name: value
        for name, value in job_document(job, jobs.counts_of(connection, job), None).items()
        if name not in _UNTOLD
    }
    body = body_of(EVENT, at, {"before": before, "after": after, "job": told})
    connection.execute(query("set_delivery_body"), {"id": claimed.id, "body": body})
    return body


def _attempt(went: Posted | RowcallError, number: int, ms: int) -> Attempt:
    if isinstance(went, Posted) and 200 <= went.status < 300:
        return Attempt(status=went.status, ms=ms, error=None, delivered=True, wait=None)
    status = went.status if isinstance(went, Posted) else None
    error = f"It answered {status}." if isinstance(went, Posted) else f"{went.code}: {went.message}"
    wait = None
    if number <= len(SCHEDULE) and status != _GONE:
        asked = went.retry_after if isinstance(went, Posted) else 0
        wait = max(SCHEDULE[number - 1] * random.uniform(1, 1.2), min(asked, _LONGEST))  # noqa: S311 (no secret)
    return Attempt(status=status, ms=ms, error=error, delivered=False, wait=wait)


def _why(attempt: Attempt, claimed: Claim) -> str:
    if attempt.status == _GONE:
        return "It answered 410 Gone: it wants nothing more."
    return f"Nothing arrived in {claimed.attempt} attempts over three days. The last: {attempt.error}"
