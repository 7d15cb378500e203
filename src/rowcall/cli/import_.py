"""`rowcall import` and `rowcall resume`: a file into a table, every row accounted for."""

import os
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, BinaryIO

import psycopg
import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.jobs import coloured
from rowcall.cli.options import AsJson, one_of, takes_read_options
from rowcall.cli.progress import job_progress
from rowcall.cli.rows import issues_table
from rowcall.cli.screen import document, screen
from rowcall.config import Settings, settings_from
from rowcall.engine import moves
from rowcall.engine.documents import counts_document, file_document, row_document, rows_of
from rowcall.engine.failures import failure_document, failure_of
from rowcall.engine.fetch import fetched
from rowcall.engine.finish import start_processing
from rowcall.engine.receipt import mode_of
from rowcall.engine.run import Run, held, run_job
from rowcall.engine.start import start_job
from rowcall.errors import FileRefused, Final, Retryable, RowcallError
from rowcall.formats import ReadOptions
from rowcall.importer import Importer
from rowcall.importer.registry import Registry, load_registry
from rowcall.model import Code, Mode, State, Status
from rowcall.sources.place import parsed
from rowcall.store import jobs
from rowcall.store.db import Database, open_database
from rowcall.store.grid import RowResult, Wanted, results_of
from rowcall.store.jobs import Job, JobConfig, JobCounts
from rowcall.store.mappings import ColumnMapping, columns_of
from rowcall.store.packs import migrate_pack
from rowcall.store.results import last_sign_of

_SHOWN = 10
_Workers = Annotated[int | None, typer.Option(min=1, help="How many threads commit; else ROWCALL_WORKERS.")]


