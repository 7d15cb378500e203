"""Traces, for those who collect them: a span for each request, and one for each phase of the job that it made.

They are sent where `OTEL_EXPORTER_OTLP_ENDPOINT` says, if the packages of `rowcall[otel]` are there. The
provider is our own, not the process' global one: nobody else's spans, which might hold values, go the same way.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rowcall.engine.observe import Listener
from rowcall.store.jobs import Job
from rowcall.telemetry.logs import logger

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_log = logger(__name__)


class Tracing(Listener):
    """Spans of requests and of jobs. A job's span belongs to the trace of the request that made the job."""

    def __init__(self, provider: "TracerProvider") -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("rowcall")

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Generator["Span"]:
        """Around a request; its sender may be part of a trace already."""
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract(dict(headers))
        about = {"http.request.method": method}
        with self._tracer.start_as_current_span(
            method, parent, SpanKind.SERVER, about, record_exception=False, set_status_on_exception=False
        ) as span:
            yield span

    @contextmanager
    def working(self, job: Job) -> Generator[None]:
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract({"traceparent": job.traceparent or ""})
        about = {"rowcall.job": job.number, "rowcall.importer": job.importer}
        with (
            self._tracer.start_as_current_span(
                "job", parent, SpanKind.CONSUMER, about, record_exception=False, set_status_on_exception=False
            ) as span,
            _failing(span),
        ):
            yield

    @contextmanager
    def phase(self, job: Job, name: str) -> Generator[None]:
        about = {"rowcall.job": job.number, "rowcall.state": job.state.value}
        with (
            self._tracer.start_as_current_span(
                f"job {name}", attributes=about, record_exception=False, set_status_on_exception=False
            ) as span,
            _failing(span),
        ):
            yield

    def stop(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


@contextmanager
def _failing(span: "Span") -> Generator[None]:
    """Mark a span whose work failed: by the error's type, for its words may quote a value."""
    from opentelemetry.trace import StatusCode

    try:
        yield
    except BaseException as error:
        span.set_attribute("error.type", type(error).__qualname__)
        span.set_status(StatusCode.ERROR)
        raise


def traceparent() -> str | None:
    """The current span, in the words of W3C's trace context; None where nothing is traced."""
    from opentelemetry import trace  # comes with FastAPI; its SDK does not

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def trace_id(span: "Span") -> str:
    """The id of a span's trace, as it is searched for."""
    return f"{span.get_span_context().trace_id:032x}"


def start_tracing(service: str, environment: Mapping[str, str] = os.environ) -> Tracing | None:
    """Traces of this process, if somebody collects them."""
    if not any(environment.get(name) for name in _ENDPOINTS):
        return None
    missing = [name for name in _NEEDED if not _is_there(name)]
    if missing:
        _log.warning("traces are not sent: install rowcall[otel]", missing=missing)
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = environment.get("OTEL_SERVICE_NAME") or service
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
