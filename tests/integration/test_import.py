"""`rowcall import` and `rowcall resume` as a user runs them."""

import hashlib
import json
import os
import signal
import subprocess

import pytest

from .command import COMMAND
from .workspace import COMMITTED, SLOW, Workspace

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
_MESSY = (
    "E-Mail,name,age,born,paid",
    "ada@example.org,Ada,36,1815-12-10,1.50",
    "bob@example.org,,40000,2023-02-30,2.00",
    "",
    "eve@example.org,Eve,,,",
)


def test_every_row_is_accounted_for(workspace: Workspace) -> None:
    file = workspace.file(*_MESSY)
    told = workspace.json("import", file, "--into", "people", status=2)
    assert told["counts"] == {
        "rows": 3,
        "created": 2,
        "updated": 0,
        "unchanged": 0,
        "skipped": 0,
        "failed": 1,
        "reverted": 0,
        "cancelled": 0,
        "blank": 1,
        "header": 1,
        "other": 0,
    }
    assert (told["state"], told["importer"], told["mode"]) == ("COMPLETED_WITH_ERRORS", "people", "upsert")
    assert told["file"] == {
        "name": "people.csv",
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "size": file.stat().st_size,
    }
    assert told["durationMs"] > 0
    assert told["error"] is None
    [row] = told["issues"]
    assert (row["row"], row["line"], row["values"]["E-Mail"]) == (2, 3, "bob@example.org")
    found = {(issue["field"], issue["code"]) for issue in row["issues"]}
    assert found == {("name", "REQUIRED"), ("age", "TOO_LARGE"), ("born", "DATE_NOT_EXISTING")}
    assert workspace.ask("SELECT email FROM people ORDER BY email") == [("ada@example.org",), ("eve@example.org",)]


def test_a_person_sees_the_balance_and_the_first_issues(workspace: Workspace) -> None:
    done = workspace.run("import", workspace.file(*_MESSY), "--into", "people")
    assert (done.status, done.err) == (2, "")
    assert "COMPLETED_WITH_ERRORS  3 rows = 2 created + 0 updated + 0 unchanged + 0 skipped + 1 failed" in done.out
    assert "DATE_NOT_EXISTING" in done.out
    assert "40000" in done.out


def test_a_dry_run_counts_the_same_and_changes_nothing(workspace: Workspace) -> None:
    file = workspace.file(*_MESSY)
    dry = workspace.json("import", file, "--into", "people", "--dry-run", status=2)
    assert (dry["state"], dry["dryRun"]) == ("VALIDATED", True)
    assert workspace.ask("SELECT * FROM people") == []
    assert workspace.json("import", file, "--into", "people", status=2)["counts"] == dry["counts"]
    refused = workspace.json("resume", dry["number"], status=1)
    assert refused["error"]["code"] == "WRONG_STATE"


def test_standard_input_with_mapping_constant_and_mode(workspace: Workspace) -> None:
    asked = ("import", "-", "--into", "people", "--map", "A=B=email", "--set", "name=Nobody", "--batch-rows", "1")
    stdin = b"A=B,junk\na@example.org,1\nb@example.org,2\n"
    assert workspace.json(*asked, stdin=stdin)["counts"]["created"] == 2
    again = workspace.json(*asked, "--mode", "insert", stdin=stdin, status=2)
    assert (again["mode"], again["counts"]["failed"]) == ("insert", 2)
    assert workspace.ask("SELECT DISTINCT name FROM people") == [("Nobody",)]


def test_a_previewed_job_is_shown_and_committed_by_submit(workspace: Workspace) -> None:
    """E1, E3, X4 on the command line; going on by any other word is not to agree."""
    file = workspace.many(range(5))
    done = workspace.run("import", file, "--into", "previewed")
    number = workspace.ask("SELECT number FROM rowcall.job")[0][0]
    assert f"rowcall preview {number}" in done.out
    assert f"rowcall submit {number}" in done.out
    assert workspace.ask("SELECT * FROM people") == []
    refused = workspace.run("resume", number)
    assert (refused.status, refused.err.startswith("WRONG_STATE")) == (1, True)
    plan = workspace.json("preview", number)
    assert (plan["counts"]["created"], plan["state"]) == (5, "VALIDATED")
    assert f"rowcall submit {number} --plan {plan['digest']}" in workspace.run("preview", number).out
    assert workspace.run("submit", number, "--plan", "0" * 64).err.startswith("PLAN_STALE")
    told = workspace.json("submit", number, "--plan", plan["digest"])
    assert (told["state"], told["counts"]["created"]) == ("COMPLETED", 5)
    assert workspace.json("submit", number, "--plan", plan["digest"])["state"] == "COMPLETED"
    assert workspace.run("submit", number).err.startswith("WRONG_STATE")
    assert workspace.ask("SELECT count(*) FROM people") == [(5,)]


def test_any_import_waits_where_a_preview_is_asked_for(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(3)), "--into", "people", "--preview")["number"]
    assert workspace.json("preview", number)["counts"]["created"] == 3
    assert "CANCELLED" in workspace.run("cancel", number).out
    assert workspace.run("preview", number).err.startswith("WRONG_STATE")
    assert workspace.ask("SELECT * FROM people") == []


