"""A server that is killed while a file comes: no job without its file, no file without its job (FAULTS.md, K1–K3)."""

import base64
import socket
import threading
import time
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from rowcall.store.db import Database
from rowcall.store.files.filestore import MARK

from ..forking import Forked
from ..integration.command import serving as a_service
from .trial import wait_for

CONTENT = b"email,name,role,active\n" + b"".join(b"p%d@example.org,P,reader,true\n" % n for n in range(3_000))
TUS = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"}


@dataclass(frozen=True)
class Serving:
    """A server in a process of its own."""

    process: Forked
    url: str

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)


@contextmanager
def serving(database: Database, data: Path) -> Generator[Serving]:
    settings = {"ROWCALL_DATABASE_URL": database.url, "ROWCALL_DATA_DIR": str(data), "COLUMNS": "200"}
    with a_service("--workers", "0", **settings) as (process, url):
        try:
            wait_for(lambda: _listens(url))
            yield Serving(process, url)
        finally:
            process.kill()


def _listens(url: str) -> bool:
    try:
        return httpx.get(f"{url}/v1/imports").status_code == 200
    except httpx.TransportError:
        return False


def sent(url: str, content: Any, key: str) -> httpx.Response:
    asked = {"importer": "users"}
    headers = {"Idempotency-Key": key}
    return httpx.post(f"{url}/v1/imports", params=asked, content=content, headers=headers, timeout=60)


def halves(half_sent: threading.Event) -> Generator[bytes]:
    """Half of the file, and the rest never."""
    yield CONTENT[: len(CONTENT) // 2]
    half_sent.set()
    time.sleep(3)  # the server is killed meanwhile
    yield CONTENT[len(CONTENT) // 2 :]


def files(data: Path) -> list[Path]:
    """The files in the store; beside them are what still comes, and the store's mark."""
    found = (path for path in (data / "files").rglob("*") if path.is_file())
    return [path for path in found if path.parent.name != "incoming" and path.name != MARK]


def count(database: Database) -> int:
    with database.connect() as connection:
        ((found,),) = connection.execute("SELECT count(*) FROM rowcall.job").fetchall()
        return found


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_a_killed_server_leaves_no_job_without_a_file_and_no_file_without_a_job(
    database: Database, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(4) as threads:
        with serving(database, tmp_path) as server:
            place = _begun(server.url)
            _half_is_sent(threads, server, place)  # K1, and half of a piece
            server.kill()
        assert (count(database), files(tmp_path)) == (0, [])
        with serving(database, tmp_path) as server:
            _resumed(server.url, place)
            assert sent(server.url, CONTENT, "k1").status_code == 202
            assert (count(database), len(files(tmp_path))) == (2, 1)
            _killed_in_transaction(database, threads, server)  # K2
            assert count(database) == 2
        with serving(database, tmp_path) as server:
            assert sent(server.url, CONTENT + b"\n", "k2").status_code == 202
            assert (count(database), len(files(tmp_path))) == (3, 2)
            _without_reading(server.url, "k3")
            wait_for(lambda: count(database) == 4)
            server.kill()  # K3
        with serving(database, tmp_path) as server:
            replayed = sent(server.url, CONTENT, "k3")
            assert (replayed.status_code, replayed.headers["idempotent-replayed"]) == (200, "true")
            assert (count(database), len(files(tmp_path))) == (4, 2)


def _begun(url: str) -> str:
    """A resumable upload of which some is there."""
    name = base64.b64encode(b"users").decode()
    headers = {**TUS, "Upload-Length": str(len(CONTENT)), "Upload-Metadata": f"importer {name}"}
    return httpx.post(f"{url}/v1/uploads", headers=headers, content=CONTENT[:1_000]).headers["location"]


def _half_is_sent(threads: ThreadPoolExecutor, server: Serving, place: str) -> None:
    posted, patched = threading.Event(), threading.Event()
    headers = {**TUS, "Upload-Offset": "1000"}
    threads.submit(_quietly, lambda: sent(server.url, halves(posted), "k1"))
    threads.submit(_quietly, lambda: httpx.patch(server.url + place, content=halves(patched), headers=headers))
    posted.wait(20)
    patched.wait(20)


def _quietly(send: Any) -> None:
    with suppress(httpx.HTTPError):
        send()


def _resumed(url: str, place: str) -> None:
    """Whatever is told to be there is there, and the rest makes it whole."""
    at = int(httpx.head(url + place, headers=TUS).headers["upload-offset"])
    assert at >= 1_000
    answer = httpx.patch(url + place, content=CONTENT[at:], headers={**TUS, "Upload-Offset": str(at)})
    assert answer.status_code == 204
    job = httpx.get(url + answer.headers["rowcall-import"]).json()
    assert job["file"]["size"] == len(CONTENT)


def _killed_in_transaction(database: Database, threads: ThreadPoolExecutor, server: Serving) -> None:
    waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(database.url) as holder, psycopg.connect(database.url, autocommit=True) as watch:
        holder.execute("LOCK TABLE rowcall.job IN SHARE MODE")
        sending: Future[None] = threads.submit(_quietly, lambda: sent(server.url, CONTENT + b"\n", "k2"))
        wait_for(lambda: watch.execute(waits).fetchone())
        server.kill()
        sending.result(20)
        wait_for(lambda: not watch.execute(waits).fetchone())


def _without_reading(url: str, key: str) -> None:
    """Send a request and don't wait for the answer."""
    where = httpx.URL(url)
    head = f"Host: {where.netloc.decode()}\r\nIdempotency-Key: {key}\r\nContent-Length: {len(CONTENT)}"
    connection = socket.create_connection((where.host, where.port or 80))
    connection.sendall(f"POST /v1/imports?importer=users HTTP/1.1\r\n{head}\r\n\r\n".encode() + CONTENT)
    threading.Timer(20, connection.close).start()
