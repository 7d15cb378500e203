"""Files over HTTP become jobs, once for each key, and what became of their rows can be read."""

import base64
import json
import re
import resource
import socket
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest

from rowcall.store import jobs

from .conftest import Site

USERS = "email,name,role,active\nann@example.org,Ann,admin,true\nbob@example.org,,reader,true\n"

_TEMPLATE = '{"template": {"sourceSystem": "crm", "variant": "weekly"}}'


def sent(site: Site, text: str = USERS, key: str | None = None, **fields: str) -> Any:
    headers = {"Idempotency-Key": key} if key is not None else {}
    form = {"importer": "users", **fields}
    return site.client.post("/v1/imports", data=form, files={"file": ("users.csv", text)}, headers=headers)


def stored(site: Site) -> list[str]:
    return sorted(path.name for path in site.files.rglob("*") if path.is_file())


def test_b2_a_file_is_taken_worked_on_and_accounted_for(site: Site) -> None:
    answer = sent(site)
    assert answer.status_code == 202
    job = answer.json()
    assert (job["state"], job["file"]["name"]) == ("UPLOADED", "users.csv")
    assert answer.headers["location"] == f"/v1/imports/{job['id']}"
    site.worker.advance(job["id"])
    done = site.client.get(answer.headers["location"]).json()
    assert (done["state"], done["counts"]["created"], done["counts"]["failed"]) == ("COMPLETED_WITH_ERRORS", 1, 1)
    ended, began = (datetime.fromisoformat(done[name]) for name in ("endedAt", "startedAt"))
    assert done["progress"]["percent"] == 100.0
    assert abs(done["progress"]["elapsedMs"] - (ended - began).total_seconds() * 1000) < 1000
    items = site.client.get(f"/v1/imports/{job['id']}/items", params={"statuses": "failed"}).json()["items"]
    assert [(item["row"], item["line"], item["issues"][0]["code"]) for item in items] == [(2, 3, "REQUIRED")]
    receipt = site.client.get(f"/v1/imports/{job['id']}/receipt").json()
    assert (receipt["balanced"], receipt["file"]["sha256"]) == (True, job["file"]["sha256"])


def test_body_may_be_the_file_itself(site: Site) -> None:
    asked = {"importer": "users", "fileName": "people.csv"}
    answer = site.client.post("/v1/imports", params=asked, content=USERS, headers={"content-type": "text/csv"})
    assert (answer.status_code, answer.json()["file"]["name"]) == (202, "people.csv")


def test_b3_the_same_key_gives_the_same_job(site: Site) -> None:
    first, again = sent(site, key="k-1"), sent(site, key='"k-1"')
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["idempotent-replayed"] == "true"
    other = sent(site, USERS + "cy@example.org,Cy,reader,true\n", key="k-1")
    assert (other.status_code, other.json()["code"]) == (422, "KEY_REUSED")
    assert len(site.client.get("/v1/imports").json()["items"]) == 1


def test_b3_the_same_key_at_once_gives_one_job(site: Site) -> None:
    with ThreadPoolExecutor(8) as threads:
        sending = [threads.submit(sent, site, key="race") for _ in range(24)]
        answers = [future.result() for future in sending]
    assert {answer.status_code for answer in answers} == {200, 202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum(answer.status_code == 202 for answer in answers) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_bad_keys_are_refused(site: Site, key: str) -> None:
    assert sent(site, key=key).status_code == 400


def test_a_file_that_is_too_large_leaves_nothing(site: Site) -> None:
    answer = sent(site, "email\n" + "x" * 200_000)
    assert (answer.status_code, answer.json()["code"]) == (413, "FILE_TOO_LARGE")
    assert answer.headers["content-type"] == "application/problem+json"
    assert stored(site) == []


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"importer": "user"}, 404, "UNKNOWN_IMPORTER"),
        ({"importer": ""}, 400, "BAD_REQUEST"),
        ({"config": "{"}, 422, "BAD_REQUEST"),
        ({"config": '{"mode": "replace"}'}, 422, "BAD_REQUEST"),
        ({"config": '{"constants": {"nope": "1"}}'}, 422, "BAD_MAPPING"),
    ],
)
def test_what_is_wrong_with_a_request_is_told(site: Site, fields: dict[str, str], status: int, code: str) -> None:
    answer = sent(site, **fields)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert (site.client.get("/v1/imports").json()["items"], stored(site)) == ([], [])


