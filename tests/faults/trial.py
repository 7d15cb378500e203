"""One import that faults happen to: its database, its file, its job, and the processes that work on it."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from rowcall.config import Settings
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig

from ..database import Server
from ..forking import Forked, forked
from .parcels import IMPORTERS

PATIENCE = 60
_ROOT = Path(__file__).parents[2]
T = TypeVar("T")


def wait_for(what: Callable[[], T | None], *, seconds: float = PATIENCE) -> T:
    """The first answer that is one, asked for again and again."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, f"It did not happen within {seconds} s."
        time.sleep(0.03)
    return found


@dataclass(frozen=True)
class Importing:
    """A process that works on a job."""

    process: subprocess.Popen[bytes] | Forked
    errors: Path

    def wait_until_it_begins(self) -> None:
        assert self._line() == "begins", self.errors.read_text()

    def state(self) -> str:
        """Wait until it has ended by itself, well; the state that the job is in then."""
        said = self._line()
        if said == "begins":
            said = self._line()
        assert self.process.wait(PATIENCE) == 0, self.errors.read_text()
        return said

    def ends(self) -> bool:
        return self.process.poll() is not None

    def kill(self) -> None:
        """Kill -9, unless it has ended."""
        self.process.kill()
        self.process.wait(PATIENCE)
        if self.process.stdout:
            self.process.stdout.close()

    def _line(self) -> str:
        out = self.process.stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], PATIENCE)
        assert ready, f"It said nothing for {PATIENCE} s. {self.errors.read_text()}"
        return out.readline().decode().strip()


@dataclass(frozen=True)
class Trial:
    """A database with a job in it. Importers are processes, so that they can be killed."""

    server: Server
    url: str
    data: Path
    job: Job
    batch_rows: int = 200
    workers: int = 2
    importings: list[Importing] = field(default_factory=list[Importing])

    def connect(self) -> Connection[TupleRow]:
        """A session of the harness, which no setting for importers concerns. A server that recovers is waited for."""
        return wait_for(self._session)

    def _session(self) -> Connection[TupleRow] | None:
        options = "-c statement_timeout=0 -c lock_timeout=0"
        try:
            return psycopg.connect(self.url, autocommit=True, application_name="harness", options=options)
        except psycopg.OperationalError as error:
            if "the database system is" not in str(error):
                raise
            return None

    def sql(self, statement: LiteralString, *values: Any) -> list[Any]:
        """Execute a statement; the values of its first column, if it gives any."""
        with self.connect() as connection:
            cursor = connection.execute(statement, values or None)
            return [row[0] for row in cursor.fetchall()] if cursor.description else []

    def start(
        self,
        *,
        url: str | None = None,
        job: Job | None = None,
        deed: str = "",
        extra: Mapping[str, str] | None = None,
        **settings: str | int,
    ) -> Importing:
        """A process that works on the job. With `extra` it begins anew: that may concern how it is loaded.

        With a `deed` it does that instead, which a person asked for.
        """
        number = str((job or self.job).id)
        settings = {"DATABASE_URL": url or self.url, **settings}
        if extra:
            return self.spawn([sys.executable, "-m", "tests.faults.importing", number], extra=extra, **settings)
        errors = self._errors()
        with errors.open("wb") as stderr:
            environment = {**os.environ, **self.environment(**settings), "DEED": deed}
            process = forked(["importing", number], environment, stderr=stderr.fileno())
        return self._known(Importing(process, errors))

    def run(self, *command: str, **settings: str | int) -> Importing:
        """A command of ours in the trial's environment; it is killed at the latest when the test ends."""
        errors = self._errors()
        with errors.open("wb") as stderr:
            environment = {**os.environ, **self.environment(**settings)}
            process = forked(["rowcall", *command], environment, stderr=stderr.fileno())
        return self._known(Importing(process, errors))

    def spawn(
        self, command: Sequence[str | Path], *, extra: Mapping[str, str] | None = None, **settings: str | int
    ) -> Importing:
        """The same with any command, in a process that is begun anew."""
        errors = self._errors()
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                command,
                env={**os.environ, **self.environment(**settings), **(extra or {})},
                cwd=_ROOT,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
            )
        return self._known(Importing(process, errors))

    def _errors(self) -> Path:
        return self.data / f"errors-{len(self.importings)}"

    def _known(self, importing: Importing) -> Importing:
        self.importings.append(importing)
        return importing

    def environment(self, **settings: str | int) -> dict[str, str]:
        """The settings of importers, as they find them."""
        given = {
            "DATABASE_URL": self.url,
            "DATA_DIR": self.data,
            "WORKERS": self.workers,
            "BATCH_ROWS_MIN": self.batch_rows,
            "BATCH_ROWS_MAX": self.batch_rows,
            **settings,
        }
        return {f"ROWCALL_{name}": str(value) for name, value in given.items()}

    def run_to_the_end(
        self, *, job: Job | None = None, workers: int | None = None, batch_rows: int | None = None
    ) -> str:
        """Work on the job in this process, which nobody kills; the state it ends in."""
        job = job or self.job
        size = batch_rows or self.batch_rows
        settings = Settings(
            database_url=self.url,
            data_dir=self.data,
            workers=workers or self.workers,
            batch_rows_min=size,
            batch_rows_max=size,
        )
        return run_job(Run(Database(self.url), IMPORTERS[job.importer], settings), job).state

    def add_job(self, content: bytes) -> Job:
        """Another job of the same importer."""
        return new_job(self.url, self.data, self.job.importer, content)

    def state(self) -> str:
        (state,) = self.sql("SELECT state FROM rowcall.job WHERE id = %s", self.job.id)
        return state

    def wait_until_noticed(self) -> None:
        """Wait until the server has noticed that an importer is dead, which must not take long."""
        with self.connect() as connection:
            wait_for(lambda: not sessions(connection), seconds=5)


def sessions(connection: Connection[Any]) -> list[int]:
    """The backends that serve importers now."""
    found = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'rowcall%'"
    )
    return [pid for (pid,) in found]


def waiting(connection: Connection[Any], lock: str) -> list[int]:
    """The backends that wait for a lock of this kind: advisory, relation, transactionid."""
    found = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = %s", [lock]
    )
    return [pid for (pid,) in found]


def new_job(url: str, data: Path, importer: str, content: bytes) -> Job:
    settings = Settings(database_url=url, data_dir=data)
    with Database(url).connect() as connection:
        job = start_job(
            connection, settings, IMPORTERS[importer], BytesIO(content), file_name="parcels.csv", config=JobConfig()
        )
        return jobs.get_job(connection, str(job.id))
