"""Files that are named by their URL are fetched by whoever works on the job, under guard."""

import gzip
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

from rowcall.engine.retention import policy_of, remove_due
from rowcall.sources import url

from ..web import Web, answer, dripping, serving, silent
from .conftest import Site
from .test_imports import USERS, stored
from .test_moves import ask, look, until, working

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)


@pytest.fixture
def web() -> Generator[Web]:
    with serving() as web:
        yield web


def named(site: Site, where: str, key: str | None = None, **more: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return site.client.post("/v1/imports", json={"url": where, "importer": "users", **more}, headers=headers)


def worked(site: Site, where: str) -> dict[str, Any]:
    job = named(site, where).json()
    site.worker.advance(job["id"])
    return look(site, job)


def test_b2_a_file_is_fetched_worked_on_and_accounted_for(site: Site, web: Web) -> None:
    web.at("/users.csv", USERS)
    answered = named(site, web.url("/users.csv?token=secret", login="ann:secret@"), config={"dryRun": False})
    assert (answered.status_code, web.requests) == (202, [])
    job = answered.json()
    assert (job["state"], job["file"]) == ("UPLOADED", {"name": "users.csv", "sha256": None, "size": None})
    assert job["url"] == web.url("/users.csv?…")
    assert site.client.get(f"/v1/imports/{job['id']}/receipt").status_code == 200
    assert site.client.get("/v1/imports").json()["items"] == [job]
    site.worker.advance(job["id"])
    done = look(site, job)
    assert (done["state"], done["counts"]["created"], done["counts"]["failed"]) == ("COMPLETED_WITH_ERRORS", 1, 1)
    assert done["file"]["size"] == len(USERS)
    assert stored(site) == [done["file"]["sha256"]]
    assert web.requests[0].headers["authorization"] == "Basic YW5uOnNlY3JldA=="
    assert "secret" not in _all_of(site)


def _all_of(site: Site) -> str:
    """Every value that the database has of jobs."""
    with site.database.connect() as connection:
        return str(connection.execute("SELECT j::text FROM rowcall.job j").fetchall())


def test_b3_the_same_key_gives_the_same_job(site: Site, web: Web) -> None:
    first, again = named(site, web.url("/a.csv"), "k"), named(site, web.url("/a.csv"), "k")
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    assert named(site, web.url("/a.csv?b"), "k").json()["code"] == "KEY_REUSED"


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("http://169.254.169.254/latest/meta-data/", "URL_REFUSED"),
        ("http://user:secret@10.0.0.1/", "URL_REFUSED"),
        ("file:///etc/passwd", "URL_REFUSED"),
        ("simplecache::https://example.org/x", "URL_REFUSED"),
        ("http://metadata.google.internal/", "URL_REFUSED"),
        ("", "URL_REFUSED"),
    ],
)
def test_what_is_plainly_not_gone_to_makes_no_job(site: Site, where: str, code: str) -> None:
    answered = named(site, where)
    assert (answered.status_code, answered.json()["code"]) == (422, code)
    assert "secret" not in answered.text
    assert site.client.get("/v1/imports").json()["items"] == []


def test_what_is_wrong_with_a_request_is_told(site: Site) -> None:
    kind = {"content-type": "application/json"}
    for body in ("{", "[]", '{"url": "https://example.org"}', '{"url": 1, "importer": "users"}', '{"file": 1}'):
        told = site.client.post("/v1/imports", content=body, headers=kind)
        assert (told.status_code, told.json()["code"]) == (422, "BAD_REQUEST")
    assert named(site, "https://example.org/", config={"mode": "no"}).status_code == 422
    assert named(site, "https://example.org/", importer="nobody").status_code == 404
    file = site.client.post("/v1/imports?importer=users", content='[{"email": "a@b.c"}]', headers=kind)
    assert (file.status_code, file.json()["url"]) == (202, None)