def test_what_could_be_meant_in_two_ways_or_means_nothing_makes_no_job(site: Site) -> None:
    dry, file = '{"dryRun": true}', {"file": ("users.csv", USERS)}
    url, users = {"url": "http://127.0.0.1:9/users.csv", "importer": "users"}, {"importer": "users"}
    answers: dict[str, Any] = {
        "body/confg": site.client.post("/v1/imports", data={**users, "confg": dry}, files=file),
        "query/importer": site.client.post("/v1/imports?importer=articles", data=users, files=file),
        "query/config": site.client.post("/v1/imports", params={"config": dry}, json=url),
        "query/fileName": site.client.post("/v1/imports?fileName=a.csv", json=url),
        "query/context": site.client.post("/v1/imports?importer=users&context=1", content=USERS),
        "query/pageSize": site.client.get("/v1/imports?pageSize=1&pageSize=2"),
    }
    told = {place: (answer.status_code, answer.json()["errors"][0]["at"]) for place, answer in answers.items()}
    assert told == {place: (422, place) for place in answers}
    assert (site.client.get("/v1/imports").json()["items"], stored(site)) == ([], [])


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("importer=user", 404),
        (f"importer=users&config={quote(_TEMPLATE)}", 404),
        ("importer=users&fileName=other.csv", 422),
    ],
)
def test_what_the_head_of_a_request_tells_is_refused_before_its_file_has_come(
    site: Site, asked: str, status: int
) -> None:
    assert sent(site, key="k-1").status_code == 202
    more = b"Host: 127.0.0.1\r\nContent-Length: 100000\r\nIdempotency-Key: k-1\r\n\r\n"
    with socket.create_connection((site.client.base_url.host, site.client.base_url.port or 80), timeout=30) as to:
        to.sendall(f"POST /v1/imports?{asked} HTTP/1.1\r\n".encode() + more)
        assert to.recv(100).startswith(f"HTTP/1.1 {status}".encode())


