"""Logs: one JSON line for each event on standard error, or a readable one on a terminal.

No line holds a cell's value or a key: errors are told by code, type and place. What they say in words may quote a value
and stays with the job, for those who may see it.
"""

import logging
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TextIO

import psycopg
import structlog
from psycopg import Connection
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.stdlib import BoundLogger, ProcessorFormatter

from rowcall.engine.observe import Listener
from rowcall.model import State, Status
from rowcall.store import jobs
from rowcall.store.jobs import Job

_MANY_ERRORS = 0.10
_LONGEST = 500
_FRAMES = 8
_OTHERS = ("uvicorn", "procrastinate", "psycopg", "asyncio", "opentelemetry")
"""Libraries that tell of every step at level info; we hear their warnings, and all of it at debug."""
_TOLD_ALREADY = "Exception in ASGI application"
"""Uvicorn's word for what the request's own line says, with its id."""
Event = MutableMapping[str, Any]


def logger(name: str) -> BoundLogger:
    """A logger of ours. Until `start_logs`, it is one of the standard library as any other."""
    chain = [merge_contextvars, structlog.stdlib.add_log_level, ProcessorFormatter.wrap_for_formatter]
    return structlog.wrap_logger(
        logging.getLogger(name), processors=chain, wrapper_class=BoundLogger, cache_logger_on_first_use=True
    )


def start_logs(level: str) -> None:
    """Have all of this process' logs written to standard error, ours and those of libraries."""
    stream: TextIO = sys.stderr
    render = structlog.dev.ConsoleRenderer() if stream.isatty() else structlog.processors.JSONRenderer()
    handler = logging.StreamHandler(stream)
    handler.addFilter(lambda record: not str(record.msg).startswith(_TOLD_ALREADY))
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[merge_contextvars, structlog.stdlib.add_log_level, _first_line],
            processors=[
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.stdlib.add_logger_name,
                _where,
                ProcessorFormatter.remove_processors_meta,
                _tidy,
                render,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _OTHERS:
        logging.getLogger(name).setLevel(logging.NOTSET if level == "debug" else logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):  # which has a way of its own unless told
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


def _first_line(_: Any, __: str, event: Event) -> Event:
    """Of what libraries say, the first line: asyncio's further ones quote errors in full."""
    event["event"] = str(event["event"]).partition("\n")[0]
    return event


def _where(_: Any, __: str, event: Event) -> Event:
    """An exception by its type and place, without its words."""
    error: Any = event.pop("exc_info", None)
    if error is True:
        error = sys.exception()
    elif error and not isinstance(error, BaseException):  # as the standard library has it
        error = error[1]
    if isinstance(error, BaseException):
        event["exception"] = f"{type(error).__module__}.{type(error).__qualname__}"
        if error.__cause__:
            event["cause"] = f"{type(error.__cause__).__module__}.{type(error.__cause__).__qualname__}"
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        event["at"] = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    return event


def _tidy(_: Any, __: str, event: Event) -> Event:
    """Texts on one line and of bounded length, whoever sent them; what every line has comes first."""
    first = {name: event.pop(name) for name in ("timestamp", "level", "logger", "event")}
    return {name: _visible(value) if isinstance(value, str) else value for name, value in (first | dict(event)).items()}


def _visible(text: str) -> str:
    shown = text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


_log = logger("rowcall.work")


class WorkLog(Listener):
    """Tells of jobs: their ends always, all else at level debug; each line with the id of the request that made it."""

    def working(self, job: Job) -> AbstractContextManager[object]:
        return bound_contextvars(**_named(job))

    def moved(self, connection: Connection[Any], before: Job, after: Job, seconds: float) -> None:
        told: dict[str, Any] = {**_named(after), "from": before.state, "to": after.state}
        if not after.ended:
            _log.debug("job moved", **told, seconds=round(seconds, 3))
            return
        try:
            told |= _account(connection, after)
        except psycopg.Error as error:  # it is away again; the job has ended all the same
            told["account"] = type(error).__name__
        if after.last_error:
            told["code"] = after.last_error["code"]
        bad = after.state is State.FAILED or told.get("error_rate", 0) > _MANY_ERRORS
        (_log.warning if bad else _log.info)("job ended", **told)

    def committed(self, job: Job, rows: int, counts: Mapping[Status, int], seconds: float) -> None:
        told = {status.value: count for status, count in counts.items() if count}
        _log.debug("batch done", **_named(job), state=job.state, rows=rows, ms=round(1000 * seconds, 1), **told)


def _named(job: Job) -> dict[str, Any]:
    return {"job": job.number, "importer": job.importer, "request_id": job.request_id}


def _account(connection: Connection[Any], job: Job) -> dict[str, Any]:
    counts = jobs.counts_of(connection, job)
    duration = ((job.completed_at or job.created_at) - job.created_at).total_seconds()
    return {
        "rows": counts.done,
        **{status.value: getattr(counts, status.value) for status in Status},
        "error_rate": round(error_rate(counts), 4),
        "rows_per_sec": round(counts.done / duration) if duration else 0,
        "duration": round(duration, 3),
    }


def error_rate(counts: jobs.JobCounts) -> float:
    """The share of rows that failed."""
    return counts.failed / counts.done if counts.done else 0.0
