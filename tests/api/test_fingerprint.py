"""Whoever may see a job sees how its file differs from the target, and lets it go on or ends it (A7)."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from rowcall import Fingerprint, Importer, Integer, Text, Update
from rowcall.client import Client
from rowcall.store.db import Database

from .scoped import Yard, open_yard


class Checked(Importer):
    """Loads that are known by their note."""

    name = "checked"
    target = "loads"
    key = "id", "registration"
    on_match = Update()
    context = ("registration",)
    fingerprint = Fingerprint(identity=("note",))

    id = Integer(required=True)
    registration = Text(required=True)
    tonnes = Integer(min=0)
    note = Text()


@pytest.fixture
def yard(database: Database, tmp_path: Path) -> Generator[Yard]:
    with open_yard(database, tmp_path, Checked) as yard:
        with database.connect() as connection:
            connection.execute("INSERT INTO loads SELECT n, 'R1', 1, 'load ' || n FROM generate_series(1, 20) n")
        yield yard


def sent(yard: Yard, wrong: int, who: str = "ann") -> dict[str, Any]:
    text = "".join(f"{n},5,{'glass' if n <= wrong else f'Load {n}'}\n" for n in range(1, 21))
    made = yard.sends("id,tonnes,note\n" + text, who=who, importer="checked")
    return yard.works(made.json(), who)


def changed(yard: Yard) -> int:
    return yard.sql("SELECT count(*) FROM loads WHERE tonnes = 5")[0][0]


def test_a7_a_warned_job_is_acknowledged_and_goes_on(yard: Yard) -> None:
    job = sent(yard, 2)
    assert (job["state"], job["allowed"]) == ("FINGERPRINT_WARN", ["acknowledge", "cancel", "reopen"])
    found = yard.ask("GET", f"/v1/imports/{job['id']}/fingerprint").json()
    assert (found["verdict"], found["matched"], found["mismatched"]) == ("warn", 20, 2)
    assert found["findings"][0] == {
        "row": 1,
        "line": 2,
        "key": ["1", "R1"],
        "field": "note",
        "found": "glass",
        "expected": "load 1",
    }
    assert changed(yard) == 0
    answer = yard.asks(job, "fingerprint/acknowledge")
    assert (answer.status_code, answer.json()["state"]) == (202, "FINGERPRINT_CHECK")
    assert yard.works(job)["state"] == "COMPLETED"
    assert changed(yard) == 20
    again = yard.asks(job, "fingerprint/acknowledge")
    assert (again.status_code, again.json()["code"], again.json()["state"]) == (409, "WRONG_STATE", "COMPLETED")
    seen = yard.ask("GET", f"/v1/imports/{job['id']}/fingerprint").json()
    assert (seen["acknowledgedBy"], seen["acknowledgedAt"] is not None) == ("ann", True)
    receipt = yard.ask("GET", f"/v1/imports/{job['id']}/receipt").json()["fingerprint"]
    assert receipt == {name: value for name, value in seen.items() if name != "findings"}
    audit = yard.ask("GET", "/v1/audit", "ada", params={"action": "import.acknowledge"}).json()["items"]
    assert [(entry["account"], entry["subject"]) for entry in audit] == [("ann", job["id"])]


def test_a7_delete_acknowledges_an_aborted_job_which_has_failed_then(yard: Yard) -> None:
    job = sent(yard, 10)
    assert (job["state"], job["allowed"], job["error"]["code"]) == (
        "FINGERPRINT_ABORT",
        ["cancel"],
        "FINGERPRINT_MISMATCH",
    )
    assert yard.asks(job, "fingerprint/acknowledge").status_code == 409
    ended = yard.ask("DELETE", f"/v1/imports/{job['id']}")
    assert (ended.status_code, ended.json()["state"]) == (202, "FAILED")
    assert ended.json()["error"]["code"] == "FINGERPRINT_MISMATCH"
    assert ("DELETE" in job["error"]["hint"], "DELETE" in ended.json()["error"]["hint"]) == (True, False)
    found = yard.ask("GET", f"/v1/imports/{job['id']}/fingerprint").json()
    assert (found["verdict"], len(found["findings"]), changed(yard)) == ("abort", 10, 0)
    assert yard.ask("DELETE", f"/v1/imports/{job['id']}").status_code == 409


def test_nobody_else_sees_it_or_lets_it_go_on(yard: Yard) -> None:
    job = sent(yard, 2)
    for who in ("ben", "zoe"):
        assert yard.ask("GET", f"/v1/imports/{job['id']}/fingerprint", who).status_code == 404
        assert yard.asks(job, "fingerprint/acknowledge", who).status_code == 404
    assert yard.ask("GET", f"/v1/imports/{job['id']}/fingerprint", "ada").json()["mismatched"] == 2
    assert yard.sees(job)["state"] == "FINGERPRINT_WARN"


def test_the_client_waits_sees_and_acknowledges(yard: Yard) -> None:
    job = sent(yard, 2)
    with Client(yard.url, yard.keys["ann"]) as client:
        assert client.wait(job["id"]).state == "FINGERPRINT_WARN"
        assert [finding.row for finding in client.fingerprint(job["number"]).findings] == [1, 2]
        assert client.acknowledge(job["number"]).state == "FINGERPRINT_CHECK"
        receipt = client.receipt(job["number"])
        assert receipt.fingerprint is not None
        assert (receipt.fingerprint.verdict, receipt.fingerprint.acknowledged_by) == ("warn", "ann")
    other = sent(yard, 0)
    assert other["state"] == "COMPLETED"
