"""Imports of small files, and what became of them."""

import tempfile
import time
import types
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, LiteralString, cast

from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from rowcall import Importer, Issue, Status
from rowcall.config import Settings
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig, JobCounts, counts_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a row."""

    status: Status
    issues: tuple[Issue, ...]
    key: list[str] | None
    before: dict[str, Any] | None

    @property
    def told(self) -> str:
        """The status with the codes of the issues: `failed REQUIRED INVALID_DATE`."""
        return " ".join([self.status, *(issue.code for issue in self.issues)])


@dataclass(frozen=True, slots=True)
class Result:
    """A job that was run, and the target as it is now."""

    job: Job
    counts: JobCounts
    outcomes: dict[int, Outcome]
    rows: list[dict[str, Any]]

    @property
    def told(self) -> list[str]:
        """Each row's outcome, in the file's order."""
        return [outcome.told for _, outcome in sorted(self.outcomes.items())]

    def issue(self, row: int) -> Issue:
        """The one issue of a row."""
        (issue,) = self.outcomes[row].issues
        return issue

    def values(self, *columns: str) -> list[Any]:
        """Columns of the target: tuples, or plain values if it is one column."""
        found = [tuple(row[column] for column in columns) for row in self.rows]
        return [value for (value,) in found] if len(columns) == 1 else found


def declared(target: str, **attributes: Any) -> type[Importer]:
    """An importer with these settings and fields; a field called `name` is written `name_`."""
    made = types.new_class("Things", (Importer,), exec_body=lambda body: body.update(target=target, **attributes))
    return cast("type[Importer]", made)  # made of one


def settings_for(database: Database, folder: Path, *, workers: int = 1, batch_rows: int = 1_000) -> Settings:
    """Settings with batches of one size."""
    return Settings(
        database_url=database.url,
        data_dir=folder,
        workers=workers,
        batch_rows_min=batch_rows,
        batch_rows_max=batch_rows,
    )


def run_import(
    database: Database,
    importer: type[Importer],
    content: str | bytes,
    *,
    file_name: str = "rows.csv",
    workers: int = 1,
    batch_rows: int = 1_000,
    **config: Any,
) -> Result:
    """Import a file, from its bytes to the last outcome."""
    data = content.encode() if isinstance(content, str) else content
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_for(database, Path(folder), workers=workers, batch_rows=batch_rows)
        with database.connect() as connection:
            job = start_job(
                connection, settings, importer, BytesIO(data), file_name=file_name, config=JobConfig(**config)
            )
        job = run_job(Run(database, importer, settings), job)
    return result_of(database, importer, job)


def result_of(database: Database, importer: type[Importer], job: Job) -> Result:
    """What a job came to."""
    with database.connect() as connection:
        found = connection.execute(
            "SELECT number, status, issues, target_key, before FROM rowcall.row_status WHERE job_id = %s", [job.id]
        ).fetchall()
        outcomes = {
            number: Outcome(Status(status), tuple(Issue(**issue) for issue in issues or ()), key, before)
            for number, status, issues, key, before in found
        }
        target = Identifier(*importer.target.split(".", 1))
        rows = connection.cursor(row_factory=dict_row).execute(SQL("SELECT * FROM {} ORDER BY 1").format(target))
        return Result(job, counts_of(connection, job), outcomes, rows.fetchall())


def sql(database: Database, statement: LiteralString) -> list[tuple[Any, ...]]:
    """Execute statements; the rows of a single one, if it gives any."""
    with database.connect() as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def until_somebody_waits(database: Database) -> None:
    """Wait until a session of the database waits for another."""
    deadline = time.monotonic() + 30
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while sql(database, waiting) == [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
