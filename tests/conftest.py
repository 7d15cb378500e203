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
