"""What the organisations do: story after story, each request repeated until it is answered."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from rowcall.model import ENDED

from .fleet import Fleet
from .inputs import ARTICLES, CHANGED, COMMENTS, USERS, Input
from .judge import Judge

PATIENCE = 240
"""Seconds within which every job has to end when the storm is over: under it, that depends on the machine."""
_OK = ("COMPLETED", "COMPLETED_WITH_ERRORS")
_TIMEOUT = httpx.Timeout(15, connect=2)


class Violated(Exception):
    """Something is not as it must be."""


@dataclass
class Tally:
    """What the organisations did."""

    jobs: Counter[str] = field(default_factory=Counter[str])
    """By the state they ended in."""
    stories: Counter[str] = field(default_factory=Counter[str])
    resumed: int = 0
    """After a full disk, by a person."""
    repeated: int = 0
    """Requests that were sent again for want of an answer."""
    violations: list[str] = field(default_factory=list[str])


@dataclass
class Organisation:
    """One that sends files, with a few programs at once."""

    name: str
    fleet: Fleet
    judge: Judge
    tally: Tally
    dice: random.Random
    over: threading.Event
    _key: str = ""
    _count: int = 0

    def run(self) -> None:
        """Tell stories until it is over."""
        stories = [self._life, self._twins, self._cancelled, self._again, self._damaged]
        while not self.over.is_set():
            story = self.dice.choices(stories, [5, 2, 3, 2, 1])[0]
            token = f"{self.dice.getrandbits(32):08x}"
            try:
                story(token)
                self.tally.stories[story.__name__.strip("_")] += 1
            except Violated as violated:
                self.tally.violations.append(f"{self.name} {token}: {violated}")
            except Exception as error:
                self.tally.violations.append(f"{self.name} {token}: {type(error).__name__}: {error}")

    # ------------------------------------------------------------------------------------------------- stories

    def _life(self, token: str) -> None:
        """Users, the same with changes, their articles, comments; now and then paused and resumed."""
        steps = {"users": USERS, "changed": CHANGED, "articles": ARTICLES, "comments": COMMENTS}
        for name, what in steps.items():
            job = self._send(what, token)
            if self.dice.random() < 0.3:
                self._pause(job)
            self._ends(job, _OK)
            self.judge.whole(job["id"], name, what.importer, token)
            if self.over.is_set():
                return

    def _twins(self, token: str) -> None:
        """The same keys from two uploads at once."""
        one, other = self._send(USERS, token), self._send(Input("twin.csv", "users", USERS.content + b"\n"), token)
        for job in (one, other):
            self._ends(job, _OK)
        self.judge.twins(one["id"], other["id"], token)

    def _cancelled(self, token: str) -> None:
        """An upload that somebody thinks better of."""
        job = self._send(USERS, token)
        self.over.wait(self.dice.uniform(0, 3))
        self._move(job, "cancel")
        self._ends(job, (*_OK, "CANCELLED"))
        self.judge.part(job["id"], "users", "users", token)

    def _again(self, token: str) -> None:
        """Articles whose authors come later: those that failed are tried again."""
        job = self._send(ARTICLES, token)
        self._ends(job, _OK)
        self._ends(self._send(USERS, token), _OK)
        self._ends(self._send(CHANGED, token), _OK)
        self._move(job, "reprocess", json={"statuses": ["failed"]})
        self._ends(job, _OK)
        self.judge.whole(job["id"], "tried again", "articles", token)

    def _damaged(self, token: str) -> None:
        """A stored file that is not what was stored when the job begins."""
        job = self._send(USERS, token, config='{"hold": true}')
        sha256 = job["file"]["sha256"]
        _damage(self.fleet.data / "files" / sha256[:2] / sha256, self.dice)
        self._move(job, "start")
        ended = self._ends(job, ("FAILED",))
        if ended["error"]["code"] != "FILE_CORRUPT" or ended["counts"]["rows"]:
            raise Violated(f"{job['number']} had a damaged file and says {ended['error']}, {ended['counts']}")

    # ---------------------------------------------------------------------------------------- requests

    def _send(self, what: Input, token: str, **fields: str) -> dict[str, Any]:
        """A new job. Now and then the same request is sent twice at once: it is one job all the same."""
        self._count += 1
        key = f"{self.name}-{token}-{self._count}"
        files = {"file": (what.name, what.of(token))}
        data = {"importer": what.importer, **fields}

        def post() -> dict[str, Any]:
            headers = {"Idempotency-Key": key}
            return self._ask("POST", "/v1/imports", {200, 202}, files=files, data=data, headers=headers)

        if self.dice.random() < 0.2:
            with ThreadPoolExecutor(2) as pool:
                answers = [future.result() for future in [pool.submit(post) for _ in range(2)]]
            if answers[0]["id"] != answers[1]["id"]:
                raise Violated(f"key {key} made {answers[0]['number']} and {answers[1]['number']}")
            return answers[0]
        return post()

    def _pause(self, job: dict[str, Any]) -> None:
        self.over.wait(self.dice.uniform(0, 2))
        if self._move(job, "pause"):
            self._until(job, lambda now: now["state"] == "PAUSED" or now["state"] in ENDED)
            self.over.wait(self.dice.uniform(0, 2))
            self._move(job, "resume")

    def _move(self, job: dict[str, Any], move: str, **more: Any) -> bool:
        """Whether the move was taken. One that isn't possible any more is not, or was it before its answer was lost."""
        answer = self._ask("POST", f"/v1/imports/{job['id']}/{move}", {202, 400, 409}, **more)
        return "code" not in answer

    def _ends(self, job: dict[str, Any], states: tuple[str, ...]) -> dict[str, Any]:
        """The job when it has ended, by itself."""
        ended = self._until(job, lambda now: now["state"] in ENDED)
        self.tally.jobs[ended["state"]] += 1
        if ended["state"] not in states:
            raise Violated(f"{job['number']} ended {ended['state']}: {ended['error']}")
        self.judge.verify(ended["id"])
        return ended

    def _until(self, job: dict[str, Any], holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        patience = _Patience(self.over)
        while not holds(now := self._ask("GET", f"/v1/imports/{job['id']}", {200})):
            if patience.has_ended():
                raise Violated(f"{job['number']} is {now['state']} after {PATIENCE} s: {now['error']}")
            if now["state"] == "PAUSED" and now["error"]:
                if now["error"]["code"] != "DATABASE_FULL":
                    raise Violated(f"{job['number']} paused by itself: {now['error']}")
                self.tally.resumed += self._move(job, "resume")
            time.sleep(0.25)
        return now

    def _ask(self, method: str, path: str, expected: set[int], **more: Any) -> dict[str, Any]:
        """The answer to a request, sent until there is one, to one API or the other."""
        patience = _Patience(self.over)
        headers = {"Authorization": f"Bearer {self.fleet.keys[self.name]}", **more.pop("headers", {})}
        while True:
            said = "no answer"
            try:
                answer = httpx.request(
                    method, self.dice.choice(self.fleet.addresses) + path, headers=headers, timeout=_TIMEOUT, **more
                )
                said = f"{answer.status_code} {answer.text[:300]}"
                if answer.status_code in expected:
                    return answer.json()
                if answer.status_code < 500:
                    raise Violated(f"{method} {path} was answered {said}")
            except httpx.TransportError as error:
                said = repr(error)
            if patience.has_ended():
                raise Violated(f"{method} {path} was not answered within {PATIENCE} s, last with {said}")
            self.tally.repeated += 1
            time.sleep(0.3)


class _Patience:
    """Lasts as long as the storm, and a while longer."""

    def __init__(self, over: threading.Event) -> None:
        self._over, self._deadline = over, time.monotonic() + PATIENCE

    def has_ended(self) -> bool:
        if not self._over.is_set():
            self._deadline = time.monotonic() + PATIENCE
        return time.monotonic() > self._deadline


def _damage(file: Path, dice: random.Random) -> None:
    content = bytearray(file.read_bytes())
    match dice.randrange(3):
        case 0:
            file.unlink()
        case 1:
            file.write_bytes(content[:-1])
        case _:
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
