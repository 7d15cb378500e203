"""What every request needs: settings, importers, connections, and who sent it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Request
from psycopg import Connection
from psycopg_pool import ConnectionPool

from rowcall.config import Settings
from rowcall.importer.registry import Registry
from rowcall.store.jobs import LOCAL


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request."""

    organisation: UUID
    account: str
    address: str | None
    request_id: str


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    settings: Settings
    registry: Registry
    pool: ConnectionPool[Connection[Any]]

    @contextmanager
    def connection(self, caller: Caller) -> Generator[Connection[Any]]:
        """A connection in a transaction, which sees what the caller may see."""
        with self.pool.connection() as connection, connection.transaction():
            connection.execute("SELECT set_config('rowcall.organisation', %s, true)", [str(caller.organisation)])
            yield connection


def _service(request: Request) -> Service:
    return request.app.state.service


def _caller(request: Request) -> Caller:
    address = request.client.host if request.client else None
    return Caller(LOCAL, "local", address, request.state.request_id)


TheService = Annotated[Service, Depends(_service)]
TheCaller = Annotated[Caller, Depends(_caller)]
