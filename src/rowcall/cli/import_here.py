"""An import that this process works on, in the configured database."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn

import psycopg
from psycopg import Connection
from rich.console import Console

from rowcall.cli.conversation import answered, is_asked
from rowcall.cli.ended import SHOWN, End, failing, say, tell_end, waits_for_submit, way_on
from rowcall.cli.local import Local, as_answer, told_job
from rowcall.cli.progress import job_progress
from rowcall.client.answers import Fingerprint, ImportConfig, Item
from rowcall.config import Settings, settings_from
from rowcall.engine import moves
from rowcall.engine.documents import fingerprint_document, row_document
from rowcall.engine.failures import failure_of
from rowcall.engine.fetch import fetched
from rowcall.engine.receipt import mode_of
from rowcall.engine.run import Run, held, run_job
from rowcall.engine.start import start_job
from rowcall.errors import FileRefused, Final, Retryable, RowcallError
from rowcall.formats import ReadOptions
from rowcall.importer import Importer
from rowcall.importer.registry import Registry, load_registry
from rowcall.model import Code, State, Status
from rowcall.sources.place import is_url, parsed
from rowcall.store import jobs
from rowcall.store.db import Database, open_database
from rowcall.store.files.filestore import file_store
from rowcall.store.files.marks import bind
from rowcall.store.fingerprints import check_of
from rowcall.store.grid import Wanted, results_of
from rowcall.store.jobs import Job, JobConfig, JobCounts, TemplateKey
from rowcall.store.mappings import columns_of
from rowcall.store.packs import migrate_pack
from rowcall.store.results import last_sign_of


def import_here(
    file: str,
    into: str,
    asked: ImportConfig,
    read: ReadOptions,
    *,
    workers: int | None,
    batch_rows: int | None,
    as_json: bool,
) -> NoReturn:
    """Bring a file in."""
    config = JobConfig(
        mode=asked.mode,
        mapping=asked.mapping,
        constants=asked.constants,
        separators=asked.separators,
        template=TemplateKey(asked.template.source_system, asked.template.variant) if asked.template else None,
        ask=asked.ask,
        context=asked.context,
        dry_run=asked.dry_run,
        preview=asked.preview,
        read=read,
    )
    with ExitStack() as stack:
        with failing(as_json=as_json):
            registry = load_registry()
            importer = registry.importer(into)
            settings = _settings(workers, batch_rows)
            stream = stack.enter_context(_opened(file, settings))
            database = stack.enter_context(open_database(settings))
            _migrate(database, registry, importer)
            known_as = registry.name_of(importer)
            with database.connect("import") as connection:
                bind(connection, file_store(settings))
                began = connection.execute("SELECT now()").fetchone()
                job = start_job(
                    connection, settings, importer, stream, file_name=_name(file), config=config, known_as=known_as
                )
            if began and job.created_at < began[0]:
                _say_taken_up(job)
        _carry_out(Run(database, importer, settings), job, as_json=as_json)


def resume_here(job: str, *, workers: int | None, as_json: bool) -> NoReturn:
    """Go on with a job."""
    _go_on(job, partial(_take_up, as_json=as_json), workers=workers, as_json=as_json)


def submit_here(job: str, plan: str | None, *, workers: int | None, as_json: bool) -> NoReturn:
    """Commit a job that was previewed."""
    _go_on(job, partial(_submit, digest=plan or moves.ANY_PLAN), workers=workers, as_json=as_json)


def _go_on(
    job: str, take_up: Callable[[Connection[Any], Job, type[Importer]], None], *, workers: int | None, as_json: bool
) -> NoReturn:
    with ExitStack() as stack:
        with failing(as_json=as_json):
            settings = _settings(workers, None)
            registry = load_registry()
            database = stack.enter_context(open_database(settings))
            with database.connect("resume") as connection:
                bind(connection, file_store(settings))
                found = jobs.get_job(connection, job)
            importer = registry.importer(found.importer)
            _migrate(database, registry, importer)
            with held(database, found) as control:
                take_up(control, jobs.get_job(control, str(found.id)), importer)
        _carry_out(Run(database, importer, settings), found, as_json=as_json)


def _settings(workers: int | None, batch_rows: int | None) -> Settings:
    settings = settings_from()
    return replace(
        settings,
        workers=workers or settings.workers,
        batch_rows_min=batch_rows or settings.batch_rows_min,
        batch_rows_max=batch_rows or settings.batch_rows_max,
    )


def _opened(file: str, settings: Settings) -> AbstractContextManager[BinaryIO]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    if is_url(file):
        return fetched(parsed(file), settings)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise FileRefused(
            Code.FILE_NOT_FOUND, f"{file!r} can't be opened: {error.strerror}.", hint="Check the path."
        ) from error


def _name(file: str) -> str:
    if is_url(file):
        return parsed(file).name
    return "standard input" if file == "-" else Path(file).name


def _migrate(database: Database, registry: Registry, importer: type[Importer]) -> None:
    with database.connect("migrate") as connection:
        migrate_pack(connection, registry.pack_of(importer))


def _say_taken_up(job: Job) -> None:
    say(f"Job {job.number} of {job.created_at:%Y-%m-%d %H:%M} was to do the same and was interrupted: going on.")


def _take_up(control: Connection[Any], job: Job, _: type[Importer], *, as_json: bool) -> None:
    """See that the job can go on, or that somebody is there to be asked."""
    if is_asked(job.state, moves.allowed(job), as_json=as_json):
        return
    if "submit" in moves.allowed(job):
        raise waits_for_submit(job.number)
    if job.state is State.PAUSED:
        with control.transaction():
            moves.resume(control, job)
    elif job.state in (State.FINGERPRINT_WARN, State.FINGERPRINT_ABORT):
        raise Final(Code.WRONG_STATE, f"Job {job.number} is {job.state}.", hint=way_on(job.state, job.number))
    elif job.state is State.SUPERSEDED:
        raise jobs.superseded(job)
    elif job.ended or job.state is State.VALIDATED:
        what = "was a dry run" if job.config.dry_run and not job.ended else f"is {job.state}"
        raise Final(
            Code.WRONG_STATE,
            f"Job {job.number} {what}: there is nothing to go on with.",
            hint="Import the file again for another job.",
        )


def _submit(control: Connection[Any], job: Job, importer: type[Importer], *, digest: str) -> None:
    with control.transaction():
        moves.submit(control, job, {digest}, importer)


# ------------------------------------------------------------------------------------------------------- how it goes


def _carry_out(run: Run, job: Job, *, as_json: bool) -> NoReturn:
    """Work on the job, and tell how it ended."""
    failure, goes_on = None, True
    while goes_on:
        run.stop = threading.Event()  # that it was to wait has stopped the work before
        try:
            with job_progress(quiet=as_json) as run.tell, _stoppable(run.stop):
                run_job(run, job)
        except Exception as error:
            failure = _with_way_on(failure_of(error), job)
        with Local(run.settings) as at:
            goes_on = failure is None and answered(at, _look(run, job).job, as_json=as_json)
    tell_end(_look(run, job), failure, as_json=as_json)


def _with_way_on(failure: RowcallError, job: Job) -> RowcallError:
    """What may succeed later comes with how to try it."""
    if not isinstance(failure, Retryable) or failure.code in (Code.INTERRUPTED, Code.JOB_BUSY):
        return failure
    hint = f"{failure.hint} What is done stays done; go on with: rowcall resume {job.number}".strip()
    return Retryable(failure.code, failure.message, hint=hint)


@contextmanager
def _stoppable(stop: threading.Event) -> Generator[None]:
    """Ctrl-C and SIGTERM let the batches under way end; the second one ends the command at once."""
    signals: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        signals.append(number)
        if len(signals) > 1:
            Console(stderr=True).show_cursor(True)
            os._exit(128 + number)
        stop.set()
        os.write(2, b"\nStopping when the batches under way are done; once more ends at once.\n")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _look(run: Run, job: Job) -> End:
    """Ask the database; when it is gone, what is known of the job has to do."""
    mode = mode_of(job, run.importer)
    try:
        with run.database.connect("import") as connection:
            job = jobs.get_job(connection, str(job.id))
            columns = columns_of(connection, job.id)
            headers = [column.header for column in columns]
            failed = results_of(connection, job.id, Wanted(statuses=(Status.FAILED,), most=SHOWN))
            took = last_sign_of(connection, job) - job.created_at
            return End(
                job=told_job(job, jobs.counts_of(connection, job), run.importer),
                mode=mode,
                unused=[c.header for c in columns if not c.target_field] if run.importer.target else [],
                failed=[as_answer(Item, row_document(result, headers)) for result in failed],
                milliseconds=round(took.total_seconds() * 1000),
                fingerprint=_found(connection, job),
            )
    except (psycopg.Error, Retryable):
        return End(job=told_job(job, JobCounts(), run.importer), mode=mode, unused=[], failed=[], milliseconds=0)


def _found(connection: psycopg.Connection[Any], job: Job) -> Fingerprint | None:
    found = check_of(connection, job.id)
    return found and as_answer(Fingerprint, fingerprint_document(found))
