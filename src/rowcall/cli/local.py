"""What `rowcall.Client` asks a server, asked of the database itself."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

from psycopg import Connection

from rowcall.cli.local_columns import LocalColumns
from rowcall.cli.local_values import LocalValues
from rowcall.client import answers
from rowcall.client.answers import ImporterSummary, Item, Reprocessed, UndoPreview, UndoReceipt, View
from rowcall.config import Settings
from rowcall.decoding import converted
from rowcall.engine import documents, moves
from rowcall.engine.corrections.edit import Edited, edit_row, found_row, undo_edits
from rowcall.engine.corrections.rejects import Merged, merge_rejects, open_returned
from rowcall.engine.corrections.replace import Replacing, count_replaced, replace_cells
from rowcall.engine.preview.documents import preview_of
from rowcall.engine.receipt import receipt_of
from rowcall.engine.undo.preview import preview_undo
from rowcall.engine.undo.take_back import undo_of
from rowcall.errors import Final, RowcallError
from rowcall.importer import Importer
from rowcall.importer.registry import Registry, load_registry
from rowcall.model import WORKING, Code
from rowcall.store import jobs
from rowcall.store.db import Database, open_database
from rowcall.store.fingerprints import check_of
from rowcall.store.grid import Wanted, results_of
from rowcall.store.jobs import Job, JobCounts
from rowcall.store.mappings import columns_of
from rowcall.store.results import counts_of_jobs

_T = TypeVar("_T")


class Local(LocalColumns, LocalValues):
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
        return self._stack.enter_context(self._database.connect("command"))

    @cached_property
    def _database(self) -> Database:
        return self._stack.enter_context(open_database(self._settings))

    @cached_property
    def _registry(self) -> Registry | None:
        """The importers, for what is told of jobs: that is told also where a declaration is broken."""
        with suppress(RowcallError):
            return load_registry()

    def _importer(self, job: Job) -> type[Importer] | None:
        return self._registry.find(job.importer) if self._registry else None

    def jobs(
        self, *, state: str | None, importer: str | None, scope: str | None = None, most: int | None
    ) -> Iterator[answers.Job]:
        """The jobs, the newest first."""
        found = jobs.list_jobs(self._connection, state=state, importer=importer, scope=scope, most=most or 50)
        counted = counts_of_jobs(self._connection, found)
        return (told_job(job, counted[job.id], self._importer(job)) for job in found)

    def items(self, job: str, view: View | None = None, *, most: int | None = None) -> Iterator[Item]:
        """The rows of a job with what became of each."""
        view, found = view or View(), jobs.get_job(self._connection, job)
        wanted = Wanted(statuses=view.statuses, code=view.code, field=view.field, text=view.text, most=most)
        headers = [column.header for column in columns_of(self._connection, found.id)]
        results = results_of(self._connection, found.id, wanted)
        return (as_answer(Item, documents.row_document(result, headers)) for result in results)

    def preview(self, job: str) -> answers.Preview:
        """What a job that was previewed would do."""
        found = jobs.get_job(self._connection, job)
        told = preview_of(self._connection, found, load_registry().by_name().get(found.importer))
        return as_answer(answers.Preview, told)

    def submit(self, job: str, plan: str | None = None) -> answers.Job:
        """Agree to this plan of a job and no other; None: whatever it is."""
        digests = {plan or moves.ANY_PLAN}
        return self._moved(
            job, lambda connection, found: moves.submit(connection, found, digests, self._importer(found))[0]
        )

    def receipt(self, job: str) -> answers.Receipt:
        """A job on one page."""
        found = jobs.get_job(self._connection, job)
        made = receipt_of(self._connection, found, load_registry().by_name().get(found.importer))
        return as_answer(answers.Receipt, documents.receipt_document(made))

    def fingerprint(self, job: str) -> answers.Fingerprint:
        """Whether its file is about the same things as the target."""
        found = check_of(self._connection, jobs.get_job(self._connection, job).id)
        return as_answer(answers.Fingerprint, documents.fingerprint_document(found))

    def acknowledge(self, job: str) -> answers.Job:
        """Let a job go on though some of its rows differ from the target."""
        return self._moved(job, lambda connection, found: moves.acknowledge(connection, found, jobs.system_account()))

    def item(self, job: str, row: int) -> Item:
        """One row of a job."""
        found = jobs.get_job(self._connection, job)
        return as_answer(Item, documents.row_document(found_row(self._connection, found, row), self._headers(found)))

    def _headers(self, job: Job) -> list[str]:
        return [column.header for column in columns_of(self._connection, job.id)]

    def edit(self, job: str, row: int, cells: dict[str, str | None], *, revision: int = 0) -> answers.Edited:
        """Correct cells of a row."""
        return self._edited(
            job, lambda found, how: edit_row(self._connection, found, how, row, cells, who=_me(), revision=revision)
        )

    def undo_edits(self, job: str, row: int, *, revision: int) -> answers.Edited:
        """Take back all corrections of a row."""
        return self._edited(
            job, lambda found, how: undo_edits(self._connection, found, how, row, who=_me(), revision=revision)
        )

    def _edited(self, job: str, deed: Callable[[Job, type[Importer]], Edited]) -> answers.Edited:
        done: list[Edited] = []

        def edit(_: Connection[Any], found: Job) -> Job:
            done.append(deed(found, load_registry().importer(found.importer)))
            return done[0].job

        now = self._moved(job, edit)
        item = as_answer(Item, documents.row_document(done[0].row, self._headers(done[0].job)))
        issues = converted(done[0].issues, list[answers.Issue])
        return answers.Edited(item=item, status=done[0].status, issues=issues, alone=done[0].alone, job=now)

    def replace(self, job: str, what: answers.Replacement, *, token: str | None = None) -> answers.Replaced:
        """Count what a replacement would do; with the token of that, do just that."""
        view = what.view
        which = Wanted(
            statuses=view.statuses,
            code=view.code,
            field=view.field,
            text=view.text,
            edited=view.edited,
            rows=what.rows,
        )
        asked = Replacing(which=which, column=what.field, find=what.find, text=what.text, part=what.part)
        if token is None:
            counted = count_replaced(self._connection, jobs.get_job(self._connection, job), asked)
            samples = [answers.Sample(row=each.row, before=each.before, after=each.after) for each in counted.samples]
            return answers.Replaced(rows=counted.rows, samples=samples, token=counted.token)
        count = 0

        def replace(connection: Connection[Any], found: Job) -> Job:
            nonlocal count
            importer = load_registry().importer(found.importer)
            done = replace_cells(connection, found, importer, asked, token=token, who=_me())
            count = done.laid.rows
            return done.job

        now = self._moved(job, replace)
        return answers.Replaced(rows=count, job=now)

    def rejects(self, job: str, target: Path | BinaryIO) -> int:
        """Write the workbook of the rows that failed; how many rows."""
        from rowcall.export.rejects import select_rejects, write_rejects  # loads writers

        with self._connection.transaction():
            found = jobs.get_job(self._connection, job)
            chosen = select_rejects(self._connection, found, load_registry().by_name().get(found.importer))
            return write_rejects(self._connection, chosen, target)

    def merge(self, job: str, file: Path) -> answers.Merged:
        """Bring back the workbook, corrected."""
        done: list[Merged] = []

        def merge(connection: Connection[Any], found: Job) -> Job:
            importer = load_registry().importer(found.importer)
            with open_returned(file, file.name, self._settings.limits) as reading:
                done.append(merge_rejects(connection, found, importer, reading, who=_me()))
            return done[0].job

        self._moved(job, merge)
        counts = jobs.counts_of(self._connection, done[0].job)
        return as_answer(answers.Merged, documents.merged_document(done[0], counts, self._importer(done[0].job)))

    def pause(self, job: str) -> answers.Job:
        """Have a job stop for now."""
        return self._moved(job, moves.pause)

    def cancel(self, job: str) -> answers.Job:
        """Have a job stop for good."""
        return self._moved(job, moves.cancel)

    def reprocess(self, job: str, view: View | None = None, *, rows: list[int] | None = None) -> Reprocessed:
        """Have rows tried again."""
        view, registry, count = view or View(), load_registry(), 0
        statuses = moves.to_try_again(view.statuses or None, rows, edited=view.edited)
        wanted = replace(_wanted(view, rows), edited=view.edited, statuses=statuses)

        def again(connection: Connection[Any], found: Job) -> Job:
            nonlocal count
            now, count = moves.reprocess(connection, found, registry.importer(found.importer), wanted)
            return now

        return Reprocessed(job=self._moved(job, again), rows=count)

    def preview_undo(
        self, job: str, view: View | None = None, *, rows: list[int] | None = None, partial: bool = False
    ) -> UndoPreview:
        """What an undo would do now."""
        found = jobs.get_job(self._connection, job)
        moves.require(found, "undo")
        importer, days = load_registry().importer(found.importer), self._settings.retention_ended_days
        wanted = _wanted(view or View(), rows)
        seen = preview_undo(self._connection, found, importer, wanted, partial=partial, retention_days=days)
        return as_answer(UndoPreview, documents.undo_preview_document(seen))

    def undo(
        self, job: str, view: View | None = None, *, rows: list[int] | None = None, partial: bool = False
    ) -> answers.Job:
        """Have what a job wrote taken back."""
        registry, wanted = load_registry(), _wanted(view or View(), rows)

        def back(connection: Connection[Any], found: Job) -> Job:
            importer = registry.importer(found.importer)
            return moves.undo(connection, found, importer, wanted, partial=partial, account=jobs.system_account())

        return self._moved(job, back)

    def wait(self, job: str) -> answers.Job:
        """The job when it has ended, or waits. This process works on it, unless a worker does."""
        from rowcall.engine.run import Run, run_job

        now = jobs.get_job(self._connection, job)
        while now.state in WORKING:
            try:
                now = run_job(Run(self._database, load_registry().importer(now.importer), self._settings), now)
                break
            except Final as error:
                if error.code is not Code.JOB_BUSY:
                    raise
            now = jobs.get_job(self._connection, job)
        return told_job(now, jobs.counts_of(self._connection, now), self._importer(now))

    def undo_receipt(self, job: str) -> UndoReceipt:
        """What the latest undo of a job did."""
        found = jobs.get_job(self._connection, job)
        return as_answer(UndoReceipt, documents.undo_receipt_document(found, undo_of(self._connection, found)))

    def _moved(self, job: str, move: Callable[[Connection[Any], Job], Job]) -> answers.Job:
        from rowcall.worker.queue import migrate_queue, nudge  # Procrastinate takes its time

        migrate_queue(self._connection)
        with self._connection.transaction():
            now = move(self._connection, jobs.get_job(self._connection, job))
            if now.background and now.state in WORKING:
                nudge(self._connection, now.id)
        return told_job(now, jobs.counts_of(self._connection, now), self._importer(now))

    def importers(self) -> list[ImporterSummary]:
        """The importers that there are."""
        listed = load_registry().by_name().items()
        return [as_answer(ImporterSummary, documents.importer_summary(*each)) for each in listed]

    def importer(self, name: str) -> answers.Importer:
        """All about one."""
        return as_answer(answers.Importer, documents.importer_document(load_registry().importer(name)))

    def template(self, name: str, target: Path | BinaryIO) -> None:
        """Write the workbook to fill in for an importer."""
        from rowcall.export.template import write_template  # loads writers

        write_template(self._connection, load_registry().importer(name), target)


def _wanted(view: View, rows: list[int] | None) -> Wanted:
    numbers = tuple(rows) if rows is not None else None
    return Wanted(statuses=view.statuses, code=view.code, field=view.field, text=view.text, rows=numbers)


def _me() -> str:
    """Who corrects rows here."""
    return jobs.system_account()


def told_job(job: Job, counts: JobCounts, importer: type[Importer] | None) -> answers.Job:
    """A job as a server tells it."""
    return as_answer(answers.Job, documents.job_document(job, counts, importer))


def as_answer(kind: type[_T], told: dict[str, Any]) -> _T:
    """What a program is told, as a client gets it."""
    return converted(told, kind)
