"""Fixtures that need a real PostgreSQL."""

import atexit
import gc
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from zlib import crc32

import certifi
import pytest

from rowcall.store.db import Database

from .database import Server, installed

_AROUND = ("tests/api/", "tests/integration/", "tests/engine/")
_SAID = (
    "grants",
    "identity",
    "odd_tables",
    "queries",
    "refusals",
    "round_trips",
    "schema",
)
"""Tests of the engine that are about the server: its catalogs, types, plans, and what it says when it refuses."""


@pytest.fixture(scope="session", params=installed())
def shared_server(request: pytest.FixtureRequest) -> Generator[Server]:
    """A server of each supported version on this machine, for all tests of this process."""
    server = Server(installed()[request.param])
    try:
        server.start()
        server.make_template()
        yield server
    finally:
        server.remove()


@pytest.fixture
def database(shared_server: Server) -> Generator[Database]:
    """A fresh database with Rowcall's tables, on each supported version."""
    with shared_server.new_database() as database:
        yield database


@pytest.fixture
def server() -> Generator[Server]:
    """A running server of its own, which the test may stop, kill and start again. It has no database of Rowcall's."""
    server = Server(installed()["embedded18"])
    try:
        server.start()
        yield server
    finally:
        server.remove()


def pytest_configure() -> None:
    """Spare every test what takes time and tells nothing.

    No test asks a server whose certificate somebody signed, and reading all who might have takes each client 20 ms.
    Handing frames of ten rows from thread to thread takes Polars three times as long as working on them.
    """
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    if "PYTEST_XDIST_WORKER" not in os.environ:  # these have it from us
        first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
        folder = tempfile.TemporaryDirectory()
        atexit.register(folder.cleanup)
        one = Path(folder.name) / "one.pem"
        one.write_text(first + end)
        os.environ["SSL_CERT_FILE"] = str(one)


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are processors: tests also wait."""
    return (os.cpu_count() or 1) + 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-case", action="store_true", help="run each case of each test on each server")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of what is said to PostgreSQL run on every server; those around it, and cases of one test, take turns."""
    if config.getoption("--every-case"):
        return
    servers = list(installed())
    said = tuple(f"tests/engine/test_{name}.py::" for name in _SAID)
    collected = {item.nodeid for item in items}
    turns: dict[str, dict[str, int]] = {}
    left_out: list[pytest.Item] = []
    for item in items:
        case = item.callspec if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
        if case is None or "shared_server" not in case.params:
            continue
        name = item.nodeid.split("[")[0]
        if len(case.params) > 1:
            cases = turns.setdefault(name, {})
            turn = cases.setdefault("-".join(part for part in case.id.split("-") if part not in servers), len(cases))
            # bits: else the cases of the innermost parameter would always meet the same server
            turn = turn.bit_count()
        elif name.startswith(_AROUND) and not name.startswith(said):
            turn = crc32(name.encode())
        else:
            continue
        server, other = str(case.params["shared_server"]), servers[turn % len(servers)]
        if server != other and item.nodeid.replace(server, other) in collected:  # some tests are for one server only
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        dropped = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in dropped]


def pytest_collection_finish() -> None:
    """What is there before the first test stays: no need to look for garbage in it again and again."""
    gc.collect()
    gc.freeze()