def test_what_is_refused_after_it_was_stored_leaves_no_file_but_those_of_jobs(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(site, key="k-1")
    kept = stored(site)
    assert sent(site, "email\nx@example.org\n", key="k-1").json()["code"] == "KEY_REUSED"
    assert stored(site) == kept

    def unforeseen(*_: object, **__: object) -> None:
        """As if both came at once."""

    monkeypatch.setattr("rowcall.store.requests.foresee", unforeseen)
    for text in ("email\nx@example.org\n", USERS):
        assert sent(site, text, key="k-1", config='{"dryRun": true}').json()["code"] == "KEY_REUSED"
        assert stored(site) == kept


def test_texts_of_a_form_may_have_names_of_files(site: Site) -> None:
    parts = {"config": ("blob", '{"dryRun": true}', "application/json"), "file": ("users.csv", USERS)}
    answer = site.client.post("/v1/imports", data={"importer": "users"}, files=parts)
    assert (answer.status_code, answer.json()["dryRun"]) == (202, True)


def test_jobs_are_listed_page_by_page(site: Site) -> None:
    made = [sent(site, key=str(number)).json()["id"] for number in range(5)]
    found: list[str] = []
    after: dict[str, str] = {}
    while True:
        answer = site.client.get("/v1/imports", params={"pageSize": 2, **after})
        assert answer.headers["x-total-count"] == "5"
        found += [job["id"] for job in answer.json()["items"]]
        if answer.json()["next"] is None:
            break
        after = {"after": answer.json()["next"]}
    assert found == made[::-1]
    assert site.client.get("/v1/imports", params={"after": "x"}).json()["code"] == "BAD_CURSOR"
    assert site.client.get("/v1/imports", params={"pageSize": 0}).status_code == 422


def test_b10_requests_have_a_name(site: Site) -> None:
    given = site.client.get("/v1/imports", headers={"X-Request-ID": "abc-1"})
    assert given.headers["x-request-id"] == "abc-1"
    assert site.client.get("/v1/imports", headers={"X-Request-ID": "a b"}).headers["x-request-id"] != "a b"


def test_nudges_that_were_lost_are_made_good(site: Site) -> None:
    job = sent(site).json()
    with site.database.connect() as connection:
        connection.execute("DELETE FROM rowcall_queue.procrastinate_jobs")
        site.worker.recover()
        site.worker.recover()
        found = connection.execute("SELECT args ->> 'job_id' FROM rowcall_queue.procrastinate_jobs").fetchall()
    assert found == [(job["id"],)]


def test_unknown_jobs_and_places_are_not_found(site: Site) -> None:
    unknown = site.client.get("/v1/imports/00000000-0000-7000-8000-000000000001")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "JOB_NOT_FOUND")
    assert site.client.get("/v2").json()["code"] == "NO_SUCH_PLACE"


