"""Commands with `--server`: the same as without, on a service."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from rowcall.cli import main
from rowcall.store.db import Database

from ..database import Server
from ..integration.command import COMMAND
from ..web import serving
from .conftest import Site
from .test_client import export_work
from .test_exports import add_users
from .town import Town

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
_MESSY = (
    "email,name,role,active,note",
    "ann@example.org,Ann,admin,true,first",
    "bob@example.org,,nobody,true,no name and no such role",
    "",
    "too,few",
    "eve@example.org,Eve,reader,maybe,",
)
_OTHERWISE = {
    *(
        "id",
        "number",
        "durationMs",
        "until",
        "at",
        "targetKey",
        "createdAt",
        "startedAt",
        "endedAt",
        "elapsedMs",
        "rowsPerSecond",
    ),
    *("account", "background"),
}
ROOT = Path(__file__).parents[2]
_ADDRESS = "http://127.0.0.1:8765"
Run = Callable[..., "Said"]


@dataclass(frozen=True)
class Said:
    """What a command ended with."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs commands here: each would take a second to start."""
    monkeypatch.setenv("COLUMNS", "120")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def command(*arguments: str | Path, **environment: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["rowcall", *map(str, arguments)])
        capfd.readouterr()
        with monkeypatch.context() as changed:
            for name, value in environment.items():
                changed.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        status, said = ended.value.code, capfd.readouterr()
        return Said(status if isinstance(status, int) else 0, said.out, said.err)

    return command


