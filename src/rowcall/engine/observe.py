"""Tells whoever listens how the work goes: logs, metrics and traces in a service, nobody in a command."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import Connection

from rowcall.formats import WriteFormat
from rowcall.model import ExportState, State, Status
from rowcall.store.jobs import Job

_PHASES = {
    State.UPLOADED: "ingest",
    State.COLUMN_MAPPING: "prepare",
    State.CELL_MAPPING: "prepare",
    State.FINGERPRINT_CHECK: "prepare",
    State.VALIDATING: "check",
    State.PROCESSING: "commit",
    State.REVERTING: "undo",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportEnd:
    """How an export ended, written to a file in the background or streamed to whoever asked."""

    format: WriteFormat
    way: Literal["file", "stream"]
    state: ExportState
    rows: int
    bytes: int
    seconds: float


class Listener:
    """What can be heard. Override what is of interest; it must be quick, and may be called by several threads."""

    def working(self, job: Job) -> AbstractContextManager[object]:
        """Around the work of one process on a job."""
        del job
        return nullcontext()

    def phase(self, job: Job, name: str) -> AbstractContextManager[object]:
        """Around a step of that work."""
        del job, name
        return nullcontext()

    def moved(self, connection: Connection[Any], before: Job, after: Job, seconds: float) -> None:
        """A job has moved, durably, by a step that took so long. The connection is free to be asked."""

    def committed(self, job: Job, rows: int, counts: Mapping[Status, int], seconds: float) -> None:
        """A batch was checked or committed."""

    def stored(self, seconds: float) -> None:
        """Rows of a file were stored."""

    def exported(self, end: ExportEnd) -> None:
        """An export ended."""


_listeners: list[Listener] = []


@contextmanager
def listening(*listeners: Listener) -> Generator[None]:
    """Have these hear of all work of this process."""
    _listeners.extend(listeners)
    try:
        yield
    finally:
        for listener in listeners:
            _listeners.remove(listener)


@contextmanager
def working(job: Job) -> Generator[None]:
    """Around the work of this process on a job."""
    with ExitStack() as stack:
        for listener in _listeners:
            stack.enter_context(listener.working(job))
        yield


def observed(connection: Connection[Any], job: Job, step: Callable[[], Job]) -> Job:
    """Take a step that moves a job; the job as it is then."""
    began = time.monotonic()
    with ExitStack() as stack:
        for listener in _listeners:
            stack.enter_context(listener.phase(job, _PHASES.get(job.state, job.state.lower())))
        after = step()
    moved(connection, job, after, time.monotonic() - began)
    return after


def moved(connection: Connection[Any], before: Job, after: Job, seconds: float = 0.0) -> None:
    """Tell that a job has moved. Called when that is committed."""
    for listener in _listeners:
        listener.moved(connection, before, after, seconds)


def committed(job: Job, rows: int, counts: Mapping[Status, int], seconds: float) -> None:
    """Tell of a batch."""
    for listener in _listeners:
        listener.committed(job, rows, counts, seconds)


def stored(seconds: float) -> None:
    """Tell of rows that were stored."""
    for listener in _listeners:
        listener.stored(seconds)


def exported(end: ExportEnd) -> None:
    """Tell of an export's end."""
    for listener in _listeners:
        listener.exported(end)