def test_an_atomic_importer_takes_all_rows_or_none(workspace: Workspace) -> None:
    done = workspace.run("import", workspace.file(*_MESSY), "--into", "whole")
    assert done.status == 1
    assert "INVALID  3 rows = 0 created + 0 updated + 0 unchanged + 2 skipped + 1 failed" in done.out
    assert "Nothing was imported: whole takes all rows of a file or none." in done.out
    assert workspace.ask("SELECT * FROM people") == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--into", "poeple"), "UNKNOWN_IMPORTER", "people"),
        (("--into", "people", "--map", "name"), "BAD_OPTION", "--map 'Header=field'"),
        (("--into", "people", "--map", "when=name", "--map", "when=born"), "BAD_OPTION", "what 'when' is"),
        (("--into", "people", "--set", "age=1", "--set", "age=2"), "BAD_OPTION", "what 'age' is"),
        (("--into", "people", "--map", "name="), "MISSING_COLUMNS", "Required by people and not in the file: name"),
        (("--into", "people", "--set", "nmae=x"), "BAD_MAPPING", "nmae"),
        (("--into", "people", "--map", "when=born"), "AMBIGUOUS_DATES", "--date-order dmy"),
    ],
)
def test_what_is_wrong_is_told_to_people_and_programs(
    workspace: Workspace, arguments: tuple[str, ...], code: str, said: str
) -> None:
    file = workspace.file("email,name,when", "a@example.org,A,01/02/2024", "b@example.org,B,03/04/2024")
    done = workspace.run("import", file, *arguments, "--json")
    assert done.status == 1
    assert done.err.startswith(code)
    error = json.loads(done.out)["error"]
    assert error["code"] == code
    assert said in error["message"] + error["hint"]
    assert workspace.ask("SELECT * FROM people") == []


def test_a_job_that_could_not_begin_is_kept_with_its_reason(workspace: Workspace) -> None:
    done = workspace.run("import", workspace.file("name", "A"), "--into", "people")
    assert done.status == 1
    assert "has failed before its first row: nothing was changed." in done.err
    [line] = [line for line in workspace.run("jobs").out.splitlines() if "FAILED" in line]
    assert "MISSING_COLUMNS" in line


def test_nobody_need_hear_of_it(workspace: Workspace) -> None:
    file = workspace.file("email,name", "ann@example.org,Ann", "bob@example.org,")
    reading, writing = os.pipe()
    os.close(reading)  # as if it were done with what it wanted
    asked = [COMMAND, "import", file, "--into", "people"]
    with os.fdopen(writing, "wb") as unread:
        environment = {**os.environ, **workspace.environment}
        for more in ([], ["--json"]):
            assert (
                subprocess.run([*asked, *more], stdout=unread, stderr=unread, env=environment, check=False).returncode
                == 2
            )
    (first, second) = workspace.json("jobs")
    assert (second["counts"]["created"], first["counts"]["unchanged"]) == (1, 1)


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_files_that_are_closed_are_like_empty_ones(workspace: Workspace, closed: str) -> None:
    file = workspace.file("email,name", "ann@example.org,Ann", "bob@example.org,")
    environment = {**os.environ, **workspace.environment}
    command = f'exec "$0" import "$1" --into people {closed}'
    done = subprocess.run(
        ["sh", "-c", command, COMMAND, file], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert workspace.json("jobs")[0]["counts"]["created"] == 1
    command = f'exec "$0" import - --into people {closed}'
    done = subprocess.run(["sh", "-c", command, COMMAND], stdin=subprocess.DEVNULL, env=environment, check=False)
    assert done.returncode == 1


def test_a_file_that_is_not_there(workspace: Workspace) -> None:
    done = workspace.run("import", "nowhere.csv", "--into", "people")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("FILE_NOT_FOUND 'nowhere.csv' can't be opened")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_job_ends_its_batches_and_goes_on_later(workspace: Workspace, number: signal.Signals) -> None:
    workspace.ask(SLOW.format(0.1))
    asked = ("import", workspace.many(range(400)), "--into", "people", "--batch-rows", "10")
    with workspace.begun(*asked) as command:
        workspace.await_rows(COMMITTED, command)
        command.send_signal(number)
        _, err = command.communicate(timeout=20)
    [(job, state)] = workspace.ask("SELECT number, state FROM rowcall.job")
    assert (command.returncode, state) == (1, "PROCESSING")
    assert f"rowcall resume {job}" in err
    left = workspace.ask("SELECT count(*) FROM people")[0][0]
    assert 0 < left < 400
    workspace.ask("DROP TRIGGER slow ON people")
    done = workspace.run(*asked) if number is signal.SIGINT else workspace.run("resume", job)
    assert done.status == 0, done.err
    assert (f"Job {job} of" in done.err) is (number is signal.SIGINT)
    assert "COMPLETED  400 rows = 400 created" in done.out
    assert workspace.ask("SELECT count(*) FROM people") == [(400,)]
    assert workspace.run("doctor", "--verify", job).status == 0


def test_the_same_import_is_refused_while_it_goes_on(workspace: Workspace) -> None:
    workspace.ask(SLOW.format(60))
    asked = ("import", workspace.many(range(5)), "--into", "people")
    with workspace.begun(*asked) as command:
        workspace.await_rows("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'", command)
        done = workspace.run(*asked)
    assert done.status == 1
    assert done.err.startswith("JOB_BUSY")
    assert workspace.ask("SELECT count(*) FROM rowcall.job") == [(1,)]


def test_the_second_signal_ends_at_once(workspace: Workspace) -> None:
    workspace.ask(SLOW.format(60))
    with workspace.begun("import", workspace.many(range(5)), "--into", "people") as command:
        workspace.await_rows("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'", command)
        command.send_signal(signal.SIGINT)
        assert command.stderr is not None
        while "once more" not in command.stderr.readline():
            pass
        command.send_signal(signal.SIGINT)
        assert command.wait(timeout=5) == 130