@contextmanager
def little_room(size: int) -> Generator[None]:
    """No file of this process can grow beyond so many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_k21_there_is_no_job_on_bytes_that_could_not_be_stored(site: Site) -> None:
    text = USERS + "".join(f"p{n}@example.org,P{n},reader,true\n" for n in range(500))
    with little_room(5_000):
        refused = sent(site, text, key="once")
    assert (refused.status_code, refused.json()["code"]) == (500, "SYSTEM_ERROR")
    assert site.client.get("/v1/imports").json()["items"] == []
    assert stored(site) == []
    assert sent(site, text, key="once").status_code == 202


def test_parameters_that_are_not_known_are_refused_instead_of_passed_over(site: Site) -> None:
    asked = {"importer": "users", "dryRun": "true"}
    answer = site.client.post("/v1/imports", params=asked, content=b"email,name\na@x.org,A\n")
    assert (answer.status_code, answer.json()["detail"]) == (422, "There is no parameter 'dryRun'.")
    assert site.client.get("/v1/imports").json()["items"] == []
    asked = {"importer": "users", "config": '{"dryRun": true}'}
    job = site.client.post("/v1/imports", params=asked, content=b"email,name\na@x.org,A\n").json()
    assert job["dryRun"]
    answer = site.client.get(f"/v1/imports/{job['id']}/items", params={"stauses": "failed"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "There is no parameter 'stauses'.")
    assert answer.json()["errors"] == [{"at": "query/stauses", "message": "There is no such parameter"}]
    assert "statuses" in answer.json()["hint"]


def test_no_route_passes_over_a_parameter_that_it_does_not_declare(site: Site) -> None:
    some = "00000000-0000-7000-8000-000000000000"
    for path, item in site.client.get("/openapi.json").json()["paths"].items():
        for method, operation in item.items():
            if not path.startswith("/v1/"):
                continue
            where = re.sub(r"{(\w+)}", lambda name: "1" if name[1] == "row" else some, path)
            answer = site.client.request(method, where, params={"nope": "1"}, headers={"Tus-Resumable": "1.0.0"})
            assert answer.status_code == 422, (method, path, answer.text)
            assert "422" in operation["responses"], (method, path)
            if method != "head":
                assert answer.json()["errors"] == [{"at": "query/nope", "message": "There is no such parameter"}]


def test_a_file_that_is_brought_in_tells_how_much_of_it_is(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowcall.engine.advance._NOTED_EVERY", 0)
    seen: list[float] = []
    real = jobs.note_percent_read

    def noted(connection: Any, job: Any, percent: float) -> None:
        real(connection, job, percent)
        seen.append(site.client.get(f"/v1/imports/{job.id}").json()["progress"]["percent"])

    monkeypatch.setattr(jobs, "note_percent_read", noted)
    text = USERS + "".join(f"p{n}@example.org,P{n},reader,true\n" for n in range(500))
    job = sent(site, text).json()
    assert job["progress"]["percent"] is None
    site.worker.advance(job["id"])
    assert len(seen) > 5
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 100
    assert site.client.get(f"/v1/imports/{job['id']}").json()["progress"]["percent"] == 100


WRONG = '{"mode": "replace", "header": -1, "columns": {}}'


@pytest.mark.parametrize("way", ["form", "raw", "url", "tus"])
def test_all_that_is_wrong_with_a_configuration_is_told_with_its_place(site: Site, way: str) -> None:
    if way == "form":
        at, answer = "body/config", sent(site, config=WRONG)
    elif way == "raw":
        at = "query/config"
        answer = site.client.post("/v1/imports", params={"importer": "users", "config": WRONG}, content=USERS)
    elif way == "url":
        order = {"url": "https://example.org/users.csv", "importer": "users", "config": json.loads(WRONG)}
        at, answer = "body/config", site.client.post("/v1/imports", json=order)
    else:
        at, told = "header/Upload-Metadata/config", {"importer": "users", "config": WRONG}
        metadata = ",".join(f"{name} {base64.b64encode(text.encode()).decode()}" for name, text in told.items())
        headers = {"Tus-Resumable": "1.0.0", "Upload-Length": "5", "Upload-Metadata": metadata}
        answer = site.client.post("/v1/uploads", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "BAD_REQUEST")
    found = {each["at"]: each["message"] for each in answer.json()["errors"]}
    assert found.keys() == {f"{at}/mode", f"{at}/header", f"{at}/columns"}
    assert "insert" in found[f"{at}/mode"]


def test_fields_that_an_importer_does_not_have_are_told_with_their_place(site: Site) -> None:
    config = '{"constants": {"nmae": "x", "rolle": "y", "role": "reader"}, "mapping": {"Mail": "emial", "x": ""}}'
    answer = sent(site, config=config)
    assert (answer.status_code, answer.json()["code"]) == (422, "BAD_MAPPING")
    assert [each["at"] for each in answer.json()["errors"]] == [
        "body/config/constants/nmae",
        "body/config/constants/rolle",
        "body/config/mapping/Mail",
    ]


def test_constants_that_their_fields_cannot_read_are_told_with_their_place(site: Site) -> None:
    answer = sent(site, config='{"constants": {"created_at": "soon", "active": "perhaps", "role": "reader"}}')
    assert (answer.status_code, answer.json()["code"]) == (422, "BAD_MAPPING")
    told = {each["at"]: each["message"] for each in answer.json()["errors"]}
    assert told.keys() == {"body/config/constants/created_at", "body/config/constants/active"}
    assert "'soon' is not a date and time" in told["body/config/constants/created_at"]


def test_hints_of_jobs_that_came_over_http_are_for_http(site: Site) -> None:
    job = sent(site, "post,name\na@x.org,A\n").json()
    site.worker.advance(job["id"])
    error = site.client.get(f"/v1/imports/{job['id']}").json()["error"]
    assert error["code"] == "MISSING_COLUMNS"
    assert "--map" not in error["hint"]
    assert '"mapping"' in error["hint"]
    assert "--map" in error["commandHint"]
    unknown = site.client.get("/v1/imports/00000000-0000-7000-8000-000000000000").json()
    assert "rowcall" not in unknown["hint"]
    assert "GET /v1/imports" in unknown["hint"]
    assert "rowcall jobs" in unknown["commandHint"]
