"""One active job for each scope over HTTP, whoever brings files and however many at once (E2, E7, A6)."""

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rowcall.client import Client, ImportConfig
from rowcall.errors import RequestRefused
from rowcall.store.db import Database

from .scoped import Yard, open_yard

ROWS = "id,tonnes\n1,10\n2,20\n"
ENDED = ("SUPERSEDED", "COMPLETED", "COMPLETED_WITH_ERRORS", "INVALID", "CANCELLED", "FAILED")


@pytest.fixture
def yard(database: Database, tmp_path: Path) -> Generator[Yard]:
    with open_yard(database, tmp_path) as yard:
        yield yard


def test_e2_a_newer_upload_supersedes_and_the_older_can_t_be_submitted(yard: Yard) -> None:
    first = yard.works(yard.sends(ROWS).json())
    assert (first["state"], first["context"], first["scope"]) == ("VALIDATED", {"registration": "R1"}, "R1")
    answer = yard.sends("id\n3\n")
    second = answer.json()
    assert (answer.status_code, second["supersedes"]) == (202, [{"id": first["id"], "number": first["number"]}])
    seen = yard.sees(first)
    assert (seen["state"], seen["allowed"], seen["counts"]["cancelled"]) == ("SUPERSEDED", [], 2)
    assert seen["supersededBy"] == {"id": second["id"], "number": second["number"], "account": "ann"}
    refused = yard.asks(first, "submit")
    told = refused.json()
    assert (refused.status_code, told["code"], told["state"]) == (409, "SUPERSEDED", "SUPERSEDED")
    assert told["job"] == {"id": second["id"], "number": second["number"]}
    assert second["number"] in told["detail"]
    for move in ("pause", "resume", "cancel", "start", "kickoff"):
        assert yard.asks(first, move).status_code == 409
    receipt = yard.ask("GET", f"/v1/imports/{first['id']}/receipt").json()
    assert (receipt["state"], receipt["balanced"], receipt["counts"]["cancelled"]) == ("SUPERSEDED", True, 2)
    yard.works(second)
    assert yard.asks(second, "submit").status_code == 202
    assert yard.works(second)["state"] == "COMPLETED"
    assert yard.sql("SELECT id, registration FROM loads") == [(3, "R1")]


def test_e2_an_upload_is_refused_while_one_is_submitting(yard: Yard) -> None:
    first = yard.works(yard.sends(ROWS).json())
    yard.asks(first, "submit")
    refused = yard.sends("id\n3\n")
    told = refused.json()
    assert (refused.status_code, told["code"], told["state"]) == (409, "SCOPE_BUSY", "PROCESSING")
    assert told["job"] == {"id": first["id"], "number": first["number"]}
    assert yard.works(first)["state"] == "COMPLETED"
    assert yard.sends("id\n3\n").status_code == 202


def test_an_upload_in_pieces_that_was_refused_for_now_is_sent_again(yard: Yard) -> None:
    first = yard.works(yard.sends(ROWS).json())
    told = {"importer": "loads", "context": '{"registration": "R1"}', "filename": "l.csv"}
    metadata = ",".join(f"{name} {base64.b64encode(text.encode()).decode()}" for name, text in told.items())
    tus = {"Tus-Resumable": "1.0.0"}
    asked = {**tus, "Upload-Length": "5", "Upload-Metadata": metadata}
    begun = yard.ask("POST", "/v1/uploads", headers=asked)
    yard.asks(first, "submit")
    late = yard.ask("POST", "/v1/uploads", headers=asked)
    assert (late.status_code, late.json()["code"]) == (409, "SCOPE_BUSY")  # before a byte has come
    place, kind = begun.headers["location"], {"Content-Type": "application/offset+octet-stream"}
    refused = yard.ask("PATCH", place, headers={**tus, **kind, "Upload-Offset": "0"}, content="id\n3\n")
    assert (refused.status_code, refused.json()["code"]) == (409, "SCOPE_BUSY")
    yard.works(first)
    made = yard.ask("PATCH", place, headers={**tus, **kind, "Upload-Offset": "5"}, content="")
    assert made.status_code == 204
    job = yard.ask("GET", made.headers["rowcall-import"]).json()
    assert (job["context"], job["file"]["size"]) == ({"registration": "R1"}, 5)


def test_replays_supersede_nothing_and_are_answered_while_the_job_writes(yard: Yard) -> None:
    first = yard.sends(ROWS, key="k1")
    second = yard.sends("id\n3\n", key="k2")
    again = yard.sends(ROWS, key="k1")
    assert (again.status_code, again.json()["id"], again.json()["state"]) == (200, first.json()["id"], "SUPERSEDED")
    assert yard.sees(second.json())["state"] == "UPLOADED"
    yard.works(second.json())
    yard.asks(second.json(), "submit")
    busy = yard.sends("id\n3\n", key="k2")
    assert (busy.status_code, busy.json()["id"], busy.json()["state"]) == (200, second.json()["id"], "PROCESSING")
    assert yard.sends(ROWS, "R2", key="k1").json()["code"] == "KEY_REUSED"  # the context is part of what was asked


