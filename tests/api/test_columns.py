"""Columns over HTTP: read, said, confirmed, reopened; templates, remembered decisions (A2, A3, A5, A6, X5, X10)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from .conftest import Site
from .test_imports import sent
from .town import UNKNOWN, Town

ASK = '{"ask": "unsure"}'
FILE = "Kontakt,First,Last,shoe\nann@example.org,Ann,Lee,\n,Bob,Moe,44\nno address,Cid,Roe,45\n"


def waiting(site: Site, text: str = FILE, config: str = ASK) -> dict[str, Any]:
    """A job that has come as far as it can."""
    job = sent(site, text, config=config).json()
    site.worker.advance(job["id"])
    return look(site, job)


def look(site: Site, job: dict[str, Any]) -> dict[str, Any]:
    return site.client.get(f"/v1/imports/{job['id']}").json()


def columns(site: Site, job: dict[str, Any]) -> dict[str, Any]:
    return site.client.get(f"/v1/imports/{job['id']}/column-mappings").json()


def put(site: Site, job: dict[str, Any], **said: Any) -> httpx.Response:
    return site.client.put(f"/v1/imports/{job['id']}/column-mappings", json=said)


def post(site: Site, job: dict[str, Any], what: str, **more: Any) -> httpx.Response:
    return site.client.post(f"/v1/imports/{job['id']}/column-mappings/{what}", **more)


def settled(site: Site) -> dict[str, Any]:
    """A job whose columns were said and confirmed, and that is done."""
    job = waiting(site)
    put(
        site,
        job,
        updates=[{"position": 0, "targetField": "email"}],
        joins=[{"targetField": "name", "positions": [1, 2]}],
    )
    assert post(site, job, "confirm").status_code == 202
    site.worker.advance(job["id"])
    return look(site, job)


def test_a2_columns_are_read_said_and_confirmed(site: Site) -> None:
    job = waiting(site)
    assert (job["state"], job["wish"], job["allowed"]) == (
        "COLUMN_MAPPING",
        "hold",
        ["map", "confirm", "pause", "cancel"],
    )
    found = columns(site, job)
    assert (found["waiting"], found["rows"]) == (True, 3)
    assert "email" in {each["field"] for each in found["missing"]}
    refused = post(site, job, "confirm")
    assert (refused.status_code, refused.json()["code"]) == (406, "MISSING_COLUMNS")
    assert [each["field"] for each in refused.json()["missing"]] == [each["field"] for each in found["missing"]]
    said = put(
        site,
        job,
        updates=[{"position": 0, "targetField": "email"}, {"position": 3, "ignore": True}],
        joins=[{"targetField": "name", "positions": [2, 1], "separator": ", "}],
        constants={"role": "reader"},
    )
    assert said.status_code == 200
    assert [each["status"] for each in said.json()["columns"]] == [*["USER_OVERRIDDEN"] * 3, "IGNORED"]
    assert (said.json()["missing"], said.json()["constants"]) == ([], {"role": "reader"})
    assert post(site, job, "confirm").status_code == 202
    site.worker.advance(job["id"])
    with site.database.connect() as connection:
        assert connection.execute("SELECT email, name, role FROM users").fetchall() == [
            ("ann@example.org", "Lee, Ann", "reader")
        ]
    receipt = site.client.get(f"/v1/imports/{job['id']}/receipt").json()
    assert [each["field"] for each in receipt["columns"]] == ["email", "name", "name", None]
    audited = [entry["action"] for entry in site.client.get("/v1/audit").json()["items"]]
    assert audited[:2] == ["import.confirm-columns", "import.columns"]


def test_a3_samples_are_aligned_and_fills_are_told(site: Site) -> None:
    job = waiting(site, "email,name,shoe,none\na@example.org,Ann,,\nb@example.org,,44,\n", '{"ask": "always"}')
    told = columns(site, job)["columns"]
    assert [column["samples"] for column in told] == [
        ["a@example.org", "b@example.org"],
        ["Ann", None],
        [None, "44"],
        None,
    ]
    assert [(column["filled"], column["fillShare"]) for column in told] == [(2, 1.0), (1, 0.5), (1, 0.5), (0, 0.0)]


def test_a_job_is_read_with_its_columns(site: Site) -> None:
    job = waiting(site)
    assert "mappings" not in job
    whole = site.client.get(f"/v1/imports/{job['id']}", params={"include": "mappings"}).json()
    assert (whole["number"], whole["mappings"]) == (job["number"], columns(site, job))
    assert site.client.get(f"/v1/imports/{job['id']}", params={"include": "rows"}).status_code == 422


def test_fields_that_columns_can_go_to_come_with_what_they_take(site: Site) -> None:
    job = waiting(site, config='{"ask": "unsure", "constants": {"active": "true"}}')
    fields = site.client.get(f"/v1/imports/{job['id']}/target-fields").json()
    by_name = {field["name"]: field for field in fields}
    assert fields[0]["required"]
    assert by_name["email"]["type"] == "email"
    assert "admin" in by_name["role"]["choices"]
    assert (by_name["active"]["constant"], by_name["active"]["mapped"]) == ("true", False)


def test_a6_warnings_count_what_would_go_wrong(site: Site) -> None:
    job = waiting(site)
    put(site, job, updates=[{"position": 0, "targetField": "email"}, {"position": 1, "targetField": "name"}])
    told = site.client.get(f"/v1/imports/{job['id']}/column-mappings/warnings").json()
    assert (told["rows"], told["lookedAt"]) == (3, 3)
    by_kind = {(each["kind"], each["field"]): each for each in told["warnings"]}
    bad = by_kind["unreadable", "email"]
    assert (bad["count"], bad["code"], bad["examples"], bad["positions"]) == (1, "INVALID_EMAIL", ["no address"], [0])
    assert by_kind["partlyFilled", "email"]["count"] == 1
    assert told["parsed"]["email"] == 1
    lost = [each["positions"] for each in told["warnings"] if each["kind"] == "lost"]
    assert lost == [[2], [3]]


def test_what_makes_no_sense_is_refused_and_changes_nothing(site: Site) -> None:
    job = waiting(site)
    before = columns(site, job)
    for said in (
        {"updates": [{"position": 9, "ignore": True}]},
        {"updates": [{"position": 0, "targetField": "nope"}]},
        {"updates": [{"position": 0}]},
        {"updates": [{"position": 0, "ignore": True}, {"position": 0, "ignore": True}]},
        {"updates": [{"position": 0, "targetField": "name"}, {"position": 1, "targetField": "name"}]},
        {"constants": {"nope": "x"}},
        {"constants": {"created_at": "soon"}},
        {"joins": [{"targetField": "name", "positions": [1]}]},
        {"joins": [{"targetField": "name", "positions": [1, 1]}]},
        {"updates": [{"position": -1, "ignore": True}]},
        {"what": 1},
    ):
        answer = put(site, job, **said)
        assert (answer.status_code, answer.json()["code"]) in {(422, "BAD_MAPPING"), (422, "BAD_REQUEST")}, said
    assert columns(site, job) == before


def test_columns_of_a_job_that_does_not_wait_are_not_changed(site: Site) -> None:
    job = settled(site)
    for answer in (put(site, job, updates=[]), post(site, job, "confirm"), post(site, job, "reopen")):
        assert (answer.status_code, answer.json()["code"], answer.json()["state"]) == (409, "WRONG_STATE", job["state"])
    assert columns(site, job)["waiting"] is False


def test_two_who_answer_at_once_both_count_or_the_later_does(site: Site) -> None:
    job = waiting(site)
    answers = [{"updates": [{"position": at, "targetField": "name"}]} for at in (1, 2, 3)] * 4
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(put, site, job, **said) for said in answers]
    statuses = {each.result().status_code for each in asked}
    assert statuses == {200}
    fields = [column["targetField"] for column in columns(site, job)["columns"]]
    assert fields.count("name") == 1


def test_who_confirms_twice_at_once_does_it_once(site: Site) -> None:
    job = waiting(site)
    put(site, job, updates=[{"position": 0, "targetField": "email"}, {"position": 1, "targetField": "name"}])
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(post, site, job, "confirm") for _ in range(4)]
    statuses = sorted(each.result().status_code for each in asked)
    assert statuses == [202, 409, 409, 409]


def test_as_long_as_nothing_is_written_one_can_go_back(site: Site) -> None:
    job = sent(site, "email,name\na@example.org,Ann\n", config='{"dryRun": true}').json()
    site.worker.advance(job["id"])
    assert look(site, job)["state"] == "VALIDATED"
    back = post(site, job, "reopen")
    assert (back.status_code, back.json()["state"], back.json()["wish"]) == (202, "COLUMN_MAPPING", "hold")
    assert back.json()["counts"]["created"] == 0
    put(site, job, updates=[{"position": 1, "ignore": True}], constants={"name": "Nobody"})
    assert post(site, job, "confirm").status_code == 202
    site.worker.advance(job["id"])
    again = look(site, job)
    assert (again["state"], again["counts"]["created"]) == ("VALIDATED", 1)


def test_x10_what_was_decided_is_proposed_next_time_until_revoked(site: Site) -> None:
    first = waiting(site, "Kontaktpunkt,name\nann@example.org,Ann\n")
    put(site, first, updates=[{"position": 0, "targetField": "email"}])
    post(site, first, "confirm")
    site.worker.advance(first["id"])
    second = waiting(site, "KONTAKTPUNKT;Name\nbob@example.org;Bob\n")
    assert second["state"] == "COMPLETED"
    assert columns(site, second)["columns"][0]["reason"] == "you mapped it so before"
    listed = site.client.get("/v1/column-decisions", params={"importer": "users"}).json()["items"]
    (decision,) = [each for each in listed if each["header"] == "Kontaktpunkt"]
    assert decision["targetField"] == "email"
    for status in (204, 404):
        assert site.client.delete(f"/v1/column-decisions/{decision['id']}").status_code == status
    third = waiting(site, "Kontaktpunkt,name\ncid@example.org,Cid\n")
    assert columns(site, third)["columns"][0]["reason"] != "you mapped it so before"


def save(site: Site, job: dict[str, Any], variant: str = "weekly") -> httpx.Response:
    order = {"jobId": job["id"], "sourceSystem": "crm", "variant": variant}
    return site.client.post("/v1/column-mapping-templates", json=order)


def test_a5_a_template_is_saved_from_a_job_and_applied_at_upload(site: Site) -> None:
    saved = save(site, settled(site))
    assert saved.status_code == 201
    template = saved.json()
    assert site.client.get(saved.headers["location"]).json() == template
    listed = site.client.get("/v1/column-mapping-templates/by-source", params={"sourceSystem": " crm "}).json()["items"]
    assert listed == [template] == site.client.get("/v1/column-mapping-templates").json()["items"]
    key = {"sourceSystem": "crm", "variant": "weekly", "importer": "users"}
    assert site.client.get("/v1/column-mapping-templates/lookup", params=key).json() == template
    config = '{"ask": "always", "template": {"sourceSystem": "crm", "variant": "weekly"}}'
    job = waiting(site, "Kontakt,First,Last,shoe\nzoe@example.org,Zoe,Doe,\n", config)
    assert job["state"] == "COMPLETED"  # it fits entirely: nobody is asked
    assert columns(site, job)["columns"][1]["reason"] == "template crm/weekly"
    with site.database.connect() as connection:
        found = connection.execute("SELECT name FROM users WHERE email = 'zoe@example.org'").fetchone()
    assert found == ("Zoe Doe",)
    assert site.client.delete(saved.headers["location"]).status_code == 204
    assert site.client.get(saved.headers["location"]).status_code == 404
    assert sent(site, config=config).json()["code"] == "TEMPLATE_NOT_FOUND"


@pytest.mark.parametrize("ask", ["always", "unsure"])
def test_a5_a_file_that_has_drifted_from_its_template_is_asked_about(site: Site, ask: str) -> None:
    save(site, settled(site))
    config = f'{{"ask": "{ask}", "template": {{"sourceSystem": "crm", "variant": "weekly"}}}}'
    job = waiting(site, "Last,Kontakt,First,size\nDoe,zoe@example.org,Zoe,44\n", config)
    assert job["state"] == "COLUMN_MAPPING"
    told = site.client.get(f"/v1/imports/{job['id']}/column-mappings/warnings").json()["warnings"]
    drifted = [each["examples"] for each in told if each["kind"] == "drifted"]
    assert drifted == [["shoe"], ["size"], ["Last"]]


def test_a5_a_template_is_applied_by_hand(site: Site) -> None:
    save(site, settled(site))
    job = waiting(site, "Kontakt,First,Last,shoe\nyan@example.org,Yan,Poe,1\n", '{"ask": "always"}')
    applied = post(site, job, "template", json={"sourceSystem": "crm", "variant": "weekly"})
    assert (applied.status_code, applied.json()["template"]) == (200, {"sourceSystem": "crm", "variant": "weekly"})
    assert [each["targetField"] for each in applied.json()["columns"]] == ["email", "name", "name", None]
    missing = post(site, job, "template", json={"sourceSystem": "crm", "variant": "daily"})
    assert (missing.status_code, missing.json()["code"]) == (404, "TEMPLATE_NOT_FOUND")
    assert post(site, job, "confirm").status_code == 202


def test_a_template_is_not_made_of_columns_that_are_open(site: Site) -> None:
    answer = save(site, waiting(site))
    assert (answer.status_code, answer.json()["code"]) == (409, "WRONG_STATE")


def test_organisations_have_their_own_templates_and_decisions(town: Town) -> None:
    job = town.send("ann").json()["id"]
    town.worker.advance(job)
    order = {"jobId": job, "sourceSystem": "crm", "variant": "weekly"}
    saved = town.ask("ann", "POST", "/v1/column-mapping-templates", json=order).json()
    assert town.ask("ben", "GET", f"/v1/column-mapping-templates/{saved['id']}").status_code == 200
    for who in ("zoe",):
        assert town.ask(who, "GET", f"/v1/column-mapping-templates/{saved['id']}").status_code == 404
        assert town.ask(who, "DELETE", f"/v1/column-mapping-templates/{saved['id']}").status_code == 404
        assert town.ask(who, "GET", "/v1/column-mapping-templates").json() == {"items": []}
        assert town.ask(who, "GET", f"/v1/imports/{job}/column-mappings").status_code == 404
    assert town.ask("reader", "DELETE", f"/v1/column-mapping-templates/{saved['id']}").status_code == 403
    assert town.ask("ann", "DELETE", f"/v1/column-decisions/{UNKNOWN}").status_code == 404


def test_a_file_that_could_not_be_mapped_is_not_said_to_have_drifted(site: Site) -> None:
    save(site, settled(site))
    config = '{"ask": "never", "template": {"sourceSystem": "crm", "variant": "weekly"}}'
    job = waiting(site, "First,Last,shoe\nZoe,Doe,44\n", config)
    assert (job["state"], job["error"]["code"]) == ("FAILED", "MISSING_COLUMNS")
    told = site.client.get(f"/v1/imports/{job['id']}/column-mappings/warnings").json()
    assert told["warnings"] == []
