"""Rows over HTTP: as a stream, and as files that are written in the background."""

import asyncio
import csv
import io
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID, uuid4

import httpx
import openpyxl
import polars as pl
import pytest
from psycopg import Connection

from rowcall.api import streams
from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.config import settings_from
from rowcall.export import Resource, known_resources, select_rows
from rowcall.formats import WriteFormat
from rowcall.importer.registry import load_registry
from rowcall.store.db import Database
from rowcall.worker.exports import Exporter

from ..integration.command import COMMAND
from .conftest import Site
from .test_imports import sent

OTHER = UUID("00000000-0000-7000-8000-00000000000f")
one_server = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True, scope="session")
"""For tests that are about HTTP, files or processes: the SQL is tried on every server by others."""


@pytest.fixture
def exporter(site: Site) -> Exporter:
    return Exporter(site.database, known_resources(site.worker.registry), site.worker.settings)


def run(site: Site, *statements: str) -> None:
    with site.database.connect() as connection:
        for statement in statements:
            connection.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue] (literals of these tests)


def add_users(site: Site, count: int) -> None:
    run(
        site,
        f"""INSERT INTO users (email, name, role, created_at)
            SELECT 'u' || i || '@example.org', CASE WHEN i = 2 THEN '=1+1' ELSE 'Üser ' || i END,
                   CASE WHEN i % 2 = 0 THEN 'author' ELSE 'reader' END, '2024-01-01'::timestamptz + i * interval '1 day'
            FROM generate_series(1, {count}) i""",
    )


def replace_users(site: Site, rows: str) -> None:
    """Put a view in the place of the table, with these rows: numbers and names."""
    run(
        site,
        "ALTER TABLE users RENAME TO real_users",
        f"""CREATE VIEW users AS SELECT md5(i::text)::uuid AS id, 'u' || i || '@example.org' AS email, name,
                'reader' AS role, true AS active, now() AS created_at, now() AS updated_at FROM ({rows}) r""",
    )


def stick(site: Site) -> None:
    """Have an export of users stop for a minute behind 40,000 rows, while the table `held` has a row."""
    run(
        site,
        "CREATE TABLE held AS SELECT 1 AS held",
        """CREATE FUNCTION name_of(i int) RETURNS text LANGUAGE plpgsql STABLE AS $$ BEGIN
               IF i = 40000 AND EXISTS (SELECT FROM held) THEN PERFORM pg_sleep(60); END IF;
               RETURN 'name';
           END $$""",
    )
    replace_users(site, "SELECT i, name_of(i) AS name FROM generate_series(1, 40500) i")


def sessions(site: Site, name: str) -> int:
    with site.database.connect() as connection:
        asked = "SELECT FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()"
        return connection.execute(asked, [f"rowcall {name}"]).rowcount


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def refused(answer: Any) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["code"]


def ordered(site: Site, key: str | None = None, **order: Any) -> Any:
    headers = {"Idempotency-Key": key} if key is not None else {}
    return site.client.post("/v1/exports", json={"resource": "users", "format": "csv", **order}, headers=headers)


def state(site: Site, export: Any) -> Any:
    return site.client.get(f"/v1/exports/{export['id']}").json()


def files(exporter: Exporter) -> list[Path]:
    return [path for path in folder_of(exporter).rglob("*") if path.is_file()]


def folder_of(exporter: Exporter) -> Path:
    return exporter.settings.data_dir / "files" / "exports"


def sheet(workbook: bytes) -> list[tuple[Any, ...]]:
    loaded: Any = openpyxl.load_workbook(io.BytesIO(workbook))  # its annotations are partial
    return list(loaded.active.iter_rows(values_only=True))


# -- streams


