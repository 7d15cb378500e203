"""Jobs: one file going through one importer."""

import os
import pwd
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg import Connection
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from rowcall.decoding import converted
from rowcall.errors import Final, RowcallError, WrongState
from rowcall.formats import Counts, ReadOptions
from rowcall.importer.matching import Ask
from rowcall.model import ENDED, MOVES, Code, Mode, State, Wish
from rowcall.store import scopes
from rowcall.store.files.filestore import StoredFile
from rowcall.store.queries import query

_DYING = 3.0
"""Seconds that the session of a killed process may last."""
LOCAL = UUID("00000000-0000-7000-8000-000000000000")
"""The organisation that everything belongs to where there are no accounts."""


def without_blanks(name: str) -> str:
    """A name without blanks around it, and with single ones inside."""
    return " ".join(name.split())


@dataclass(frozen=True, slots=True)
class TemplateKey:
    """The name of a template: the system that writes such files, and which of its kinds it is. Blanks don't count."""

    source_system: str
    variant: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "source_system", without_blanks(self.source_system))
        object.__setattr__(self, "variant", without_blanks(self.variant))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    """How a job's file is read and what is done with its rows."""

    mode: Mode | None = None
    """None: as the importer says."""
    mapping: dict[str, str] = field(default_factory=dict[str, str])
    """Header to field, where a person said so. Headers with a plus between are joined."""
    separators: dict[str, str] = field(default_factory=dict[str, str])
    """Field to what stands between its joined columns, if not a blank."""
    constants: dict[str, str] = field(default_factory=dict[str, str])
    """Field to value, the same for every row."""
    template: TemplateKey | None = None
    ask: Ask | None = None
    """Whether a person is asked about columns. None: as the importer says."""
    context: dict[str, str] = field(default_factory=dict[str, str])
    """What the file is about: what the importer declares, as it reads it."""
    dry_run: bool = False
    preview: bool = False
    """Wait after the preview, whatever the importer says."""
    read: ReadOptions = field(default_factory=ReadOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCounts:
    """What happened to the rows. `ingested` is how many are in so far."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0
    failed: int = 0
    reverted: int = 0
    ingested: int = 0

    @property
    def done(self) -> int:
        return self.created + self.updated + self.unchanged + self.skipped + self.failed + self.reverted


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One file going through one importer."""

    id: UUID
    number: str
    importer: str
    config: JobConfig
    file_sha256: str | None
    """None, as size and location, while the file is yet to be fetched."""
    file_name: str
    file_size: int | None
    file_location: str | None
    organisation_id: UUID
    account: str
    state: State
    row_count: int | None
    header_lines: int
    blank_lines: int
    other_lines: int
    created_at: datetime
    processing_started_at: datetime | None
    completed_at: datetime | None
    last_error: dict[str, str] | None
    background: bool
    wish: Wish | None
    paused_from: State | None
    slice_ms: int | None
    request_id: str | None
    url: str | None
    """Where the file comes from, without login and query."""
    traceparent: str | None = None
    file_format: str | None = None
    """Known once the file is in."""
    worked_ms: int | None = field(default=None, compare=False)
    """Milliseconds that its rows were checked or written in, by the database's clock and by the job's events."""
    percent_read: float | None = field(default=None, compare=False)
    """How much of the file is brought in."""
    as_of: datetime | None = None
    """The one moment that its preview and its commit are of; known once either begins."""
    scope_key: str | None = None
    """What it has to itself as long as it is active, of its importer and organisation."""
    supersedes: tuple[dict[str, str], ...] = ()
    """The jobs that it took the place of: id, number, and the state that each was in."""
    superseded_by: dict[str, str] | None = None
    """The job that took its place: id, number, account."""

    @property
    def context(self) -> dict[str, str]:
        """What the file is about, as the upload said."""
        return self.config.context

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def new_id() -> UUID:
    """A UUID of version 7: its first bits are the time, so that new rows meet in an index's last page."""
    stamp = (time.time_ns() // 1_000_000) & ((1 << 48) - 1)
    rest = secrets.randbits(74)
    return UUID(int=stamp << 80 | 7 << 76 | (rest >> 62) << 64 | 2 << 62 | rest & ((1 << 62) - 1))


def system_account() -> str:
    """Who has it done, as the system knows them; in containers there may be no such name."""
    try:
        return os.environ.get("USER") or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a job came from."""

    organisation: UUID = LOCAL
    account: str = field(default_factory=system_account)
    background: bool = False
    """It is for workers, and goes on by itself."""
    request_id: str | None = None
    client_address: str | None = None
    idempotency_key: str | None = None
    fingerprint: str | None = None
    """Of all that the request asked for."""
    hold: bool = False
    """It begins only when somebody says so."""
    traceparent: str | None = None
    url: str | None = None
    """Where to fetch the file from, as it may be shown."""
    url_with_secrets: str | None = field(default=None, repr=False)


def create_job(
    connection: Connection[Any],
    importer: str,
    file: StoredFile | None,
    *,
    file_name: str,
    config: JobConfig,
    origin: Origin | None = None,
    scope: str | None = None,
) -> Job:
    """A new job in state UPLOADED. Its file is durable already, or is yet to be fetched.

    With a scope, it takes the place of jobs that hold it, and is refused while one of them writes.
    """
    job_id, origin = new_id(), origin or Origin()
    with connection.transaction():
        if file:
            add_file(connection, file)
        given = {"id": job_id, "importer": importer, "config": _json(config), "file_name": file_name}
        about = {"sha256": file and file.sha256, "wish": Wish.HOLD if origin.hold else None, **asdict(origin)}
        connection.execute(query("add_job"), given | about | _in_scope(connection, job_id, importer, origin, scope))
    return get_job(connection, str(job_id))


def _in_scope(
    connection: Connection[Any], job_id: UUID, importer: str, origin: Origin, scope: str | None
) -> dict[str, Any]:
    """What a job is added with, once its scope is free; its number is drawn for those that it supersedes."""
    if scope is None:
        return {"number": None, "scope": None, "supersedes": Jsonb([])}
    number = next(connection.cursor(row_factory=scalar_row).execute(query("new_number")))
    place = scopes.Place(organisation=origin.organisation, importer=importer, scope=scope)
    newer = {"id": str(job_id), "number": number, "account": origin.account}
    older = scopes.supersede(connection, place, newer)
    named = [{**each.named, "state": each.job_state} for each in older]
    return {"number": number, "scope": scope, "supersedes": Jsonb(named)}


def add_file(connection: Connection[Any], file: StoredFile) -> str:
    """Remember a durable file: lock the row of its content, and see that it is where that says; its location."""
    given = {"sha256": file.sha256, "size": file.size, "location": file.location}
    known = connection.cursor(row_factory=scalar_row).execute(query("add_file"), given).fetchone() or ""
    location = file.settled(known)
    if location != known:
        connection.execute(query("set_location"), {"sha256": file.sha256, "location": location})
    return location


def get_job(connection: Connection[Any], job: str, *, organisation: UUID | None = None) -> Job:
    """A job by its id or number; if said so, only of an organisation."""
    given = {"id": _uuid(job), "number": job.upper(), "organisation": organisation}
    return job_in(connection.cursor(row_factory=dict_row).execute(query("get_job"), given).fetchall(), job)


def job_in(found: Sequence[dict[str, Any]], job: str) -> Job:
    """The job that was asked for, of what `get_job` gave."""
    if not found:
        hint, over_http = "`rowcall jobs` lists them.", "GET /v1/imports lists them."
        raise Final(Code.JOB_NOT_FOUND, f"There is no job {job!r}.", hint=hint, over_http=over_http)
    return _job({name: value for name, value in found[0].items() if name != "noted"})


def list_jobs(
    connection: Connection[Any],
    *,
    state: str | None = None,
    importer: str | None = None,
    scope: str | None = None,
    most: int = 50,
) -> list[Job]:
    """The latest jobs, the newest first."""
    none = dict.fromkeys(("organisation", "number", "at", "last"))
    given = {"state": state, "importer": importer, "scope": scope, "most": most, **none}
    return select_jobs(connection, "page_of_jobs", given)


def select_jobs(connection: Connection[Any], name: str, given: dict[str, Any]) -> list[Job]:
    """The jobs that a query of this name finds."""
    return [_job(row) for row in connection.cursor(row_factory=dict_row).execute(query(name), given)]


def _job(row: dict[str, Any]) -> Job:
    told: dict[str, Any] = {
        "state": State(row["state"]),
        "config": converted(row["config"], JobConfig),
        "wish": row["wish"] and Wish(row["wish"]),
        "paused_from": row["paused_from"] and State(row["paused_from"]),
        "supersedes": tuple(row["supersedes"]),
    }
    return Job(**{**row, **told})


def lock(connection: Connection[Any], job_id: UUID | str, *, patience: float = 0) -> bool:
    """Whether this session now has the job to itself. The lock ends with the session, however that ends.

    The session of a process that was killed may last for another second: hence some patience.
    """
    deadline = time.monotonic() + patience
    while True:
        row = connection.execute(query("lock_job"), {"id": str(job_id)}).fetchone()
        if (row and row[0]) or time.monotonic() > deadline:
            return bool(row and row[0])
        time.sleep(0.05)


def unlock(connection: Connection[Any], job_id: UUID | str) -> None:
    connection.execute(query("unlock_job"), {"id": str(job_id)})


def take_interrupted(connection: Connection[Any], importer: str, sha256: str, config: JobConfig) -> Job | None:
    """An unfinished job that does the same; locked by this session. Raises while somebody works on it."""
    same = {"importer": importer, "sha256": sha256, "config": _json(config)}
    for job_id in connection.cursor(row_factory=scalar_row).execute(query("find_interrupted"), same).fetchall():
        locked = lock(connection, job_id, patience=_DYING)
        job = get_job(connection, job_id)
        if not locked and not job.ended:
            told = f"Job {job.number} is bringing in the same file in the same way, in another process."
            hint = "Wait for it: `rowcall jobs` shows how far it is."
            raise Final(Code.JOB_BUSY, told, hint=hint, over_http=f"GET /v1/imports/{job.id} tells how far it is.")
        if not job.ended:
            return job
        if locked:
            unlock(connection, job_id)
    return None


def move(connection: Connection[Any], job: Job, state: State, *, error: RowcallError | None = None) -> Job:
    """The job in its next state. Somebody else may have moved it: then nothing happens and it is said so."""
    given = {"id": job.id, "before": job.state, "after": state, "ended": state in ENDED, "error": _error(job, error)}
    if state not in MOVES[job.state]:
        raise Final(Code.WRONG_STATE, f"Job {job.number} is {job.state}; that can't become {state}.")
    if not _moved(connection, job, given):
        now = get_job(connection, str(job.id))
        if now.state is State.SUPERSEDED:
            raise superseded(now)
        raise Final(
            Code.WRONG_STATE,
            f"Job {job.number} was {job.state} and is {now.state} now; it was not moved to {state}.",
            hint="Look at it again with `rowcall jobs`.",
            over_http=f"Look at it again: GET /v1/imports/{job.id}.",
        )
    return get_job(connection, str(job.id))


def _moved(connection: Connection[Any], job: Job, given: dict[str, Any]) -> bool:
    """Whether it was still there. One that had ended may find its scope taken."""
    if job.scope_key is None or not job.ended:
        return connection.execute(query("move_job"), given).rowcount == 1
    try:
        with connection.transaction():
            return connection.execute(query("move_job"), given).rowcount == 1
    except psycopg.errors.UniqueViolation as error:
        place = scopes.Place(organisation=job.organisation_id, importer=job.importer, scope=job.scope_key)
        if error.diag.constraint_name == scopes.INDEX and (now := scopes.holder(connection, place)):
            raise scopes.busy(now) from None
        raise


def superseded(job: Job) -> WrongState:
    """The error that says which newer job counts."""
    newer = job.superseded_by or {}
    return WrongState(
        Code.SUPERSEDED,
        f"Job {job.number} was superseded by job {newer.get('number')}, which {newer.get('account')} brought.",
        hint=f"Go on with job {newer.get('number')}, or bring the file again.",
        state=job.state,
        job={name: newer[name] for name in ("id", "number") if name in newer},
    )


def note_error(connection: Connection[Any], job: Job, error: RowcallError) -> None:
    """Keep the reason why work on the job stopped."""
    connection.execute(query("note_error"), {"id": job.id, "error": _error(job, error)})


def note_percent_read(connection: Connection[Any], job: Job, percent: float) -> None:
    """Keep how much of the file is brought in, for those who watch."""
    connection.execute(query("note_percent_read"), {"id": job.id, "percent": percent})


def set_ingested(connection: Connection[Any], job: Job, counts: Counts, kind: str) -> None:
    """The whole file is in: keep what it is, how many rows it has and how many lines are none."""
    other = counts.preamble + counts.comment
    lines = {"header": counts.header, "blank": counts.blank, "other": other}
    given = {"id": job.id, "rows": counts.rows, "format": kind, **lines}
    connection.execute(query("set_ingested"), given)


def change_config(connection: Connection[Any], job: Job, config: JobConfig) -> Job:
    """The job with another configuration. What it began with stays known: the same command finds it again."""
    connection.execute(query("change_config"), {"id": job.id, "config": _json(config)})
    return get_job(connection, str(job.id))


def seize(connection: Connection[Any], job: Job) -> Job:
    """The job as it is now; until the transaction ends, nobody moves it or decides about it."""
    connection.execute(query("seize_job"), {"id": job.id})
    return get_job(connection, str(job.id))


def hold(connection: Connection[Any], job: Job) -> Job:
    """The job, which goes on when somebody says so."""
    connection.execute(query("hold_job"), {"id": job.id, "state": job.state})
    return get_job(connection, str(job.id))


def counts_of(connection: Connection[Any], job: Job) -> JobCounts:
    """What happened to its rows so far."""
    row = connection.cursor(row_factory=dict_row).execute(query("job_counts"), {"id": job.id}).fetchone()
    return JobCounts(**(row or {}))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _error(job: Job, error: RowcallError | None) -> Jsonb | None:
    """Why it stopped, for whoever brought it: over HTTP if workers go on with it, else on the command line."""
    return Jsonb(error.told(over_http=job.background)) if error else None


def _json(config: JobConfig) -> Jsonb:
    return Jsonb(msgspec.to_builtins(config))
