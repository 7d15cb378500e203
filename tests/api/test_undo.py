"""What a job wrote can be taken back over HTTP: looked at first, done by workers, told on a receipt (X2)."""

from typing import Any

from prometheus_client import CollectorRegistry

from rowcall.client import Client
from rowcall.client.answers import View
from rowcall.engine.observe import listening
from rowcall.telemetry.metrics import WorkMetrics

from .conftest import Site
from .test_imports import sent
from .test_moves import MANY, ROWS, SLOW, look, until, working


def path(job: dict[str, Any]) -> str:
    return f"/v1/imports/{job['id']}/undo"


def imported(site: Site, text: str = MANY) -> dict[str, Any]:
    job = sent(site, text).json()
    site.worker.advance(job["id"])
    return look(site, job)


def count(site: Site) -> int:
    with site.database.connect() as connection:
        return (connection.execute("SELECT count(*) FROM users").fetchone() or (0,))[0]


def test_a_job_is_looked_at_and_then_taken_back(site: Site) -> None:
    job = imported(site)
    with site.database.connect() as connection:
        connection.execute("UPDATE users SET name = 'Mine' WHERE email = 'p7@example.org'")
    seen = site.client.get(path(job)).json()
    assert (seen["possible"], seen["reversible"], seen["changed"]) == (True, ROWS - 1, 1)
    [sample] = seen["samples"]
    assert (sample["row"], sample["issue"]["code"]) == (8, "CHANGED_SINCE")
    assert {"name": "name", "before": None, "now": "Mine"} in sample["fields"]
    asked = site.client.post(path(job), json={})
    assert (asked.status_code, asked.json()["state"]) == (202, "REVERTING")
    again = site.client.post(path(job), json={})
    assert (again.status_code, again.json()["code"], again.json()["state"]) == (409, "WRONG_STATE", "REVERTING")
    site.worker.advance(job["id"])
    now = look(site, job)
    assert (now["state"], now["counts"]["created"], now["counts"]["reverted"]) == ("COMPLETED", 1, ROWS - 1)
    assert count(site) == 1
    receipt = site.client.get(f"{path(job)}/receipt").json()
    assert (receipt["deleted"], receipt["changed"], receipt["number"]) == (ROWS - 1, 1, 1)
    kept = site.client.get(f"/v1/imports/{job['id']}/items", params={"code": "CHANGED_SINCE"}).json()["items"]
    assert [(row["row"], row["status"]) for row in kept] == [(8, "created")]
    audit = [entry["action"] for entry in site.client.get("/v1/audit").json()["items"]]
    assert audit.count("import.undo") == 1


def test_undo_twice_is_409_and_has_no_effect(site: Site) -> None:
    job = imported(site)
    site.client.post(path(job), json={})
    site.worker.advance(job["id"])
    assert (look(site, job)["state"], look(site, job)["allowed"]) == ("REVERTED", [])
    for answer in (site.client.post(path(job), json={}), site.client.get(path(job))):
        assert (answer.status_code, answer.json()["code"], answer.json()["allowed"]) == (409, "WRONG_STATE", [])
    assert site.client.get(f"{path(job)}/receipt", params={"number": 2}).json()["code"] == "UNDO_NOT_FOUND"
    assert site.client.get(f"{path(job)}/receipt").json()["deleted"] == ROWS


def test_what_has_written_nothing_has_nothing_to_take_back(site: Site) -> None:
    job = sent(site, MANY, config='{"dryRun": true}').json()
    site.worker.advance(job["id"])
    assert site.client.post(path(job), json={}).json()["code"] == "WRONG_STATE"
    failed = imported(site, "email,name,role,active\nno,no,no,no\n")
    assert (look(site, failed)["allowed"], look(site, imported(site))["allowed"][-1]) == (["edit", "reprocess"], "undo")
    seen = site.client.get(path(failed)).json()
    assert (seen["possible"], "has written no row" in seen["reason"]) == (False, True)
    answer = site.client.post(path(failed), json={})
    assert (answer.status_code, answer.json()["code"]) == (409, "UNDO_NOT_POSSIBLE")
    assert site.client.get(f"{path(failed)}/receipt").status_code == 404
    assert site.client.get(path(failed), params={"statuses": "broken"}).status_code == 400
    assert site.client.post(path(failed), json={"what": 1}).status_code == 422


