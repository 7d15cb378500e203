"""A preview over HTTP, and the word to do exactly that (E1, E3, E7, X4)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rowcall.client import Client, ImportConfig
from rowcall.errors import RequestRefused

from .conftest import Site
from .test_imports import sent

USERS = "email,name,role,active\na@example.org,A,reader,true\nb@example.org,B,reader,true\n,C,reader,true\n"


@pytest.fixture
def job(site: Site) -> dict[str, Any]:
    """A job that waits after its preview: one row is new, one is changed, one is wrong."""
    first = sent(site, USERS.splitlines()[0] + "\na@example.org,Old,reader,true\n").json()
    site.worker.advance(first["id"])
    job = sent(site, USERS, config='{"preview": true, "mode": "upsert"}').json()
    site.worker.advance(job["id"])
    return job


def _submit(site: Site, job: dict[str, Any], *match: str) -> Any:
    headers = {"If-Match": match[0]} if match else {}
    return site.client.post(f"/v1/imports/{job['id']}/submit", headers=headers)


def _preview(site: Site, job: dict[str, Any]) -> Any:
    return site.client.get(f"/v1/imports/{job['id']}/preview")


def test_preview_tells_what_submit_then_does(site: Site, job: dict[str, Any]) -> None:
    answer = _preview(site, job)
    told = answer.json()
    assert answer.headers["etag"] == f'"{told["digest"]}"'
    assert told["counts"] == {"rows": 3, "created": 1, "updated": 1, "unchanged": 0, "skipped": 0, "failed": 1}
    assert told["fields"] == [{"field": "name", "column": "name", "rows": 1}]
    assert [(each["code"], each["field"], each["count"]) for each in told["problems"]] == [("REQUIRED", "email", 1)]
    items = site.client.get(f"/v1/imports/{job['id']}/items").json()["items"]
    assert [each["status"] for each in items] == ["updated", "created", "failed"]
    assert items[0]["changes"] == {"name": ["Old", "A"]}
    assert site.client.get(f"/v1/imports/{job['id']}/items/1").json() == items[0]
    assert _submit(site, job, answer.headers["etag"]).status_code == 202
    assert _preview(site, job).json()["submittedAt"]
    site.worker.advance(job["id"])
    done = site.client.get(f"/v1/imports/{job['id']}").json()
    assert done["state"] == "COMPLETED_WITH_ERRORS"
    assert {name: done["counts"][name] for name in told["counts"]} == told["counts"]


@pytest.mark.parametrize(
    ("match", "status", "code"),
    [
        ((), 428, "PLAN_REQUIRED"),
        (("",), 428, "PLAN_REQUIRED"),
        (('"' + "0" * 64 + '"',), 412, "PLAN_STALE"),
        (('W/"{}"',), 412, "PLAN_STALE"),  # weak tags match nothing
        (("0" * 64,), 400, "BAD_REQUEST"),
        (('"a", b',), 400, "BAD_REQUEST"),
    ],
)
def test_submit_says_which_plan(
    site: Site, job: dict[str, Any], match: tuple[str, ...], status: int, code: str
) -> None:
    digest = _preview(site, job).json()["digest"]
    answer = _submit(site, job, *(form.format(digest) for form in match))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    if status == 412:
        assert answer.json()["digest"] == digest
    assert site.client.get(f"/v1/imports/{job['id']}").json()["state"] == "VALIDATED"


@pytest.mark.parametrize("form", ["*", '"other", "{}"'])
def test_if_match_is_read_as_http_has_it(site: Site, job: dict[str, Any], form: str) -> None:
    digest = _preview(site, job).json()["digest"]
    assert _submit(site, job, form.format(digest)).status_code == 202


def test_time_that_a_job_waits_for_somebody_is_not_work(site: Site, job: dict[str, Any]) -> None:
    with site.database.connect() as connection:  # as if it had been validated an hour ago
        connection.execute("UPDATE rowcall.job_event SET at = at - interval '1 h'")
        connection.execute("UPDATE rowcall.job SET processing_started_at = processing_started_at - interval '1 h'")
    waiting = site.client.get(f"/v1/imports/{job['id']}").json()["progress"]["elapsedMs"]
    _submit(site, job, "*")
    site.worker.advance(job["id"])
    assert 0 <= waiting <= site.client.get(f"/v1/imports/{job['id']}").json()["progress"]["elapsedMs"] < 3_600_000


def test_what_is_refused_tells_what_can_truly_be_asked(site: Site) -> None:
    """Of a job that has ended, before it is asked for a plan; nothing is written that could be undone."""
    job = sent(site, "email,name\n,A\n").json()
    site.worker.advance(job["id"])
    place = f"/v1/imports/{job['id']}"
    allowed = site.client.get(place).json()["allowed"]
    assert allowed == ["edit", "reprocess"]
    for answer in (
        _submit(site, job),
        _preview(site, job),
        site.client.put(f"{place}/column-mappings", json={"updates": []}),
    ):
        told = answer.json()
        assert (answer.status_code, told["state"], told["allowed"]) == (409, "COMPLETED_WITH_ERRORS", allowed), told
        assert "undo" not in told.get("hint", "")


def test_of_twenty_submits_one_wins(site: Site, job: dict[str, Any]) -> None:
    """E7: with the same plan all are answered alike; with another they are refused. It happens once."""
    etag = _preview(site, job).headers["etag"]
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(_submit, [site] * 20, [job] * 20, ['"other"', etag] * 10))
    assert {answer.status_code for answer in answers[1::2]} == {202}
    assert {answer.status_code for answer in answers[::2]} <= {409, 412}
    site.worker.advance(job["id"])
    with site.database.connect() as connection:
        moves = connection.execute(
            "SELECT count(*) FROM rowcall.job_event WHERE job_id = %s AND after = 'PROCESSING'", [job["id"]]
        ).fetchone()
        audited = connection.execute("SELECT count(*) FROM rowcall.audit WHERE action = 'import.submit'").fetchone()
    assert (moves, audited) == ((1,), (1,))


def test_what_has_no_plan_has_no_preview(site: Site) -> None:
    job = sent(site, USERS).json()
    answer = _preview(site, job)
    assert (answer.status_code, answer.json()["code"], answer.json()["state"]) == (409, "WRONG_STATE", "UPLOADED")
    site.worker.advance(job["id"])
    assert _submit(site, job, "*").status_code == 409


def test_dry_run_has_a_preview_and_can_not_be_submitted(site: Site) -> None:
    job = sent(site, USERS, config='{"dryRun": true}').json()
    site.worker.advance(job["id"])
    assert _preview(site, job).status_code == 200
    assert _submit(site, job, "*").status_code == 409


def test_a_previewed_job_can_be_cancelled(site: Site, job: dict[str, Any]) -> None:
    assert site.client.delete(f"/v1/imports/{job['id']}").json()["state"] == "CANCELLED"
    assert _submit(site, job, "*").status_code == 409
    assert _preview(site, job).status_code == 409


def test_client_shows_and_submits(site: Site) -> None:
    with Client(str(site.client.base_url)) as at:
        job = at.import_file(USERS.encode(), "users", ImportConfig(preview=True))
        site.worker.advance(str(job.id))
        plan = at.preview(job)
        assert (plan.counts.created, plan.undo and plan.undo.deletes) == (2, 2)
        with pytest.raises(RequestRefused) as refused:
            at.submit(job, "0" * 64)
        assert (refused.value.code, refused.value.status) == ("PLAN_STALE", 412)
        at.submit(job, plan)
        at.submit(job, plan)
        site.worker.advance(str(job.id))
        assert at.wait(job).state == "COMPLETED_WITH_ERRORS"
