"""Previews of small files, and what comes of submitting them."""

import tempfile
from pathlib import Path
from typing import Any

from rowcall import Importer
from rowcall.engine import moves
from rowcall.engine.run import Run, run_job
from rowcall.model import State
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.jobs import Job
from rowcall.store.plans import Plan, plan_of

from .importing import Result, result_of, run_import, settings_for


def preview(database: Database, importer: type[Importer], content: str, **options: Any) -> Result:
    """Import a file up to its preview."""
    result = run_import(database, importer, content, preview=True, **options)
    assert result.job.state is State.VALIDATED
    return result


def plan(database: Database, job: Job) -> Plan:
    """The plan of a job."""
    with database.connect() as connection:
        found = plan_of(connection, job.id)
    assert found
    return found


def submit(
    database: Database,
    importer: type[Importer],
    job: Job,
    *,
    digest: str | None = None,
    workers: int = 1,
) -> Result:
    """Agree to the plan of a job, and have it committed."""
    with database.connect() as connection, connection.transaction():
        job, _ = moves.submit(connection, job, {digest or plan(database, job).digest})
    return carry_on(database, importer, job, workers=workers)


def carry_on(database: Database, importer: type[Importer], job: Job, *, workers: int = 1) -> Result:
    """Take a job on until it rests."""
    with tempfile.TemporaryDirectory() as folder:
        job = run_job(Run(database, importer, settings_for(database, Path(folder), workers=workers)), job)
    return result_of(database, importer, job)


def state_of(database: Database, job: Job) -> State:
    """Where a job is."""
    with database.connect() as connection:
        return jobs.get_job(connection, str(job.id)).state
