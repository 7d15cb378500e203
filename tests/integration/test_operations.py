"""A real service with a worker beside it: its logs, metrics and health, also while the database is away."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from ..database import Server
from .command import COMMAND

USERS = "email,name,role,active\nann@example.org,Ann,admin,true\nbob@example.org,,reader,true\n"


def until(found: Callable[[], Any], seconds: float = 30) -> Any:
    """What is found at last."""
    deadline = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return answer


@pytest.fixture
def collector() -> Generator[tuple[str, list[str]]]:
    """Where traces are sent to, and the paths that they came by."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    server.server_close()
    thread.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_b11_a_service_tells_how_it_is(server: Server, tmp_path: Path, collector: tuple[str, list[str]]) -> None:
    address, traced = collector
    port = free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ROWCALL_")},
        "ROWCALL_DATABASE_URL": server.url.replace("postgres@", "postgres:s3cret@"),
        "ROWCALL_DATA_DIR": str(tmp_path),
        "ROWCALL_LOG_LEVEL": "debug",
        "OTEL_EXPORTER_OTLP_ENDPOINT": address,
    }
    command = [COMMAND, "serve", "--port", "0", "--metrics-port", str(port)]
    with (
        (tmp_path / "log").open("w+") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=tmp_path
        ) as service,
    ):
        try:
            assert service.stdout is not None
            url = service.stdout.readline().split()[-1]
            with httpx.Client(base_url=url) as client:
                _tell(client, server, f"http://127.0.0.1:{port}/metrics")
        finally:
            service.send_signal(signal.SIGTERM)
            assert service.wait(40) == 0
        with pytest.raises(httpx.ConnectError):  # its worker has ended with it
            httpx.get(f"http://127.0.0.1:{port}/metrics")
        lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    _check(lines, (tmp_path / "log").read_text())
    assert set(traced) == {"/v1/traces"}


def _tell(client: httpx.Client, server: Server, worker_metrics: str) -> None:
    until(lambda: client.get("/health/ready").json()["status"] == "ready")
    headers = {"X-Request-ID": "req-7", "content-type": "text/csv"}
    sent = client.post(
        "/v1/imports", params={"importer": "users", "fileName": "u\nx.csv"}, content=USERS, headers=headers
    )
    job = f"/v1/imports/{sent.json()['id']}"
    until(lambda: client.get(job).json()["state"] == "COMPLETED_WITH_ERRORS")
    ended = 'rowcall_job_transitions_total{from="PROCESSING",importer="users",to="COMPLETED_WITH_ERRORS"} 1.0'
    until(lambda: ended in httpx.get(worker_metrics).text)
    server.stop()
    began = time.monotonic()
    until(lambda: client.get("/health/ready", timeout=10).status_code == 503, seconds=5)
    found = client.get("/health/ready", timeout=10)
    assert time.monotonic() - began < 5
    assert (found.json()["checks"]["database"]["ok"], found.json()["checks"]["files"]["ok"]) == (False, True)
    assert client.get("/health/live").status_code == 200
    until(lambda: "rowcall_database_up 0.0" in client.get("/metrics").text, seconds=10)
    server.start()
    until(lambda: client.get("/health/ready", timeout=10).json()["status"] == "ready", seconds=10)


def _check(lines: list[dict[str, Any]], text: str) -> None:
    """Each line is one event; those of the request and of its job, in two processes, have its id; none has a value."""
    own = [line for line in lines if line.get("request_id") == "req-7"]
    (request,) = [line for line in own if line["event"] == "request"]
    assert (request["method"], request["route"], request["status"]) == ("POST", "/v1/imports", 202)
    assert (request["bytes_in"], len(request["trace_id"])) == (len(USERS), 32)
    (ended,) = [line for line in own if line["event"] == "job ended"]
    assert (ended["importer"], ended["from"], ended["to"]) == ("users", "PROCESSING", "COMPLETED_WITH_ERRORS")
    assert (ended["level"], ended["rows"], ended["error_rate"]) == ("warning", 2, 0.5)
    assert ended["rows_per_sec"] > 0
    assert [line["level"] for line in own if line["event"] == "batch done"] == ["debug"]
    assert {line["logger"].split(".")[0] for line in lines} >= {"rowcall", "uvicorn", "procrastinate"}
    assert [
        line for line in lines if line["level"] in ("error", "critical") and line["logger"].startswith("rowcall")
    ] == []
    assert not any(word in text for word in ("example.org", "s3cret", "Ann"))
