"""The service that the storm goes over: PostgreSQL, two APIs, three workers, each a process that can be killed."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Identifier

from rowcall.importer.registry import Registry, load_registry
from rowcall.model import Role, Scope
from rowcall.store import accounts
from rowcall.store.db import Database
from rowcall.store.packs import migrate_pack
from rowcall.store.tenancy import open_to_api
from rowcall.worker.queue import migrate_queue

from ...database import Server, installed
from ...forking import Forked, forked
from ..clock import wrong_clock
from ..proxy import Proxy
from ..trial import wait_for
from .sabotage import SABOTAGE

ORGANISATIONS = ("acme", "bolt", "crux")
_COMMAND = Path(sys.executable).parent / "rowcall"


@dataclass(eq=False)
class Process:
    """One process of the service. Each has a role of its own in PostgreSQL, by which its sessions are known."""

    name: str
    command: Sequence[str]
    environment: dict[str, str]
    log: Path
    popen: subprocess.Popen[bytes] | Forked | None = None
    said: int = 0
    """How long the log was when it started."""
    stopped: bool = False
    """By SIGSTOP."""
    ending: bool = False
    """It was told to end, or is not to run now."""

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.runs:
            return
        with self.log.open("ab") as log:
            self.said = log.tell()
            environment = {**os.environ, **self.environment}
            if "PYTHONPATH" in self.environment:  # that concerns how it is loaded
                nothing = subprocess.DEVNULL
                command = [_COMMAND, *self.command]
                self.popen = subprocess.Popen(command, env=environment, stdin=nothing, stdout=log, stderr=log)
            else:
                command, to = ["rowcall", *self.command], log.fileno()
                self.popen = forked(command, environment, stdout=to, stderr=to)
        self.stopped, self.ending = False, False

    @property
    def runs(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    @property
    def found_no_database(self) -> bool:
        """Whether it gave up when it was started: then, but not later, it may."""
        with self.log.open("rb") as log:
            log.seek(self.said)
            return bool(re.search(rb"^DATABASE_(UNREACHABLE|GONE|BUSY) ", log.read(), re.MULTILINE))

    def signal(self, number: signal.Signals) -> None:
        if self.popen:
            self.popen.send_signal(number)

    def kill(self) -> None:
        """Kill -9."""
        self.ending = True
        if self.popen:
            self.popen.kill()
            self.popen.wait(30)


@dataclass
class Fleet:
    """All of it."""

    server: Server
    url: str
    data: Path
    registry: Registry
    proxy: Proxy
    apis: list[Process]
    workers: list[Process]
    keys: dict[str, str]
    addresses: list[str]
    trouble: list[str] = field(default_factory=list[str])

    @property
    def processes(self) -> list[Process]:
        return [*self.apis, *self.workers]

    def connect(self) -> Connection[Any]:
        """A session of the harness."""
        return psycopg.connect(self.url, autocommit=True, application_name="harness", options="-c statement_timeout=0")

    def try_sql(self, statement: str, values: Any = None) -> list[Any] | None:
        """The rows of a statement; None while the database is away."""
        try:
            with self.connect() as connection:
                cursor = connection.execute(statement.encode(), values)
                return cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError:
            return None

    def start(self) -> None:
        """Start everything, and wait until it says that it is ready."""
        for process in self.processes:
            process.start()
        for address in self.addresses:
            wait_for(lambda address=address: _is_ready(address))

    def look_after(self) -> None:
        """Start processes again that are down, as an init system does. That one ended by itself is remembered."""
        for process in self.processes:
            if process.runs or process.ending or process.popen is None:
                continue
            if not process.found_no_database:
                code = process.popen.poll() or 0
                told = process.log.read_text(errors="replace")[-6000:] if code < 0 else ""
                self.trouble.append(f"{process.name} ended by itself with {code}\n{told}")
            process.start()

    def end(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.signal(signal.SIGCONT)
            process.kill()
        self.proxy.close()
        self.server.remove()


@contextmanager
def a_fleet(folder: Path) -> Generator[tuple[Fleet, Database]]:
    """A fleet that nothing of runs yet but the server, and a database beside it for calm weather."""
    server = Server(installed()["embedded18"])
    proxy = None
    fleet = None
    try:
        server.start()
        server.make_template()
        registry = load_registry()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER ROLE postgres SET synchronous_commit = on")  # committed is committed
            for name in ("calm", "storm"):
                connection.execute(SQL("CREATE DATABASE {} TEMPLATE migrated").format(Identifier(name)))
        for name in ("calm", "storm"):
            _prepare(Database(server.url_of(name)), registry)
        hidden = server.folder / "proxy"
        hidden.mkdir()
        proxy = Proxy(hidden, server.folder / ".s.PGSQL.5432", loses=lambda _: False)
        fleet = _fleet(server, folder, registry, proxy)
        yield fleet, Database(server.url_of("calm"))
    finally:
        if fleet:
            fleet.end()
        else:
            if proxy:
                proxy.close()
            server.remove()


def _prepare(database: Database, registry: Registry) -> None:
    with database.connect() as connection:
        migrate_queue(connection)
        for pack in registry.packs:
            migrate_pack(connection, pack)
        open_to_api(connection)


def _fleet(server: Server, folder: Path, registry: Registry, proxy: Proxy) -> Fleet:
    url = server.url_of("storm")
    with Database(url).connect() as connection:
        connection.execute(SABOTAGE)
        keys = {name: _key(connection, name) for name in ORGANISATIONS}
    ports = _free_ports(2)
    names = ["api1", "api2", "worker1", "worker2", "worker3"]
    with psycopg.connect(url, autocommit=True) as connection:
        for name in names:
            connection.execute(SQL("CREATE ROLE {} SUPERUSER LOGIN").format(Identifier(name)))
            connection.execute(SQL("ALTER ROLE {} SET synchronous_commit = on").format(Identifier(name)))

    def process(name: str, *command: str, host: str = str(server.folder), **more: str) -> Process:
        settings = {
            "ROWCALL_DATABASE_URL": f"postgresql://{name}@/storm?host={host}&port=5432",
            "ROWCALL_DATA_DIR": str(folder / "data"),
            "ROWCALL_BATCH_ROWS_MIN": "100",
            "ROWCALL_BATCH_ROWS_MAX": "200",
            "ROWCALL_JOBS_AT_ONCE": "4",
            "ROWCALL_RATE_LIMIT": "1000000",
            "PYTHONFAULTHANDLER": "1",
            **more,
        }
        return Process(name, command, settings, folder / f"{name}.log")

    apis = [process(f"api{n}", "serve", "--workers", "0", "--port", str(port)) for n, port in enumerate(ports, 1)]
    workers = [
        process("worker1", "worker"),
        process("worker2", "worker", **wrong_clock(folder / "clock", -3600)),  # K29: the database's clock rules
        process("worker3", "worker", host=str(server.folder / "proxy")),
    ]
    addresses = [f"http://127.0.0.1:{port}" for port in ports]
    return Fleet(server, url, folder / "data", registry, proxy, apis, workers, keys, addresses)


def _is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health/ready").json()["status"] == "ready"
    except httpx.TransportError:
        return False


def _key(connection: Connection[Any], organisation: str) -> str:
    account = accounts.ensure_account(
        connection, f"{organisation}@example.org", organisation=organisation, role=Role.ADMIN
    )
    return accounts.create_key(connection, account, name="", scopes=frozenset(Scope), expires=None)[0]


def _free_ports(count: int) -> list[int]:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        return [one.getsockname()[1] for one in (first, second)][:count]
