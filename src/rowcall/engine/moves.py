"""Moves that somebody asks for: pause, cancel, resume and so on.

Where nobody works on the job they happen at once. Else they are a wish, and whoever works on the job sees to it as soon
as the batches under way have ended. Every move holds only if the job is still in the state that was seen.
"""

from collections.abc import Collection, Sequence
from typing import Any

from psycopg import Connection

from rowcall.engine.finish import balance_of
from rowcall.engine.undo.possible import (
    none_fits,
    nothing_to_undo,
    require_keys,
    require_possible,
    require_stamps,
    why_not,
)
from rowcall.engine.undo.take_back import end_undo
from rowcall.errors import Final, PlanStale, WrongState
from rowcall.importer import Importer, WholeFileImporter
from rowcall.model import WORKING, Code, State, Status, Wish
from rowcall.store import jobs, undos
from rowcall.store.fingerprints import FingerprintCheck, check_of, note_acknowledged
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job, JobCounts
from rowcall.store.plans import plan_of
from rowcall.store.queries import query
from rowcall.store.rows import pending_batches
from rowcall.store.undoing.finding import one_fits
from rowcall.words import counted

ASKED: dict[str, frozenset[State]] = {
    "start": frozenset({State.UPLOADED}),
    "map": frozenset({State.COLUMN_MAPPING}),
    "decide": frozenset({State.CELL_MAPPING}),
    "confirm": frozenset({State.COLUMN_MAPPING, State.CELL_MAPPING}),
    "acknowledge": frozenset({State.FINGERPRINT_WARN}),
    "submit": frozenset({State.VALIDATED}),
    "edit": frozenset({State.VALIDATED, State.COMPLETED, State.COMPLETED_WITH_ERRORS}),
    "pause": WORKING,
    "resume": frozenset({State.PAUSED}),
    "kickoff": frozenset({State.UPLOADED, State.PAUSED}),
    "cancel": WORKING | {State.VALIDATED, State.PAUSED, State.FINGERPRINT_WARN, State.FINGERPRINT_ABORT},
    "reprocess": frozenset({State.COMPLETED, State.COMPLETED_WITH_ERRORS}),
    "undo": frozenset({State.COMPLETED, State.COMPLETED_WITH_ERRORS, State.CANCELLED}),
    "reopen": frozenset({State.CELL_MAPPING, State.FINGERPRINT_WARN, State.VALIDATED}),
}
"""What can be asked for, and in which states."""
_FROM_HOLD = {"start", "kickoff", "map", "decide", "confirm"}


def allowed(job: Job) -> list[str]:
    """What can be asked of a job as it is now."""
    return [name for name, states in ASKED.items() if job.state in states and _fits(job, name)]


def possible(job: Job, counts: JobCounts, importer: type[Importer] | None) -> list[str]:
    """The same without what would be refused for what is written, or for what the importer is."""
    in_vain = _in_vain(job, counts, importer)
    return [name for name in allowed(job) if name not in in_vain]


def _in_vain(job: Job, counts: JobCounts, importer: type[Importer] | None) -> set[str]:
    found: set[str] = set()
    if counts.created + counts.updated == 0 or (importer and why_not(importer)):
        found.add("undo")
    if importer and as_a_whole(importer) and job.state is not State.VALIDATED:
        found |= {"edit", "reprocess"}
    if importer and importer.atomic and counts.failed:
        found.add("submit")
    if job.state is State.CELL_MAPPING and counts.done and not (importer and importer.atomic):
        found.add("reopen")  # it asks about rows that are tried again, or stopped while it wrote
    return found


def _fits(job: Job, name: str) -> bool:
    if name in _FROM_HOLD and job.state in (State.UPLOADED, State.COLUMN_MAPPING, State.CELL_MAPPING):
        return job.wish is Wish.HOLD
    if name == "reopen" and job.state is State.CELL_MAPPING:
        return job.wish is Wish.HOLD
    if name in ("submit", "reprocess", "undo"):
        return not job.config.dry_run
    return name == "cancel" or job.wish is not Wish.CANCEL


def require(job: Job, name: str) -> None:
    """Refuse what can't be asked of a job as it is now."""
    may = allowed(job)
    if job.state is State.SUPERSEDED:
        raise jobs.superseded(job)
    if name not in may:
        waiting = f", and is to be {job.wish}led" if job.wish is Wish.CANCEL else ""
        told = f"Job {job.number} is {job.state}{waiting}; {name} is not possible now."
        hint, over_http = hint_of(may), ""
        if job.state in WORKING and not job.background:  # no worker takes it on
            hint, over_http = f"{hint} If nobody works on it, go on with: rowcall resume {job.number}", hint
        raise WrongState(Code.WRONG_STATE, told, hint=hint, over_http=over_http, state=job.state, allowed=may)


def hint_of(may: Sequence[str]) -> str:
    """What can be asked instead, in words."""
    return f"Possible is: {', '.join(may)}." if may else "It can't be moved any more."


