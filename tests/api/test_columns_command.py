"""`rowcall map` and `rowcall templates`: the same on the database as with a server (A2, A5, X5, X10)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from . import test_server_option
from .conftest import Site
from .test_server_option import Run, Said, working

run = test_server_option.run
pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
FILE = "Kontakt,First,Last,shoe\nann@example.org,Ann,Lee,\nbob@example.org,Bob,Moe,44\n"
SAID = ("--set", "Kontakt=email", "--join", "name=Last+First", "--separator", ", ", "--ignore", "shoe")


@dataclass(frozen=True)
class Place:
    """Where commands do their work, and somebody who goes on with jobs there."""

    command: Run
    settings: dict[str, str]
    folder: Path
    go_on: Callable[[dict[str, Any]], None]

    def run(self, *arguments: str) -> Said:
        return self.command(*arguments, **self.settings)

    def json(self, *arguments: str, status: int = 0) -> Any:
        said = self.run(*arguments, "--json")
        assert said.status == status, said.out + said.err
        return said.json

    def brings(self, text: str = FILE, *options: str, status: int = 3) -> dict[str, Any]:
        """A job that has come as far as it can."""
        file = self.folder / "contacts.csv"
        file.write_text(text)
        return self.json("import", str(file), "--into", "users", *options, status=status)

    def state(self, job: dict[str, Any]) -> str:
        return next(each["state"] for each in self.json("jobs") if each["number"] == job["number"])


@pytest.fixture(params=["here", "there"])
def place(request: pytest.FixtureRequest, site: Site, run: Run, tmp_path: Path) -> Place:
    if request.param == "here":
        settings = {"ROWCALL_DATABASE_URL": site.database.url, "ROWCALL_DATA_DIR": str(tmp_path)}

        def resume(job: dict[str, Any]) -> None:
            run("resume", job["number"], **settings)

        return Place(run, settings, tmp_path, resume)

    def there(*arguments: str | Path, **environment: str) -> Said:
        with working(site):
            return run(*arguments, **environment)

    def work(job: dict[str, Any]) -> None:
        site.worker.advance(str(job["id"]))

    return Place(there, {"ROWCALL_SERVER": str(site.client.base_url)}, tmp_path, work)


def names(site: Site) -> list[tuple[str, str]]:
    with site.database.connect() as connection:
        rows = connection.execute("SELECT email, name FROM users ORDER BY 1").fetchall()
    return [(email, name) for email, name in rows]


def test_a2_columns_are_seen_said_and_confirmed(site: Site, place: Place) -> None:
    job = place.brings(FILE, "--ask", "unsure")
    number = job["number"]
    assert job["state"] == "COLUMN_MAPPING"
    seen = place.run("map", number)
    assert (seen.status, "Kontakt" in seen.out, f"rowcall map {number} --confirm" in " ".join(seen.out.split())) == (
        0,
        True,
        True,
    )
    refused = place.run("map", number, "--confirm")
    assert (refused.status, refused.err.startswith("MISSING_COLUMNS"), "email" in refused.err) == (1, True, True)
    said = place.json("map", number, *SAID, "--const", "role=author")
    assert [(each["header"], each["targetField"]) for each in said["columns"]] == [
        *(("Kontakt", "email"), ("First", "name"), ("Last", "name"), ("shoe", None))
    ]
    assert (said["missing"], said["constants"], said["waiting"]) == ([], {"role": "author"}, True)
    assert place.json("map", number)["columns"] == said["columns"]
    assert place.json("map", number, "--const", "role=")["constants"] == {}
    assert place.json("map", number, "--confirm")["number"] == number
    place.go_on(job)
    assert place.state(job) == "COMPLETED"
    assert names(site) == [("ann@example.org", "Lee, Ann"), ("bob@example.org", "Moe, Bob")]
    late = place.run("map", number, "--set", "shoe=role")
    assert (late.status, late.err.startswith("WRONG_STATE")) == (1, True)


def test_x5_columns_are_reopened_before_anything_is_written(site: Site, place: Place) -> None:
    options = ("--preview", "--map", "Kontakt=email", "--map", "First=name", "--map", "Last=", "--map", "shoe=")
    job = place.brings(FILE, *options, status=0)
    assert job["state"] == "VALIDATED"
    assert place.json("map", job["number"], "--reopen", "--set", "Last=name")["waiting"]
    place.run("map", job["number"], "--confirm")
    place.go_on(job)
    assert place.state(job) == "VALIDATED"
    assert place.json("preview", job["number"])["counts"]["created"] == 2
    if url := place.settings.get("ROWCALL_SERVER"):
        assert f"--server {url}" in place.run("preview", job["number"], "--server", url).out
    assert names(site) == []


NO_SENSE = [
    (["--set", "Kontakt"], "--set is written so"),
    (["--set", "Kontact=email"], "The file has no column 'Kontact'"),
    (["--set", "Kontakt=mehl"], "has no field 'mehl'"),
    (["--join", "name"], "--join is written so"),
    (["--dates", "Kontakt=dym"], "dmy, mdy, ymd, point or comma"),
    (["--template", "crm"], "SOURCE/VARIANT"),
    (["--template", "crm/none"], "TEMPLATE_NOT_FOUND"),
    (["--const", "=x"], "--const is written so"),
]


def test_what_makes_no_sense_is_refused_and_changes_nothing(place: Place) -> None:
    job = place.brings(FILE, "--ask", "unsure")
    before = place.json("map", job["number"])
    for options, told in NO_SENSE:
        refused = place.run("map", job["number"], *options)
        assert (refused.status, told in refused.err) == (1, True), refused.err
    assert place.json("map", job["number"]) == before


def test_x10_a_template_is_saved_used_and_deleted(site: Site, place: Place) -> None:
    first = place.brings(FILE, "--ask", "unsure")
    early = place.run("templates", "save", "crm/contacts", "--job", first["number"])
    assert (early.status, "not settled" in early.err) == (1, True)
    place.run("map", first["number"], *SAID, "--confirm")
    place.go_on(first)
    for name in ("a/b/c", "crm//x", "crm"):
        other = place.run("templates", "save", name, "--job", first["number"])
        told = f"A template is written SOURCE/VARIANT; {name!r} isn't."
        assert (other.status, told in other.err) == (1, True), other.err
    saved = place.json("templates", "save", "crm/contacts", "--job", first["number"])
    assert (saved["sourceSystem"], saved["variant"], len(saved["columns"])) == ("crm", "contacts", 4)
    assert "crm/contacts" in place.run("templates", "list").out
    assert [each["id"] for each in place.json("templates", "list", "--source", "crm")] == [saved["id"]]
    assert place.json("templates", "list", "--source", "erp") == []

    second = place.brings(FILE.replace("ann", "eve"), "--template", "crm/contacts", "--ask", "unsure", status=0)
    assert second["state"] == "COMPLETED"
    assert ("eve@example.org", "Lee, Ann") in names(site)
    drifted = place.brings(FILE.replace("shoe", "size"), "--template", "crm/contacts", "--ask", "always")
    seen = " ".join(place.run("map", drifted["number"]).out.split())
    assert "crm/contacts" in seen
    assert "size" in seen

    assert "is gone" in place.run("templates", "delete", "crm/contacts", "--into", "users").out
    assert place.json("templates", "list") == []
    gone = place.run("templates", "delete", "crm/contacts", "--into", "users")
    assert (gone.status, gone.err.startswith("TEMPLATE_NOT_FOUND")) == (1, True)


def test_x10_what_was_decided_of_columns_is_listed_and_revoked(place: Place) -> None:
    job = place.brings(FILE, "--ask", "unsure")
    place.run("map", job["number"], *SAID, "--confirm")
    found = place.json("templates", "decisions", "--into", "users")
    assert ("Kontakt", "email") in {(each["header"], each["targetField"]) for each in found}
    assert "Kontakt" in place.run("templates", "decisions").out
    (kontakt,) = [each["id"] for each in found if each["header"] == "Kontakt"]
    assert kontakt in place.run("templates", "decisions").out
    left = place.json("templates", "decisions", "--revoke", kontakt)
    assert kontakt not in {each["id"] for each in left}
    assert place.run("templates", "decisions", "--revoke", kontakt).err.startswith("DECISION_NOT_FOUND")
