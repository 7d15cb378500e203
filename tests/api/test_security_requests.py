"""Requests made to confuse, to wear out or to find out: each is refused by what is wrong with it and leaves nothing."""

import errno
import json
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import httpx
import pytest

from rowcall.api import events, uploads
from rowcall.store import requests
from rowcall.store.files import folder

from .conftest import Site
from .test_imports import USERS, sent, stored
from .test_moves import look
from .test_openapi import DOCUMENT

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)

BRING = b"POST /v1/imports?importer=users HTTP/1.1\r\nHost: 127.0.0.1\r\n"
FILE = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\nemail\r\n'
FIELD = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\nusers\r\n'
END = b"--x--\r\n"


def dialled(site: Site, text: bytes) -> socket.socket:
    """A connection over which this was said."""
    connection = socket.create_connection((site.client.base_url.host, site.client.base_url.port or 0))
    connection.settimeout(20)
    connection.sendall(text)
    return connection


def said(site: Site, text: bytes) -> tuple[int, str]:
    """The status and the code of what is answered."""
    with closing(dialled(site, text)) as connection, closing(HTTPResponse(connection)) as answer:
        answer.begin()
        return answer.status, json.loads(answer.read())["code"]


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def assert_nothing_came(site: Site) -> None:
    assert site.client.get("/v1/imports").json()["items"] == []
    assert stored(site) == []


# ------------------------------------------------------------------------------------------------------ HTTP itself


SMUGGLED = b"0\r\n\r\nGET /v1/audit HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
TWO_WAYS = [
    BRING + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n" + SMUGGLED,
    BRING + b"Content-Length: 6\r\nContent-Length: 7\r\n\r\nemail\nx",
    BRING + b"Content-Length: -1\r\n\r\n",
    BRING + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    BRING + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n",
    b"GET /v1/imports HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
    b"GET /v1/imports HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
]


def test_requests_that_could_be_understood_in_two_ways_are_refused_and_end_the_connection(site: Site) -> None:
    for request in TWO_WAYS:
        with closing(dialled(site, request)) as connection, connection.makefile("rb") as stream:
            answer = stream.read()  # until the server hangs up
        assert answer.startswith(b"HTTP/1.1 400 "), request
        assert answer.count(b"HTTP/1.1 ") == 1, request  # what is smuggled behind it is no request
    assert_nothing_came(site)


def test_odd_names_of_requests_are_replaced(site: Site) -> None:
    for name in ("x" * 129, "a b", "a\x1b[2J", "é", "", "<b>"):
        answer = site.client.get("/v1/imports", headers=[(b"X-Request-ID", name.encode())])
        assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"]), name


