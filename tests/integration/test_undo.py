"""`rowcall undo` as a user runs it."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rowcall.model import State
from rowcall.store import jobs

from .test_prompts import Terminal
from .test_retention import aged, imported, removed
from .workspace import Workspace

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)


def test_an_import_is_taken_back(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(3)), "--into", "people")["number"]
    seen = workspace.json("undo", number, "--dry-run")
    assert (seen["toDelete"], seen["possible"]) == (3, True)
    asked = workspace.run("undo", number)
    assert (asked.status, "--yes" in asked.err) == (1, True)
    assert "3 rows would be deleted" in asked.out
    workspace.ask("UPDATE people SET name = 'mine' WHERE id = 2")
    done = workspace.json("undo", number, "--yes", status=2)
    assert (done["deleted"], done["changed"], done["state"]) == (2, 1, "COMPLETED")
    assert workspace.json("receipt", number)["undos"][0]["digest"] == done["digest"]
    told = workspace.run("receipt", number)
    assert "2 deleted, 0 restored" in told.out
    assert "1 kept: 1 changed since" in told.out
    assert workspace.run("doctor", "--verify", number).status == 0
    workspace.ask("DELETE FROM people")
    last = workspace.run("undo", number, "--yes")
    assert (last.status, "is REVERTED" in last.out) == (0, True)
    again = workspace.run("undo", number, "--yes")
    assert (again.status, again.err.startswith("WRONG_STATE")) == (1, True)


def test_what_a_server_took_is_taken_back_where_no_worker_is(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(3)), "--into", "people")["number"]
    workspace.ask("UPDATE rowcall.job SET background = true")
    workspace.ask("UPDATE people SET name = 'mine' WHERE email = 'p1@example.org'")
    done = workspace.json("undo", number, "--yes", status=2)
    assert (done["deleted"], done["changed"], done["state"]) == (2, 1, "COMPLETED")


def test_the_end_of_an_undo_is_waited_for_where_a_worker_has_it(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(3)), "--into", "people")["number"]
    with workspace.database.connect() as worker, ThreadPoolExecutor(1) as pool:
        assert jobs.lock(worker, jobs.get_job(worker, number).id)
        undo = pool.submit(workspace.run, "undo", number, "--yes")
        while jobs.get_job(worker, number).state is not State.REVERTING:
            assert not undo.done()
            time.sleep(0.02)
        jobs.unlock(worker, jobs.get_job(worker, number).id)
        told = undo.result()
    assert (told.status, "is REVERTED" in told.out) == (0, True)


def test_it_is_asked_at_a_terminal_whether_that_is_meant(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(3)), "--into", "people")["number"]
    no = Terminal(workspace, "undo", number)
    no.until("Delete 3 rows and restore 0?")
    no.type(b"n\r")
    assert no.ends() == 1
    assert "Nothing was taken back" in no.seen
    assert workspace.ask("SELECT count(*) FROM people") == [(3,)]
    yes = Terminal(workspace, "undo", number)
    yes.until("Delete 3 rows and restore 0?")
    yes.type(b"y\r")
    assert yes.ends() == 0
    assert "is REVERTED" in yes.seen
    assert workspace.ask("SELECT count(*) FROM people") == [(0,)]


def test_all_or_nothing_says_how_to_take_back_what_can_be(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(3)), "--into", "whole")["number"]
    workspace.ask("UPDATE people SET name = 'mine' WHERE email = 'p1@example.org'")
    looked = workspace.run("undo", number, "--dry-run")
    assert (looked.status, "1 was changed since" in looked.out) == (1, True)
    refused = workspace.run("undo", number, "--yes")
    assert (refused.status, "1 row would have to stay" in refused.err) == (1, True)
    assert "--partial" in refused.err
    assert workspace.ask("SELECT count(*) FROM people") == [(3,)]
    done = workspace.json("undo", number, "--yes", "--partial", status=2)
    assert (done["deleted"], done["changed"]) == (2, 1)


def test_what_cannot_be_taken_back_is_told_with_the_reason_alone(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(3)), "--into", "people")["number"]
    for how in ("--dry-run", "--yes"):
        told = workspace.run("undo", number, "--row", "99", how)
        assert (told.status, told.out) == (1, "")
        assert "No row that was created or updated, and not taken back since, fits." in told.err
    assert workspace.json("undo", number, "--row", "99", "--dry-run", status=1)["possible"] is False
    part = workspace.run("undo", number, "--row", "1", "--row", "2", "--status", "created", "--yes")
    assert (part.status, "only rows 1, 2 that were created" in part.out) == (0, True)


def test_what_was_taken_back_goes_with_its_job(workspace: Workspace) -> None:
    job = imported(workspace)
    assert workspace.run("undo", job.number, "--yes").status == 0
    kept = "SELECT (SELECT count(*) FROM rowcall.undo), (SELECT count(*) FROM rowcall.reversal)"
    assert workspace.ask(kept) == [(1, 1)]
    aged(workspace, job, 6)
    assert removed(workspace).jobs == []
    aged(workspace, job, 2)
    assert [one.number for one in removed(workspace, at_once=1).jobs] == [job.number]
    assert workspace.ask(kept) == [(0, 0)]
