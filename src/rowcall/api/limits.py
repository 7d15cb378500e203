"""Limits: how often a key may ask, how often an address may come with a bad one, how large a body may be."""

import re
import time
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rowcall.api.problems import problem
from rowcall.model import Code

_STREAMED = re.compile(r"/v1/(imports(/[^/]+/rejects)?|uploads(/[^/]+)?)")
"""Where files come in, piece by piece, which have a limit of their own."""


class Buckets:
    """Token buckets: each starts full, a request takes one token, and they come back with time. For one thread."""

    def __init__(self, *, capacity: float, per_second: float, most: int = 10_000) -> None:
        self._capacity = capacity
        self._per_second = per_second
        self._most = most
        self._levels: OrderedDict[bytes | str, tuple[float, float]] = OrderedDict()

    def take(self, who: bytes | str) -> float:
        """Take a token: 0, or the seconds until there is one."""
        level, now = self._level(who)
        if level < 1:
            return max((1 - level) / self._per_second, 0.001)
        self._levels[who] = level - 1, now
        self._levels.move_to_end(who)
        if len(self._levels) > self._most:  # the one that was quiet for the longest time
            self._levels.popitem(last=False)
        return 0

    def wait(self, who: bytes | str) -> float:
        """The seconds until there is a token; none is taken."""
        level, _ = self._level(who)
        return 0 if level >= 1 else (1 - level) / self._per_second

    def _level(self, who: bytes | str) -> tuple[float, float]:
        now = time.monotonic()
        level, then = self._levels.get(who, (self._capacity, now))
        return min(self._capacity, level + (now - then) * self._per_second), now


def neighbourhood(address: str) -> str:
    """Who shares an address: of IPv6, where one machine has as many as it likes, the network."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    return str(int(ip) >> 64) if isinstance(ip, IPv6Address) and not ip.ipv4_mapped else str(ip)


class BodyLimit:
    """Refuses bodies whose end is told in two ways, and those larger than any request needs, but for files."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # a proxy before us may believe the other one, and take for a request what we take for a body
            answer = problem(400, Code.BAD_REQUEST, "Of Content-Length and Transfer-Encoding, one is expected.")
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
            return
        if scope["type"] != "http" or _STREAMED.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._most:
            await problem(413, Code.BODY_TOO_LARGE, self._told)(scope, receive, send)
            return
        left = self._most

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, self._told)
            return message

        await self._app(scope, counted, send)

    @property
    def _told(self) -> str:
        return f"The body is larger than {self._most:,} bytes (ROWCALL_MAX_BODY)."
