"""Checks what Rowcall stands on: database, tables, data directory, importers, and what earlier work left behind."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, LiteralString

from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.config import Settings
from rowcall.engine.doctor import Finding, Verdict
from rowcall.engine.work import checked_target
from rowcall.errors import RowcallError
from rowcall.formats.reading import GIB
from rowcall.importer import Importer
from rowcall.importer.registry import Registry
from rowcall.store.files.filestore import file_store, foreign
from rowcall.store.files.marks import known_mark
from rowcall.store.migrate import pending as pending_of_rowcall
from rowcall.store.operations import workers_seen
from rowcall.store.packs import pending_of_pack
from rowcall.store.queries import query
from rowcall.store.tenancy import lacking, may_make_role

_EXAMPLES = 5
_LITTLE_SPACE = GIB


def check_settings(settings: Settings) -> Finding:
    """What is set. The database's address may hold a password and isn't shown."""
    where = "ROWCALL_DATABASE_URL" if settings.database_url else "the embedded server"
    said = (
        f"{where}, {settings.workers} workers, batches of {settings.batch_rows_min:,} to {settings.batch_rows_max:,} "
        f"rows, {settings.patience:g} s of patience"
    )
    return Finding(name="settings", said=said)


def check_data_dir(settings: Settings) -> Finding:
    """Whether files can be stored, and how many."""
    folder = settings.data_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"rowcall")
    except OSError as error:
        hint = "Set ROWCALL_DATA_DIR to a folder that can be written to."
        return failed("data directory", f"{folder}: {error.strerror}", hint)
    free = shutil.disk_usage(folder).free
    said = f"{folder}, {free / GIB:,.1f} GB free"
    if free < _LITTLE_SPACE:
        return Finding(name="data directory", said=said, verdict=Verdict.NOTE, hint="Make room before a large import.")
    return Finding(name="data directory", said=said)


def check_file_store(settings: Settings) -> Finding:
    """Whether files can be stored where all processes find them."""
    try:
        return Finding(name="file store", said=file_store(settings).check())
    except OSError as error:
        hint = "Set ROWCALL_FILE_STORE to a folder that can be written to, or to s3://bucket/prefix."
        return failed("file store", f"{error.filename or settings.file_store}: {error.strerror}", hint)
    except RowcallError as error:
        return failed("file store", error.message, error.hint)


def check_mark(connection: Connection[Any], settings: Settings) -> Finding:
    """Whether the file store is the database's; nothing is written."""
    name, store = "file store's mark", file_store(settings)
    try:
        known, found = known_mark(connection), store.mark()
    except (OSError, RowcallError) as error:
        return failed(name, getattr(error, "message", str(error)))
    if known is None:
        return Finding(name=name, said="the first import or service writes it")
    if known != found:
        return failed(name, foreign(store.where).message, foreign(store.where).hint)
    return Finding(name=name, said="the database's own")


def check_database(connection: Connection[Any]) -> Finding:
    """Which server answers, and where: what another program needs to get there, but for a password."""
    info = connection.info
    version = f"{info.server_version // 10_000}.{info.server_version % 10_000}"
    where = f"host={info.host} port={info.port} dbname={info.dbname} user={info.user}"
    return Finding(name="database", said=f"PostgreSQL {version}, {where}")


def check_migrations(connection: Connection[Any], registry: Registry, queue: Sequence[str] = ()) -> Finding:
    """Whether the tables of Rowcall, of the packs and of the queue are up to date."""
    packs = [id_ for pack in registry.packs for id_ in pending_of_pack(connection, pack)]
    pending = [*pending_of_rowcall(connection), *packs, *queue]
    if pending:
        return Finding(
            name="migrations",
            said=f"{len(pending)} not applied",
            verdict=Verdict.NOTE,
            count=len(pending),
            examples=pending,
            hint="`rowcall migrate` applies them, and so does the next import.",
        )
    return Finding(name="migrations", said="up to date")


def check_api_role(connection: Connection[Any]) -> Finding:
    """Whether requests can run under the role that keeps organisations apart."""
    statements = lacking(connection)
    if not statements:
        return Finding(name="API role", said="rowcall_api is ready; requests see their own organisation only")
    if may_make_role(connection):
        return Finding(name="API role", said="rowcall_api will be made when `rowcall serve` starts")
    return Finding(
        name="API role",
        said="rowcall_api is not ready: `rowcall serve` would not start",
        verdict=Verdict.NOTE,
        count=len(statements),
        examples=[f"{statement};" for statement in statements],
        hint="To serve requests, have an administrator run these in this database, in this order.",
    )


