"""How a job goes, told as it happens: server-sent events, and the same by asking.

All streams of a process share one look at the database each second. Events of kind `state` are kept and numbered:
whoever comes back with `Last-Event-ID` gets those that were missed. An event of kind `progress` is the job as it is.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

import psycopg
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from psycopg_pool import PoolTimeout
from pydantic import BaseModel
from starlette.types import Message, Receive, Scope, Send

from rowcall.api.models.jobs import EventAnswer, EventsAnswer, JobAnswer
from rowcall.api.openapi import refusals
from rowcall.api.service import Caller, Service, TheCaller, TheService
from rowcall.engine.documents import job_document
from rowcall.errors import Final, RowcallError
from rowcall.model import ENDED, Code, State
from rowcall.store import jobs, results

router = APIRouter(prefix="/v1/imports/{job_id}/events", tags=["imports"])
_EVERY = 1.0
_SIGN_OF_LIFE = 15.0
_STILL_WELCOME = 30.0
"""Seconds after which it is asked again whether the stream's key is good."""
_STALLED = 30.0
"""Seconds after which a client that takes nothing is given up."""
_MOST_STREAMS = 50
"""Of one account at a time, in one process."""
_KIND = "text/event-stream"
_STREAM = """\
retry: 2000

event: state
id: 7
data: {"id":7,"before":"PROCESSING","after":"COMPLETED","at":"2026-11-16T09:00:04Z"}

event: progress
id: 7
data: {"id":"019a8c2e-5d0b-7c3a-9c41-2b7f6a1e0d11","state":"COMPLETED"}
"""
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "What happened, and the job as it is. In a stream, the `data` of `state` is an `EventAnswer`, "
        "that of `progress` a whole `JobAnswer`; lines that begin with a colon are signs of life.",
        "content": {_KIND: {"schema": {"type": "string"}, "example": _STREAM}},
    },
    204: {"description": "The job has ended, and all of it was seen: don't come back."},
    **refusals(Code.JOB_NOT_FOUND),
}


@dataclass(frozen=True, slots=True)
class _Look:
    """A job as it was seen last."""

    text: str = field(compare=False)
    happened: str
    """The same without the clock."""
    last_event: int
    ended: bool


@dataclass(slots=True)
class Watch:
    """The jobs that somebody looks at, seen once a second for all."""

    service: Service
    _seen: dict[UUID, _Look] = field(default_factory=dict[UUID, _Look])
    _watched: Counter[UUID] = field(default_factory=Counter[UUID])
    _streams: Counter[tuple[UUID, str]] = field(default_factory=Counter[tuple[UUID, str]])
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _task: "asyncio.Task[None] | None" = None
    over: bool = False
    """The service is being stopped: streams end, and who reads them comes again."""

    @contextmanager
    def watching(self, caller: Caller, job_id: UUID) -> Generator[None]:
        """Have the job looked at meanwhile, unless somebody has too many streams already."""
        whose = caller.organisation, caller.account
        if self._streams[whose] >= _MOST_STREAMS:
            told = f"There are {_MOST_STREAMS} streams of yours open already."
            raise Final(Code.TOO_MANY_REQUESTS, told, hint="Close some, or ask for the job now and then.")
        self._streams[whose] += 1
        self._watched[job_id] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_always())
        try:
            yield
        finally:
            self._streams -= Counter({whose: 1})
            self._watched -= Counter({job_id: 1})
            if not self._watched[job_id]:
                self._seen.pop(job_id, None)

    def end(self) -> None:
        """Have all streams end."""
        self.over = True
        self._news.set()

    async def next(self, job_id: UUID, before: _Look | None) -> _Look | None:
        """The job when it is no longer as before; None when nothing happened for a while."""
        deadline = time.monotonic() + _SIGN_OF_LIFE
        while (now := self._seen.get(job_id)) is None or now == before:
            if self.over:
                return None
            news, left = self._news, deadline - time.monotonic()
            try:
                await asyncio.wait_for(news.wait(), left)
            except TimeoutError:
                return None
        return now

    async def _look_always(self) -> None:
        while self._watched:
            with suppress(psycopg.Error, PoolTimeout, RowcallError):  # it is looked again
                self._seen = await asyncio.to_thread(self._look, list(self._watched))
                self._news, news = asyncio.Event(), self._news
                news.set()
            await asyncio.sleep(_EVERY)

    def _look(self, ids: list[UUID]) -> dict[UUID, _Look]:
        with self.service.pool.connection() as connection:
            found = jobs.select_jobs(connection, "jobs_by_id", {"ids": ids})
            counted = results.counts_of_jobs(connection, found)
            last = results.last_events(connection, ids)
        return {job.id: _seen(_answer(self.service, job, counted[job.id]), last[job.id], job.state) for job in found}


