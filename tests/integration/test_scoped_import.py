"""Context, scope and fingerprint on the command line: what an import says, and how it goes on (A6, A7, E2)."""

from typing import Any

import pytest

from .workspace import Workspace

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
_IMPORTER = '''
from rowcall import Fingerprint, Flow, Importer, Text, Update


class Members(Importer):
    """Members of a season."""

    target = "people"
    key = "email"
    on_match = Update()
    context = ("season",)
    scope = ("season",)
    flow = Flow(preview=True)
    fingerprint = Fingerprint(identity=("name",), least=2)

    email = Text(required=True)
    name_ = Text(required=True)
'''


@pytest.fixture
def members(workspace: Workspace) -> Workspace:
    (workspace.folder / "members.py").write_text(_IMPORTER)
    project = workspace.folder / "rowcall.toml"
    project.write_text(project.read_text().replace("importers = [", 'importers = ["members.py", '))
    with workspace.database.connect() as connection:
        connection.execute("INSERT INTO people (email, name) SELECT 'p' || n, 'P' || n FROM generate_series(1, 20) n")
    return workspace


def brought(members: Workspace, wrong: int, season: str = "2026") -> dict[str, Any]:
    lines = [f"p{n},{'Bob' if n <= wrong else f'p{n}'}" for n in range(1, 21)]
    file = members.file("email,name", *lines)
    status = 3 if wrong else 0
    return members.json("import", file, "--into", "members", "--context", f"season={season}", status=status)


def test_a7_a_warned_import_shows_what_differs_and_goes_on_when_acknowledged(members: Workspace) -> None:
    job = brought(members, 2)
    assert (job["state"], job["context"]) == ("FINGERPRINT_WARN", {"season": "2026"})
    assert [finding["row"] for finding in job["fingerprint"]["findings"]] == [1, 2]
    refused = members.run("resume", job["number"])
    assert (refused.status, f"rowcall acknowledge {job['number']}" in refused.err) == (1, True)
    assert "Bob" in members.run("fingerprint", job["number"]).out
    assert "rowcall resume" in members.run("acknowledge", job["number"]).out
    assert members.json("resume", job["number"])["state"] == "VALIDATED"
    plan = members.json("preview", job["number"])["digest"]
    assert members.json("submit", job["number"], "--plan", plan)["state"] == "COMPLETED"
    who = members.json("fingerprint", job["number"])["acknowledgedBy"]
    assert f"Acknowledged by {who}" in " ".join(members.run("receipt", job["number"]).out.split())


def test_a7_an_aborted_import_is_ended_by_cancel(members: Workspace) -> None:
    job = brought(members, 10)
    assert job["state"] == "FINGERPRINT_ABORT"
    assert "FAILED" in members.run("cancel", job["number"]).out


def test_e2_a_newer_import_takes_the_place_of_one_that_waits(members: Workspace) -> None:
    first, other = brought(members, 0), brought(members, 0, "2027")
    second = brought(members, 1)  # one of twenty is worth a question
    assert [older["number"] for older in second["supersedes"]] == [first["number"]]
    refused = members.run("resume", first["number"])
    assert (refused.status, second["number"] in refused.err) == (1, True)
    listed = members.json("jobs", "--scope", "2026")
    assert [(job["number"], job["state"]) for job in listed] == [
        (second["number"], "FINGERPRINT_WARN"),
        (first["number"], "SUPERSEDED"),
    ]
    assert members.json("jobs", "--scope", "2027")[0]["number"] == other["number"]


def test_a6_what_is_missing_from_the_context_is_told(members: Workspace) -> None:
    refused = members.run("import", members.file("email,name"), "--into", "members")
    assert (refused.status, "BAD_CONTEXT" in refused.err, "season" in refused.err) == (1, True, True)
