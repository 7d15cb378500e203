"""Rows are corrected over HTTP, verified in the answer, by one person at a time (X3, D4)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .conftest import Site
from .test_imports import sent
from .town import Town

TEXT = "email,name,role,active\nann@example.org,Ann,admin,true\nbob,Bob,reader,true\n"


def through(site: Site, text: str = TEXT) -> str:
    """A job that is through."""
    job = sent(site, text).json()["id"]
    site.worker.advance(job)
    return job


def patch(site: Site, job: str, row: int, cells: dict[str, Any], **headers: str) -> Any:
    return site.client.patch(f"/v1/imports/{job}/items/{row}", json={"cells": cells}, headers=headers)


def test_x3_a_row_is_corrected_and_the_answer_tells_what_would_become_of_it(site: Site) -> None:
    job = through(site)
    bad = patch(site, job, 2, {"email": "still bad"})
    assert (bad.status_code, bad.headers["etag"], bad.json()["status"]) == (200, '"1"', "failed")
    assert [issue["code"] for issue in bad.json()["issues"]] == ["INVALID_EMAIL"]
    good = patch(site, job, 2, {"email": "bob@example.org", "role": "author"}, **{"If-Match": '"1"'})
    assert (good.json()["status"], good.json()["issues"], good.json()["alone"]) == ("created", [], True)
    item = good.json()["item"]
    assert item["values"] == {"email": "bob@example.org", "name": "Bob", "role": "author", "active": "true"}
    assert (item["original"], item["revision"], item["status"]) == ({"email": "bob", "role": "reader"}, 2, "failed")
    assert site.client.get(f"/v1/imports/{job}/items?edited=true").json()["items"] == [item]
    assert site.client.get(f"/v1/imports/{job}/items?statuses=failed&text=AUTHOR").json()["items"] == [item]
    assert site.client.get(f"/v1/imports/{job}/items/2").headers["etag"] == '"2"'
    assert site.client.get("/v1/pending").json()["items"][0]["revision"] == 2
    assert [each["row"] for each in site.client.get("/v1/pending", params={"edited": True}).json()["items"]] == [2]
    again = site.client.post(f"/v1/imports/{job}/reprocess", json={"edited": True})
    assert (again.status_code, again.json()["rows"]) == (202, 1)
    site.worker.advance(job)
    receipt = site.client.get(f"/v1/imports/{job}/receipt").json()
    assert (receipt["state"], receipt["counts"]["created"]) == ("COMPLETED", 2)
    assert receipt["edits"] == [{"account": "local", "rows": 1, "cells": 2}]
    done = patch(site, job, 2, {"name": "B"}, **{"If-Match": "2"})
    assert (done.status_code, done.json()["code"]) == (409, "ROW_DONE")


def test_corrected_rows_run_again_whether_they_failed_or_were_skipped(site: Site) -> None:
    job = through(site, TEXT + "ann@example.org,Anna,admin,true\n")
    assert site.client.get(f"/v1/imports/{job}/items/1").json()["status"] == "skipped"  # the last one counts
    patch(site, job, 1, {"email": "anna@example.org"})
    again = site.client.post(f"/v1/imports/{job}/reprocess", json={"edited": True})
    assert (again.status_code, again.json().get("rows")) == (202, 1), again.json()
    site.worker.advance(job)
    assert site.client.get(f"/v1/imports/{job}").json()["counts"]["created"] == 2


def test_corrections_are_kept_taken_back_and_audited(site: Site) -> None:
    job = through(site)
    patch(site, job, 2, {"email": "bob@example.org"})
    assert patch(site, job, 2, {"email": None}, **{"If-Match": "1"}).json()["item"]["original"] is None
    weak = patch(site, job, 2, {"email": "b@example.org", "name": "B"}, **{"If-Match": 'W/"2"'})
    assert (weak.status_code, weak.json()["code"]) == (412, "EDITED_MEANWHILE")
    patch(site, job, 2, {"email": "b@example.org", "name": "B"}, **{"If-Match": '"2"'})
    undone = site.client.delete(f"/v1/imports/{job}/items/2/edits", headers={"If-Match": "*"})
    assert (undone.status_code, undone.json()["item"]["values"]["email"]) == (200, "bob")
    edits = site.client.get(f"/v1/imports/{job}/items/2/edits").json()
    assert [(each["revision"], each["header"], each["before"], each["after"]) for each in edits] == [
        (4, "email", "b@example.org", "bob"),
        (4, "name", "B", "Bob"),
        (3, "email", "bob", "b@example.org"),
        (3, "name", "Bob", "B"),
        (2, "email", "bob@example.org", "bob"),
        (1, "email", "bob", "bob@example.org"),
    ]
    actions = [entry["action"] for entry in site.client.get(f"/v1/audit?subject={job}").json()["items"]]
    assert actions == ["import.undo-edit", "import.edit", "import.edit", "import.edit", "import.create"]


def test_two_people_do_not_overwrite_each_other(site: Site) -> None:
    """Of many who saw the same, one corrects the row."""
    job = through(site)

    def correct(number: int) -> Any:
        return patch(site, job, 2, {"name": f"B{number}"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(correct, range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7
    (won,) = (answer.json()["item"]["values"]["name"] for answer in answers if answer.status_code == 200)
    item = site.client.get(f"/v1/imports/{job}/items/2").json()
    assert (item["values"]["name"], item["revision"]) == (won, 1)
    assert {answer.json()["code"] for answer in answers if answer.status_code == 412} == {"EDITED_MEANWHILE"}


def test_who_corrects_whichever_revision_is_never_too_late(site: Site) -> None:
    job = through(site)

    def correct(number: int) -> Any:
        return patch(site, job, 2, {"name": f"B{number}"}, **{"If-Match": "*"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(correct, range(8)))
    assert sorted(answer.json()["item"]["revision"] for answer in answers) == [*range(1, 9)]


@pytest.mark.parametrize(
    ("cells", "status", "code"),
    [
        ({"emial": "x"}, 422, "UNKNOWN_CELL"),
        ({"column 5": "x"}, 422, "UNKNOWN_CELL"),
        ({"email": "x", "column 1": "y"}, 422, "UNKNOWN_CELL"),
        ({}, 422, "BAD_REQUEST"),
        ({"email": 5}, 422, "BAD_REQUEST"),
        ({"email": "a\0b"}, 422, "BAD_REQUEST"),
        ({"email": "x" * 1_100_000}, 413, "BODY_TOO_LARGE"),
    ],
)
def test_what_is_no_correction_is_refused(site: Site, cells: dict[str, Any], status: int, code: str) -> None:
    job = through(site)
    answer = patch(site, job, 2, cells)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    hint = answer.json().get("hint", "").removeprefix("There are ").rstrip(".").split(", ")
    assert len(set(hint)) == len(hint)
    assert site.client.get(f"/v1/imports/{job}/items/2").json()["revision"] == 0


def test_rows_and_revisions_that_are_none_are_told(site: Site) -> None:
    job = through(site)
    assert patch(site, job, 3, {"name": "x"}).json()["code"] == "ROW_NOT_FOUND"
    assert site.client.get(f"/v1/imports/{job}/items/3").status_code == 404
    assert patch(site, job, 0, {"name": "x"}).status_code == 422
    assert patch(site, job, 2, {"name": "x"}, **{"If-Match": "yesterday"}).json()["code"] == "BAD_REQUEST"
    assert patch(site, job, 2, {"name": "x"}, **{"If-Match": '"7"'}).status_code == 412


def test_a_job_that_runs_takes_no_corrections(site: Site) -> None:
    job = sent(site, TEXT).json()["id"]
    answer = patch(site, job, 1, {"name": "x"})
    assert (answer.status_code, answer.json()["code"], answer.json()["state"]) == (409, "WRONG_STATE", "UPLOADED")


def test_exports_have_what_was_corrected(site: Site) -> None:
    job = through(site)
    patch(site, job, 2, {"email": "bob@example.org"})
    lines = site.client.get(f"/v1/imports/{job}/results/export?format=ndjson&edited=true").text.splitlines()
    assert len(lines) == 1
    assert '"email":"bob@example.org"' in lines[0]
    assert '"rowcall_original":{"email":"bob"}' in lines[0]


def test_nobody_else_corrects_or_sees_the_corrections(town: Town) -> None:
    job = town.send("ann", text="email,name\nbad,X\n").json()["id"]
    town.worker.advance(job)
    place = f"/v1/imports/{job}/items/1"
    for who in ("ben", "zoe"):
        assert town.ask(who, "PATCH", place, json={"cells": {"name": "Y"}}).status_code == 404
        assert town.ask(who, "GET", f"{place}/edits").status_code == 404
        assert town.ask(who, "DELETE", f"{place}/edits").status_code == 404
    assert town.ask("reader", "PATCH", place, json={"cells": {"name": "Y"}}).status_code == 403
    assert town.ask("writer", "PATCH", place, json={"cells": {"name": "Y"}}).status_code == 200
    assert town.ask("ada", "GET", f"{place}/edits").json()[0]["account"] == "ann"
    with town.service.pool.connection() as connection, connection.transaction():
        connection.execute("SET LOCAL ROLE rowcall_api")
        assert connection.execute("SELECT count(*) FROM rowcall.cell_edit").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM rowcall.row_edit").fetchone() == (0,)