def test_whoever_brings_it_supersedes_what_others_of_the_organisation_brought(yard: Yard) -> None:
    anns = yard.works(yard.sends(ROWS, who="ann").json())
    zoes = yard.works(yard.sends(ROWS, who="zoe").json(), "zoe")
    bens = yard.sends("id\n3\n", who="ben").json()
    assert yard.sees(anns)["state"] == "SUPERSEDED"
    assert yard.sees(anns)["supersededBy"]["account"] == "ben"
    assert yard.sees(zoes, "zoe")["state"] == "VALIDATED"  # another organisation's registration R1
    assert yard.ask("GET", f"/v1/imports/{bens['id']}", "ann").status_code == 404  # named, but not theirs to read
    yard.works(bens, "ben")
    yard.asks(bens, "submit", "ben")
    refused = yard.sends(ROWS, who="ann").json()
    assert (refused["code"], refused["job"]["number"]) == ("SCOPE_BUSY", bens["number"])
    audit = yard.ask("GET", "/v1/audit", "ada", params={"action": "import.supersede"}).json()["items"]
    assert [(entry["account"], entry["subject"], entry["details"]) for entry in audit] == [
        ("ben", anns["id"], {"number": anns["number"], "by": bens["number"]})
    ]


@pytest.mark.parametrize("how", ["form", "query", "json", "config"])
def test_a6_the_context_comes_with_any_kind_of_upload(yard: Yard, how: str) -> None:
    context = json.dumps({"registration": "R5"})
    form = {"importer": "loads"}
    match how:
        case "form":
            made = yard.ask("POST", "/v1/imports", data={**form, "context": context}, files={"file": ROWS})
        case "query":
            kind = {"content-type": "text/csv"}
            made = yard.ask("POST", "/v1/imports", params={**form, "context": context}, content=ROWS, headers=kind)
        case "json":
            asked = {"url": "https://192.0.2.1/l.csv", "importer": "loads", "context": {"registration": "R5"}}
            refused = yard.ask("POST", "/v1/imports", json=asked).json()
            assert refused["code"] == "URL_REFUSED"  # but for that, it would do
            return
        case _:
            config = {"config": json.dumps({"context": {"registration": "R5"}})}
            made = yard.ask("POST", "/v1/imports", data={**form, **config}, files={"file": ROWS})
    assert (made.status_code, made.json()["context"], made.json()["scope"]) == (202, {"registration": "R5"}, "R5")


@pytest.mark.parametrize("context", ["", "{}", '{"other": "R1"}', '{"registration": " "}'])
def test_contexts_that_the_importer_doesn_t_take_are_refused(yard: Yard, context: str) -> None:
    form = {"importer": "loads", "context": context}
    answer = yard.ask("POST", "/v1/imports", data=form, files={"file": ("l.csv", ROWS)})
    assert (answer.status_code, answer.json()["code"]) == (422, "BAD_CONTEXT")
    assert yard.sql("SELECT count(*) FROM rowcall.job") == [(0,)]


@pytest.mark.parametrize("context", ["[]", "null", '{"registration": 5}', '{"registration": {"a": "b"}}', "{", '"R1"'])
def test_contexts_that_are_no_flat_objects_of_texts_are_refused(yard: Yard, context: str) -> None:
    form = {"importer": "loads", "context": context}
    answer = yard.ask("POST", "/v1/imports", data=form, files={"file": ("l.csv", ROWS)})
    assert (answer.status_code, answer.json()["code"]) == (422, "BAD_REQUEST")
    assert answer.json()["errors"][0]["at"].startswith("body/context")


def test_jobs_are_listed_by_scope(yard: Yard) -> None:
    first, other = yard.sends(ROWS).json(), yard.sends(ROWS, "R2").json()
    second = yard.sends("id\n3\n").json()
    listed = yard.ask("GET", "/v1/imports", params={"importer": "loads", "scope": "R1"})
    assert [job["id"] for job in listed.json()["items"]] == [second["id"], first["id"]]
    assert listed.headers["x-total-count"] == "2"
    with Client(yard.url, yard.keys["ann"]) as client:
        assert [str(job.id) for job in client.jobs(scope="R2")] == [other["id"]]