def _asked(connection: Connection[Any], job: Job, name: str) -> Job:
    """The job as it is now, which nobody else moves until the transaction ends; refused if it can't be asked for that.

    What somebody saw a moment ago may be over: who pauses must not take away what another has just asked for.
    """
    job = jobs.seize(connection, job)
    require(job, name)
    return job


def start(connection: Connection[Any], job: Job, *, slice_ms: int | None = None) -> Job:
    """Let a job that was held back begin. Called in a transaction."""
    job = _asked(connection, job, "start")
    connection.execute(query("set_wish"), {"id": job.id, "wish": None})
    return _for_a_while(connection, job, slice_ms)


def resume(connection: Connection[Any], job: Job, *, slice_ms: int | None = None) -> Job:
    """Let a paused job go on where it was. Called in a transaction."""
    job = _asked(connection, job, "resume")
    return _for_a_while(connection, jobs.move(connection, job, job.paused_from or State.PROCESSING), slice_ms)


def kickoff(connection: Connection[Any], job: Job, slice_ms: int) -> Job:
    """Let a job work for a while; then it pauses. Called in a transaction."""
    job = _asked(connection, job, "kickoff")
    go_on = start if job.state is State.UPLOADED else resume
    return go_on(connection, job, slice_ms=slice_ms)


def _for_a_while(connection: Connection[Any], job: Job, slice_ms: int | None) -> Job:
    connection.execute(query("set_slice"), {"id": job.id, "slice": slice_ms})
    return jobs.get_job(connection, str(job.id))


ANY_PLAN = "*"


def submit(
    connection: Connection[Any], job: Job, digests: Collection[str], importer: type[Importer] | None = None
) -> tuple[Job, bool]:
    """Have a plan committed, if it is one of these; `ANY_PLAN` is whatever there is. Called in a transaction.

    Whoever submits a plan that was submitted already gets the job as it is, and False: a second click does nothing.
    A plan by which nothing would be written, since a row fails and the importer takes all or none, is refused.
    """
    job = jobs.seize(connection, job)  # before its plan, as whoever supersedes it does
    plan = plan_of(connection, job.id)
    if plan and plan.submitted_at and plan.digest in digests:
        return job, False
    require(job, "submit")
    if plan is None:
        told = f"Job {job.number} was previewed by an earlier version, which kept no plan."
        raise Final(Code.WRONG_STATE, told, hint="Cancel it, and import the file again.")
    if plan.digest not in digests and ANY_PLAN not in digests:
        told = f"Job {job.number} has another plan by now than the one that was agreed to."
        hint = "Look at the preview again, and submit its `digest` as it is now, in quotes and not weak (`W/`)."
        raise PlanStale(Code.PLAN_STALE, told, hint=hint, digest=plan.digest)
    if importer and importer.atomic and (failed := plan.counts.get(Status.FAILED.value)):
        raise _not_whole(job, importer, failed)
    connection.execute(query("set_wish"), {"id": job.id, "wish": None})
    connection.execute(query("submit_plan"), {"id": job.id})
    return jobs.move(connection, job, State.PROCESSING), True


def _not_whole(job: Job, importer: type[Importer], failed: int) -> WrongState:
    fails = counted(failed, "row of its plan fails", "rows of its plan fail")
    told = f"{importer.name} takes all rows of a file or none, and {fails}."
    may = [name for name in allowed(job) if name != "submit"]
    hint = "Correct what fails, or take back the corrections that it fails by."
    return WrongState(Code.WRONG_STATE, told, hint=hint, state=job.state, allowed=may)


def acknowledge(connection: Connection[Any], job: Job, who: str) -> Job:
    """Let a job go on whose rows differ from the target's, as somebody has seen. Called in a transaction."""
    job = _asked(connection, job, "acknowledge")
    note_acknowledged(connection, job.id, who)
    return jobs.move(connection, job, State.FINGERPRINT_CHECK)


def mismatch(job: Job, found: FingerprintCheck, *, ended: bool = False) -> Final:
    """Why a job goes no further, or went."""
    see, see_over_http = f"See which with `rowcall fingerprint {job.number}`", "See which at its `fingerprint`"
    return Final(
        Code.FINGERPRINT_MISMATCH,
        f"The file doesn't seem to be about what {job.importer} has: {found.note}",
        hint=f"{see}." if ended else f"{see}, end it with `rowcall cancel {job.number}`.",
        over_http=f"{see_over_http}." if ended else f"{see_over_http}; DELETE the import to end it.",
    )


def pause(connection: Connection[Any], job: Job) -> Job:
    """Have a job stop for now. Called in a transaction."""
    return _wished(connection, job, Wish.PAUSE)


def cancel(connection: Connection[Any], job: Job) -> Job:
    """Have a job stop for good: what is done stays, the other rows are cancelled. Called in a transaction."""
    return _wished(connection, job, Wish.CANCEL)