@takes_read_options()
def import_file(
    file: Annotated[str, typer.Argument(help="The file, or its URL; - for standard input.")],
    into: Annotated[str, typer.Option(metavar="NAME", help="The importer; `rowcall importers` lists them.")],
    mode: Annotated[
        str | None, typer.Option(help="Rows that are there already: insert or upsert; else as the importer says.")
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="HEADER=FIELD", help="The field of a column; HEADER= leaves it out. Repeat it."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="The same value for all rows. Repeat it.")
    ] = None,
    *,
    read: ReadOptions,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would happen, and change nothing.")] = False,
    workers: _Workers = None,
    batch_rows: Annotated[
        int | None, typer.Option(min=1, help="Commit so many rows at once; else as many as go well.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring the rows of a file into the table of an importer, and tell what became of each.

    The same command again goes on with a job that was interrupted.
    Exit code 0: every row is in; 2: some rows failed; 1: the import failed.
    """
    with ExitStack() as stack:
        with _failing(as_json=as_json):
            config = JobConfig(
                mode=_mode(mode), mapping=_mapping(map_), constants=_constants(set_), dry_run=dry_run, read=read
            )
            registry = load_registry()
            importer = registry.importer(into)
            settings = _settings(workers, batch_rows)
            stream = stack.enter_context(_opened(file, settings))
            database = stack.enter_context(open_database(settings))
            _migrate(database, registry, importer)
            known_as = registry.name_of(importer)
            with database.connect("import") as connection:
                began = connection.execute("SELECT now()").fetchone()
                job = start_job(
                    connection, settings, importer, stream, file_name=_name(file), config=config, known_as=known_as
                )
            if began and job.created_at < began[0]:
                _say_taken_up(job)
        _carry_out(Run(database, importer, settings), job, as_json=as_json)


def resume(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")],
    workers: _Workers = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a job that was interrupted, or commit one that waits after its preview."""
    with ExitStack() as stack:
        with _failing(as_json=as_json):
            settings = _settings(workers, None)
            registry = load_registry()
            database = stack.enter_context(open_database(settings))
            with database.connect("resume") as connection:
                found = jobs.get_job(connection, job)
            importer = registry.importer(found.importer)
            _migrate(database, registry, importer)
            _take_up(database, found, importer)
        _carry_out(Run(database, importer, settings), found, as_json=as_json)


# ------------------------------------------------------------------------------------------------------ what is asked


def _mode(text: str | None) -> Mode | None:
    return Mode(text) if one_of("--mode", text, list(Mode)) else None


def _mapping(texts: Sequence[str] | None) -> dict[str, str]:
    """Header to field. A header may hold an equals sign, a field doesn't."""
    parts = [text.rpartition("=") for text in texts or ()]
    _require("--map", "Header=field", [(header, sign) for header, sign, _ in parts])
    return {header: field.strip() for header, _, field in parts}


def _constants(texts: Sequence[str] | None) -> dict[str, str]:
    parts = [text.partition("=") for text in texts or ()]
    _require("--set", "field=value", [(field, sign) for field, sign, _ in parts])
    return {field.strip(): value for field, _, value in parts}


def _require(option: str, shape: str, parts: Sequence[tuple[str, str]]) -> None:
    if not all(name and sign for name, sign in parts):
        raise Final(Code.BAD_OPTION, f"{option} is written so: {option} '{shape}'.")


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
    if _is_url(file):
        return fetched(parsed(file), settings)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise FileRefused(
            Code.FILE_NOT_FOUND, f"{file!r} can't be opened: {error.strerror}.", hint="Check the path."
        ) from error


def _name(file: str) -> str:
    if _is_url(file):
        return parsed(file).name
    return "standard input" if file == "-" else Path(file).name


def _is_url(file: str) -> bool:
    return file.lower().startswith(("http://", "https://"))


def _migrate(database: Database, registry: Registry, importer: type[Importer]) -> None:
    with database.connect("migrate") as connection:
        migrate_pack(connection, registry.pack_of(importer))


def _say_taken_up(job: Job) -> None:
    _say(f"Job {job.number} of {job.created_at:%Y-%m-%d %H:%M} was to do the same and was interrupted: going on.")


def _take_up(database: Database, job: Job, importer: type[Importer]) -> None:
    """See that the job can go on; one that waits after its preview is confirmed by this."""
    with held(database, job) as control:
        job = jobs.get_job(control, str(job.id))
        if job.state is State.VALIDATED and not job.config.dry_run:
            with control.transaction():
                start_processing(control, job, importer)
        elif job.state is State.PAUSED:
            moves.resume(control, job)
        elif job.ended or job.state is State.VALIDATED:
            what = "was a dry run" if job.config.dry_run and not job.ended else f"is {job.state}"
            raise Final(
                Code.WRONG_STATE,
                f"Job {job.number} {what}: there is nothing to go on with.",
                hint="Import the file again for another job.",
            )


# ------------------------------------------------------------------------------------------------------- how it goes


@contextmanager
def _failing(*, as_json: bool) -> Generator[None]:
    """What goes wrong before there is a job is told to programs too."""
    try:
        yield
    except Exception as error:
        if as_json:
            sys.stdout.write(document({"error": failure_document(failure_of(error))}) + "\n")
        raise


def _carry_out(run: Run, job: Job, *, as_json: bool) -> None:
    """Work on the job, tell how it ended, and end the command with the code that says the same."""
    failure = None
    try:
        with job_progress(quiet=as_json) as run.tell, _stoppable(run.stop):
            run_job(run, job)
    except Exception as error:
        failure = _with_way_on(failure_of(error), job)
    end = _look(run, job)
    if as_json:
        sys.stdout.write(document(_document(end, failure)) + "\n")
    elif failure is None:
        show(screen(), end)
    elif end.counts.done:
        _say(f"Job {end.job.number} has {end.counts.done:,} of {rows_of(end.job, end.counts):,} rows done.")
    elif end.job.state is State.FAILED:
        _say(f"Job {end.job.number} has failed before its first row: nothing was changed.")
    if failure:
        raise failure
    raise typer.Exit(_exit_code(end))


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


# --------------------------------------------------------------------------------------------------------- how it ended


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where a job stands after the work on it: what became of its rows, and the first that failed."""

    job: Job
    importer: type[Importer]
    counts: JobCounts
    columns: list[ColumnMapping]
    failed: list[RowResult]
    milliseconds: int


def _look(run: Run, job: Job) -> End:
    """Ask the database; when it is gone, what is known of the job has to do."""
    try:
        with run.database.connect("import") as connection:
            job = jobs.get_job(connection, str(job.id))
            wanted = Wanted(statuses=(Status.FAILED,), most=_SHOWN)
            took = last_sign_of(connection, job) - job.created_at
            return End(
                job=job,
                importer=run.importer,
                counts=jobs.counts_of(connection, job),
                columns=columns_of(connection, job.id),
                failed=list(results_of(connection, job.id, wanted)),
                milliseconds=round(took.total_seconds() * 1000),
            )
    except (psycopg.Error, Retryable):
        return End(job=job, importer=run.importer, counts=JobCounts(), columns=[], failed=[], milliseconds=0)


def _exit_code(end: End) -> int:
    if end.job.state in (State.COMPLETED, State.COMPLETED_WITH_ERRORS, State.VALIDATED):
        return 2 if end.counts.failed else 0
    return 1


def _document(end: End, failure: RowcallError | None) -> dict[str, Any]:
    return {
        "id": end.job.id,
        "number": end.job.number,
        "state": end.job.state,
        "importer": end.job.importer,
        "mode": mode_of(end.job, end.importer),
        "dryRun": end.job.config.dry_run,
        "file": file_document(end.job),
        "counts": counts_document(end.job, end.counts),
        "durationMs": end.milliseconds,
        "unusedColumns": _unused(end),
        "issues": [row_document(result, [column.header for column in end.columns]) for result in end.failed],
        "error": failure_document(failure) if failure else None,
    }


def show(console: Console, end: End) -> None:
    """Tell a person what became of the rows."""
    job, counts = end.job, end.counts
    console.print(f"[bold]{literal(job.file_name)}[/] into [bold]{literal(job.importer)}[/]  [dim]job {job.number}[/]")
    console.print(coloured(job, counts.failed), end="  ")
    parts = ("created", "updated", "unchanged", "skipped", "failed")
    balance = " + ".join(f"{getattr(counts, part):,} {part}" for part in parts)
    console.print(f"[bold]{rows_of(job, counts):,} rows[/] = {balance}")
    beside = f"beside them {job.header_lines:,} header, {job.blank_lines:,} blank, {job.other_lines:,} other lines"
    seconds = end.milliseconds / 1000
    rate = f", {counts.done / seconds:,.0f} rows/s" if seconds else ""
    console.print(f"[dim]{beside}; {seconds:,.1f} s in all{rate}[/]")
    if unused := _unused(end):
        console.print(f"[yellow]columns not used:[/] {literal(', '.join(unused))}")
    if end.failed:
        console.print(issues_table(end.failed, console.width))
    if counts.failed > len(end.failed):
        console.print(f"[dim]All {counts.failed:,} failed rows: rowcall rows {job.number} --status failed[/]")
    if said := _what_now(end):
        console.print(said)


def _unused(end: End) -> list[str]:
    """The columns that no field takes; a processor of whole files or items sees all of them."""
    if not end.importer.target:
        return []
    return [column.header for column in end.columns if not column.target_field]


def _what_now(end: End) -> str:
    if end.job.config.dry_run:
        return "A dry run: nothing was changed."
    if end.job.state is State.VALIDATED:
        return f"Nothing is changed yet. Commit it with: [bold]rowcall resume {end.job.number}[/]"
    if end.job.state is State.PAUSED:
        return f"It is paused. Go on with: [bold]rowcall resume {end.job.number}[/]"
    if end.job.state is State.CANCELLED:
        return "It was cancelled: what is done stays done, the other rows were not touched."
    if end.job.state is State.INVALID:
        return f"[red]Nothing was imported:[/] {end.job.importer} takes all rows of a file or none."
    return ""


def _say(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)
