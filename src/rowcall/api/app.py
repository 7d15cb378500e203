"""The HTTP application."""

import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache

from anyio import to_thread
from fastapi import APIRouter, Depends, FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rowcall.api import (
    audit,
    columns,
    edits,
    events,
    exports,
    fingerprint,
    guards,
    health,
    importers,
    imports,
    items,
    metrics,
    moves,
    openapi,
    preview,
    problems,
    rejects,
    templates,
    tus,
    undo,
    value_decisions,
    values,
    webhooks,
)
from rowcall.api.models.configs import ImportConfig
from rowcall.api.observed import Observed
from rowcall.api.parameters import refuse_others
from rowcall.api.places import Places, refuse_misplaced
from rowcall.api.probes import Probes
from rowcall.api.service import Service
from rowcall.api.urls import UrlImport
from rowcall.engine.observe import listening
from rowcall.telemetry.logs import WorkLog
from rowcall.telemetry.tracing import Tracing

_THREADS = 6
"""That answer requests. They take turns in one interpreter: each more makes all of them wait longer for theirs."""
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}")
_PARTS = (
    imports,
    items,
    edits,
    rejects,
    preview,
    moves,
    fingerprint,
    undo,
    columns,
    templates,
    values,
    value_decisions,
    events,
    tus,
    exports,
    importers,
    audit,
    webhooks,
)
_WATCHED = (health, metrics)
"""Whoever asks these may add what keeps caches away."""


def create_app(service: Service, *, tracing: Tracing | None = None) -> FastAPI:
    """The application of a service whose database is open."""
    measured, probes = metrics.ServiceMetrics(service), Probes(str(service.pool.conninfo))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        service.pool.open()
        to_thread.current_default_thread_limiter().total_tokens = _THREADS
        try:
            with listening(WorkLog(), measured.work):
                yield
        finally:
            probes.close()
            service.pool.close()

    app = FastAPI(
        title="Rowcall",
        version="1",
        description=openapi.DESCRIPTION,
        license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        openapi_tags=[{"name": name, "description": told} for name, told in openapi.TAGS.items()],
        generate_unique_id_function=openapi.operation_id,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # the redirect would name whatever host the request says
        routes=_routes(),
    )
    app.state.service = service
    app.state.watch = events.Watch(service)
    app.state.metrics, app.state.probes = measured, probes
    guards.install(app, service)
    app.add_middleware(Observed, metrics=measured.http, tracing=tracing)
    app.add_middleware(_RequestIds)
    app.state.places = Places.of(route for part in (*_PARTS, *_WATCHED) for route in part.router.routes)
    problems.install(app)
    openapi.install(app, ImportConfig, UrlImport)
    return app


@cache
def _routes() -> list[BaseRoute]:
    """All that is served. What its parameters are is found out at the first request, once for a process."""
    router = APIRouter(generate_unique_id_function=openapi.operation_id)
    for part in _PARTS:
        router.include_router(part.router, dependencies=[Depends(refuse_misplaced), Depends(refuse_others)])
    for part in _WATCHED:
        router.include_router(part.router)
    return router.routes


class _RequestIds:
    """Names each request, as its sender did if that is a decent name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        name = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = name

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", name.encode())]
            await send(message)

        await self._app(scope, receive, named)
