"""Many clients at once: most ask again and again how far a job is, some bring files."""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from serving.service import ORGANISATIONS, Service

EVERY = 1.0
"""Seconds between two questions of a client, as with `rowcall.Client`."""
_LOOKED_EVERY = 0.5
_ALONE = 5.0
"""Seconds that clients ask before files come."""
_BLOCK = 256 * 1024
_TIMEOUT = 60.0
_WELL = ("COMPLETED",)
_ENDED = (*_WELL, "COMPLETED_WITH_ERRORS", "FAILED", "CANCELLED", "PAUSED")


@dataclass(slots=True)
class Seen:
    """What clients went through, in seconds, and what the service took meanwhile."""

    reads: list[float] = field(default_factory=list[float])
    accepted: list[float] = field(default_factory=list[float])
    """From the last byte of a file to the answer."""
    completed: list[float] = field(default_factory=list[float])
    """From the first byte of a file to the end of its job."""
    errors: list[str] = field(default_factory=list[str])
    rss: list[int] = field(default_factory=list[int])
    sessions: list[int] = field(default_factory=list[int])
    seconds: float = 0


@dataclass(slots=True)
class Crowd:
    """Clients of one service."""

    service: Service
    seen: Seen = field(default_factory=Seen)
    jobs: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    """Of each organisation, for its clients to ask about."""
    _secure: ssl.SSLContext = field(default_factory=ssl.create_default_context)  # made once: it costs 20 ms

    async def run(self, first: Path, files: Sequence[Path], *, seconds: float) -> Seen:
        """All at it until every file is in, and for so many seconds at least. `first` is there before they come."""
        for place in range(ORGANISATIONS):
            await self.bring(first, place)
        self.seen = Seen(errors=self.seen.errors)
        began, over = time.monotonic(), asyncio.Event()
        others = [asyncio.create_task(self._watch(over))]
        others += [asyncio.create_task(self._ask(place, over)) for place in range(len(self.service.keys))]
        await asyncio.sleep(_ALONE)
        await asyncio.gather(*(self.bring(file, place) for place, file in enumerate(files)))
        await asyncio.sleep(max(0, seconds - (time.monotonic() - began)))
        over.set()
        await asyncio.gather(*others)
        self.seen.seconds = time.monotonic() - began
        return self.seen

    async def bring(self, file: Path, place: int) -> None:
        """Upload a file, and wait until its job has ended."""
        sent = began = time.perf_counter()

        async def blocks() -> AsyncGenerator[bytes]:
            nonlocal sent
            with file.open("rb") as content:
                while block := content.read(_BLOCK):
                    yield block
            sent = time.perf_counter()

        asked = {"importer": "users", "fileName": file.name}
        async with self._client(place) as client:
            answer = await self._answer(client, "POST", "/v1/imports", params=asked, content=blocks())
            if answer is None:
                return
            self.seen.accepted.append(time.perf_counter() - sent)
            job = answer["id"]
            self.jobs.setdefault(place % ORGANISATIONS, []).append(job)
            while (state := answer["state"] if answer else "") not in _ENDED:
                await asyncio.sleep(_LOOKED_EVERY)
                answer = await self._answer(client, "GET", f"/v1/imports/{job}")
            self.seen.completed.append(time.perf_counter() - began)
            if state not in _WELL:
                self.seen.errors.append(f"{file.name}: {state} {answer and answer.get('error')}")

    async def _ask(self, place: int, over: asyncio.Event) -> None:
        """Ask about the jobs of one's organisation in turn, at moments of one's own."""
        await asyncio.sleep(EVERY * place / len(self.service.keys))
        jobs, turn = self.jobs[place % ORGANISATIONS], place
        async with self._client(place) as client:
            while not over.is_set():
                turn, began = turn + 1, time.perf_counter()
                if await self._answer(client, "GET", f"/v1/imports/{jobs[turn % len(jobs)]}"):
                    self.seen.reads.append(time.perf_counter() - began)
                await asyncio.sleep(max(0, EVERY - (time.perf_counter() - began)))

    async def _answer(self, client: httpx.AsyncClient, method: str, path: str, **more: object) -> dict[str, str] | None:
        """What was answered; nothing if that is an error, which is noted."""
        try:
            answer = await client.request(method, path, **more)  # pyright: ignore[reportArgumentType] (passed on)
        except httpx.HTTPError as error:
            self.seen.errors.append(f"{method} {path}: {type(error).__name__}")
            return None
        if answer.is_success:
            return answer.json()
        self.seen.errors.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return None

    async def _watch(self, over: asyncio.Event) -> None:
        while not over.is_set():
            self.seen.rss.append(self.service.rss())
            self.seen.sessions.append(await asyncio.to_thread(self.service.sessions))
            await asyncio.sleep(_LOOKED_EVERY)

    def _client(self, place: int) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.service.keys[place]}", "Content-Type": "text/csv"}
        return httpx.AsyncClient(
            base_url=self.service.url, headers=headers, timeout=_TIMEOUT, verify=self._secure, trust_env=False
        )