def test_b8_rows_are_streamed_in_every_format(site: Site) -> None:
    add_users(site, 3)
    asked = {"resource": "users", "fields": "email, name", "filter": ["role=author", "created_at>=2024-01-01"]}
    told = {
        "csv": ("text/csv; charset=utf-8", b"email,name\nu2@example.org,'=1+1\n"),
        "ndjson": ("application/x-ndjson", b'{"email":"u2@example.org","name":"=1+1"}\n'),
        "json": ("application/json", b'[\n{"email":"u2@example.org","name":"=1+1"}\n]\n'),
    }
    for kind, (media_type, content) in told.items():
        answer = site.client.get("/v1/exports", params={**asked, "format": kind})
        assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, media_type, content)
        assert answer.headers["content-disposition"] == (
            f"attachment; filename=\"users.{kind}\"; filename*=UTF-8''users.{kind}"
        )
    parquet = site.client.get("/v1/exports", params={**asked, "format": "parquet"})
    assert parquet.headers["content-type"] == "application/vnd.apache.parquet"
    assert pl.read_parquet(io.BytesIO(parquet.content)).rows() == [("u2@example.org", "=1+1")]
    workbook = site.client.get("/v1/exports", params={**asked, "format": "xlsx"})
    assert workbook.headers["content-type"].endswith("spreadsheetml.sheet")
    assert sheet(workbook.content) == [("email", "name"), ("u2@example.org", "=1+1")]
    every = site.client.get("/v1/exports", params={"resource": "users"}).text
    assert every.startswith("id,email,name,role,active,created_at,updated_at\n")
    assert len(every.splitlines()) == 4


@one_server
def test_what_is_wrong_with_a_request_is_told(site: Site) -> None:
    def get(**asked: str) -> tuple[int, str]:
        return refused(site.client.get("/v1/exports", params=asked))

    for name in ("user", "public.users", "rowcall.job"):  # only what packs offer
        assert get(resource=name) == refused(ordered(site, resource=name)) == (404, "UNKNOWN_RESOURCE")
    assert get(resource="users", fields="email,nmae") == (422, "BAD_OPTION")
    assert refused(ordered(site, fields=["nmae"])) == (422, "BAD_OPTION")
    for text in ("nmae=x", "created_at=x", "name"):
        assert get(resource="users", filter=text) == refused(ordered(site, filters=[text])) == (422, "BAD_OPTION")
    assert get(resource="users", format="docx") == refused(ordered(site, format="docx")) == (422, "BAD_REQUEST")
    assert get(resource="users", role="author") == (422, "BAD_REQUEST")
    assert get() == (422, "BAD_REQUEST")
    contradictions: list[dict[str, Any]] = [
        {"resource": None},
        {"job": str(OTHER)},
        {"view": {"statuses": ["failed"]}},
        {"resource": None, "job": str(OTHER), "filters": ["a=b"]},
        {"filter": "a=b"},
    ]
    for order in contradictions:
        assert refused(ordered(site, **order)) == (422, "BAD_REQUEST")
    assert refused(ordered(site, resource=None, job=str(OTHER))) == (404, "JOB_NOT_FOUND")
    assert site.client.get("/v1/exports/jobs").json()["items"] == []


@one_server
def test_first_bytes_come_early_and_the_cursor_ends_with_the_client(site: Site) -> None:
    stick(site)
    with site.client.stream("GET", "/v1/exports", params={"resource": "users"}) as answer:
        pieces = answer.iter_bytes()  # kept: forgotten, it would close the connection
        assert next(pieces).startswith(b"id,email")
        assert sessions(site, "stream") == 1
    until(lambda: sessions(site, "stream") == 0, 3)


@one_server
def test_a_client_that_goes_before_the_first_row_ends_the_query(site: Site) -> None:
    replace_users(site, "SELECT 1 AS i, pg_sleep(60)::text AS name")
    with pytest.raises(httpx.ReadTimeout):
        site.client.get("/v1/exports", params={"resource": "users"}, timeout=0.5)
    until(lambda: sessions(site, "stream") == 0, 3)


@one_server
def test_a_failure_on_the_way_never_looks_like_a_complete_file(site: Site) -> None:
    replace_users(site, "SELECT i, (1 / (30000 - i))::text AS name FROM generate_series(1, 90000) i")
    for kind in ("csv", "json"):
        with site.client.stream("GET", "/v1/exports", params={"resource": "users", "format": kind}) as answer:
            assert answer.status_code == 200
            with pytest.raises(httpx.RemoteProtocolError):
                answer.read()
    # a workbook has its first bytes when it is complete, so there is still time to tell
    assert refused(site.client.get("/v1/exports?resource=users&format=xlsx")) == (422, "DATABASE_REFUSED")


@one_server
def test_slow_readers_leave_others_their_connections(site: Site) -> None:
    stick(site)
    asked = b"GET /v1/exports?resource=users HTTP/1.1\r\nHost: localhost\r\n\r\n"
    address = (site.client.base_url.host, site.client.base_url.port or 80)
    with ExitStack() as open_:
        for _ in range(21):
            open_.enter_context(socket.create_connection(address)).sendall(asked)
        until(lambda: sessions(site, "stream") == 21, 20)
        assert site.client.get("/v1/imports").status_code == 200
        assert ordered(site).status_code == 202
        heavy = site.client.get("/v1/exports", params={"resource": "users", "format": "xlsx"})
        assert refused(heavy) == (429, "TOO_MANY_REQUESTS")
    until(lambda: sessions(site, "stream") == 0, 10)


