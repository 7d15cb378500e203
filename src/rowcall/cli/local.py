"""What `rowcall.Client` asks a server, asked of the database itself."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from psycopg import Connection

from rowcall.cli.local_values import LocalValues
from rowcall.client import answers
from rowcall.client.answers import ImporterSummary, Item, Reprocessed, View
from rowcall.config import Settings
from rowcall.engine import documents, moves
from rowcall.engine.receipt import receipt_of
from rowcall.importer.registry import load_registry
from rowcall.model import WORKING
from rowcall.store import jobs
from rowcall.store.db import open_database
from rowcall.store.grid import Wanted, results_of
from rowcall.store.jobs import Job, JobCounts
from rowcall.store.mappings import columns_of
from rowcall.store.results import counts_of_jobs

_T = TypeVar("_T")


class Local(LocalValues):
    """The database of the settings, opened when it is asked."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @cached_property
    def _connection(self) -> Connection[Any]:
        database = self._stack.enter_context(open_database(self._settings))
        return self._stack.enter_context(database.connect("command"))

    def jobs(
        self, *, state: str | None, importer: str | None, scope: str | None = None, most: int | None
    ) -> Iterator[answers.Job]:
        """The jobs, the newest first."""
        found = jobs.list_jobs(self._connection, state=state, importer=importer, scope=scope, most=most or 50)
        counted = counts_of_jobs(self._connection, found)
        return (told_job(job, counted[job.id]) for job in found)

    def items(self, job: str, view: View | None = None, *, most: int | None = None) -> Iterator[Item]:
        """The rows of a job with what became of each."""
        view, found = view or View(), jobs.get_job(self._connection, job)
        wanted = Wanted(statuses=view.statuses, code=view.code, field=view.field, text=view.text, most=most)
        headers = [column.header for column in columns_of(self._connection, found.id)]
        results = results_of(self._connection, found.id, wanted)
        return (as_answer(Item, documents.row_document(result, headers)) for result in results)

    def receipt(self, job: str) -> answers.Receipt:
        """A job on one page."""
        found = jobs.get_job(self._connection, job)
        made = receipt_of(self._connection, found, load_registry().by_name().get(found.importer))
        return as_answer(answers.Receipt, documents.receipt_document(made))

    def pause(self, job: str) -> answers.Job:
        """Have a job stop for now."""
        return self._moved(job, moves.pause)

    def cancel(self, job: str) -> answers.Job:
        """Have a job stop for good."""
        return self._moved(job, moves.cancel)

    def reprocess(self, job: str, view: View | None = None, *, rows: list[int] | None = None) -> Reprocessed:
        """Have rows tried again."""
        view, registry, count = view or View(), load_registry(), 0
        numbers = tuple(rows) if rows is not None else None
        statuses = moves.to_try_again(view.statuses or None, rows)
        wanted = Wanted(statuses=statuses, code=view.code, field=view.field, text=view.text, rows=numbers)

        def again(connection: Connection[Any], found: Job) -> Job:
            nonlocal count
            now, count = moves.reprocess(connection, found, registry.importer(found.importer), wanted)
            return now

        return Reprocessed(job=self._moved(job, again), rows=count)

    def _moved(self, job: str, move: Callable[[Connection[Any], Job], Job]) -> answers.Job:
        from rowcall.worker.queue import migrate_queue, nudge  # Procrastinate takes its time

        migrate_queue(self._connection)
        with self._connection.transaction():
            now = move(self._connection, jobs.get_job(self._connection, job))
            if now.background and now.state in WORKING:
                nudge(self._connection, now.id)
        return told_job(now, jobs.counts_of(self._connection, now))

    def importers(self) -> list[ImporterSummary]:
        """The importers that there are."""
        listed = load_registry().by_name().items()
        return [as_answer(ImporterSummary, documents.importer_summary(*each)) for each in listed]

    def importer(self, name: str) -> answers.Importer:
        """All about one."""
        return as_answer(answers.Importer, documents.importer_document(load_registry().importer(name)))


def told_job(job: Job, counts: JobCounts) -> answers.Job:
    """A job as a server tells it."""
    return as_answer(answers.Job, documents.job_document(job, counts))


def as_answer(kind: type[_T], told: dict[str, Any]) -> _T:
    """What a program is told, as a client gets it."""
    return msgspec.convert(told, kind)
