"""`rowcall serve`: what it says when it starts, and when it can't."""

import os
import shlex
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

from rowcall.store.db import Database

from .command import COMMAND, rowcall

ROOT = Path(__file__).parents[2]


@contextmanager
def serving(database: Database, folder: Path) -> Generator[list[str]]:
    """What a service prints before it waits for requests."""
    environment = {**os.environ, "ROWCALL_DATABASE_URL": database.url, "ROWCALL_DATA_DIR": str(folder)}
    command = [COMMAND, "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as service:
        try:
            assert service.stdout is not None
            yield [line for _, line in zip(range(11), service.stdout, strict=False)]
        finally:
            service.terminate()
    assert service.returncode == 0


def test_what_it_says_to_try_works(database: Database, tmp_path: Path) -> None:
    with serving(database, tmp_path) as lines:
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


def test_a_port_that_is_taken_and_a_database_that_is_not_there_are_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = rowcall("serve", "--port", str(port), ROWCALL_DATA_DIR=str(tmp_path))
    assert (done.status, done.err.split()[0]) == (1, "PORT_TAKEN")
    assert f"127.0.0.1:{port} can't be listened on: Address already in use" in done.err
    assert "--port" in done.err
    away = rowcall(
        "serve", "--port", "0", ROWCALL_DATABASE_URL=f"postgresql://127.0.0.1:{port}/x", ROWCALL_DATA_DIR=str(tmp_path)
    )
    assert (away.status, away.err.split()[0]) == (1, "DATABASE_UNREACHABLE")
    assert f"127.0.0.1, port {port}" in away.err