def test_an_undo_of_rows_that_are_not_there_is_refused(site: Site) -> None:
    job = imported(site)
    asked: list[dict[str, Any]] = [{"rows": [ROWS + 1]}, {"statuses": ["updated"]}, {"text": "nowhere"}]
    for which in asked:
        seen = site.client.get(path(job), params={**which, "statuses": ",".join(which.get("statuses", []))}).json()
        assert (seen["possible"], seen["reversible"]) == (False, 0)
        answer = site.client.post(path(job), json=which)
        assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST")
        assert answer.json()["detail"] == seen["reason"]
    assert look(site, job)["state"] == "COMPLETED"
    assert site.client.get(f"{path(job)}/receipt").status_code == 404


def test_an_undo_can_be_paused_and_ended_early(site: Site) -> None:
    job = imported(site)
    site.client.post(path(job), json={"statuses": ["created"]})
    paused = site.client.post(f"/v1/imports/{job['id']}/pause").json()
    assert (paused["state"], paused["allowed"]) == ("PAUSED", ["resume", "kickoff", "cancel"])
    site.worker.advance(job["id"])
    assert look(site, job)["counts"]["reverted"] == 0
    assert site.client.post(f"/v1/imports/{job['id']}/resume").json()["state"] == "REVERTING"
    ended = site.client.post(f"/v1/imports/{job['id']}/cancel").json()
    assert (ended["state"], ended["counts"]["created"]) == ("COMPLETED", ROWS)
    assert site.client.get(f"{path(job)}/receipt").json()["deleted"] == 0


def test_the_client_takes_back_a_part_and_then_the_rest(site: Site) -> None:
    job = imported(site)
    with Client(str(site.client.base_url)) as client:
        assert client.preview_undo(job["number"], rows=[1, 2]).to_delete == 2
        client.undo(job["number"], View(text="p1@"))
        site.worker.advance(job["id"])
        assert client.wait(job["number"], timeout=10).counts.reverted == 1
        assert client.preview_undo(job["number"]).reverted == 1
        client.undo(job["number"])
        site.worker.advance(job["id"])
        assert client.wait(job["number"], timeout=10).state == "REVERTED"
        assert [undo.deleted for undo in client.receipt(job["number"]).undos] == [1, ROWS - 1]
        first = client.undo_receipt(job["number"], 1)
        assert (first.which, first.state) == ({"text": "p1@"}, "COMPLETED")
        assert client.undo_receipt(job["number"]).state == "REVERTED"
        assert {item.status for item in client.items(job["number"])} == {"reverted"}


def test_a_cancelled_job_is_taken_back_as_far_as_it_came(site: Site) -> None:
    with site.database.connect() as connection:
        connection.execute(SLOW.format("users").encode())
    job = sent(site, MANY).json()
    with working(site, job):
        until(site, job, lambda now: now["counts"]["created"] > 0)
        site.client.delete(f"/v1/imports/{job['id']}")
    ended = look(site, job)
    written = ended["counts"]["created"]
    assert (ended["state"], 0 < written < ROWS) == ("CANCELLED", True)
    assert site.client.get(path(job)).json()["toDelete"] == written
    site.client.post(path(job), json={"rows": [1]})
    site.worker.advance(job["id"])
    part = look(site, job)
    assert (part["state"], part["counts"]["reverted"]) == ("CANCELLED", 1)
    assert part["counts"]["cancelled"] == ROWS - written
    site.client.post(path(job), json={})
    site.worker.advance(job["id"])
    now = look(site, job)
    assert (now["state"], now["counts"]["reverted"], now["counts"]["cancelled"]) == (
        "REVERTED",
        written,
        ROWS - written,
    )
    assert count(site) == 0
    receipt = site.client.get(f"/v1/imports/{job['id']}/receipt").json()
    assert (receipt["balanced"], [undo["deleted"] for undo in receipt["undos"]]) == (True, [1, written - 1])


def test_rows_that_were_taken_back_are_counted_for_monitoring(site: Site) -> None:
    job = imported(site)
    registry = CollectorRegistry()
    with listening(WorkMetrics(registry)):
        site.client.post(path(job), json={"rows": [1, 2]})
        site.worker.advance(job["id"])
        site.client.post(path(job), json={})
        site.worker.advance(job["id"])

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"importer": "users", **labels})

    assert value("rowcall_rows_total", status="reverted") == ROWS
    assert value("rowcall_rows_total", status="created") is None  # they were counted when they were imported
    moved = [
        value("rowcall_job_transitions_total", **{"from": "REVERTING", "to": to}) for to in ("COMPLETED", "REVERTED")
    ]
    assert moved == [1, 1]
