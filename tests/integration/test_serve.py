"""`rowcall serve`: what it says when it starts, and when it can't."""

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

from rowcall.store.db import Database

from .command import COMMAND, rowcall

ROOT = Path(__file__).parents[2]


@contextmanager
def serving(database: Database, folder: Path) -> Generator[tuple[subprocess.Popen[str], list[str]]]:
    """A service, and what it prints before it waits for requests."""
    environment = {**os.environ, "ROWCALL_DATABASE_URL": database.url, "ROWCALL_DATA_DIR": str(folder)}
    command = [COMMAND, "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as service:
        try:
            assert service.stdout is not None
            yield service, [line for _, line in zip(range(11), service.stdout, strict=False)]
        finally:
            service.terminate()
    assert service.returncode == 0


def test_what_it_says_to_try_works(database: Database, tmp_path: Path) -> None:
    with serving(database, tmp_path) as (_, lines):
        tried = [shlex.split(line) for line in lines if line.startswith("  curl ")]
        assert len(tried) == 6
        for command, *options, url in tried:
            assert command == "curl"
            if options:
                form = dict(option.split("=", 1) for option in options if option != "-F")
                name = form.pop("file").removeprefix("@")
                answer = httpx.post(url, data=form, files={"file": (ROOT / name).read_bytes()}, timeout=30)
                assert answer.status_code == 202
            else:
                assert httpx.get(url, timeout=30).status_code == 200


def test_a_worker_that_is_killed_beside_it_is_replaced(database: Database, tmp_path: Path) -> None:
    with serving(database, tmp_path) as (service, lines):
        url = lines[0].split()[-1]
        while not (found := workers_of(service)):
            time.sleep(0.05)
        (worker,) = found
        os.kill(worker, signal.SIGKILL)
        sample = (ROOT / "samples/content/users.csv").read_bytes()
        job = httpx.post(f"{url}/v1/imports?importer=users", content=sample, timeout=30).json()
        deadline = time.monotonic() + 60
        while (seen := httpx.get(f"{url}/v1/imports/{job['id']}", timeout=30).json())["state"] != "COMPLETED":
            assert time.monotonic() < deadline, seen
            time.sleep(0.2)
        assert workers_of(service) != [worker]


def workers_of(service: subprocess.Popen[str]) -> list[int]:
    """Its children, whichever of its threads began them."""
    lists = [path.read_text() for path in Path(f"/proc/{service.pid}/task").glob("*/children")]
    return [int(pid) for each in lists for pid in each.split()]


def test_a_port_that_is_taken_and_a_database_that_is_not_there_are_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = rowcall("serve", "--port", str(port), ROWCALL_DATA_DIR=str(tmp_path))
    assert (done.status, done.err.split()[0]) == (1, "PORT_TAKEN")
    assert f"127.0.0.1:{port} can't be listened on: Address already in use" in done.err
    assert "--port" in done.err
    for host in ("nope", "nope.invalid", "192.0.2.1"):
        nowhere = rowcall("serve", "--host", host, "--port", "0", ROWCALL_DATA_DIR=str(tmp_path))
        assert (nowhere.status, nowhere.err.split()[0]) == (1, "BAD_OPTION")
        assert f"--host is '{host}', which is no address of this machine" in nowhere.err
    away = rowcall(
        "serve", "--port", "0", ROWCALL_DATABASE_URL=f"postgresql://127.0.0.1:{port}/x", ROWCALL_DATA_DIR=str(tmp_path)
    )
    assert (away.status, away.err.split()[0]) == (1, "DATABASE_UNREACHABLE")
    assert f"127.0.0.1, port {port}" in away.err