@contextmanager
def working(site: Site) -> Generator[None]:
    """A worker for as long as this lasts."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.05):
            for state in ("UPLOADED", "REVERTING"):
                for job in site.client.get("/v1/imports", params={"state": state}).json()["items"]:
                    site.worker.advance(job["id"])
            export_work(site)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def here(shared_server: Server, template: str, tmp_path: Path) -> Generator[dict[str, str]]:
    """Settings for commands on a database of their own."""
    with shared_server.new_database(template) as database:
        yield {"ROWCALL_DATABASE_URL": database.url, "ROWCALL_DATA_DIR": str(tmp_path / "here")}


def alike(told: Any) -> Any:
    """The same without ids, times, and whose it is."""
    match told:
        case dict():
            named = cast("dict[str, Any]", told)  # JSON has no others
            return {name: alike(value) for name, value in named.items() if name not in _OTHERWISE}
        case list():
            return [alike(value) for value in cast("list[Any]", told)]
        case _:
            return told


def messy(folder: Path) -> Path:
    path = folder / "users.csv"
    path.write_text("\n".join(_MESSY) + "\n")
    return path


def test_programs_are_told_the_same_as_without_a_server(
    site: Site, run: Run, here: dict[str, str], tmp_path: Path
) -> None:
    there = {"ROWCALL_SERVER": str(site.client.base_url)}
    asked = ("import", messy(tmp_path), "--into", "users", "--set", "active=true", "--comment", "#", "--json")
    with working(site):
        local, remote = run(*asked, **here), run(*asked, **there)
    assert (remote.status, remote.err) == (local.status, local.err) == (2, "")
    assert alike(remote.json) == alike(local.json)
    assert (remote.json["counts"]["created"], remote.json["unusedColumns"]) == (2, ["active", "note"])
    assert list(remote.json) == list(local.json)
    for command in (
        ("jobs", "--importer", "users", "--json"),
        ("receipt", "JOB", "--json"),
        ("importers", "--json"),
        ("importers", "users", "--json"),
    ):
        told = [
            run(*(end["number"] if word == "JOB" else word for word in command), **settings)
            for end, settings in ((local.json, here), (remote.json, there))
        ]
        assert (told[0].status, told[0].err) == (told[1].status, told[1].err) == (0, "")
        assert alike(told[0].json) == alike(told[1].json), command
    rows = [
        [alike(json.loads(line)) for line in run("rows", end["number"], "--json", **settings).out.splitlines()]
        for end, settings in ((local.json, here), (remote.json, there))
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 4


def test_people_are_told_the_same(site: Site, run: Run, tmp_path: Path) -> None:
    url = str(site.client.base_url)
    with working(site):
        done = run("--server", url, "import", messy(tmp_path), "--into", "users")
        dry = run("import", messy(tmp_path), "--into", "users", "--dry-run", "--server", url)
        failed = run("import", messy(tmp_path), "--into", "users", "--map", "name=", f"--server={url}")
    assert (done.status, done.err) == (2, "")
    assert "COMPLETED_WITH_ERRORS  4 rows = 1 created + 0 updated + 0 unchanged + 0 skipped + 3 failed" in done.out
    assert "NOT_A_CHOICE" in done.out
    assert (dry.status, "A dry run: nothing was changed." in dry.out) == (2, True)
    assert failed.status == 1
    assert "has failed before its first row: nothing was changed." in failed.err
    assert "MISSING_COLUMNS Required by users and not in the file: name" in failed.err
    listed = run("--server", url, "jobs")
    assert "1 created + 3 failed" in listed.out
    number = done.out.split("job ")[1].split()[0]
    assert "name: REQUIRED A value is required." in run("rows", number, "--status", "failed", "--server", url).out
    assert f"Receipt of job {number}" in run("receipt", number, "--server", url).out
    again = run("reprocess", number, "--code", "REQUIRED", "--server", url)
    assert again.out == f"1 row is tried again.\nJob {number} is PROCESSING.\n"
    assert run("pause", number, "--server", url).out == f"Job {number} is PAUSED.\n"
    unknown = run("rows", "BU1", "--server", url).err
    assert unknown.startswith("JOB_NOT_FOUND")
    assert "GET /v1" not in unknown
    file = tmp_path / "odd.csv"
    file.write_text("post,name\na@example.org,A\n")
    many = tmp_path / "many.csv"
    many.write_text("email,name,role,active\n" + "no,,,\n" * 11)
    with working(site):
        refused = run("import", file, "--into", "users", "--server", url)
        all_failed = run("import", many, "--into", "users", "--server", url)
    assert f"--status failed --server {url}" in all_failed.out
    assert "MISSING_COLUMNS" in refused.err
    assert "--map" in refused.err
    assert '"mapping"' not in refused.err


def test_resume_goes_on_on_the_server_and_cancel_stops(site: Site, run: Run, tmp_path: Path) -> None:
    server = ("--server", str(site.client.base_url))
    held = site.client.post(
        "/v1/imports",
        data={"importer": "users", "config": '{"hold": true}'},
        files={"file": ("users.csv", messy(tmp_path).read_bytes())},
    ).json()
    with working(site):
        done = run("resume", held["number"], "--json", *server)
    assert (done.status, done.json["state"], done.json["counts"]["created"]) == (2, "COMPLETED_WITH_ERRORS", 1)
    assert run("resume", held["number"], *server).err.startswith("WRONG_STATE")
    other = site.client.post("/v1/imports", params={"importer": "users"}, content=messy(tmp_path).read_bytes()).json()
    cancelled = run("cancel", other["number"], *server, "--json").json
    assert (cancelled["number"], cancelled["state"]) == (other["number"], "CANCELLED")


def test_exports_come_to_files_and_to_standard_output(site: Site, run: Run, tmp_path: Path) -> None:
    add_users(site, 5)
    server = ("--server", str(site.client.base_url))
    chosen = ("export", "users", "--fields", "email,role", "--filter", "role=reader")
    with working(site):
        done = run(*chosen, "--out", tmp_path / "users.ndjson", *server)
    assert (done.status, done.err) == (0, "3 rows written\n")
    assert len((tmp_path / "users.ndjson").read_text().splitlines()) == 3
    streamed = run(*chosen, *server)
    assert streamed.out.splitlines()[0] == "email,role"
    assert streamed.err == f"{len(streamed.out.encode()):,} bytes written\n"
    unknown = run("export", "usres", "--out", tmp_path / "x.csv", *server)
    assert (unknown.status, unknown.err.split()[0]) == (1, "UNKNOWN_RESOURCE")
    assert not (tmp_path / "x.csv").exists()


def test_an_export_of_a_job_is_what_its_grid_shows(site: Site, run: Run, tmp_path: Path) -> None:
    server = ("--server", str(site.client.base_url))
    with working(site):
        number = run("import", messy(tmp_path), "--into", "users", "--json", *server).json["number"]
    failed = run("export", "--job", number, "--status", "failed", "--format", "ndjson", *server)
    assert [json.loads(line)["rowcall_status"] for line in failed.out.splitlines()] == ["failed"] * 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("import", "FILE", "--into", "users", "--workers", "3"), "--workers is not for a server"),
        (("import", "FILE", "--into", "users", "--batch-rows", "3"), "--batch-rows is not for a server"),
        (("export", "users", "--formulas", "keep"), "--formulas is not for a server"),
        (("export", "users", "--out", "users.csv.gz"), "a server writes neither"),
        (("export", "users", "--out", "users.tsv"), "a server writes neither"),
        (("scaffold", "users"), "`rowcall scaffold` is not for a server"),
    ],
)
def test_what_a_server_does_not_do_is_refused(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], said: str, shared_server: Server
) -> None:
    words = [messy(tmp_path) if word == "FILE" else word for word in arguments]
    refused = run("--server", "http://127.0.0.1:9", *words)
    assert (refused.status, refused.err.split()[0]) == (1, "BAD_OPTION")
    assert said in refused.err


def test_servers_that_do_not_serve_are_told(
    run: Run, town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowcall.client.asking._FIRST_CONTACT", 0)
    with serving() as web:
        web.at("/v1/imports", "<h1>Hello</h1>", content_type="text/html", connection="close")
        assert run("jobs", "--server", web.url("")).err.startswith("NOT_ROWCALL")
    gone = run("import", messy(tmp_path), "--into", "users", "--json", "--server", web.url(""))
    assert (gone.status, gone.json["error"]["code"]) == (1, "SERVER_UNREACHABLE")
    url = str(town.client.base_url)
    keyless = run("jobs", "--server", url)
    assert "UNAUTHENTICATED A key is needed." in keyless.err
    assert "Set ROWCALL_KEY" in keyless.err
    assert "UNAUTHENTICATED The key is not known." in run("jobs", "--server", url, ROWCALL_KEY=town.keys["wrong"]).err
    assert run("jobs", "--server", url, ROWCALL_KEY=town.keys["ann"]).status == 0


def test_the_page_about_it_runs(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "client.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]
    assert _ADDRESS in program
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    with working(site):
        exec(program.replace(_ADDRESS, str(site.client.base_url)), {})
    assert "COMPLETED_WITH_ERRORS" in capsys.readouterr().out
    assert (tmp_path / "authors.csv").read_text().startswith("id,")


def test_the_doctor_tells_how_a_server_is(site: Site, run: Run) -> None:
    url = str(site.client.base_url)
    told = run("doctor", "--json", ROWCALL_SERVER=url)
    found = {each["name"]: each["verdict"] for each in told.json["findings"]}
    assert found == dict.fromkeys(("server", "database", "migrations", "files", "key"), "ok") | {"workers": "note"}
    assert told.status == 0
    refused = run("doctor", "--verify", "BU202601010001", "--server", url)
    assert (refused.status, "BAD_OPTION" in refused.err) == (1, True)
    nobody = run("doctor", "--server", "http://127.0.0.1:9")
    assert (nobody.status, "can't be reached" in nobody.out) == (1, True)


def test_ctrl_c_leaves_the_job_to_the_server(site: Site, tmp_path: Path) -> None:
    url = str(site.client.base_url)
    with subprocess.Popen(
        [COMMAND, "import", messy(tmp_path), "--into", "users", "--json", "--server", url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    ) as command:
        deadline = time.monotonic() + 60
        while not (jobs := site.client.get("/v1/imports").json()["items"]) or not streams(site.database):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=30)
    number = jobs[0]["number"]
    assert command.returncode == 1
    told = json.loads(out)
    assert (told["number"], told["state"], told["error"]["code"]) == (number, "UPLOADED", "INTERRUPTED")
    assert f"Job {number} goes on at {url}; only the waiting for it has ended." in err
    assert f"Stop it: rowcall cancel {number} --server {url}" in err
    assert "cancel" in site.client.get(f"/v1/imports/{jobs[0]['id']}").json()["allowed"]


def streams(database: Database) -> bool:
    """Whether somebody has been told of a job as it goes."""
    with psycopg.connect(database.url) as connection:
        asked = "SELECT FROM pg_stat_activity WHERE query LIKE '%%job_event%%' AND pid <> pg_backend_pid()"
        return connection.execute(asked).rowcount > 0


def test_x2_undo_on_a_server_is_the_same_as_without(site: Site, run: Run, here: dict[str, str], tmp_path: Path) -> None:
    there = {"ROWCALL_SERVER": str(site.client.base_url)}
    asked = ("import", messy(tmp_path), "--into", "users", "--set", "active=true", "--comment", "#", "--json")
    with working(site):
        local, remote = run(*asked, **here).json["number"], run(*asked, **there).json["number"]
        for options in (("--dry-run",), ("--yes", "--row", "1"), ("--yes",)):
            one = run("undo", local, *options, "--json", **here)
            other = run("undo", remote, *options, "--json", **there)
            assert (one.status, one.err) == (other.status, other.err) == (0, "")
            mine, theirs = alike(one.json), alike(other.json)
            for name in ("jobId", "digest", "requestId", "completedAt"):
                assert (mine.pop(name, None) is None) == (theirs.pop(name, None) is None) or name == "requestId"
            assert mine == theirs
        told = run("undo", remote, "--yes", **there)
    assert (told.status, told.err.startswith("WRONG_STATE")) == (1, True)
