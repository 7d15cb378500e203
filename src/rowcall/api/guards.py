"""What stands before the routes: headers, origins, bodies, keys."""

import socket

import uvicorn
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from rowcall.api import tus
from rowcall.api.auth import Gate
from rowcall.api.headers import Headers
from rowcall.api.heads import Heads
from rowcall.api.limits import BodyLimit
from rowcall.api.service import Service
from rowcall.config import Settings

_SENT = (
    *("Authorization", "Content-Type", "Idempotency-Key", "If-Match", "Last-Event-ID", "Range", "X-Request-ID"),
    *tus.SENT,
)
_TOLD = (
    "Content-Disposition",
    "ETag",
    "Idempotent-Replayed",
    "Location",
    "Retry-After",
    "X-Request-ID",
    "X-Total-Count",
    *tus.TOLD,
)
_KEPT = 75
"""Seconds that a connection is kept for the next request. With uvicorn's own five, whoever asks every few seconds meets
a server that is just hanging up, more often the busier it is."""


def install(app: FastAPI, service: Service) -> None:
    """Put the guards before an application. The last one here is the first that a request meets."""
    settings = service.settings
    app.add_middleware(Heads)
    app.add_middleware(Gate, service=service)
    app.add_middleware(BodyLimit, most=settings.max_body)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=_SENT,
            expose_headers=_TOLD,
        )
    app.add_middleware(Headers, hsts=settings.hsts)


class Server(uvicorn.Server):
    """Has streams of events end when it is told to stop: they would have it wait, and be cut off at last."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if isinstance(self.config.app, FastAPI):
            self.config.app.state.watch.end()
        await super().shutdown(sockets)


def server_config(app: FastAPI, settings: Settings, *, grace: int | None = None) -> uvicorn.Config:
    """How the application is served: without a banner, and believing what proxies say only where told to."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=_KEPT,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )
