"""Whatever somebody sends is answered with what they did wrong, and never with a server error."""

import base64
import gzip
from typing import Any

import httpx
import pytest

from .conftest import Site
from .test_imports import sent

HUGE = "9" * 20
QUERIES = [
    *(f"/v1/imports/{{job}}/items?{name}=%00" for name in ("code", "field", "text", "statuses", "after")),
    *(f"/v1/pending?{name}=%00" for name in ("code", "field", "text")),
    *(f"/v1/imports/{{job}}/results/export?{name}=%00" for name in ("code", "field", "text")),
    *(f"/v1/audit?{name}=%00" for name in ("account", "action", "subject")),
    *(f"/v1/imports?{name}=%00" for name in ("importer", "after")),
    *(f"/v1/exports?resource={asked}" for asked in ("%00", "users&fields=%00", "users&filter=email%3D%00")),
    f"/v1/imports/{{job}}/items/{HUGE}/attempts",
    f"/v1/imports/{{job}}/events?after={HUGE}",
]
BODIES = {
    "/v1/imports/{job}/reprocess": [
        *(f'{{"rows": [{HUGE}]}}', '{"code": "\\u0000"}', '{"field": "\\ud800"}', '{"\\ud800": 1}', '{"rows": [NaN]}'),
        *("[" * 5000, "1" * 5000, "\xff"),
    ],
    "/v1/exports": [
        '{"format": "csv", "resource": "users", "filters": ["email=\\u0000"]}',
        '{"format": "csv", "resource": "\\ud800"}',
        '{"format": "csv", "job": "JOB", "view": {"text": "\\u0000"}}',
    ],
    "/v1/webhooks": ['{"url": "http://127.0.0.1:9/\\u0000"}', '{"url": "http://127.0.0.1:9/\\ud800"}'],
    "/v1/imports": [
        '{"url": "http://127.0.0.1:9/", "importer": "\\u0000"}',
        '{"url": "http://127.0.0.1:9/", "importer": "users", "config": {"mapping": {"\\u0000": "email"}}}',
        '{"url": "http://127.0.0.1:9/", "importer": "users", "config": {"constants": {"name": "\\u0000"}}}',
        f'{{"url": "http://127.0.0.1:9/", "importer": "users", "config": {{"header": {HUGE}}}}}',
        '{"url": "http://127.0.0.1:9/", "importer": "users", "config": {"dryRun": "no"}}',
    ],
}
PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\nemail\r\n--x--\r\n'
FORMS = [("x", PART % b"a%00.csv"), ("x", PART % b"a\0.csv"), ("x" * 300, PART), ("x", b"--y")]
METADATA = [
    b"importer dXNlcnM=,filename " + base64.b64encode(b"\0"),
    b"importer dXNlcnM=,config " + base64.b64encode(b'{"constants": {"name": "\\u0000"}}'),
    b"importer \xff",
]


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_odd_requests_are_refused_by_what_is_wrong_with_them(site: Site) -> None:
    job = sent(site).json()["id"]
    json = {"Content-Type": "application/json"}
    answers = [site.client.get(path.format(job=job)) for path in QUERIES]
    for path, bodies in BODIES.items():
        for body in bodies:
            content = body.replace("JOB", job).encode("latin-1")
            answers.append(site.client.post(path.format(job=job), content=content, headers=json))
    for boundary, form in FORMS:
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        answers.append(site.client.post("/v1/imports?importer=users", content=form, headers=kind))
    for metadata in METADATA:
        headers: Any = [(b"Tus-Resumable", b"1.0.0"), (b"Upload-Length", b"5"), (b"Upload-Metadata", metadata)]
        answers.append(site.client.post("/v1/uploads", headers=headers))
    assert [told(answer) for answer in answers if not is_refused(answer)] == []


def is_refused(answer: httpx.Response) -> bool:
    return answer.status_code in (400, 404, 422) and "DATABASE" not in answer.json()["code"]


def told(answer: httpx.Response) -> tuple[str, bytes, int, str]:
    return str(answer.request.url), answer.request.content, answer.status_code, answer.text


def test_other_methods_are_told_which_are_possible(site: Site) -> None:
    for path, allowed in {
        "/v1/imports": "GET, HEAD, POST",
        "/v1/imports/00000000-0000-7000-8000-000000000001": "DELETE, GET, HEAD",
        "/v1/uploads": "OPTIONS, POST",
        "/health/live": "GET, HEAD",
    }.items():
        answer = site.client.put(path)
        assert (answer.status_code, answer.json()["code"]) == (405, "METHOD_NOT_ALLOWED")
        assert answer.headers["allow"] == allowed


def test_head_is_answered_as_get_is_without_its_body(site: Site) -> None:
    sent = site.client.post("/v1/imports?importer=users", content="email\nann@example.org\n").json()
    job, unknown = f"/v1/imports/{sent['id']}", "/v1/imports/00000000-0000-7000-8000-000000000001"
    for path in ("/health/live", "/v1/imports", job, f"{job}/receipt", "/openapi.json", unknown, "/v1/nowhere"):
        asked, given = site.client.head(path), site.client.get(path)
        assert (asked.status_code, asked.content) == (given.status_code, b""), path
        assert asked.headers["content-type"] == given.headers["content-type"]
        assert abs(int(asked.headers["content-length"]) - len(given.content)) < 10  # times have more digits or fewer
    for path in ("/v1/exports?resource=users&format=csv", f"{job}/rejects.xlsx"):
        asked = site.client.head(path)
        assert (asked.status_code, "content-length" in asked.headers, asked.content) == (200, False, b"")
        assert asked.headers["content-disposition"] == site.client.get(path).headers["content-disposition"]
    events = site.client.head(f"{job}/events", headers={"Accept": "text/event-stream"})
    assert (events.status_code, events.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert site.client.head("/v1/uploads/00000000-0000-7000-8000-000000000001").status_code == 412  # tus has its own


def test_bodies_that_are_packed_for_the_way_are_refused_but_for_gzip(site: Site) -> None:
    packed, tus = {"Content-Encoding": "br"}, {"Tus-Resumable": "1.0.0", "Upload-Length": "1", "Upload-Metadata": "x"}
    users, form = "/v1/imports?importer=users", {"file": ("a.csv", "email\n")}
    answers = {
        "gzip, identity": site.client.post(users, content=b"x", headers=packed),
        "identity": site.client.post(users, files=form, headers={"Content-Encoding": "gzip"}),
        " identity": site.client.post("/v1/imports", json={"url": "http://x", "importer": "users"}, headers=packed),
        "identity ": site.client.post(
            "/v1/uploads", content=b"x", headers={**tus, **packed, "Content-Type": "application/offset+octet-stream"}
        ),
    }
    for taken, answer in answers.items():
        assert (answer.status_code, answer.json()["code"]) == (415, "UNSUPPORTED_BODY")
        assert answer.headers["accept-encoding"] == taken.strip()
    gzipped = gzip.compress(b"email,name,role,active\nann@example.org,Ann,admin,true\n")
    job = site.client.post(users, content=gzipped, headers={"Content-Encoding": "gzip"}).json()
    site.worker.advance(job["id"])
    assert site.client.get(f"/v1/imports/{job['id']}").json()["counts"]["created"] == 1


def test_a_server_error_has_the_requests_name_and_ends_the_connection(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("rowcall.store.requests.page_of_jobs", broken)
    for name in ("first", "second"):
        answer = site.client.get("/v1/imports", headers={"X-Request-ID": name})
        assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL_ERROR")
        assert (answer.headers["x-request-id"], answer.headers["connection"]) == (name, "close")
        assert answer.json()["hint"].endswith(f"request {name}.")
        assert "broken" not in answer.text
