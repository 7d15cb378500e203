"""What every request needs: settings, importers, connections."""

from dataclasses import dataclass
from typing import Any

from fastapi import Request
from psycopg import Connection
from psycopg_pool import ConnectionPool

from rowcall.config import Settings
from rowcall.importer.registry import Registry


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    settings: Settings
    registry: Registry
    pool: ConnectionPool[Connection[Any]]


def service(request: Request) -> Service:
    """The service that a request came to."""
    return request.app.state.service
