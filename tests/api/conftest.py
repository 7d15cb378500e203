"""The HTTP application on a real database, and a worker to call by hand."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.config import Settings
from rowcall.sources.addresses import Allowed
from rowcall.store.db import Database
from rowcall.worker.worker import Worker

from ..database import Server
from .town import Town, open_town, prepared, served


@dataclass(frozen=True)
class Site:
    """A service, its client, its worker."""

    app: FastAPI
    client: httpx.Client
    worker: Worker
    database: Database
    files: Path


@pytest.fixture(scope="session")
def template(shared_server: Server) -> str:
    """The name of a database with all tables that a service needs."""
    with psycopg.connect(shared_server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE served TEMPLATE migrated")
    prepared(Database(shared_server.url_of("served")))
    return "served"


@pytest.fixture
def database(shared_server: Server, template: str) -> Generator[Database]:
    """A fresh database with these tables, on each supported version."""
    with shared_server.new_database(template) as database:
        yield database


@pytest.fixture
def site(database: Database, tmp_path: Path) -> Generator[Site]:
    settings = Settings(
        database_url=database.url,
        data_dir=tmp_path,
        max_upload=100_000,
        batch_rows_min=10,
        batch_rows_max=10,
        url_allow=Allowed.of("127.0.0.1:*"),
    )
    registry = prepared(database)
    app = create_app(Service(settings, registry, database.pool("serve", 4)))
    with served(app) as url, httpx.Client(base_url=url) as client:
        yield Site(app, client, Worker(database, registry, settings), database, tmp_path / "files")


@pytest.fixture(scope="session")
def town(shared_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Generator[Town]:
    """A service with keys, for all tests of this process: two organisations that must not hear of each other."""
    with shared_server.new_database() as database, open_town(database, tmp_path_factory.mktemp("town")) as town:
        yield town
