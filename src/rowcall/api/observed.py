"""Every request is counted, timed, logged and, if somebody collects traces, traced."""

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from rowcall.api.problems import problem
from rowcall.model import Code
from rowcall.telemetry.logs import logger
from rowcall.telemetry.metrics import HttpMetrics
from rowcall.telemetry.tracing import Tracing, trace_id

_OPERATIONS = ("/health/live", "/health/ready", "/metrics")
"""Asked every few seconds: their lines are for level debug."""
_GONE = 499
"""The status of a request whose sender left before it was answered, as nginx has it."""
_log = logger("rowcall.http")


@dataclass(slots=True)
class _Exchange:
    """A request and its answer, as they pass by."""

    status: int = _GONE
    received: int = 0
    sent: int = 0


class Observed:
    """The middleware. It stands inside the one that names requests."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics, tracing: Tracing | None) -> None:
        self._app, self._metrics, self._tracing = app, metrics, tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, seen = time.perf_counter(), _Exchange()
        with ExitStack() as stack:
            span = self._tracing and stack.enter_context(self._tracing.request(scope["method"], Headers(scope=scope)))
            known = {"request_id": scope["state"]["request_id"], **({"trace_id": trace_id(span)} if span else {})}
            stack.enter_context(bound_contextvars(**known))
            try:
                await self._app(scope, _counting(receive, seen), _noting(send, seen))
            except asyncio.CancelledError:
                await _stopping(scope, receive, _noting(send, seen), seen)
                raise
            except Exception:
                seen.status = 500
                _log.exception("request failed", method=scope["method"], route=_route(scope))
                raise
            finally:
                if span:
                    span.update_name(f"{scope['method']} {_route(scope)}")
                    span.set_attributes({"http.route": _route(scope), "http.response.status_code": seen.status})
                self._tell(scope, seen, time.perf_counter() - began)

    def _tell(self, scope: Scope, seen: _Exchange, seconds: float) -> None:
        route, method = _route(scope), scope["method"]
        self._metrics.answered(route, method, seen.status, seconds)
        say = _log.debug if route in _OPERATIONS else _log.warning if seen.status >= 500 else _log.info
        sizes = {"bytes_in": seen.received, "bytes_out": seen.sent}
        say("request", method=method, route=route, status=seen.status, ms=round(1000 * seconds, 1), **sizes)


async def _stopping(scope: Scope, receive: Receive, send: Send, seen: _Exchange) -> None:
    """Tell a request that the service can't wait for; if its answer has begun, that is cut off."""
    if seen.status == _GONE:
        told = problem(503, Code.SERVICE_STOPPING, "The service is being stopped.", hint="Send it once more.")
        told.headers["Connection"] = "close"
        await told(scope, receive, send)


def _route(scope: Scope) -> str:
    """The template of the route, never the path itself: that holds ids, and whatever somebody tries."""
    route: Any = scope.get("route")
    return str(getattr(route, "path", "unmatched"))


def _counting(receive: Receive, seen: _Exchange) -> Receive:
    async def counted() -> Message:
        message = await receive()
        seen.received += len(message.get("body", b""))
        return message

    return counted


def _noting(send: Send, seen: _Exchange) -> Send:
    async def noted(message: Message) -> None:
        if message["type"] == "http.response.start":
            seen.status = message["status"]
        seen.sent += len(message.get("body", b""))
        await send(message)

    return noted
