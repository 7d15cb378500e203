"""An import that a server works on: the file goes there, and it is told here how it goes."""

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NoReturn

from rowcall.cli.conversation import answered, is_asked, waits
from rowcall.cli.ended import SHOWN, STOPPED, End, failing, tell_end, waits_for_submit, way_on
from rowcall.cli.progress import job_progress
from rowcall.client import Client, ImportConfig, Job, View
from rowcall.errors import Final, Retryable, RowcallError, ServerUnavailable
from rowcall.model import Code, Progress, State, Status
from rowcall.sources.place import is_url

_PHASES: dict[str, str] = {State.UPLOADED: "reading", State.COLUMN_MAPPING: "checking", State.VALIDATING: "checking"}


def import_there(client: Client, file: str, into: str, config: ImportConfig, *, as_json: bool) -> NoReturn:
    """Bring a file to a server, and wait until it is worked off."""
    with client:
        with failing(as_json=as_json):
            job = _begun(client, file, into, config, as_json=as_json)
        _follow(client, job, as_json=as_json)


def resume_there(client: Client, name: str, *, as_json: bool) -> NoReturn:
    """Have a server go on with a job, and wait until it is worked off."""
    with client:
        with failing(as_json=as_json):
            job = client.job(name)
            move = _way_on(client, job, as_json=as_json)
            job = move(job) if move else job
        _follow(client, job, as_json=as_json)


def submit_there(client: Client, name: str, plan: str | None, *, as_json: bool) -> NoReturn:
    """Have a server commit a job that was previewed, and wait until it is worked off."""
    with client:
        with failing(as_json=as_json):
            job = client.submit(name, plan)
        _follow(client, job, as_json=as_json)


def _begun(client: Client, file: str, into: str, config: ImportConfig, *, as_json: bool) -> Job:
    if is_url(file):
        return client.import_url(file, into, config)

    def sent(done: int, total: int) -> None:
        tell(Progress(phase="uploading", rows=0, done=done, total=total))

    source, name = (sys.stdin.buffer, "standard input") if file == "-" else (file, None)
    try:
        with _interruptible(), job_progress(quiet=as_json) as tell:
            return client.import_file(source, into, config, name=name, progress=sent)
    except KeyboardInterrupt:
        hint = f"Whether all of it had come is told by: rowcall jobs --server {client.url}"
        raise Retryable(Code.INTERRUPTED, "The upload was interrupted.", hint=hint) from None


def _way_on(client: Client, job: Job, *, as_json: bool) -> Callable[[Job], Job] | None:
    """What takes the job on; None for one that goes on by itself, or when somebody is asked."""
    if is_asked(job.state, job.allowed, as_json=as_json):
        return None
    for name, move in (("resume", client.resume), ("start", client.start)):
        if name in job.allowed:
            return move
    if job.state in STOPPED:
        hint = way_on(job.state, job.number, client.url)
        raise Final(Code.WRONG_STATE, f"Job {job.number} is {job.state}.", hint=hint)
    if job.superseded_by:
        told = f"Job {job.number} was superseded by job {job.superseded_by.number}."
        raise Final(Code.SUPERSEDED, told, hint=f"Go on with job {job.superseded_by.number}.")
    if "submit" in job.allowed:
        raise waits_for_submit(job.number, client.url)
    if job.rests and not waits(job.state, job.allowed):
        what = "was a dry run" if job.dry_run and job.state == State.VALIDATED else f"is {job.state}"
        told = f"Job {job.number} {what}: there is nothing to go on with."
        raise Final(Code.WRONG_STATE, told, hint="Import the file again for another job.")
    return None


def _follow(client: Client, job: Job, *, as_json: bool) -> NoReturn:
    """Wait for the job, and tell how it ended."""
    seen = [job]

    def look(now: Job) -> None:
        seen.append(now)
        tell(_progress(now))

    failure: RowcallError | None = None
    try:
        goes_on = True
        while goes_on:
            with _interruptible(), job_progress(quiet=as_json) as tell:
                job = client.wait(job, progress=look)
            goes_on = answered(client, job, as_json=as_json)
        end = _look(client, job)
    except KeyboardInterrupt:
        end, failure = _as_seen(seen[-1]), _left_alone(client, job)
    except ServerUnavailable as error:
        end, failure = _as_seen(seen[-1]), _out_of_sight(client, job, error)
    if job.state == State.FAILED and job.error:
        failure = job.error.failure()
    tell_end(end, failure, as_json=as_json)


def _progress(job: Job) -> Progress:
    counts = job.counts
    phase = _PHASES.get(job.state, "writing")
    return Progress(phase=phase, rows=counts.rows, done=counts.done, total=counts.rows, failed=counts.failed)


def _look(client: Client, job: Job) -> End:
    receipt = client.receipt(job)
    failed = client.items(job, View(statuses=(Status.FAILED,)), most=SHOWN) if job.counts.failed else ()
    return End(
        job=job,
        mode=receipt.mode,
        unused=receipt.unused_columns,
        failed=list(failed),
        milliseconds=receipt.duration_ms,
        fingerprint=client.fingerprint(job) if job.state in STOPPED else None,
        server=client.url,
    )


def _as_seen(job: Job) -> End:
    return End(job=job, unused=[], failed=[], milliseconds=0)


def _left_alone(client: Client, job: Job) -> Retryable:
    told = f"Job {job.number} goes on at {client.url}; only the waiting for it has ended."
    return Retryable(Code.INTERRUPTED, told, hint=_ways(client, job))


def _out_of_sight(client: Client, job: Job, error: ServerUnavailable) -> Retryable:
    """The job is in good hands, though nobody can say how far it is."""
    told = f"{error.message} Job {job.number} goes on there."
    return Retryable(error.code, told, hint=_ways(client, job))


def _ways(client: Client, job: Job) -> str:
    ways = {"receipt": "Look at it", "resume": "Wait for it again", "cancel": "Stop it"}
    return "\n".join(f"{what}: rowcall {how} {job.number} --server {client.url}" for how, what in ways.items())


@contextmanager
def _interruptible() -> Generator[None]:
    """Ctrl-C and SIGTERM are exceptions. Polars has a handler of its own, which raises one twice."""

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