def check_importers(connection: Connection[Any], registry: Registry) -> Iterator[Finding]:
    """Whether each importer's table is there and has what the importer counts on."""
    waiting = [pack for pack in registry.packs if pending_of_pack(connection, pack)]
    for name, importer in registry.by_name().items():
        if registry.pack_of(importer) in waiting:
            said = "not checked: its pack's migrations are not applied"
            yield Finding(name=f"importer {name}", said=said, verdict=Verdict.SKIPPED)
        else:
            yield _check_importer(connection, name, importer)


def _check_importer(connection: Connection[Any], name: str, importer: type[Importer]) -> Finding:
    try:
        checked_target(connection, importer)
    except RowcallError as error:
        return failed(f"importer {name}", error.message, error.hint)
    return Finding(name=f"importer {name}", said=f"fits table {importer.target}" if importer.target else "loads")


def check_jobs(connection: Connection[Any]) -> Finding:
    """Jobs that were interrupted and that nobody works on."""
    left = connection.cursor(row_factory=scalar_row).execute(query("unfinished_jobs")).fetchall()
    if not left:
        return Finding(name="jobs", said="none was left unfinished")
    return Finding(
        name="jobs",
        said=f"{len(left):,} unfinished, with nobody at work on them",
        verdict=Verdict.NOTE,
        count=len(left),
        examples=left[:_EXAMPLES],
        hint="`rowcall resume JOB` finishes one.",
    )


def check_workers(connection: Connection[Any]) -> Finding:
    """Whether anybody works on what comes over HTTP, and whether something waits for them."""
    seen, ago = workers_seen(connection)
    if seen:
        return Finding(name="workers", said=f"{seen} seen within a minute")
    said = "none seen within a minute" + (f", the last {ago:,.0f} s ago" if ago is not None else "")
    waiting = connection.cursor(row_factory=scalar_row).execute(query("jobs_waiting")).fetchone() or 0
    if not waiting:
        return Finding(name="workers", said=f"{said}; nothing waits for one")
    hint = "Start `rowcall worker`, or `rowcall serve`, which starts one beside it."
    return Finding(
        name="workers", said=f"{said}; {waiting:,} jobs wait", verdict=Verdict.NOTE, count=waiting, hint=hint
    )


_TOGETHER: tuple[tuple[str, str, LiteralString], ...] = (
    ("I9", "No job waits for a worker for longer than a minute.", query("unattended_for_long")),
    ("I10", "No session, lock or temporary table was left behind.", query("left_behind")),
    ("I11", "Every idempotency key stands for one job.", query("keys_of_several")),
)


def check_together(connection: Connection[Any]) -> Iterator[Finding]:
    """What must hold of all jobs together, each by a query that has to return nothing."""
    for name, said, statement in _TOGETHER:
        found = connection.cursor(row_factory=scalar_row).execute(statement, {}).fetchall()
        verdict = Verdict.VIOLATED if found else Verdict.OK
        if found and name == "I9" and not workers_seen(connection)[0]:  # another check tells that there is none
            verdict, said = Verdict.SKIPPED, f"{said} Not checked: no worker was seen."
        yield Finding(name=name, said=said, verdict=verdict, count=len(found), examples=found[:_EXAMPLES])


def check_files(connection: Connection[Any], settings: Settings) -> Iterator[Finding]:
    """Stored files that no job knows, and files of jobs that are not there."""
    store = file_store(settings)
    known = {store.within(location): needed for location, needed in connection.execute(query("stored_files"))}
    orphans = sorted(location for location in store.locations() if location not in known)
    missing = sorted(location for location, needed in known.items() if needed and not store.has(location))
    if missing:
        hint = "Jobs that have not read them can't go on: import the originals again."
        yield Finding(
            name="files",
            said=f"{len(missing):,} gone that are needed",
            verdict=Verdict.FAILED,
            count=len(missing),
            examples=missing[:_EXAMPLES],
            hint=hint,
        )
    if orphans:
        yield Finding(
            name="files",
            said=f"{len(orphans):,} that no job of this database knows",
            verdict=Verdict.NOTE,
            count=len(orphans),
            examples=orphans[:_EXAMPLES],
            hint="Retention removes them some days after they came.",
        )
    if not missing and not orphans:
        yield Finding(name="files", said=f"{len(known):,} stored, none lost or left over")


def failed(name: str, said: str, hint: str = "") -> Finding:
    """A check that found something wrong."""
    return Finding(name=name, said=said, verdict=Verdict.FAILED, hint=hint)
