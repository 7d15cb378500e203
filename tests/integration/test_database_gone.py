"""A database that goes away in the middle of an import."""

import json
from pathlib import Path

import pytest

from rowcall.store.db import Database
from rowcall.store.migrate import migrate

from ..database import Server
from .workspace import COMMITTED, SLOW, Workspace, make_workspace


@pytest.fixture
def fragile(server: Server, tmp_path: Path) -> Workspace:
    database = Database(server.url)
    with database.connect() as connection:
        migrate(connection)
    return make_workspace(tmp_path, database)


def test_a_database_that_goes_away_is_told_and_the_job_goes_on_later(fragile: Workspace, server: Server) -> None:
    fragile.ask(SLOW.format(0.1))
    asked = ("import", fragile.many(range(400)), "--into", "people", "--batch-rows", "10", "--json")
    with fragile.begun(*asked, ROWCALL_DATABASE_PATIENCE="0.5") as command:
        fragile.await_rows(COMMITTED, command)
        server.stop()
        out, err = command.communicate(timeout=30)
    told = json.loads(out)
    assert command.returncode == 1
    assert told["error"]["code"] == "DATABASE_UNREACHABLE"
    assert f"rowcall resume {told['number']}" in err
    server.start()
    fragile.ask("DROP TRIGGER slow ON people")
    assert fragile.json("resume", told["number"])["counts"]["created"] == 400
