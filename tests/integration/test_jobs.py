"""`rowcall jobs`, `rows`, `receipt`, `importers` and `migrate` as a user runs them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from .command import COMMAND
from .workspace import Workspace

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
_MESSY = (
    "email,name,born,note",
    "ada@example.org,Ada,10/12/1815,first",
    "bob@example.org,Bob,31/04/1920,no such day",
    "eve@example.org,,25/12/1930,no name",
    "too,few",
)


def test_jobs_are_listed_with_their_counts(workspace: Workspace) -> None:
    assert workspace.run("jobs").out == "No jobs.\n"
    number = workspace.json("import", workspace.file(*_MESSY), "--into", "people", status=2)["number"]
    listed = workspace.run("jobs")
    assert (listed.status, number in listed.out, "people.csv" in listed.out) == (0, True, True)
    assert "1 created + 3 failed" in listed.out
    [job] = workspace.json("jobs", "--state", "completed_with_errors", "--importer", "people")
    assert (job["number"], job["counts"]["created"], job["counts"]["failed"]) == (number, 1, 3)
    assert workspace.json("jobs", "--state", "FAILED") == []


def test_rows_tell_what_became_of_each(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.file(*_MESSY), "--into", "people", status=2)["number"]
    lines = [json.loads(line) for line in workspace.run("rows", number, "--json").out.splitlines()]
    assert [(row["row"], row["line"], row["status"]) for row in lines] == [
        *((1, 2, "created"), (2, 3, "failed"), (3, 4, "failed"), (4, 5, "failed"))
    ]
    assert lines[0]["values"] == dict(zip(_MESSY[0].split(","), _MESSY[1].split(","), strict=True))
    assert lines[0]["targetKey"] == ["1"]
    [issue] = lines[1]["issues"]
    assert (issue["code"], issue["field"], issue["value"]) == ("DATE_NOT_EXISTING", "born", "31/04/1920")
    failed = workspace.run("rows", number, "--status", "failed", "--field", "name")
    assert "eve@example.org" in failed.out
    assert "name: REQUIRED A value is required." in failed.out
    assert "bob@example.org" not in failed.out
    assert workspace.run("rows", "BU1", "--json").err.startswith("JOB_NOT_FOUND")


def test_rows_of_a_large_job_stream_in_bounded_memory(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(2)), "--into", "people")["number"]
    little = workspace.run("rows", number, "--json")
    workspace.ask(
        "INSERT INTO rowcall.row SELECT id, n, n + 1, ARRAY[repeat('x', 500), n::text] "
        "FROM rowcall.job, generate_series(3, 50000) n"
    )
    workspace.ask(
        "INSERT INTO rowcall.batch (job_id, number, first_row, last_row) SELECT id, 9, 3, 50000 FROM rowcall.job"
    )
    all_of_it = workspace.run("rows", number, "--json")
    assert all_of_it.out.count("\n") == 50_000
    assert all_of_it.memory < little.memory + 40


def test_the_receipt_has_it_all_on_one_page(workspace: Workspace) -> None:
    asked = ("--map", "note=", "--set", "paid=1.5")
    told = workspace.json("import", workspace.file(*_MESSY), "--into", "people", *asked, status=2)
    receipt = workspace.json("receipt", told["number"])
    for same in ("id", "number", "state", "importer", "mode", "file", "counts", "durationMs"):
        assert receipt[same] == told[same]
    assert (receipt["target"], receipt["balanced"], receipt["constants"]) == ("people", True, {"paid": "1.5"})
    columns = {column["header"]: (column["field"], column["dateOrder"]) for column in receipt["columns"]}
    assert columns == {"email": ("email", None), "name": ("name", None), "born": ("born", "dmy"), "note": (None, None)}
    issues = {(issue["code"], issue["field"], issue["count"]) for issue in receipt["issues"]}
    assert issues == {("DATE_NOT_EXISTING", "born", 1), ("REQUIRED", "name", 1), ("TOO_FEW_FIELDS", None, 1)}
    page = workspace.folder / "receipt.txt"
    assert workspace.run("receipt", told["number"], "--out", page).status == 0
    text = page.read_text()
    assert told["file"]["sha256"] in text
    assert "4 rows = 1 created + 0 updated + 0 unchanged + 0 skipped + 3 failed" in text


def test_files_that_can_not_be_written_or_read_are_told_as_such(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.file(*_MESSY), "--into", "people", status=2)["number"]
    nowhere = workspace.folder / "nowhere" / "file"
    for asked in (("receipt", number), ("receipt", number, "--json"), ("scaffold", "people")):
        done = workspace.run(*asked, "--out", nowhere)
        told = f"WRITE_FAILED '{nowhere}' can't be written: No such file or directory.\nCreate the folder first.\n"
        assert (done.status, done.err) == (1, told)
    done = workspace.run("rejects", number, "--upload", nowhere)
    assert done.status == 1
    assert done.err.startswith(f"FILE_NOT_FOUND '{nowhere}' can't be opened: No such file or directory.")


def test_the_receipt_of_a_dry_run_says_when_it_ended_and_who_had_it_done(workspace: Workspace) -> None:
    done = workspace.run("import", workspace.file(*_MESSY), "--into", "people", "--dry-run", "--json", USER="")
    text = workspace.run("receipt", json.loads(done.out)["number"]).out
    facts = dict(line.split(maxsplit=1) for line in text.splitlines()[1:11])
    assert "UTC" in facts["ended"]
    assert not facts["by"].isdecimal()
    previewed = workspace.json("import", workspace.many(range(2)), "--into", "previewed")["number"]
    assert f"not yet: it waits for rowcall submit {previewed}" in workspace.run("receipt", previewed).out


def test_importers_are_listed_and_explained(workspace: Workspace) -> None:
    assert {"name": "people", "description": "People we know.", "target": "people"} in workspace.json("importers")
    people = workspace.json("importers", "people")
    assert (people["keys"], people["onMatch"]) == ([["email"]], "update")
    assert people["fields"][0] | {"column": "", "demands": {}} == {
        "name": "email",
        "type": "text",
        "column": "",
        "required": True,
        "default": None,
        "aliases": ["E-Mail"],
        "help": "",
        "demands": {},
        "onlyWhen": {},
    }
    assert "As on the door." in workspace.run("importers", "people").out


def test_migrate_says_what_it_did(workspace: Workspace) -> None:
    workspace.ask("DROP SCHEMA rowcall CASCADE")
    assert workspace.run("migrate").out.startswith("rowcall: applied 0001_engine")
    assert workspace.run("migrate").out.startswith("rowcall: up to date")


def test_a_job_is_paused_resumed_cancelled_and_tried_again_by_commands(workspace: Workspace) -> None:
    told = workspace.json("import", workspace.file(*_MESSY), "--into", "people", status=2)
    number, failed = told["number"], told["counts"]["failed"]
    assert workspace.run("pause", number).err.startswith("WRONG_STATE")
    assert workspace.run("reprocess", number, "--code", "UNHEARD_OF").err.startswith("BAD_REQUEST")
    again = workspace.run("reprocess", number)
    assert f"{failed} rows are tried again" in again.out
    assert workspace.run("pause", number).out.startswith(f"Job {number} is PAUSED")
    assert workspace.json("resume", number, status=2)["counts"]["failed"] == failed
    workspace.run("reprocess", number)
    assert "COMPLETED_WITH_ERRORS" in workspace.run("cancel", number).out


def test_what_is_told_after_a_correction_runs_the_row_though_it_was_skipped(workspace: Workspace) -> None:
    file = workspace.file("email,name", "a@example.org,Ann", "a@example.org,Anna")
    number = workspace.json("import", file, "--into", "people")["number"]
    told = workspace.run("edit", number, "1", "--set", "email=b@example.org").out
    assert f"rowcall reprocess {number} --edited" in told
    assert "1 row is tried again" in workspace.run("reprocess", number, "--edited").out
    assert workspace.json("resume", number)["counts"]["created"] == 2


def test_what_is_told_after_a_correction_that_is_not_enough_can_be_typed(workspace: Workspace) -> None:
    file = workspace.file("email,name,born", "a@example.org,,2023-02-30")
    number = workspace.json("import", file, "--into", "people", status=2)["number"]
    told = workspace.run("edit", number, "1", "--set", "name=Ann").out.splitlines()
    assert "  born: DATE_NOT_EXISTING" in told[-2]
    assert told[-1] == f"Run corrected rows with: rowcall reprocess {number} --edited"


def test_a_preview_that_is_to_be_made_anew_tells_how_it_goes_on(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(3)), "--into", "previewed")["number"]
    assert "Replaced" in workspace.run("replace", number, "--in", "name", "--find", "P1", "--with", "Q", "--yes").out
    way_on = f"Possible is: pause, cancel. If nobody works on it, go on with: rowcall resume {number}\n"
    for asked in (("submit", number), ("edit", number, "1", "--set", "name=Ann")):
        refused = workspace.run(*asked)
        assert (refused.status, refused.err.endswith(way_on)) == (1, True), refused.err
    assert workspace.json("resume", number)["state"] == "VALIDATED"
    assert workspace.json("submit", number)["counts"]["created"] == 3


def test_names_of_files_do_not_reach_the_terminal_as_they_are(workspace: Workspace) -> None:
    name = "a\x1b[2J\u202e[red]\n.csv"
    file = workspace.file("email,name\x1b[2J", "a@example.org,Ann", name=name)
    shown = [workspace.run("import", file, "--into", "people", "--map", "name\x1b[2J=name")]
    number = workspace.json("jobs")[0]["number"]
    shown += [workspace.run(*command) for command in (["jobs"], ["receipt", number], ["inspect", file])]
    for done in shown:
        assert "\x1b" not in done.out
        assert "\u202e" not in done.out
        assert r"a\x1b[2J\u202e[red]\n" in done.out


def test_a_reader_that_has_seen_enough_is_no_failure(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(2000)), "--into", "people")["number"]

    def unread(*asked: str | Path) -> tuple[int, str]:
        reading, writing = os.pipe()
        os.close(reading)  # as `head` does when it has its lines
        with os.fdopen(writing, "wb") as out:
            environment = {**os.environ, **workspace.environment}
            done = subprocess.run(
                [COMMAND, *asked], stdout=out, stderr=subprocess.PIPE, text=True, env=environment, check=False
            )
        return done.returncode, done.stderr

    file = workspace.folder / "people.csv"
    for asked in (
        ("jobs",),
        ("jobs", "--json"),
        ("rows", number),
        ("rows", number, "--json"),
        ("receipt", number),
        ("inspect", file),
        ("export", "people", "--format", "csv"),
        ("export", "people", "--format", "xlsx"),
        ("convert", file, "-"),
        ("--help",),
    ):
        assert unread(*asked) == (0, ""), asked
    assert unread("undo", number, "--yes") == (0, "")  # though what it tells first is not read
    assert workspace.ask("SELECT count(*) FROM people") == [(0,)]
    for more in ([], ["--json"]):
        assert unread("undo", number, "--dry-run", *more)[0] == 1  # there is nothing to take back any more
