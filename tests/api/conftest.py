"""The HTTP application on a real database, and a worker to call by hand."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.config import Settings
from rowcall.importer.registry import load_registry
from rowcall.store.db import Database
from rowcall.store.packs import migrate_pack
from rowcall.worker.queue import migrate_queue
from rowcall.worker.worker import Worker


@dataclass(frozen=True)
class Site:
    """A service, its client, its worker."""

    client: httpx.Client
    worker: Worker
    database: Database
    files: Path


@pytest.fixture
def site(database: Database, tmp_path: Path) -> Generator[Site]:
    settings = Settings(
        database_url=database.url, data_dir=tmp_path, max_upload=100_000, batch_rows_min=10, batch_rows_max=10
    )
    registry = load_registry()
    with database.connect() as connection:
        migrate_queue(connection)
        for pack in registry.packs:
            migrate_pack(connection, pack)
    app = create_app(Service(settings, registry, database.pool("serve", 4)))
    with served(app) as url, httpx.Client(base_url=url) as client:
        yield Site(client, Worker(database, registry, settings), database, tmp_path / "files")


@contextmanager
def served(app: FastAPI) -> Generator[str]:
    """The address of an application that is served for as long as this lasts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()