def test_the_client_tells_which_job_is_in_the_way(yard: Yard) -> None:
    with Client(yard.url, yard.keys["ann"]) as client:
        first = client.import_file(ROWS.encode(), "loads", ImportConfig(context={"registration": "R1"}))
        second = client.import_file(b"id\n3\n", "loads", ImportConfig(context={"registration": "R1"}))
        assert [each.number for each in second.supersedes] == [first.number]
        newer = client.job(first).superseded_by
        assert newer is not None
        assert newer.number == second.number
        with pytest.raises(RequestRefused) as caught:
            client.submit(first)
        assert (caught.value.code, second.number in caught.value.message) == ("SUPERSEDED", True)
        importer = client.importer("loads")
        assert ([field.name for field in importer.context], importer.scope) == (["registration"], ["registration"])


def test_webhooks_and_logs_hear_of_superseded_jobs(yard: Yard) -> None:
    with yard.database.connect() as connection:
        connection.execute(
            "INSERT INTO rowcall.webhook (id, organisation_id, url, secret, states) "
            "SELECT gen_random_uuid(), id, 'https://example.org', 's', '{SUPERSEDED}' FROM rowcall.organisation"
        )
    first = yard.sends(ROWS).json()
    yard.sends("id\n3\n")
    events = yard.ask("GET", f"/v1/imports/{first['id']}/events", headers={"Accept": "application/json"})
    assert "SUPERSEDED" in events.text
    assert yard.sql("SELECT count(*) FROM rowcall.webhook_delivery WHERE event_id IS NOT NULL") == [(1,)]


def test_e2_e7_fifty_uploads_and_submits_at_once_leave_one_active_and_none_half_done(yard: Yard) -> None:
    """Every file brings ten rows of its own number: what is in the table tells which jobs have written."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            jobs = yard.ask("GET", "/v1/imports", "ada", params={"pageSize": 200}).json()["items"]
            for job in jobs:
                if job["state"] in ("UPLOADED", "PROCESSING", "VALIDATING", "COLUMN_MAPPING"):
                    yard.worker.advance(job["id"])
            time.sleep(0.01)

    def upload(number: int) -> tuple[int, Any]:
        rows = "".join(f"{10 * number + row},{number}\n" for row in range(10))
        answer = yard.sends("id,tonnes\n" + rows, who=("ann", "ben")[number % 2], key=f"k{number}")
        if answer.status_code == 202 and number % 7 == 0:  # some are sent twice
            assert yard.sends("id,tonnes\n" + rows, who=("ann", "ben")[number % 2], key=f"k{number}").status_code == 200
        return answer.status_code, answer.json()

    def submit(_: int) -> list[int]:
        found = yard.ask("GET", "/v1/imports", "ada", params={"pageSize": 10}).json()["items"]  # the newest: they race
        return [yard.asks(job, "submit", "ada").status_code for job in found]

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    with ThreadPoolExecutor(25) as pool:
        uploads = [pool.submit(upload, number) for number in range(50)]
        submits = [pool.submit(submit, number) for number in range(50)]
        uploaded = [each.result() for each in uploads]
        submitted = Counter(status for each in submits for status in each.result())
    over.set()
    for thread in threads:
        thread.join()
    assert {status for status, _ in uploaded} <= {202, 409}
    assert all(told["code"] == "SCOPE_BUSY" for status, told in uploaded if status == 409)
    assert set(submitted) <= {202, 409}
    assert sum(state not in ENDED for (state,) in yard.sql("SELECT state FROM rowcall.job")) <= 1
    last = yard.sends("id,tonnes\n9999,9999\n", who="ada")  # finish what is left
    if last.status_code == 409:
        yard.worker.advance(last.json()["job"]["id"])
        last = yard.sends("id,tonnes\n9999,9999\n", who="ada")
    assert last.status_code == 202
    states = dict(yard.sql("SELECT id, state FROM rowcall.job"))
    assert sum(state not in ENDED for state in states.values()) == 1
    assert set(states.values()) <= {"SUPERSEDED", "COMPLETED", "UPLOADED"}
    written = yard.sql("SELECT tonnes, count(*) FROM loads GROUP BY 1")
    assert {count for _, count in written} <= {10}
    completed = yard.sql(
        "SELECT DISTINCT l.tonnes FROM loads l JOIN rowcall.outcome o ON o.target_key[1]::int = l.id "
        "JOIN rowcall.job j ON j.id = o.job_id AND j.state = 'COMPLETED'"
    )
    assert sorted(completed) == sorted((tonnes,) for tonnes, _ in written)
    left = "SELECT count(*) FROM rowcall.outcome o JOIN rowcall.job j ON j.id = o.job_id WHERE j.state = 'SUPERSEDED'"
    assert yard.sql(left) == [(0,)]
    assert sum(state == "COMPLETED" for state in states.values()) == len(written)
