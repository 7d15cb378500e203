"""A service with an importer of one active job for each registration, and people of two organisations."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import httpx

from rowcall import Flow, Importer, Integer, Text
from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.config import Settings
from rowcall.importer.registry import Pack, Registry
from rowcall.store.db import Database
from rowcall.worker.worker import Worker

from .town import make_keys, prepared, served

TABLE = """
    CREATE TABLE loads (id int, registration text NOT NULL, tonnes int, note text, PRIMARY KEY (id, registration))
"""


class Loads(Importer):
    """Loads of waste, one row each."""

    target = "loads"
    key = "id", "registration"
    context = ("registration",)
    scope = ("registration",)
    flow = Flow(preview=True)

    id = Integer(required=True)
    registration = Text(required=True)
    tonnes = Integer(min=0)
    note = Text()


@dataclass(frozen=True)
class Yard:
    """The service, and keys of ann, ben and ada of acme, and zoe of zeta."""

    url: str
    client: httpx.Client
    worker: Worker
    database: Database
    keys: dict[str, str]

    def ask(self, method: str, path: str, who: str = "ann", **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.keys[who]}", **more.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **more)

    def sends(
        self, text: str, registration: str = "R1", who: str = "ann", key: str | None = None, importer: str = "loads"
    ) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        form = {"importer": importer, "context": f'{{"registration": "{registration}"}}'}
        return self.ask("POST", "/v1/imports", who, data=form, files={"file": ("l.csv", text)}, headers=headers)

    def works(self, job: dict[str, Any], who: str = "ann") -> dict[str, Any]:
        self.worker.advance(job["id"])
        return self.sees(job, who)

    def sees(self, job: dict[str, Any], who: str = "ann") -> dict[str, Any]:
        return self.ask("GET", f"/v1/imports/{job['id']}", who).json()

    def asks(self, job: dict[str, Any], move: str, who: str = "ann") -> httpx.Response:
        headers = {"If-Match": "*"} if move == "submit" else {}
        return self.ask("POST", f"/v1/imports/{job['id']}/{move}", who, headers=headers)

    def sql(self, statement: LiteralString) -> list[tuple[Any, ...]]:
        with self.database.connect() as connection:
            return connection.execute(statement).fetchall()


@contextmanager
def open_yard(database: Database, folder: Path, *importers: type[Importer]) -> Generator[Yard]:
    prepared(database)
    settings = Settings(database_url=database.url, data_dir=folder, batch_rows_min=10, batch_rows_max=10)
    registry = Registry((Pack("yard", "yard", importers or (Loads,)),))
    with database.connect() as connection:
        connection.execute(TABLE)
    app = create_app(Service(settings, registry, database.pool("serve", 8)))
    with served(app) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield Yard(url, client, Worker(database, registry, settings), database, make_keys(database))