def test_names_that_lead_to_us_fail_the_job(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def lying(host: Any, *given: Any, **more: Any) -> Any:
        return real("10.0.0.1" if host == "fine.example" else host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", lying)
    failed = worked(site, "http://fine.example/")
    assert (failed["state"], failed["error"]["code"]) == ("FAILED", "URL_REFUSED")


def test_what_can_not_be_fetched_fails_the_job_with_the_reason(
    site: Site, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(url, "PAUSES", (0.01,))
    login = web.url("/page?a=secret")
    web.at("/page", "<!doctype html><title>Log in", content_type="text/html")
    bomb = web.at("/bomb", gzip.compress(bytes(70 << 20)), content_encoding="gzip")
    for where, code in (
        (web.at("/gone", status=404), "URL_FAILED"),
        (web.at("/down", status=500), "URL_FAILED"),
        (web.at("/large", b"x" * 200_000), "FILE_TOO_LARGE"),
        (web.at("/short", "abc", content_length="10"), "URL_UNREACHABLE"),
        (login, "CONTENT_MISMATCH"),
        (bomb, "ARCHIVE_TOO_LARGE"),
    ):
        failed = worked(site, where)
        assert (failed["state"], failed["error"]["code"], failed["allowed"]) == ("FAILED", code, [])
        assert "secret" not in str(failed)
    assert "secret" not in _all_of(site)
    assert [name for name in stored(site) if not name.isalnum()] == []


def test_what_passes_is_waited_for(site: Site, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url, "PAUSES", (0.01, 0.01))
    answers = [answer(status=503, retry_after="1"), answer(USERS)]
    web.routes["/x"] = lambda request, connection: answers.pop(0)(request, connection)
    began = time.monotonic()
    assert worked(site, web.url("/x"))["counts"]["created"] == 1
    assert time.monotonic() - began > 1


@pytest.mark.parametrize(("move", "state"), [("pause", "PAUSED"), ("cancel", "CANCELLED")])
def test_fetching_stops_when_asked_to(site: Site, web: Web, move: str, state: str) -> None:
    web.routes["/x"] = silent
    job = named(site, web.url("/x")).json()
    with working(site, job):
        _until_asked(web)
        assert ask(site, job, move).status_code == 202
        until(site, job, lambda now: now["state"] == state)
    if move == "pause":
        web.at("/x", USERS)
        assert ask(site, job, "resume").json()["state"] == "UPLOADED"
        site.worker.advance(job["id"])
        assert look(site, job)["counts"]["created"] == 1
    assert [name for name in stored(site) if "incoming" in name] == []
    with site.database.connect() as connection:
        assert connection.execute("SELECT url_with_secrets FROM rowcall.job").fetchall() == [(None,)]


def _until_asked(web: Web) -> None:
    deadline = time.monotonic() + 20
    while not web.requests:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_held_job_is_fetched_when_it_starts(site: Site, web: Web) -> None:
    job = named(site, web.at("/x", USERS), config={"hold": True}).json()
    site.worker.advance(job["id"])
    assert (web.requests, look(site, job)["wish"]) == ([], "hold")
    ask(site, job, "start")
    site.worker.advance(job["id"])
    assert look(site, job)["counts"]["created"] == 1


_WORKER = """
import sys
from pathlib import Path
from rowcall.config import Settings
from rowcall.importer.registry import load_registry
from rowcall.sources.addresses import Allowed
from rowcall.store.db import Database
from rowcall.worker.worker import Worker

url, folder, job = sys.argv[1:]
settings = Settings(database_url=url, data_dir=Path(folder), url_allow=Allowed.of("127.0.0.1:*"))
Worker(Database(url), load_registry(), settings).advance(job)
"""


def test_a_worker_that_is_killed_while_fetching_leaves_nothing_and_another_begins_anew(site: Site, web: Web) -> None:
    web.routes["/x"] = dripping(b"email,name\n" * 100)
    job = named(site, web.url("/x")).json()
    folder = site.files.parent
    command = [sys.executable, "-c", _WORKER, site.database.url, str(folder), job["id"]]
    with subprocess.Popen(command) as process:
        _until_asked(web)
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    web.at("/x", USERS)
    site.worker.advance(job["id"])
    assert until(site, job, lambda now: now["state"] == "COMPLETED_WITH_ERRORS")["counts"]["created"] == 1
    assert [path.name for path in folder.rglob("*") if path.is_file()] == stored(site)


def test_a17_jobs_without_a_file_go_after_their_time(site: Site, web: Web) -> None:
    job = named(site, web.url("/x")).json()
    ask(site, job, "cancel")
    with site.database.connect() as connection:
        connection.execute("UPDATE rowcall.job SET completed_at = now() - interval '8 days'")
    settings = site.worker.settings
    gone = remove_due(site.database, settings, policy_of(settings, site.worker.registry), stop=lambda: False)
    assert ([each.number for each in gone.jobs], gone.files) == ([job["number"]], 0)


def test_one_slow_server_keeps_nobody_else_waiting(site: Site, web: Web) -> None:
    web.routes["/slow"] = silent
    slow = named(site, web.url("/slow")).json()
    other = named(site, web.at("/x", USERS)).json()
    thread = threading.Thread(target=site.worker.advance, args=[slow["id"]])
    thread.start()
    try:
        _until_asked(web)
        site.worker.advance(other["id"])
        assert look(site, other)["counts"]["created"] == 1
    finally:
        ask(site, slow, "cancel")
        thread.join()
