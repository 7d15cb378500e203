"""One PostgreSQL for everyone: Rowcall's embedded server, and in it a fresh database for each trial."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

import psycopg
from psycopg.sql import SQL, Identifier

from importing import files
from importing.files import Files
from importing.raw_copy import copy_in
from measuring.files import DATA
from rowcall.config import settings_from
from rowcall.importer.registry import load_registry
from rowcall.store.db import open_database
from rowcall.store.packs import migrate_pack

_TRIAL = "bench_trial"
_PHASES = """
    SELECT state, sum(extract(epoch FROM until - at))::float8
    FROM (SELECT after AS state, at, lead(at) OVER (PARTITION BY job_id ORDER BY id) AS until FROM rowcall.job_event) e
    WHERE until IS NOT NULL GROUP BY state
"""


class Start(StrEnum):
    """What the table of users holds when a trial begins; also the name of the database that is copied for it."""

    EMPTY = "bench_empty"
    RIVALS = "bench_rivals"
    FULL = "bench_full"


_FILLED_FROM = {Start.RIVALS: files.RIVALS, Start.FULL: files.CLEAN}


@dataclass(frozen=True, slots=True)
class Server:
    """Gives each trial a database that is equal to every other trial's of the same start."""

    url: str
    connection: psycopg.Connection[tuple[object, ...]]

    @property
    def release(self) -> str:
        return self.connection.info.parameter_status("server_version") or ""

    def prepare(self, start: Start, wanted: Files) -> None:
        """Make the database that trials of this start begin with."""
        if start in _FILLED_FROM:
            self._make(start, Start.EMPTY)
            copy_in(self.address(start), wanted.path(_FILLED_FROM[start]))
            with psycopg.connect(self.address(start), autocommit=True) as connection:
                connection.execute("VACUUM (ANALYZE) users")
        else:
            self._make(start, "template1")
            settings = settings_from({"ROWCALL_DATABASE_URL": self.address(start)})
            with open_database(settings) as database, database.connect() as connection:
                for pack in load_registry().packs:
                    migrate_pack(connection, pack)

    def begin(self, start: Start) -> str:
        """A fresh copy of that database, all of it on disk; its address."""
        self._make(_TRIAL, start)
        self.connection.execute("CHECKPOINT")
        return self.address(_TRIAL)

    def users(self) -> int:
        """How many users the trial has left."""
        with psycopg.connect(self.address(_TRIAL)) as connection:
            found = connection.execute("SELECT count(*) FROM users").fetchone()
        return found[0] if found else 0

    def phases(self) -> dict[str, float]:
        """How many seconds the trial's job was in each state, as its events tell."""
        with psycopg.connect(self.address(_TRIAL)) as connection:
            return dict(connection.execute(_PHASES).fetchall())

    def clear(self) -> None:
        for name in (_TRIAL, *Start):
            self._drop(name)

    def address(self, database: str) -> str:
        return urlsplit(self.url)._replace(path=f"/{database}").geturl()

    def _make(self, name: str, template: str) -> None:
        self._drop(name)
        statement = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self.connection.execute(statement.format(Identifier(name), Identifier(template)))

    def _drop(self, name: str) -> None:
        self.connection.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def running_server() -> Generator[Server]:
    """The embedded server, for the time of the run. Its settings are Rowcall's own, the same for everyone."""
    with (
        open_database(settings_from({"ROWCALL_DATA_DIR": str(DATA / "pg")})) as database,
        psycopg.connect(database.url, autocommit=True) as connection,
    ):
        server = Server(database.url, connection)
        server.clear()
        try:
            yield server
        finally:
            server.clear()
