"""`rowcall undo` as a user runs it."""

import pytest

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
