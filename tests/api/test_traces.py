"""A request and the work on its job are one trace."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.engine.observe import listening
from rowcall.telemetry.tracing import Tracing, start_tracing

from .conftest import Site, served
from .test_imports import USERS

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_a_job_belongs_to_the_trace_of_its_request(site: Site) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(provider)
    service = Service(site.worker.settings, site.worker.registry, site.database.pool("serve", 2))
    with served(create_app(service, tracing=tracing)) as url:
        headers = {"content-type": "text/csv", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        job = httpx.post(f"{url}/v1/imports?importer=users", content=USERS, headers=headers).json()
    with listening(tracing):
        site.worker.advance(job["id"])
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert list(spans) == ["POST /v1/imports", "job ingest", "job prepare", "job commit", "job"]
    assert {f"{_context(span).trace_id:032x}" for span in spans.values()} == {TRACE}
    assert _parent(spans["job"]) == _id(spans["POST /v1/imports"])
    assert {_parent(span) for name, span in spans.items() if name.startswith("job ")} == {_id(spans["job"])}
    assert (spans["POST /v1/imports"].attributes or {})["http.response.status_code"] == 202
    assert "example.org" not in str([span.attributes for span in spans.values()])


def _context(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def _id(span: ReadableSpan) -> int:
    return _context(span).span_id


def _parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def test_nothing_is_traced_unless_somebody_collects() -> None:
    assert start_tracing("rowcall", {}) is None


@pytest.mark.parametrize(
    ("module", "unused"),
    [
        ("rowcall.cli.serve", ("opentelemetry.sdk",)),
        ("rowcall.cli.import_", ("opentelemetry", "structlog", "prometheus_client", "procrastinate")),
    ],
)
def test_the_packages_are_not_loaded_then(module: str, unused: tuple[str, ...], tmp_path: Path) -> None:
    told = f"import sys, {module}; print([name for name in sys.modules if name.startswith({unused!r})])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "[]\n"
