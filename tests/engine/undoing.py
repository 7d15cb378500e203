"""Imports that are taken back."""

import tempfile
from pathlib import Path
from typing import Any

from rowcall import Importer
from rowcall.engine import moves
from rowcall.engine.doctor import Finding, verify_job
from rowcall.engine.run import Run, run_job
from rowcall.engine.undo.preview import UndoPreview, preview_undo
from rowcall.store.db import Database
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job
from rowcall.store.undos import Undone, undos_of

from .importing import settings_for


def previewed(database: Database, importer: type[Importer], job: Job, **which: Any) -> UndoPreview:
    """What an undo would do."""
    with database.connect() as connection:
        return preview_undo(connection, job, importer, Wanted(**which))


def begun(database: Database, importer: type[Importer], job: Job, *, partial: bool = False, **which: Any) -> Job:
    """A job that is to be taken back."""
    with database.connect() as connection, connection.transaction():
        return moves.undo(connection, job, importer, Wanted(**which), partial=partial, account="ann")


def work_on(database: Database, importer: type[Importer], job: Job, *, at_once: int = 1_000, workers: int = 1) -> Job:
    """A job that is worked on until it ends or waits."""
    with tempfile.TemporaryDirectory() as folder:
        return run_job(
            Run(database, importer, settings_for(database, Path(folder), batch_rows=at_once, workers=workers)), job
        )


def undone(
    database: Database, importer: type[Importer], job: Job, *, at_once: int = 1_000, workers: int = 1, **options: Any
) -> tuple[Job, Undone]:
    """A job that was taken back, and what that came to; what must hold of it holds."""
    now = work_on(database, importer, begun(database, importer, job, **options), at_once=at_once, workers=workers)
    assert not troubles(database, importer, now)
    with database.connect() as connection:
        return now, undos_of(connection, now)[-1]


def troubles(database: Database, importer: type[Importer], job: Job) -> list[Finding]:
    """What doesn't hold of a job."""
    with database.connect() as connection:
        return [found for found in verify_job(connection, job, importer, [importer]) if found.verdict.bad]
