"""How a job goes is told as it happens, and whoever was away misses nothing."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from rowcall.api import events
from rowcall.api.app import create_app
from rowcall.api.service import Service

from .conftest import Site
from .test_imports import sent
from .test_moves import look
from .town import served


def messages(response: httpx.Response) -> Iterator[tuple[str, int, Any]]:
    about: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line:
            about[name] = value
        elif "event" in about:
            yield about["event"], int(about["id"]), json.loads(about["data"])
            about = {}


def stream(site: Site, job: dict[str, Any], **headers: str) -> Any:
    accept = {"accept": "text/event-stream", **headers}
    return site.client.stream("GET", f"/v1/imports/{job['id']}/events", headers=accept, timeout=30)


def test_x8_moves_and_progress_come_as_they_happen(site: Site) -> None:
    job = sent(site).json()
    with stream(site, job) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        told = messages(response)
        assert next(told)[2]["after"] == "UPLOADED"
        kind, _, now = next(told)
        assert (kind, now) == ("progress", look(site, job))
        threading.Thread(target=site.worker.advance, args=[job["id"]]).start()
        rest = list(told)
    moves = [about["after"] for kind, _, about in rest if kind == "state"]
    assert moves == ["COLUMN_MAPPING", "PROCESSING", "COMPLETED_WITH_ERRORS"]
    kind, last, now = rest[-1]
    assert (kind, now) == ("progress", look(site, job))
    asked = site.client.get(f"/v1/imports/{job['id']}/events").json()
    assert [event["after"] for event in asked["items"]] == ["UPLOADED", *moves]
    assert asked["job"] == now
    assert asked["items"][-1]["id"] == last


def test_x8_what_was_missed_is_told_again(site: Site) -> None:
    job = sent(site).json()
    with stream(site, job) as response:
        _, first, _ = next(messages(response))
    site.worker.advance(job["id"])
    with stream(site, job, **{"last-event-id": str(first)}) as response:
        told = list(messages(response))
    assert [about["after"] for kind, _, about in told if kind == "state"] == [
        *("COLUMN_MAPPING", "PROCESSING", "COMPLETED_WITH_ERRORS"),
    ]
    with stream(site, job, **{"last-event-id": str(told[-1][1])}) as response:
        assert response.status_code == 204


def test_streams_are_limited(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_MOST_STREAMS", 2)
    job = sent(site).json()
    with stream(site, job) as one, stream(site, job) as two:
        open_ones = messages(one), messages(two)  # a stream that nobody reads any more is closed
        assert [next(told)[0] for told in open_ones] == ["state", "state"]
        with stream(site, job) as three:
            assert three.status_code == 429
            assert json.loads(three.read())["code"] == "TOO_MANY_REQUESTS"


def test_unknown_jobs_have_no_events(site: Site) -> None:
    with stream(site, {"id": "00000000-0000-7000-8000-000000000001"}) as response:
        assert response.status_code == 404


def test_a_service_that_stops_ends_streams_and_tells_who_would_keep_it(site: Site) -> None:
    """Streams end as they should and at once; an upload that doesn't come is told that it may be sent again."""
    job, service = sent(site, config='{"hold": true}').json()["id"], site.app.state.service
    app = create_app(Service(service.settings, service.registry, site.database.pool("second", 2)))
    with ExitStack() as stack:
        stopping = stack.enter_context(ExitStack())
        url = httpx.URL(stopping.enter_context(served(app, grace=1)))
        accepts = {"Accept": "text/event-stream"}
        stream = stack.enter_context(httpx.stream("GET", f"{url}/v1/imports/{job}/events", headers=accepts))
        lines = stream.iter_lines()
        assert next(line for line in lines if line == "event: progress")
        upload = stack.enter_context(socket.create_connection((url.host, url.port or 80), timeout=30))
        upload.sendall(b"POST /v1/imports?importer=users HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n")
        upload.sendall(b"Expect: 100-continue\r\n\r\n")
        assert upload.recv(9999).startswith(b"HTTP/1.1 100")
        ending = threading.Thread(target=stopping.close)
        ending.start()
        stack.callback(ending.join)
        assert list(lines)  # and no error: it came to its end
        answer = b"".join(iter(lambda: upload.recv(9999), b""))
        assert answer.startswith(b"HTTP/1.1 503"), answer
        assert b'"SERVICE_STOPPING"' in answer
