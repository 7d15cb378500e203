"""An organisation is told of its jobs' moves: each once, signed, again until it arrives, and nowhere but in public."""

import base64
import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from typing import Any
from uuid import UUID

import pytest
from psycopg.sql import SQL

from rowcall.store.jobs import LOCAL, new_id
from rowcall.store.queries import query
from rowcall.worker import webhooks
from rowcall.worker.webhooks import Sender

from ..web import Request, Web, answer, serving, silent
from .conftest import Site
from .test_imports import sent

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
MOVES = ["UPLOADED", "COLUMN_MAPPING", "PROCESSING", "COMPLETED_WITH_ERRORS"]


@pytest.fixture
def web() -> Generator[Web]:
    with serving() as web:
        web.at("/hook")
        yield web


@pytest.fixture
def sender(site: Site) -> Sender:
    return Sender(site.database, site.worker.settings)


def made(site: Site, where: str, **more: Any) -> dict[str, Any]:
    answered = site.client.post("/v1/webhooks", json={"url": where, **more})
    assert answered.status_code == 201, answered.text
    return answered.json()


def run_job(site: Site) -> str:
    job = sent(site).json()["id"]
    site.worker.advance(job)
    return job


def deliver(sender: Sender, webhook: dict[str, Any]) -> None:
    sender.send_all(UUID(webhook["id"]))


