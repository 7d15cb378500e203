"""Failed rows over HTTP, from Python and on the command line: out as a workbook and back; texts replaced (X3)."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from rowcall import Client
from rowcall.client import View
from rowcall.client.answers import Replacement

from ..integration.command import Done, rowcall
from .conftest import Site
from .test_edits import TEXT, through
from .town import Town

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def corrected(workbook: bytes, **cells: Any) -> bytes:
    book, out = openpyxl.load_workbook(BytesIO(workbook)), BytesIO()
    for place, value in cells.items():
        book.worksheets[0][place] = value
    book.save(out)
    return out.getvalue()


def test_x3_the_workbook_goes_out_and_comes_back_into_the_same_job(site: Site) -> None:
    job = through(site)
    out = site.client.get(f"/v1/imports/{job}/rejects.xlsx")
    assert (out.status_code, out.headers["content-type"]) == (200, XLSX)
    assert out.headers["content-disposition"].startswith('attachment; filename="BU')
    back = corrected(out.content, A2="bob@example.org")
    merged = site.client.post(f"/v1/imports/{job}/rejects", files={"file": ("rejects.xlsx", back)}).json()
    assert (merged["rows"], merged["changed"], merged["cells"], merged["refused"]) == (1, 1, 1, 0)
    assert merged["job"]["state"] == "PROCESSING"
    busy = site.client.post(f"/v1/imports/{job}/rejects", content=back)
    assert (busy.status_code, busy.json()["code"]) == (409, "WRONG_STATE")
    site.worker.advance(job)
    assert site.client.get(f"/v1/imports/{job}").json()["state"] == "COMPLETED"
    again = site.client.post(f"/v1/imports/{job}/rejects", content=back, headers={"Content-Type": XLSX}).json()
    assert (again["changed"], again["unchanged"], again["job"]["state"]) == (0, 1, "COMPLETED")
    receipt = site.client.get(f"/v1/imports/{job}/receipt").json()
    assert (receipt["counts"]["created"], receipt["edits"]) == (2, [{"account": "local", "rows": 1, "cells": 1}])
    actions = [entry["action"] for entry in site.client.get(f"/v1/audit?subject={job}").json()["items"]]
    assert actions == ["import.merge", "import.merge", "import.create"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "EMPTY_FILE"),
        (b"a,b\n1,2\n", 422, "NO_ROW_KEY"),
        (b"PK\x03\x04nonsense", 422, None),
        (b"x" * 200_000, 413, None),
    ],
)
def test_what_is_no_workbook_of_the_job_is_refused(site: Site, body: bytes, status: int, code: str | None) -> None:
    job = through(site)
    answer = site.client.post(f"/v1/imports/{job}/rejects", content=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code or answer.json()["code"])
    assert site.client.get(f"/v1/imports/{job}").json()["state"] == "COMPLETED_WITH_ERRORS"


def test_nobody_else_gets_or_brings_the_workbook(town: Town) -> None:
    job = town.send("ann", text="email,name\nrejected,X\n").json()["id"]
    town.worker.advance(job)
    out = town.ask("ann", "GET", f"/v1/imports/{job}/rejects.xlsx")
    assert out.status_code == 200
    for who in ("ben", "zoe"):
        assert town.ask(who, "GET", f"/v1/imports/{job}/rejects.xlsx").status_code == 404
        assert town.ask(who, "POST", f"/v1/imports/{job}/rejects", content=out.content).status_code == 404
        counting = {"field": "name", "find": "X", "with": "Y", "preview": True}
        assert town.ask(who, "POST", f"/v1/imports/{job}/items/replace", json=counting).status_code == 404
    assert town.ask("reader", "POST", f"/v1/imports/{job}/rejects", content=out.content).status_code == 403


def test_a_text_is_replaced_as_it_was_counted(site: Site) -> None:
    job = through(site)
    asked = {"filter": {"statuses": ["failed"]}, "field": "email", "find": "bob", "with": "bob@example.org"}
    place = f"/v1/imports/{job}/items/replace"
    counted = site.client.post(place, json={**asked, "preview": True}).json()
    assert (counted["rows"], counted["samples"]) == (1, [{"row": 2, "before": "bob", "after": "bob@example.org"}])
    for wrong in ({}, {"token": "x"}, {"token": counted["token"], "with": "y"}):
        refused = site.client.post(place, json={**asked, **wrong})
        assert (refused.status_code, refused.json()["code"]) == (409, "NOT_AS_COUNTED")
    done = site.client.post(place, json={**asked, "token": counted["token"]}).json()
    assert (done["rows"], done["job"]["state"]) == (1, "COMPLETED_WITH_ERRORS")
    assert site.client.get(f"/v1/imports/{job}/items/2").json()["original"] == {"email": "bob"}


def test_the_client_corrects_rows(site: Site, tmp_path: Path) -> None:
    job = through(site)
    with Client(str(site.client.base_url)) as at:
        edited = at.edit(job, 2, {"name": "Bert"}, revision=at.item(job, 2).revision)
        assert (edited.status, edited.item.original) == ("failed", {"name": "Bob"})
        assert at.undo_edits(job, 2, revision=1).item.original is None
        assert len(at.edits(job, 2)) == 2
        what = Replacement(field="role", find="reader", text="author", view=View(statuses=("failed",)))
        counted = at.replace(job, what)
        done = at.replace(job, what, token=counted.token)
        assert (counted.rows, done.rows) == (1, 1)
        at.rejects(job, tmp_path / "rejects.xlsx")
        back = corrected((tmp_path / "rejects.xlsx").read_bytes(), A2="bob@example.org")
        merged = at.merge(job, back)
        assert (merged.changed, merged.job.state) == (1, "PROCESSING")
        site.worker.advance(job)
        assert next(at.items(job, View(edited=True))).values["role"] == "author"
        assert at.job(job).state == "COMPLETED"


@pytest.mark.parametrize("through_server", [True, False])
def test_commands_correct_rows_here_and_at_a_server(site: Site, tmp_path: Path, through_server: bool) -> None:
    job = through(site, TEXT + "eve,Eve,reader,true\n")
    where = ("--server", str(site.client.base_url)) if through_server else ()
    url, data = site.database.url, str(tmp_path / "data")

    def run(*arguments: str | Path) -> Done:
        return rowcall(*arguments, *where, ROWCALL_DATABASE_URL=url, ROWCALL_DATA_DIR=data)

    edited = run("edit", job, "2", "--set", "email=bob@example.org")
    assert "email: bob → bob@example.org" in edited.out, edited
    assert "Row 2 would be created." in edited.out
    told = json.loads(run("edit", job, "2", "--revert-all", "--json").out)
    assert (told["item"]["original"], told["item"]["revision"]) == (None, 2)
    asked = ("replace", job, "--in", "email", "--find", "bob", "--with", "bob@example.org")
    assert "It would be replaced in 1 row. Add --yes" in run(*asked).out
    replaced = run(*asked, "--yes").out
    assert "Replaced in 1 row." in replaced
    assert replaced.split()[-len(where) - 1 :] == ["--edited", *where]
    file = tmp_path / "rejects.xlsx"
    wrote = run("rejects", job, "--out", file)
    assert wrote.out.split("with: ")[1].split() == ["rowcall", "rejects", job, "--upload", "FILE", *where]
    told = json.loads(run("rejects", job, "--out", file, "--json").out)
    assert told == {"job": job, "file": str(file), "bytes": file.stat().st_size}
    file.write_bytes(corrected(file.read_bytes(), A3="eve@example.org"))
    brought = run("rejects", job, "--upload", file, "--json")
    assert (json.loads(brought.out)["changed"], json.loads(brought.out)["job"]["state"]) == (1, "PROCESSING")
    site.worker.advance(job)
    of_another = run("rejects", through(site), "--upload", file)
    assert (of_another.status, " refused" in of_another.out) == (2, True)
    assert run("reprocess", job, "--edited").status == 0
    site.worker.advance(job)
    assert site.client.get(f"/v1/imports/{job}").json()["state"] == "COMPLETED"
    for wrong in (("edit", job, "2"), ("edit", job, "2", "--set", "email"), ("rejects", job)):
        refused = run(*wrong)
        assert (refused.status, refused.err.split()[0]) == (1, "BAD_OPTION")