def _wished(connection: Connection[Any], job: Job, wish: Wish) -> Job:
    job = _asked(connection, job, wish.value)
    connection.execute(query("set_wish"), {"id": job.id, "wish": wish})
    free = connection.execute(query("try_job"), {"id": job.id}).fetchone()
    now = jobs.get_job(connection, str(job.id))
    return (granted(connection, now) if free and free[0] else None) or now


def granted(connection: Connection[Any], job: Job) -> Job | None:
    """The job as it was wished, if something is by now. Whoever calls this has the job to themselves."""
    with connection.transaction():
        job = jobs.seize(connection, job)  # before its plan, as whoever supersedes it does
        if job.wish is Wish.HOLD:
            return job
        if job.wish is Wish.PAUSE and job.state in WORKING:
            return jobs.move(connection, job, State.PAUSED)
        if job.wish is Wish.CANCEL and job.state in ASKED["cancel"]:
            return _cancelled(connection, job)
    return None


def let_go(connection: Connection[Any], job: Job) -> Job | None:
    """The same, by whoever stops to work on the job. Who asks for something from now on finds nobody, and does it."""
    with connection.transaction():
        moved = granted(connection, job)
        jobs.unlock(connection, job.id)  # while nobody else can ask: that waits for the end of the transaction
    return moved


def _cancelled(connection: Connection[Any], job: Job) -> Job:
    state = job.paused_from or job.state
    if state is State.FINGERPRINT_ABORT:
        found = check_of(connection, job.id)
        return jobs.move(connection, job, State.FAILED, error=mismatch(job, found, ended=True) if found else None)
    if state is State.REVERTING:  # what is taken back stays so, and what is not is left as it is
        return end_undo(connection, job if job.state is state else jobs.move(connection, job, state))
    if state in (State.VALIDATING, State.VALIDATED):
        connection.execute(query("forget_plan"), {"id": job.id})
        return jobs.move(connection, job, State.CANCELLED)
    connection.execute(query("wait_for_batches"), {"id": job.id})
    connection.execute(query("plan_done"), {"id": job.id, "first": 1, "last": job.row_count})
    if connection.execute(query("not_waited_for"), {"id": job.id}).rowcount:
        connection.execute(query("recount_batches"), {"id": job.id, "first": 1, "last": job.row_count})
    again = connection.execute(query("forget_retries"), {"id": job.id}).rowcount
    if not again or pending_batches(connection, job.id):
        return jobs.move(connection, job, State.CANCELLED)
    if job.state is not State.PROCESSING:  # it was paused, or asked about values
        job = jobs.move(connection, job, State.PROCESSING)
    failed = balance_of(connection, job).failed  # rows were tried again: it is as complete as it was before
    return jobs.move(connection, job, State.COMPLETED_WITH_ERRORS if failed else State.COMPLETED)


def to_try_again(statuses: Sequence[str] | None, rows: Sequence[int] | None, *, edited: bool) -> tuple[str, ...]:
    """The statuses of rows to try again: those that failed unless others are named, and any of rows that are meant.

    Somebody means rows by their numbers, or by what they corrected in them.
    """
    if statuses is None:
        return () if rows or edited else ("failed",)
    return tuple(statuses)


def as_a_whole(importer: type[Importer]) -> bool:
    """Whether an importer takes all rows of a file or none, so that none can be tried for itself once it is through."""
    return importer.atomic or issubclass(importer, WholeFileImporter)


def reprocess(connection: Connection[Any], job: Job, importer: type[Importer], which: Wanted) -> tuple[Job, int]:
    """Have failed or skipped rows tried again; also how many. Called in a transaction."""
    job = _asked(connection, job, "reprocess")
    if as_a_whole(importer):
        told = f"{importer.name} takes a file as a whole: single rows can't be tried again."
        raise Final(Code.BAD_REQUEST, told, hint="Import the corrected file.")
    given = {
        "id": job.id,
        "statuses": list(which.statuses),
        "code": which.code,
        "field": which.field,
        "text": which.text,
        "numbers": list(which.rows) if which.rows is not None else None,
        "edited": which.edited,
    }
    count = connection.execute(query("add_retries"), given).rowcount
    if not count:
        raise Final(Code.BAD_REQUEST, "No row that failed or was skipped fits.", hint="Look at the job's items.")
    return jobs.move(connection, job, State.PROCESSING), count


def undo(
    connection: Connection[Any],
    job: Job,
    importer: type[Importer],
    which: Wanted,
    *,
    partial: bool = False,
    account: str,
    request_id: str | None = None,
) -> Job:
    """Have what a job wrote taken back, or some rows of it. Called in a transaction."""
    job = _asked(connection, job, "undo")
    require_possible(importer)
    if not undos.asks(connection, "is_to_undo", job.id):
        raise nothing_to_undo(job)
    require_keys(connection, job, importer)
    require_stamps(connection, job)
    if not one_fits(connection, job.id, which):
        raise none_fits()
    moved = jobs.move(connection, job, State.REVERTING)
    undos.begin(connection, job, which, partial=partial, account=account, request_id=request_id)
    return moved
