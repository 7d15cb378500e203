"""Retention: jobs that ended or were abandoned long ago go, with rows and file; so does what dead processes left."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from psycopg import Connection

from rowcall.config import Settings
from rowcall.engine.failures import failure_of
from rowcall.errors import RowcallError
from rowcall.importer.registry import Registry
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.files.filestore import ABANDONED, FileStore, file_store
from rowcall.store.leftovers import remove_unknown
from rowcall.store.retention import (
    Due,
    Policy,
    begin_removal,
    due_jobs,
    lock_retention,
    remove_job,
    remove_rows,
)
from rowcall.store.uploads import remove_expired

_AT_ONCE = 10_000
"""Rows that go in one transaction."""
_LEFT_FOR = 24 * 3600
"""Seconds after which what no process works on was left by a dead one."""


@dataclass(slots=True, kw_only=True)
class Removed:
    """What went, and what did not."""

    jobs: list[Due] = field(default_factory=list[Due])
    rows: int = 0
    files: int = 0
    bytes: int = 0
    leftovers: int = 0
    """Folders and files of dead processes."""
    busy: list[str] = field(default_factory=list[str])
    """Jobs that somebody works on, or that moved meanwhile."""
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Jobs that can't be removed, and why; tried again next time."""
    elsewhere: bool = False
    """Another process is at it."""


def policy_of(settings: Settings, registry: Registry) -> Policy:
    """How long jobs are kept."""
    own = {name: importer.retention_days for name, importer in registry.by_name().items() if importer.retention_days}
    return Policy(
        ended_days=settings.retention_ended_days, abandoned_days=settings.retention_abandoned_days, own_days=own
    )


def find_due(database: Database, policy: Policy) -> list[Due]:
    """What would go."""
    with database.connect("retention") as connection:
        return list(due_jobs(connection, policy))


def remove_due(
    database: Database, settings: Settings, policy: Policy, *, stop: Callable[[], bool], at_once: int = _AT_ONCE
) -> Removed:
    """Remove what is due, until told to stop. Killed at any point, the next one goes on from there."""
    removed, store = Removed(), file_store(settings)
    with database.reconnect("retention") as connection:
        if not lock_retention(connection):
            removed.elsewhere = True
            return removed
        for job in due_jobs(connection, policy):
            if stop():
                return removed
            _try(connection, store, policy, job, removed, stop, at_once)
        removed.leftovers = sum(1 for _ in _remove_leftovers(connection, settings.data_dir))
        removed.leftovers += store.sweep() + remove_expired(connection, store, expires=settings.upload_expires)
        # an upload that waits for its scope has its file stored, and can become a job for as long as it lasts
        removed.leftovers += remove_unknown(connection, store, older_than=ABANDONED + settings.upload_expires)
    return removed


def _try(
    connection: Connection[Any],
    store: FileStore,
    policy: Policy,
    job: Due,
    removed: Removed,
    stop: Callable[[], bool],
    at_once: int,
) -> None:
    if not jobs.lock(connection, job.id):
        removed.busy.append(job.number)
        return
    try:
        if begin_removal(connection, policy, job):
            _remove(connection, store, job, removed, stop, at_once)
        else:
            removed.busy.append(job.number)
    except (OSError, RowcallError) as error:  # its file can't be deleted: others can
        removed.failed[job.number] = failure_of(error).message
    finally:
        if not connection.closed:
            jobs.unlock(connection, job.id)


def _remove(
    connection: Connection[Any], store: FileStore, job: Due, removed: Removed, stop: Callable[[], bool], at_once: int
) -> None:
    for rows in remove_rows(connection, job.id, at_once=at_once):
        removed.rows += rows
        if stop():
            return
    size = remove_job(connection, store, job.id)
    removed.jobs.append(job)
    if size is not None:
        removed.files += 1
        removed.bytes += size


def _remove_leftovers(connection: Connection[Any], data_dir: Path) -> Iterator[Path]:
    """Delete what processes left that were killed: rows and files kept beside jobs that nobody works on."""
    for folder in _old(chain((data_dir / "scratch").glob("*"), (data_dir / "copies").glob("*"))):
        if jobs.lock(connection, folder.name):
            shutil.rmtree(folder, ignore_errors=True)
            jobs.unlock(connection, folder.name)
            yield folder


def _old(paths: Iterable[Path]) -> Iterator[Path]:
    latest = time.time() - _LEFT_FOR
    for path in paths:
        try:
            if path.stat().st_mtime < latest:
                yield path
        except FileNotFoundError:  # its process lives, and has just put it away
            continue