@one_server
def test_a_client_that_takes_nothing_is_given_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_STALLED", 0.3)
    connection = database.connect("stream")

    def write(_: Connection[Any], target: BinaryIO) -> int:
        while True:
            target.write(bytes(10_000))

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def receive() -> Any:
        return await asyncio.Event().wait()

    stream = streams.ExportStream(write, lambda: connection, {}, organisation=OTHER, kind=WriteFormat.CSV)
    asyncio.run(stream({"type": "http", "http_version": "1.1"}, receive, send))
    until(lambda: connection.closed, 3)


@one_server
def test_old_clients_that_could_not_tell_are_refused(site: Site) -> None:
    address = (site.client.base_url.host, site.client.base_url.port or 80)
    with socket.create_connection(address) as client:
        client.sendall(b"GET /v1/exports?resource=users HTTP/1.0\r\nHost: localhost\r\n\r\n")
        answer = client.makefile("rb").read()
    assert b" 426 " in answer.splitlines()[0]
    assert b"HTTP_TOO_OLD" in answer


def test_a_resource_may_tell_organisations_apart(site: Site) -> None:
    run(
        site,
        "CREATE TABLE note (id int PRIMARY KEY, whose uuid, text text)",
        f"INSERT INTO note VALUES (1, '{OTHER}', 'a'), (2, gen_random_uuid(), 'b'), (3, NULL, 'c')",
    )
    resource = Resource(name="notes", table="note", fields=("id", "text"), organisation="whose")
    with site.database.connect() as connection:
        selection = select_rows(connection, resource, organisation=OTHER)
        assert connection.execute(selection.statement).fetchall() == [(1, "a")]
        assert len(connection.execute(select_rows(connection, resource).statement).fetchall()) == 3


# -- in the background


def test_b9_an_export_is_written_and_downloaded(site: Site, exporter: Exporter) -> None:
    add_users(site, 5)
    answer = ordered(site, fields=["email"], filters=["role=reader"], format="ndjson")
    export = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/exports/{export['id']}"
    assert (export["state"], export["progress"]["rows"], export["download"]) == ("QUEUED", 0, None)
    waiting = site.client.get(f"/v1/exports/{export['id']}/download")
    assert refused(waiting) == (409, "WRONG_STATE")
    assert (waiting.json()["state"], waiting.json()["allowed"]) == ("QUEUED", ["cancel"])
    exporter.work()
    done = state(site, export)
    assert (done["state"], done["progress"]["rows"], done["progress"]["total"]) == ("COMPLETED", 3, 3)
    assert done["startedAt"] <= done["completedAt"] < done["expiresAt"]
    got = site.client.get(done["download"])
    assert got.headers["content-type"] == "application/x-ndjson"
    assert got.headers["content-disposition"].endswith("filename*=UTF-8''users.ndjson")
    assert sorted(json.loads(line)["email"] for line in got.text.splitlines()) == [
        f"u{i}@example.org" for i in (1, 3, 5)
    ]
    assert done["progress"]["bytes"] == len(got.content)
    listed = site.client.get("/v1/exports/jobs", params={"pageSize": 1}).json()
    assert listed["items"] == [done]
    assert site.client.get("/v1/exports/jobs", params={"after": listed["next"]}).json()["items"] == []
    assert refused(site.client.get("/v1/exports/jobs", params={"after": export["id"]})) == (400, "BAD_CURSOR")
    assert refused(site.client.post(f"/v1/exports/{export['id']}/cancel")) == (409, "WRONG_STATE")


def test_b9_the_same_key_gives_the_same_export(site: Site) -> None:
    with ThreadPoolExecutor(8) as threads:
        sending = [threads.submit(ordered, site, key="race") for _ in range(24)]
        answers = [future.result() for future in sending]
    assert sorted(answer.status_code for answer in answers) == [200] * 23 + [202]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum(answer.headers.get("idempotent-replayed") == "true" for answer in answers) == 23
    assert refused(ordered(site, key='"race"', format="json")) == (422, "KEY_REUSED")
    assert refused(ordered(site, key="x" * 256)) == (400, "BAD_REQUEST")
    with site.database.connect() as connection:
        nudges = connection.execute("SELECT FROM rowcall_queue.procrastinate_jobs WHERE task_name = 'export'")
        assert nudges.rowcount == 1