def _seen(answer: JobAnswer, last_event: int, state: State) -> _Look:
    return _Look(_text(answer), answer.model_dump_json(exclude={"progress"}), last_event, state in ENDED)


def _text(answer: BaseModel) -> str:
    return answer.model_dump_json(by_alias=True)


def _answer(at: Service, job: jobs.Job, counts: jobs.JobCounts) -> JobAnswer:
    return JobAnswer.model_validate(job_document(job, counts, at.registry.find(job.importer)))


@router.get("", response_model=EventsAnswer, responses=_ANSWERS)
async def read_events(
    request: Request,
    job_id: UUID,
    at: TheService,
    caller: TheCaller,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", description="The last event that was seen.")
    ] = None,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="The same, for those who ask.")] = 0,
) -> Response:
    """How a job goes: as server-sent events if `text/event-stream` is accepted, else what happened so far.

    A stream ends with its job; coming back to one that has ended and was seen to its end is answered with 204.
    """
    seen = int(last_event_id) if last_event_id and last_event_id.isdecimal() and len(last_event_id) < 19 else after
    answer = await asyncio.to_thread(_events, at, caller, job_id, seen)
    if _KIND not in accept:
        return Response(_text(answer), media_type="application/json")
    if answer.job.state in ENDED and last_event_id and not answer.items:
        return Response(status_code=204)
    return _EventStream(at, request.app.state.watch, caller, job_id, seen)


class _EventStream(StreamingResponse):
    """A stream, which has a place among its caller's from before its first byte to its end."""

    def __init__(self, at: Service, watch: Watch, caller: Caller, job_id: UUID, seen: int) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(_stream(at, watch, caller, job_id, seen), media_type=_KIND, headers=headers)
        self._watching = watch.watching(caller, job_id)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            async with asyncio.timeout(_STALLED):
                await send(message)

        with self._watching, suppress(TimeoutError):  # left without an end, it is cut off by the server
            await super().__call__(scope, receive, sent)


def _events(at: Service, caller: Caller, job_id: UUID, after: int) -> EventsAnswer:
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
        events = results.events_of(connection, job.id, after)
        answer = _answer(at, job, jobs.counts_of(connection, job))
    return EventsAnswer(items=[EventAnswer.model_validate(event) for event in events], job=answer)


async def _stream(at: Service, watch: Watch, caller: Caller, job_id: UUID, seen: int) -> AsyncGenerator[str]:
    yield "retry: 2000\n\n"
    look: _Look | None = None
    asked = time.monotonic()
    while not watch.over and (look is None or not look.ended):
        now = await watch.next(job_id, look)
        if time.monotonic() - asked > _STILL_WELCOME:
            if not await asyncio.to_thread(at.still_welcome, caller):
                return
            asked = time.monotonic()
        if now is None:
            yield ": still here\n\n"
            continue
        if now.last_event > seen:
            for event in (await asyncio.to_thread(_events, at, caller, job_id, seen)).items:
                yield _message("state", event.id, _text(event))
                seen = event.id
        yield _message("progress", seen, now.text)
        look = now


def _message(kind: str, number: int, text: str) -> str:
    return f"event: {kind}\nid: {number}\ndata: {text}\n\n"
