"""Fixtures that need a real PostgreSQL."""

from collections.abc import Generator

import pytest

from rowcall.store.db import Database

from .database import Server, installed


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-case", action="store_true", help="run each case of a test on each server")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every test runs on every server; the cases of one that has several take turns, unless all are asked for."""
    if config.getoption("--every-case"):
        return
    servers = list(installed())
    collected = {item.nodeid for item in items}
    turns: dict[str, dict[str, int]] = {}
    left_out: list[pytest.Item] = []
    for item in items:
        case = item.callspec if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
        if case is None or "shared_server" not in case.params or len(case.params) == 1:
            continue
        cases = turns.setdefault(item.nodeid.split("[")[0], {})
        turn = cases.setdefault("-".join(part for part in case.id.split("-") if part not in servers), len(cases))
        # bits: else the cases of the innermost parameter would always meet the same server
        server, other = str(case.params["shared_server"]), servers[turn.bit_count() % len(servers)]
        if server != other and item.nodeid.replace(server, other) in collected:  # some tests are for one server only
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        dropped = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in dropped]
