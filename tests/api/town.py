"""Two organisations that share a service, with keys of every kind."""

import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.routing import BaseRoute, Route

from rowcall.api.app import create_app
from rowcall.api.guards import Server, server_config
from rowcall.api.service import Service
from rowcall.config import Settings
from rowcall.importer.registry import Registry, load_registry
from rowcall.model import Role, Scope
from rowcall.store import accounts
from rowcall.store.db import Database
from rowcall.store.packs import migrate_pack
from rowcall.store.tenancy import open_to_api
from rowcall.worker.queue import migrate_queue
from rowcall.worker.worker import Worker

USERS = "email,name,role,active\nann@example.org,Ann,admin,true\nbob@example.org,,reader,true\n"
_READ_ALIKE = ("HEAD", "OPTIONS")
UNKNOWN = "00000000-0000-7000-8000-000000000001"


@dataclass(frozen=True)
class Town:
    """A service, its address, and keys by whose they are."""

    app: FastAPI
    client: httpx.Client
    worker: Worker
    database: Database
    keys: dict[str, str]

    def ask(self, who: str | None, method: str, path: str, **more: Any) -> httpx.Response:
        """The answer to a request of somebody."""
        headers = dict(more.pop("headers", {}))
        if who is not None:
            headers["Authorization"] = f"Bearer {self.keys.get(who, who)}"
        return self.client.request(method, path, headers=headers, **more)

    def send(self, who: str, key: str | None = None, text: str = USERS, **fields: str) -> httpx.Response:
        """A file that somebody brings."""
        headers = {"Idempotency-Key": key} if key else {}
        files = {"file": ("users.csv", text)}
        return self.ask(who, "POST", "/v1/imports", data={"importer": "users", **fields}, files=files, headers=headers)

    @property
    def service(self) -> Service:
        return self.app.state.service


@contextmanager
def open_town(database: Database, folder: Path, **more: Any) -> Generator[Town]:
    settings = Settings(database_url=database.url, data_dir=folder, max_upload=100_000, **more)
    registry = prepared(database)
    app = create_app(Service(settings, registry, database.pool("serve", 4)))
    with served(app) as url, httpx.Client(base_url=url) as client:
        yield Town(app, client, Worker(database, registry, settings), database, make_keys(database))


def prepared(database: Database) -> Registry:
    """The importers, with all tables that a service needs."""
    registry = load_registry()
    with database.connect() as connection:
        migrate_queue(connection)
        for pack in registry.packs:
            migrate_pack(connection, pack)
        open_to_api(connection)
    return registry


def make_keys(database: Database) -> dict[str, str]:
    """ann and ben are operators of acme, ada is its admin; zoe is the admin of zeta."""
    every, hour = frozenset(Scope), timedelta(hours=1)
    with database.connect() as connection:

        def key(name: str, organisation: str, role: Role, scopes: frozenset[Scope], days: int | None = None) -> str:
            account = accounts.ensure_account(connection, name, organisation=organisation, role=role)
            until = datetime.now(UTC) + timedelta(days=days) if days is not None else None
            return accounts.create_key(connection, account, name="", scopes=scopes, expires=until)[0]

        keys = {
            "ann": key("ann", "acme", Role.OPERATOR, every),
            "ben": key("ben", "acme", Role.OPERATOR, every),
            "ada": key("ada", "acme", Role.ADMIN, every),
            "ada as operator": key("ada", "acme", Role.ADMIN, every - {Scope.ADMIN}),
            "zoe": key("zoe", "zeta", Role.ADMIN, every),
            "reader": key("ann", "acme", Role.OPERATOR, frozenset({Scope.IMPORTS_READ})),
            "writer": key("ann", "acme", Role.OPERATOR, frozenset({Scope.IMPORTS_WRITE})),
            "exporter": key("ann", "acme", Role.OPERATOR, frozenset({Scope.EXPORTS_READ})),
            "revoked": key("ann", "acme", Role.OPERATOR, every),
            "expired": key("ann", "acme", Role.OPERATOR, every, days=0),
            "disabled": key("dan", "acme", Role.OPERATOR, every),
        }
        accounts.revoke_key(connection, accounts.get_key(connection, keys["revoked"]))
        dan = accounts.get_account(connection, "dan")
        accounts.change_account(connection, dan, role=None, disabled=True)
        assert accounts.get_key(connection, keys["expired"]).created_at <= datetime.now(UTC) + hour
    secret = keys["ann"][-43:]
    return {**keys, "unknown": f"rowcall_000000000000_{secret}", "wrong": keys["ann"][:-43] + keys["ben"][-43:]}


def routes_of(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of all that is served."""

    def inside(routes: list[BaseRoute]) -> Iterator[tuple[str, str]]:
        for route in routes:
            router = getattr(route, "original_router", None)
            if router is not None:
                yield from inside(router.routes)
            elif isinstance(route, Route):
                yield from ((method, route.path) for method in route.methods or () if method not in _READ_ALIKE)

    return sorted(inside(app.routes))


@contextmanager
def served(app: FastAPI, *, grace: int | None = None) -> Generator[str]:
    """The address of an application that is served for as long as this lasts."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # whoever comes before the server does waits
        server = Server(server_config(app, app.state.service.settings, grace=grace))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