def deliveries(site: Site, webhook: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return site.client.get(f"/v1/webhooks/{webhook['id']}/deliveries", params=more).json()["items"]


def read(site: Site, webhook: dict[str, Any]) -> dict[str, Any]:
    return site.client.get(f"/v1/webhooks/{webhook['id']}").json()


def due_now(site: Site) -> None:
    """The time until the next attempts has passed."""
    with site.database.connect() as connection:
        connection.execute("UPDATE rowcall.webhook_delivery SET next_attempt_at = now() WHERE next_attempt_at > now()")
        connection.execute("UPDATE rowcall.webhook SET quiet_until = now()")


def verified(request: Request, secret: str) -> dict[str, Any]:
    """The body, if its signature is right, as a receiver that knows nothing but the specification would see it."""
    assert secret.startswith("whsec_")
    key = base64.b64decode(secret[6:], validate=True)
    assert 24 <= len(key) <= 64
    told = request.headers
    content = told["webhook-id"].encode() + b"." + told["webhook-timestamp"].encode() + b"." + request.body
    version, _, signature = told["webhook-signature"].partition(",")
    assert version == "v1"
    assert hmac.compare_digest(base64.b64decode(signature), hmac.new(key, content, hashlib.sha256).digest())
    assert abs(time.time() - int(told["webhook-timestamp"])) < 60
    return json.loads(request.body)


def test_x8_every_move_is_told_once_in_order_and_signed(site: Site, web: Web, sender: Sender) -> None:
    webhook = made(site, web.url("/hook?token=abc", login="ann:pass@"))
    job = run_job(site)
    deliver(sender, webhook)
    deliver(sender, webhook)
    told = [verified(request, webhook["secret"]) for request in web.requests]
    assert [each["data"]["after"] for each in told] == MOVES
    assert [each["data"]["before"] for each in told] == [None, *MOVES[:-1]]
    assert {each["type"] for each in told} == {"import.state_changed"}
    assert told[-1]["data"]["job"]["counts"]["created"] == 1
    assert {each["data"]["job"]["id"] for each in told} == {job}
    assert len({request.headers["webhook-id"] for request in web.requests}) == len(MOVES)
    first = web.requests[0]
    assert (first.method, first.headers["content-type"]) == ("POST", "application/json")
    assert len(first.body) < 2000
    listed = deliveries(site, webhook)
    assert [each["after"] for each in listed] == MOVES[::-1]
    assert all(each["status"] == 200 and each["deliveredAt"] and each["nextAttemptAt"] is None for each in listed)
    assert listed[-1]["messageId"] == first.headers["webhook-id"]


def test_secrets_are_shown_once_and_logins_never(site: Site, web: Web) -> None:
    webhook = made(site, web.url("/hook?token=abc", login="ann:pass@"))
    assert webhook["url"] == web.url("/hook?…")
    everything = site.client.get("/v1/webhooks").text + json.dumps(read(site, webhook))
    for secret in (webhook["secret"], "pass", "abc"):
        assert secret not in everything


def test_for_a_day_what_is_sent_is_signed_with_the_new_secret_and_the_old_one(
    site: Site, web: Web, sender: Sender
) -> None:
    webhook = made(site, web.url("/hook"))
    rotated = site.client.post(f"/v1/webhooks/{webhook['id']}/rotate-secret")
    assert (rotated.status_code, "secret" in read(site, webhook)) == (200, False)
    new, old = str(rotated.json()["secret"]), str(webhook["secret"])
    assert new != old

    def signatures() -> list[str]:
        assert site.client.post(f"/v1/webhooks/{webhook['id']}/test").status_code == 202
        deliver(sender, webhook)
        return web.requests[-1].headers["webhook-signature"].split(" ")

    both = signatures()
    told = web.requests[-1].headers
    content = f"{told['webhook-id']}.{told['webhook-timestamp']}.".encode() + web.requests[-1].body
    keys = [base64.b64decode(secret.removeprefix("whsec_")) for secret in (new, old)]
    assert both == [f"v1,{base64.b64encode(hmac.digest(key, content, 'sha256')).decode()}" for key in keys]
    with site.database.connect() as connection:
        connection.execute("UPDATE rowcall.webhook SET old_secret_until = now()")
    assert len(signatures()) == 1


def test_only_the_states_that_were_asked_for_are_told(site: Site, web: Web, sender: Sender) -> None:
    webhook = made(site, web.url("/hook"), states=["COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED"])
    run_job(site)
    deliver(sender, webhook)
    assert [json.loads(request.body)["data"]["after"] for request in web.requests] == ["COMPLETED_WITH_ERRORS"]
    changed = site.client.patch(f"/v1/webhooks/{webhook['id']}", json={"states": None}).json()
    assert changed["states"] is None
    site.client.patch(f"/v1/webhooks/{webhook['id']}", json={"enabled": False})
    run_job(site)
    deliver(sender, webhook)
    assert len(web.requests) == 1, "what happens while it is disabled is not told"


def test_what_fails_is_sent_again_with_the_same_id_and_body(site: Site, web: Web, sender: Sender) -> None:
    webhook = made(site, web.url("/hook"), states=["UPLOADED"])
    sent(site)
    answers = [answer(status=500), answer(status=302, location="/elsewhere"), answer(status=204)]
    web.routes["/hook"] = lambda request, connection: answers.pop(0)(request, connection)
    deliver(sender, webhook)
    (waiting,) = deliveries(site, webhook)
    assert (waiting["attempt"], waiting["status"], waiting["error"]) == (1, 500, "It answered 500.")
    assert waiting["nextAttemptAt"] > waiting["log"][0]["at"]
    deliver(sender, webhook)
    assert len(web.requests) == 1, "not before its time"
    for _ in range(2):
        due_now(site)
        deliver(sender, webhook)
    assert [request.target for request in web.requests] == ["/hook"] * 3, "redirects are not followed"
    assert len({(request.headers["webhook-id"], request.body) for request in web.requests}) == 1
    for request in web.requests:
        verified(request, webhook["secret"])
    (done,) = deliveries(site, webhook)
    assert [each["status"] for each in done["log"]] == [204, 302, 500]
    assert read(site, webhook)["failures"] == 0


_SENDER = """
import sys
from uuid import UUID
from pathlib import Path
from rowcall.config import Settings
from rowcall.sources.addresses import Allowed
from rowcall.store.db import Database
from rowcall.worker.webhooks import Sender

url, webhook = sys.argv[1:]
settings = Settings(database_url=url, data_dir=Path("/nowhere"), url_allow=Allowed.of("127.0.0.1:*"))
Sender(Database(url), settings).send_all(UUID(webhook))
"""


def test_k40_what_was_sent_by_a_process_that_was_killed_is_sent_again_with_the_same_id(
    site: Site, web: Web, sender: Sender
) -> None:
    webhook = made(site, web.url("/hook"), states=["UPLOADED"])
    sent(site)
    web.routes["/hook"] = silent
    with subprocess.Popen([sys.executable, "-c", _SENDER, site.database.url, webhook["id"]]) as process:
        deadline = time.monotonic() + 20
        while not web.requests:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    web.at("/hook")
    deliver(sender, webhook)
    assert len(web.requests) == 1, "somebody has it, for a minute"
    due_now(site)
    deliver(sender, webhook)
    assert len({(request.headers["webhook-id"], request.body) for request in web.requests}) == 1
    assert deliveries(site, webhook)[0]["attempt"] == 2


def test_a_move_and_its_delivery_are_one_transaction(site: Site, web: Web) -> None:
    webhook = made(site, web.url("/hook"))
    job = sent(site).json()
    with site.database.connect() as connection:
        with connection.transaction(force_rollback=True):
            connection.execute("UPDATE rowcall.job SET wish = 'hold'")
            connection.execute(
                "INSERT INTO rowcall.job_event (job_id, organisation_id, after)"
                " SELECT id, organisation_id, 'FAILED' FROM rowcall.job"
            )
            assert connection.execute("SELECT count(*) FROM rowcall.webhook_delivery").fetchone() == (2,)
        assert connection.execute("SELECT count(*) FROM rowcall.webhook_delivery").fetchone() == (1,)
        events = "SELECT count(*) FROM rowcall.job_event e LEFT JOIN rowcall.webhook_delivery d ON d.event_id = e.id"
        site.worker.advance(job["id"])
        assert connection.execute(events + " WHERE d.id IS NULL").fetchone() == (0,)
    assert len(deliveries(site, webhook)) == len(MOVES)


def test_several_senders_send_each_thing_once(site: Site, web: Web) -> None:
    webhook = made(site, web.url("/hook"))
    for _ in range(6):
        sent(site)
    senders = [Sender(site.database, site.worker.settings) for _ in range(3)]
    threads = [threading.Thread(target=deliver, args=(each, webhook)) for each in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(web.requests) == 6
    assert len({request.headers["webhook-id"] for request in web.requests}) == 6


def test_what_never_arrives_is_given_up_and_the_webhook_is_disabled(
    site: Site, web: Web, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "SCHEDULE", (5, 300))
    webhook = made(site, web.at("/down", status=503), states=["UPLOADED"])
    sent(site)
    for _ in range(4):
        deliver(sender, webhook)
        due_now(site)
    assert len(web.requests) == 3
    assert deliveries(site, webhook)[0]["nextAttemptAt"] is None
    disabled = read(site, webhook)
    assert disabled["enabled"] is False
    assert "It answered 503." in disabled["disabledBecause"]
    sent(site)
    assert len(deliveries(site, webhook)) == 1
    again = site.client.patch(f"/v1/webhooks/{webhook['id']}", json={"enabled": True, "url": web.url("/hook")}).json()
    assert (again["enabled"], again["disabledBecause"], again["failures"]) == (True, None, 0)


def test_one_that_is_gone_is_disabled_at_once(site: Site, web: Web, sender: Sender) -> None:
    webhook = made(site, web.at("/gone", status=410))
    sent(site)
    deliver(sender, webhook)
    assert "410" in read(site, webhook)["disabledBecause"]
    assert site.client.post(f"/v1/webhooks/{webhook['id']}/test").json()["code"] == "WRONG_STATE"


def test_one_that_fails_is_left_alone_for_a_while(site: Site, web: Web, sender: Sender) -> None:
    failing, fine = made(site, web.at("/down", status=429, retry_after="7200")), made(site, web.url("/hook"))
    sent(site)
    sent(site)
    deliver(sender, failing)
    deliver(sender, fine)
    assert [request.target for request in web.requests] == ["/down", "/hook", "/hook"]
    with site.database.connect() as connection:
        assert UUID(failing["id"]) not in sender._due(connection)
        waits = connection.execute(
            "SELECT next_attempt_at > now() + interval '1 hour' FROM rowcall.webhook_delivery"
            " WHERE webhook_id = %s ORDER BY created_at",
            [failing["id"]],
        ).fetchall()
    assert waits == [(True,), (False,)]


def test_a_test_is_sent_and_anything_can_be_sent_again(site: Site, web: Web, sender: Sender) -> None:
    webhook = made(site, web.url("/hook"))
    asked = site.client.post(f"/v1/webhooks/{webhook['id']}/test")
    assert asked.status_code == 202
    deliver(sender, webhook)
    assert verified(web.requests[0], webhook["secret"])["type"] == "webhook.test"
    where = f"/v1/webhooks/{webhook['id']}/deliveries/{asked.json()['id']}/redeliver"
    assert site.client.post(where).status_code == 202
    deliver(sender, webhook)
    assert web.requests[1].headers["webhook-id"] == web.requests[0].headers["webhook-id"]
    assert web.requests[1].body == web.requests[0].body


@pytest.mark.parametrize("where", ["http://10.0.0.1/", "http://metadata/", "ftp://example.org/", "http://a@b@c/"])
def test_webhooks_lead_to_public_places_only(site: Site, web: Web, where: str) -> None:
    refused = site.client.post("/v1/webhooks", json={"url": where})
    assert (refused.status_code, refused.json()["code"]) == (422, "URL_REFUSED")
    webhook = made(site, web.url("/hook"))
    assert site.client.patch(f"/v1/webhooks/{webhook['id']}", json={"url": where}).status_code == 422


def test_the_guard_is_asked_at_every_attempt(site: Site, web: Web, sender: Sender) -> None:
    webhook = made(site, web.url("/hook"))
    with site.database.connect() as connection:  # as if the name meant something else now
        connection.execute("UPDATE rowcall.webhook SET url = 'http://169.254.169.254/'")
    sent(site)
    deliver(sender, webhook)
    assert deliveries(site, webhook)[0]["error"].startswith("URL_REFUSED")
    assert web.requests == []


def test_other_organisations_see_nothing(site: Site, web: Web) -> None:
    mine = made(site, web.url("/hook"))
    other = new_id()
    with site.database.connect() as connection:
        connection.execute("INSERT INTO rowcall.organisation (id, name) VALUES (%s, 'other')", [other])
        connection.execute("UPDATE rowcall.webhook SET organisation_id = %s", [other])
    sent(site)
    assert site.client.get("/v1/webhooks").json() == {"items": []}
    place = f"/v1/webhooks/{mine['id']}"
    for method, path in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/test"),
        ("GET", "/deliveries"),
        ("POST", f"/deliveries/{new_id()}/redeliver"),
    ):
        answered = site.client.request(method, place + path, json={} if method == "PATCH" else None)
        assert (answered.status_code, answered.json()["code"]) == (404, "WEBHOOK_NOT_FOUND")
    with site.database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM rowcall.webhook_delivery").fetchone() == (0,)


def test_webhooks_are_few_and_can_be_deleted(site: Site, web: Web) -> None:
    all_of_them = [made(site, web.url("/hook")) for _ in range(20)]
    sent(site)
    assert site.client.post("/v1/webhooks", json={"url": web.url("/hook")}).json()["code"] == "BAD_REQUEST"
    assert site.client.delete(f"/v1/webhooks/{all_of_them[0]['id']}").status_code == 204
    assert site.client.delete(f"/v1/webhooks/{all_of_them[0]['id']}").status_code == 404
    assert len(site.client.get("/v1/webhooks").json()["items"]) == 19


def test_deliveries_are_listed_page_by_page(site: Site, web: Web) -> None:
    webhook = made(site, web.url("/hook"))
    for _ in range(3):
        sent(site)
    place = f"/v1/webhooks/{webhook['id']}/deliveries"
    first = site.client.get(place, params={"pageSize": 2}).json()
    rest = site.client.get(place, params={"pageSize": 2, "after": first["next"]}).json()
    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (2, 1, None)
    assert site.client.get(place, params={"after": "x"}).json()["code"] == "BAD_CURSOR"


def test_what_is_due_is_found_by_index(site: Site, web: Web) -> None:
    webhook = made(site, web.url("/hook"))
    given: dict[str, Any] = {"webhook": webhook["id"], "organisation": LOCAL, "without": [], "most": 8}
    given |= dict.fromkeys(["id", "at", "last"])
    with site.database.connect() as connection:
        connection.execute(
            "INSERT INTO rowcall.webhook_delivery (webhook_id, organisation_id, next_attempt_at)"
            " SELECT w.id, organisation_id, CASE WHEN n % 1000 = 0 THEN now() END"
            " FROM rowcall.webhook w, generate_series(1, 20000) n"
        )
        connection.execute("ANALYZE rowcall.webhook_delivery")
        for name, index in (
            ("due_webhooks", "webhook_delivery_due"),
            ("claim_delivery", "webhook_delivery_due"),
            ("page_of_deliveries", "webhook_delivery_webhook"),
        ):
            plan = str(connection.execute(SQL("EXPLAIN ") + SQL(query(name)), given).fetchall())
            assert index in plan, plan
            assert "Seq Scan on webhook_delivery" not in plan, plan


def test_a_running_worker_sends_by_itself_and_one_slow_receiver_delays_nobody(site: Site, web: Web) -> None:
    slow, fine = made(site, web.url("/slow")), made(site, web.url("/hook"))
    web.routes["/slow"] = silent
    sender = Sender(site.database, site.worker.settings)
    thread_ends = threading.Event()

    def run() -> None:
        with sender.running():
            thread_ends.wait(20)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        run_job(site)
        deadline = time.monotonic() + 15
        while len([each for each in deliveries(site, fine) if each["deliveredAt"]]) < len(MOVES):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert not any(each["deliveredAt"] for each in deliveries(site, slow))
    finally:
        web.routes["/slow"] = answer()
        thread_ends.set()
        thread.join()
