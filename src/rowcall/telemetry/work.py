"""A worker process tells of its work: logs, its own `/metrics`, traces."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server

from rowcall.engine.observe import listening
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.telemetry.logs import WorkLog, logger, start_logs
from rowcall.telemetry.metrics import WorkMetrics, process_metrics
from rowcall.telemetry.tracing import start_tracing

_log = logger(__name__)


@contextmanager
def telling(level: str, *, host: str, port: int | None) -> Generator[None]:
    """Have this process told of for as long as it works; with a port, its metrics are served there."""
    start_logs(level)
    registry = CollectorRegistry()
    process_metrics(registry)
    tracing = start_tracing("rowcall-worker")
    listeners = [WorkLog(), WorkMetrics(registry), *([tracing] if tracing else [])]
    with _served(registry, host, port), listening(*listeners):
        _log.info("worker started", pid=os.getpid(), metrics_port=port)
        try:
            yield
        finally:
            _log.info("worker stopped", pid=os.getpid())
            if tracing:
                tracing.stop()


@contextmanager
def _served(registry: CollectorRegistry, host: str, port: int | None) -> Generator[None]:
    if port is None:
        yield
        return
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        told = f"{host}:{port} can't be listened on: {os.strerror(error.errno or 0)}."
        raise Final(Code.PORT_TAKEN, told, hint="Choose another with --metrics-port.") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