@one_server
def test_ranges_of_a_download(site: Site, exporter: Exporter) -> None:
    add_users(site, 100)
    export = ordered(site).json()
    exporter.work()
    place = f"/v1/exports/{export['id']}/download"
    whole = site.client.get(place)
    size, tag = len(whole.content), whole.headers["etag"]

    def get(asked: str, **headers: str) -> httpx.Response:
        return site.client.get(place, headers={"Range": asked, **headers})

    part = get("bytes=10-19")
    assert (part.status_code, part.content) == (206, whole.content[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{size}"
    assert get("bytes=-5").content == whole.content[-5:]
    assert get(f"bytes={size - 3}-").content == whole.content[-3:]
    assert get("bytes=10-19", **{"If-Range": tag}).status_code == 206
    for known in (tag, f'"other", W/{tag}', "*"):
        had = get("bytes=10-19", **{"If-None-Match": known})
        assert (had.status_code, had.content, had.headers["etag"]) == (304, b"", tag)
    assert get("bytes=10-19", **{"If-None-Match": '"other"'}).status_code == 206
    assert get("bytes=10-19", **{"If-Range": '"other"'}).content == whole.content
    assert get("rows=1-2").content == whole.content
    several = get("bytes=0-1,10-11")
    assert several.status_code == 206
    assert several.headers["content-type"].startswith("multipart/byteranges")
    for nonsense in ("bytes=", "bytes=x", "bytes=5-2", f"bytes={size}-", "bytes=-0", "bytes=0-1," * 3000 + "0-1"):
        refusal = get(nonsense)
        assert refused(refusal) == (416, "RANGE_NOT_SATISFIABLE")
        assert refusal.headers["content-range"] == f"bytes */{size}"
    head = site.client.head(place)
    assert (head.content, head.headers["content-length"], head.headers["accept-ranges"]) == (b"", str(size), "bytes")


def test_b9_cancelling_leaves_no_file_and_no_transaction(site: Site, exporter: Exporter) -> None:
    stick(site)
    export, waiting = ordered(site).json(), ordered(site).json()
    assert site.client.post(f"/v1/exports/{waiting['id']}/cancel").json()["state"] == "CANCELLED"
    work = threading.Thread(target=exporter.work)
    work.start()
    until(lambda: state(site, export)["progress"]["rows"])
    assert state(site, export)["state"] == "RUNNING"
    assert state(site, export)["progress"]["bytes"] > 0
    assert len(files(exporter)) == 1
    assert site.client.post(f"/v1/exports/{export['id']}/cancel").json()["state"] == "CANCELLED"
    work.join(5)
    assert not work.is_alive()
    assert list(exporter.store.exports()) == []
    assert sessions(site, "export") == 0
    for each in (export, waiting):
        again = site.client.post(f"/v1/exports/{each['id']}/cancel")
        assert (refused(again), again.json()["allowed"]) == ((409, "WRONG_STATE"), [])
        assert state(site, each)["state"] == "CANCELLED"


@one_server
def test_what_cannot_be_written_is_told(site: Site, exporter: Exporter) -> None:
    export = ordered(site).json()
    run(site, "ALTER TABLE users DROP COLUMN name")
    exporter.work()
    failed = state(site, export)
    assert (failed["state"], failed["error"]["code"]) == ("FAILED", "BAD_DECLARATION")
    assert files(exporter) == []


@one_server
def test_a_worker_that_stops_leaves_it_to_others(site: Site, exporter: Exporter) -> None:
    stick(site)
    export = ordered(site).json()
    work = threading.Thread(target=exporter.work)
    work.start()
    until(lambda: state(site, export)["progress"]["rows"])
    exporter.stop.set()
    work.join(5)
    assert (state(site, export)["state"], files(exporter)) == ("QUEUED", [])
    exporter.stop.clear()
    run(site, "TRUNCATE held")
    exporter.work()
    assert state(site, export)["progress"]["rows"] == 40500


def test_nudges_that_were_lost_are_made_good(site: Site, exporter: Exporter) -> None:
    export = ordered(site).json()
    run(site, "DELETE FROM rowcall_queue.procrastinate_jobs")
    exporter.recover()
    exporter.recover()
    with site.database.connect() as connection:
        found = connection.execute("SELECT task_name, args ->> 'job_id' FROM rowcall_queue.procrastinate_jobs")
        assert found.fetchall() == [("export", export["id"])]


def test_files_go_when_their_time_is_over(site: Site, exporter: Exporter) -> None:
    add_users(site, 1)
    kept, old = ordered(site).json(), ordered(site).json()
    exporter.work()
    folder = folder_of(exporter)
    (folder / kept["id"] / "left-over.csv").touch()
    (folder / str(OTHER)).mkdir()
    (folder / str(OTHER) / ".rowcall-1.part").touch()
    (folder / str(uuid4())).mkdir()
    run(site, f"UPDATE rowcall.export_job SET expires_at = now() - interval '1 s' WHERE id = '{old['id']}'")
    exporter.tidy()
    assert state(site, old)["state"] == "EXPIRED"
    assert refused(site.client.get(f"/v1/exports/{old['id']}/download")) == (410, "EXPORT_EXPIRED")
    assert site.client.get(f"/v1/exports/{kept['id']}/download").status_code == 200
    assert [path.parent.name for path in files(exporter)] == [kept["id"]]
    assert [path.name for path in folder.iterdir()] == [kept["id"]]


def test_exports_of_others_are_not_found(site: Site, exporter: Exporter) -> None:
    export, job = ordered(site).json(), sent(site).json()
    exporter.work()
    run(
        site,
        f"INSERT INTO rowcall.organisation (id, name) VALUES ('{OTHER}', 'other')",
        f"UPDATE rowcall.export_job SET organisation_id = '{OTHER}'",
        f"UPDATE rowcall.job SET organisation_id = '{OTHER}'",
    )
    place = f"/v1/exports/{export['id']}"
    for answer in (
        site.client.get(place),
        site.client.get(f"{place}/download"),
        site.client.post(f"{place}/cancel"),
    ):
        assert refused(answer) == (404, "EXPORT_NOT_FOUND")
    for answer in (
        site.client.get(f"/v1/imports/{job['id']}/results/export"),
        site.client.post(f"/v1/imports/{job['id']}/export"),
        ordered(site, resource=None, job=job["id"]),
    ):
        assert refused(answer) == (404, "JOB_NOT_FOUND")
    assert site.client.get("/v1/exports/jobs").json()["items"] == []
    with site.database.connect() as connection:  # cancelling it would have been possible
        assert connection.execute("SELECT state FROM rowcall.export_job").fetchall() == [("COMPLETED",)]


@one_server
def test_k39_a_killed_worker_leaves_no_part_and_the_export_is_begun_anew(site: Site, exporter: Exporter) -> None:
    stick(site)
    export = ordered(site).json()
    environment = {
        **os.environ,
        "ROWCALL_DATABASE_URL": site.database.url,
        "ROWCALL_DATA_DIR": str(site.worker.settings.data_dir),
    }
    with subprocess.Popen([COMMAND, "worker"], env=environment) as worker:
        until(lambda: state(site, export)["progress"]["rows"], 20)
        assert len(files(exporter)) == 1
        os.kill(worker.pid, signal.SIGKILL)
    until(lambda: sessions(site, "exports") == sessions(site, "export") == 0)
    left = files(exporter)
    assert len(left) == 1
    run(site, "TRUNCATE held")
    exporter.recover()
    exporter.work()
    assert state(site, export)["state"] == "COMPLETED"
    assert len(site.client.get(f"/v1/exports/{export['id']}/download").text.splitlines()) == 40_501
    assert len(files(exporter)) == 1
    assert files(exporter) != left


# -- what became of a job's rows

FILE = (
    "email,name,role,active,status\n"
    "ann@example.org,Ann,admin,true,x\n"
    "bob@example.org,,reader,true,=y\n"
    "cy@example.org,Cy,reader,true,z,more,and more\n"
    "dan@example.org,Dan,boss,maybe\n"
)


def grid(site: Site, job: str, **view: str) -> list[dict[str, Any]]:
    """What the grid shows, as an export has it."""
    found: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        page = site.client.get(f"/v1/imports/{job}/items", params={"pageSize": 2, **view, **after}).json()
        found += page["items"]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    return [
        {
            "rowcall_row": item["row"],
            "rowcall_line": item["line"],
            "rowcall_status": item["status"],
            **item["values"],
            "rowcall_issues": [{k: v for k, v in issue.items() if v is not None} for issue in item["issues"]],
            "rowcall_target_key": item["targetKey"],
            "rowcall_attempt": item["attempt"],
            "rowcall_at": item["at"],
        }
        for item in found
    ]


def without_nulls(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            key: [{k: v for k, v in issue.items() if v is not None} for issue in value]
            if key == "rowcall_issues"
            else value
            for key, value in row.items()
            if value is not None
        }
        for row in rows
    ]


def test_c8_an_export_has_just_what_the_grid_shows(site: Site, exporter: Exporter) -> None:
    job = sent(site, FILE).json()["id"]
    place = f"/v1/imports/{job}/results/export"
    assert "pending" not in site.client.get(place, params={"format": "ndjson"}).text  # no rows yet
    site.worker.advance(job)
    views: list[dict[str, Any]] = [
        {},
        {"statuses": ["failed", "skipped"], "sort": "-row"},
        {"code": "REQUIRED"},
        {"field": "name"},
        {"text": "ANN@"},
    ]
    for each in views:
        view = {**each, **({"statuses": ",".join(each["statuses"])} if "statuses" in each else {})}
        shown = without_nulls(grid(site, job, **view))
        lines = site.client.get(place, params={"format": "ndjson", **view}).text.splitlines()
        assert without_nulls([json.loads(line) for line in lines]) == shown
        order = site.client.post("/v1/exports", json={"job": job, "view": each, "format": "json"}).json()
        exporter.work()
        content = site.client.get(f"/v1/exports/{order['id']}/download").json()
        assert without_nulls(content) == shown
    shown = grid(site, job)
    assert [row["rowcall_status"] for row in shown].count("created") == 1
    # as a spreadsheet program has it
    answer = site.client.get(place, params={"format": "csv", "bom": True})
    assert answer.headers["content-disposition"].startswith('attachment; filename="BU')
    table = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert [int(row["rowcall_row"]) for row in table] == [row["rowcall_row"] for row in shown]
    assert [row["status"] for row in table] == ["x", "'=y", "z", ""]
    assert table[2]["column 7"] == "and more"
    assert json.loads(table[1]["rowcall_issues"])[0]["code"] == "REQUIRED"
    made = site.client.post(f"/v1/imports/{job}/export", params={"format": "xlsx", "statuses": "failed"})
    assert made.status_code == 202
    exporter.work()
    header, *rows = sheet(site.client.get(f"/v1/exports/{made.json()['id']}/download").content)
    assert header[0] == "rowcall_row"
    assert [row[0] for row in rows] == [row["rowcall_row"] for row in grid(site, job, statuses="failed")]


@one_server
def test_one_record_of_many_cells_adds_few_columns(site: Site) -> None:
    job = sent(site, "email,name\na@example.org,A\nb@example.org,B" + ",x" * 300 + "\n").json()["id"]
    site.worker.advance(job)
    lines = site.client.get(f"/v1/imports/{job}/results/export", params={"format": "ndjson"}).text.splitlines()
    assert len(json.loads(lines[0])) == 111
    assert json.loads(json.loads(lines[1])["column 103 and beyond"]) == ["x"] * 200


def test_export_and_grid_take_the_same_filters() -> None:
    paths = create_app(Service(settings_from({}), load_registry(), Database("").pool("serve", 1))).openapi()["paths"]

    def filters(path: str, method: str) -> set[str]:
        return {each["name"] for each in paths[path][method]["parameters"] if each["in"] == "query"}

    wanted = filters("/v1/imports/{job_id}/items", "get") - {"after", "pageSize"}
    assert filters("/v1/imports/{job_id}/results/export", "get") - {"format", "bom"} == wanted
    assert filters("/v1/imports/{job_id}/export", "post") - {"format", "bom"} == wanted


@one_server
def test_the_command_exports_a_job(database: Database, site: Site, tmp_path: Path) -> None:
    job = sent(site, FILE).json()
    site.worker.advance(job["id"])
    environment = {**os.environ, "ROWCALL_DATABASE_URL": database.url, "ROWCALL_DATA_DIR": str(tmp_path)}

    def command(*options: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [COMMAND, "export", *options], env=environment, capture_output=True, text=True, check=False
        )

    done = command("--job", job["number"], "--status", "failed", "--format", "ndjson")
    asked = {"format": "ndjson", "statuses": "failed"}
    assert done.stdout == site.client.get(f"/v1/imports/{job['id']}/results/export", params=asked).text
    assert "don't go with --job" in command("--job", job["number"], "--fields", "email").stderr
