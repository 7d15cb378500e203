"""Waiting for a job: told by the server as it happens, or asked for where that doesn't come through."""

import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import msgspec

from rowcall.client.answers import Job
from rowcall.client.asking import Asking
from rowcall.decoding import from_json
from rowcall.errors import RowcallError, ServerUnavailable
from rowcall.model import Code

_ASKED_EVERY = 1.0
_SIGN_OF_LIFE = 40.0
"""Seconds after which a stream without a word is given up; the server says something every 15."""
_SHORT_STREAMS = 3
"""Streams that end at once before no more are tried: some proxies let none through."""
_KIND = "text/event-stream"


def looks_at(asking: Asking, path: str, deadline: float) -> Iterator[Job]:
    """A job as it is, again and again, whenever something has happened to it."""
    last_event, short = "", 0
    while True:
        yield asking.ask(Job, "GET", path)
        began = time.monotonic()
        if short < _SHORT_STREAMS:
            for seen, job in _told(asking, f"{path}/events", last_event, deadline):
                last_event = seen
                yield job
        took = time.monotonic() - began
        short += took < _ASKED_EVERY
        time.sleep(max(0, min(_ASKED_EVERY - took, deadline - time.monotonic())))


def _told(asking: Asking, path: str, last_event: str, deadline: float) -> Iterator[tuple[str, Job]]:
    """What a stream of events tells, for as long as it lasts."""
    headers = {"Accept": _KIND, **({"Last-Event-ID": last_event} if last_event else {})}
    quiet = max(0.1, min(_SIGN_OF_LIFE, deadline - time.monotonic()))
    with (
        suppress(httpx.TransportError, RowcallError, msgspec.DecodeError),  # whatever it is, the job is asked for next
        asking.opened("GET", path, headers=headers, timeout=httpx.Timeout(10, read=quiet)) as response,
    ):
        kind = ""
        for line in response.iter_lines():
            name, _, value = line.partition(":")
            if name == "event":
                kind = value.strip()
            elif name == "id":
                last_event = value.strip()
            elif name == "data" and kind == "progress":
                yield last_event, from_json(value, Job)
            if time.monotonic() > deadline:
                return


def not_done_yet(what: str, seconds: float) -> ServerUnavailable:
    """Nobody waits any longer."""
    told = f"{what} is not done after {seconds:g} s; it goes on."
    return ServerUnavailable(Code.NOT_DONE_YET, told, hint="Wait again.")
