"""A whole service on a database of its own: `rowcall serve` with workers, and keys to ask it with."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.rows import scalar_row

from measuring.files import DATA
from rowcall.model import Role, Scope
from rowcall.store import accounts
from rowcall.store.db import Database

WORKERS = 1
"""As `rowcall serve` has it."""
_COMMAND = Path(sys.executable).parent / "rowcall"
_STORE = DATA / "served"
ORGANISATIONS = 5


@dataclass(frozen=True, slots=True)
class Service:
    """A service that runs."""

    url: str
    keys: Sequence[str]
    """One for each client; the organisations take turns."""
    pid: int
    database: str

    def rss(self) -> int:
        """Bytes of memory that the process that answers has; those of workers are apart."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def sessions(self) -> int:
        """Connections that all of its processes have to the database."""
        with psycopg.connect(self.database, application_name="bench") as connection:
            counted = """SELECT count(*) FROM pg_stat_activity
                         WHERE datname = current_database() AND application_name LIKE 'rowcall%'"""
            return next(connection.cursor(row_factory=scalar_row).execute(counted))


@contextmanager
def running_service(database: str, *, clients: int) -> Generator[Service]:
    """A service with as many keys as there are clients, until this ends."""
    keys = _keys(database, clients)
    shutil.rmtree(_STORE, ignore_errors=True)
    settings = {**os.environ, "ROWCALL_DATABASE_URL": database, "ROWCALL_DATA_DIR": str(_STORE)}
    command = [_COMMAND, "serve", "--port", "0", "--workers", str(WORKERS)]
    with (
        (DATA / "service.log").open("wb") as log,
        subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            said = process.stdout.readline() if process.stdout else ""
            yield Service(said.rpartition(" ")[2].strip(), keys, process.pid, database)
        finally:
            process.terminate()
            process.wait()
            shutil.rmtree(_STORE, ignore_errors=True)


def _keys(database: str, count: int) -> list[str]:
    scopes = frozenset({Scope.IMPORTS_READ, Scope.IMPORTS_WRITE, Scope.ADMIN})
    with Database(database).connect() as connection, connection.transaction():
        admins = [
            accounts.ensure_account(connection, f"admin-{number}", organisation=f"bench-{number}", role=Role.ADMIN)
            for number in range(ORGANISATIONS)
        ]
        return [
            accounts.create_key(connection, admins[n % ORGANISATIONS], name="", scopes=scopes, expires=None)[0]
            for n in range(count)
        ]
