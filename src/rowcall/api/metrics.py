"""`/metrics`, for Prometheus: what this process did, and what the database knows of all."""

import hmac

import psycopg
from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.exceptions import HTTPException

from rowcall.api.auth import is_local
from rowcall.api.openapi import refusals
from rowcall.api.probes import Probes
from rowcall.api.service import Service, TheService
from rowcall.model import Code
from rowcall.store.operations import standing_of
from rowcall.telemetry.metrics import DatabaseMetrics, HttpMetrics, PoolMetrics, WorkMetrics, process_metrics

router = APIRouter(tags=["operations"])
_FRESH = 5.0


class ServiceMetrics:
    """The metrics of a service."""

    def __init__(self, service: Service) -> None:
        self.registry = CollectorRegistry()
        self.http = HttpMetrics(self.registry)
        self.work = WorkMetrics(self.registry)
        self.database = DatabaseMetrics(self.registry)
        PoolMetrics(self.registry, service.pool)
        process_metrics(self.registry)


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {
            "description": "The metrics; as OpenMetrics if that is accepted.",
            "content": {
                kind: {"schema": {"type": "string"}, "example": "rowcall_workers 2.0\n"}
                for kind in ("text/plain", "application/openmetrics-text")
            },
        },
        **refusals(Code.NO_SUCH_PLACE, invalid=False),
    },
)
async def read_metrics(request: Request, at: TheService) -> Response:
    """Metrics in Prometheus' format, for whoever shows the token or, without one, for this machine.

    They count the jobs of all organisations. What the database knows is missing while it doesn't answer.
    """
    if not _may_read(request, at.settings.metrics_token):
        raise HTTPException(404)
    metrics: ServiceMetrics = request.app.state.metrics
    probes: Probes = request.app.state.probes
    try:
        metrics.database.standing = await probes.database.ask("standing", standing_of, fresh=_FRESH)
    except (psycopg.Error, TimeoutError):
        metrics.database.standing = None
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(metrics.registry), media_type=media_type)


def _may_read(request: Request, token: str | None) -> bool:
    if token is not None:
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(shown.encode(), token.encode())
    return is_local(request, ())