def test_what_went_wrong_here_is_told_to_whoever_runs_the_service_only(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/srv/secret/place")

    monkeypatch.setattr(folder.FolderStore, "begin", full)
    answer = site.client.post("/v1/imports?importer=users", content=USERS, headers={"X-Request-ID": "one-7"})
    assert (answer.status_code, answer.json()["code"]) == (500, "SYSTEM_ERROR")
    assert answer.json()["hint"].endswith("request one-7.")
    assert answer.headers["x-request-id"] == "one-7"
    assert "secret" not in answer.text
    assert "/srv/secret/place" in caplog.text


def test_a_defect_is_answered_with_the_name_of_its_request(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is told of one can say which it was."""

    def broken(*_: object, **__: object) -> float:
        return 1 / 0

    monkeypatch.setattr(requests, "page_of_jobs", broken)
    with httpx.Client(base_url=site.client.base_url) as client:
        for name in ("two-8", None):
            answer = client.get("/v1/imports", headers={"X-Request-ID": name} if name else {})
            assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL_ERROR")
            assert "division" not in answer.text
            assert answer.headers["x-request-id"] == (name or answer.json()["hint"].split()[-1].rstrip("."))


def test_a_name_that_fits_a_parameter_too_is_the_place_of_that_name(site: Site) -> None:
    job = sent(site).json()["id"]
    for method, place, allowed in (
        ("PATCH", f"/v1/imports/{job}/items/replace", "POST"),
        ("OPTIONS", f"/v1/imports/{job}/items/replace", "POST"),
        ("DELETE", "/v1/column-mapping-templates/lookup?importer=users", "GET, HEAD"),
        ("DELETE", f"/v1/imports/{job}/items/1", "GET, HEAD, PATCH"),
    ):
        answer = site.client.request(method, place)
        assert (answer.status_code, answer.headers.get("allow")) == (405, allowed), place


# ------------------------------------------------------------------------------------------------------------ uploads


FORMS = [
    b"",
    END,
    FILE,
    FILE + b"--x",
    FILE + FILE + END,
    FILE + FIELD % b"importer" * 2 + END,
    b"junk before\r\n" + FILE + END,
    b"--x\r\n" + b"A: b\r\n" * 100 + b"\r\n" + END,
    b"--x\r\nContent-Disposition: " + b"a" * 10_000 + b"\r\n\r\n" + END,
    FILE + FIELD % b"config" + b"y" * 2_000_000 + b"\r\n" + END,
    FILE + END + b"z" * 2_000_000,
    FILE + b"".join(FIELD % b"%d" % n for n in range(30_000)) + END,
]


def test_forms_made_to_confuse_or_to_fill_memory_are_refused(site: Site) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    for form in FORMS:
        pieces = iter([form])  # without a length
        answer = site.client.post("/v1/imports?importer=users", content=pieces, headers=kind)
        assert (answer.status_code in (400, 422), answer.json()["code"]) == (True, "BAD_REQUEST"), form[:200]
    assert_nothing_came(site)


def test_an_upload_that_stalls_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "STALLED", 0.2)
    for kind, body in ((b"text/csv", b"email\n"), (b"multipart/form-data; boundary=x", FILE)):
        request = BRING + b"Content-Length: 9999\r\nContent-Type: " + kind + b"\r\n\r\n" + body
        assert said(site, request) == (408, "TOO_SLOW")
    assert_nothing_came(site)


def test_an_upload_that_is_cut_leaves_nothing(site: Site, tmp_path: Path) -> None:
    for kind, body in ((b"text/csv", b"email\n"), (b"multipart/form-data; boundary=x", FILE)):
        dialled(site, BRING + b"Content-Length: 9999\r\nContent-Type: " + kind + b"\r\n\r\n" + body).close()
    counted = 'rowcall_http_requests_total{method="POST",route="/v1/imports",status="400"} 2.0'
    until(lambda: counted in site.client.get("/metrics").text)
    assert_nothing_came(site)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


NAMES = [
    *("../../../etc/passwd", "/etc/passwd", "..", "a\\..\\b.csv", "CON", "x" * 4000),
    *("a\u202evsc.exe", "<script>alert(1)</script>.csv", 'a"; filename="b.csv', "a\r\nSet-Cookie: b=c", "a\x1b[2J"),
]


def test_names_of_files_are_labels(site: Site, tmp_path: Path) -> None:
    job: dict[str, Any] = {}
    for name in NAMES:
        asked = {"importer": "users", "fileName": name}
        job = site.client.post("/v1/imports", params=asked, content=USERS).json()
        assert job["file"]["name"] == name
        receipt = site.client.get(f"/v1/imports/{job['id']}/receipt")
        assert receipt.json()["file"]["name"] == name
        assert receipt.headers["content-type"] == "application/json"
        answer = site.client.get(f"/v1/imports/{job['id']}/results/export")
        assert answer.headers["content-disposition"].startswith('attachment; filename="BU')
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [job["file"]["sha256"]]
    site.worker.advance(job["id"])
    assert look(site, job)["counts"]["created"] == 1


# -------------------------------------------------------------------------------- keys, cursors, sizes, fields, moves


def test_an_idempotency_key_comes_once(site: Site) -> None:
    keys = [("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
    answer = site.client.post("/v1/imports?importer=users", content=USERS, headers=keys)
    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST")
    assert_nothing_came(site)


def operations(*, having: str) -> list[str]:
    """The paths of reading operations that have a parameter."""
    return [
        path
        for path, item in DOCUMENT["paths"].items()
        if having in {each["name"] for each in item.get("get", {}).get("parameters", [])}
    ]


def test_cursors_that_were_bent_and_pages_of_any_size_are_refused(site: Site) -> None:
    job = sent(site).json()["id"]
    hook = site.client.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/"}).json()["id"]
    paged = [path.format(job_id=job, webhook_id=hook) for path in operations(having="pageSize")]
    assert len(paged) >= 6
    sent(site, key="another")
    foreign = site.client.get("/v1/imports?pageSize=1").json()["next"]
    for path in paged:
        for cursor in ("x", "=", "AAAA", "'; DROP TABLE x", "e30", *([foreign] if path != "/v1/imports" else [])):
            answer = site.client.get(path, params={"after": cursor})
            told = answer.status_code, answer.json()["code"]
            assert told in ((400, "BAD_CURSOR"), (422, "BAD_REQUEST")), (path, cursor)
        for size in ("-1", "0", "1000000000", "x", "1e3"):
            assert site.client.get(path, params={"pageSize": size}).status_code == 422, (path, size)


def test_only_what_is_listed_can_be_sorted_by_or_asked_for(site: Site) -> None:
    job = sent(site).json()["id"]
    for path in operations(having="sort"):
        for sort in ("cells", "row; DROP TABLE x", "--row", "organisation_id"):
            assert site.client.get(path.format(job_id=job), params={"sort": sort}).status_code in (400, 422), path
    for asked in ({"fields": "password"}, {"fields": 'id"'}, {"filter": "1=1"}, {"filter": "id=1 OR 1=1"}):
        answer = site.client.get("/v1/exports", params={"resource": "users", **asked})
        assert answer.status_code in (400, 422), asked
    for resource in ("pg_catalog.pg_authid", "rowcall.api_key", "users; DROP TABLE x"):
        assert site.client.get("/v1/exports", params={"resource": resource}).status_code == 404


def test_bodies_take_nothing_that_is_not_told(site: Site) -> None:
    job = sent(site).json()["id"]
    hook = site.client.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/"}).json()["id"]
    tried = 0
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if schema is None:
                continue
            name = (schema.get("$ref") or next(one["$ref"] for one in schema["anyOf"] if "$ref" in one)).split("/")[-1]
            example = DOCUMENT["components"]["schemas"][name]["examples"][0]
            place = path.format(job_id=job, webhook_id=hook, row=1)
            for extra in ("organisation", "organisationId", "account", "id", "state"):
                answer = site.client.request(method, place, json={**example, extra: "x"})
                tried += 1
                assert answer.status_code in (400, 422), (method, path, extra)
                assert extra in answer.text
    assert tried >= 20


def test_moves_out_of_order_change_nothing(site: Site) -> None:
    job = sent(site).json()
    site.worker.advance(job["id"])
    before = look(site, job)
    moves = [path for path in DOCUMENT["paths"] if DOCUMENT["paths"][path].get("post", {}).get("tags") == ["moves"]]
    assert len(moves) >= 7
    for path in moves:
        if path.rpartition("/")[2] in before["allowed"]:
            continue
        for _ in range(2):
            answer = site.client.post(path.format(job_id=job["id"]))
            assert (answer.status_code, answer.json()["code"]) == (409, "WRONG_STATE"), path
            assert (answer.json()["state"], answer.json()["allowed"]) == (before["state"], before["allowed"])
    assert site.client.delete(f"/v1/imports/{job['id']}").status_code == 409
    assert look(site, job) == before


# ------------------------------------------------------------------------------------------------------------ streams


def streaming(job: str) -> bytes:
    return f"GET /v1/imports/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n".encode()


def test_of_two_hundred_streams_at_once_that_nobody_reads_a_few_are_open(site: Site) -> None:
    job = sent(site).json()["id"]
    streams = [dialled(site, streaming(job)) for _ in range(200)]
    try:
        begun = [stream.recv(12) for stream in streams]
        assert begun.count(b"HTTP/1.1 200") == 50
        assert begun.count(b"HTTP/1.1 429") == 150
        assert site.client.get("/v1/imports").status_code == 200
    finally:
        for stream in streams:
            stream.close()


def test_a_stream_that_nobody_reads_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    job = sent(site).json()["id"]
    looks: list[int] = []
    monkeypatch.setattr(events, "_STALLED", 0.2)
    monkeypatch.setattr(events, "_EVERY", 0.01)

    def large(_: object, __: object, last_event: int) -> events._Look:
        looks.append(last_event)
        return events._Look("x" * 1_000_000, str(len(looks)), last_event, ended=False)

    monkeypatch.setattr(events, "_seen", large)
    watch: events.Watch = site.app.state.watch
    with closing(dialled(site, streaming(job))) as stream:
        assert stream.recv(12) == b"HTTP/1.1 200"
        until(lambda: looks)  # there may be no stream any more by then
        until(lambda: not watch._streams.total())


def test_an_event_is_one_line_whatever_a_file_is_called(site: Site) -> None:
    asked = {"importer": "users", "fileName": "a\n\nevent: state\ndata: {}\r\u2028b"}
    job = site.client.post("/v1/imports", params=asked, content=USERS).json()
    threading.Thread(target=site.worker.advance, args=[job["id"]]).start()
    headers = {"Accept": "text/event-stream"}
    answer = site.client.get(f"/v1/imports/{job['id']}/events", headers=headers, timeout=30).content
    told = [dict(line.split(b": ", 1) for line in event.split(b"\n")) for event in answer.strip().split(b"\n\n")[1:]]
    about: list[dict[str, Any]] = [json.loads(event[b"data"]) for event in told]
    assert b"\r" not in answer
    assert {one["file"]["name"] for one in about if "file" in one} == {asked["fileName"]}
    assert [one["after"] for one in about if "after" in one][-1] == "COMPLETED_WITH_ERRORS"
