"""Metrics for Prometheus. Each process has its own; what the database knows is told by the HTTP service alone.

Labels are bounded: importers are those that are declared, routes are templates, states and statuses are ours.
"""

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import psycopg
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from psycopg import Connection
from psycopg_pool import ConnectionPool

from rowcall.engine.observe import ExportEnd, Listener
from rowcall.model import ExportState, State, Status
from rowcall.store import jobs
from rowcall.store.jobs import Job
from rowcall.store.operations import Standing, count_not_found
from rowcall.store.undos import undos_of
from rowcall.telemetry.logs import error_rate

_WEIGHT = 0.3
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_INGEST_MS = (10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)

_EXPORT_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600)


class WorkMetrics(Listener):
    """Counts what becomes of jobs and their rows, in whatever process moves them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        of: dict[str, Any] = {"labelnames": ["importer"], "registry": registry}
        moves = ["importer", "from", "to"]
        self._moves = Counter("rowcall_job_transitions", "Moves of jobs.", moves, registry=registry)
        self._ingest = Histogram("rowcall_ingest_ms", "Milliseconds to bring in a file.", buckets=_INGEST_MS, **of)
        self._rate = Gauge("rowcall_items_sec", "Rows per second of the job that ended last.", **of)
        self._errors = Gauge("rowcall_error_rate", "Share of rows that failed in the job that ended last.", **of)
        self._missing = Gauge("rowcall_not_found_rate", "Share of rows that named what isn't there, likewise.", **of)
        self._rows = Counter(
            "rowcall_rows", "Rows of ended jobs, by what became of them.", ["importer", "status"], registry=registry
        )
        self._batch_rows = Counter("rowcall_batch_rows", "Rows of batches as they are committed.", **of)
        told = "Milliseconds of a batch's transaction, moving average."
        self._latency = Gauge("rowcall_db_latency_ewma", told, ["during"], registry=registry)
        self._throttled = Gauge(
            "rowcall_throttle_rate", "Share of a provider's calls that were held back.", ["provider"], registry=registry
        )
        exports: dict[str, Any] = {"labelnames": ["format", "way"], "registry": registry}
        ends = ["format", "way", "state"]
        self._exports = Counter("rowcall_exports", "Exports that ended.", ends, registry=registry)
        self._export_rows = Counter("rowcall_export_rows", "Rows of exports that were completed.", **exports)
        self._export_bytes = Counter("rowcall_export_bytes", "Their bytes.", **exports)
        told = "Seconds from an export's first byte to its last."
        self._export_seconds = Histogram("rowcall_export_duration_seconds", told, buckets=_EXPORT_SECONDS, **exports)
        self._averages: dict[str, float] = {}
        self._lock = threading.Lock()

    def moved(self, connection: Connection[Any], before: Job, after: Job, seconds: float) -> None:
        self._moves.labels(after.importer, before.state.value, after.state.value).inc()
        if before.state is State.UPLOADED and after.state is not State.FAILED:
            self._ingest.labels(after.importer).observe(1000 * seconds)
        if after.ended:
            with suppress(psycopg.Error):  # it is away again: then this job is not counted
                if State.REVERTING in (before.state, before.paused_from):
                    done = undos_of(connection, after)[-1]
                    self._rows.labels(after.importer, "reverted").inc(done.deleted + done.restored)
                else:
                    self._account(connection, after)

    def _account(self, connection: Connection[Any], job: Job) -> None:
        counts = jobs.counts_of(connection, job)
        missing = count_not_found(connection, job.id) if counts.failed else 0
        duration = ((job.completed_at or job.created_at) - job.created_at).total_seconds()
        for status in Status:
            self._rows.labels(job.importer, status.value).inc(getattr(counts, status.value))
        self._rate.labels(job.importer).set(counts.done / duration if duration else 0)
        self._errors.labels(job.importer).set(error_rate(counts))
        self._missing.labels(job.importer).set(missing / counts.done if counts.done else 0)

    def committed(self, job: Job, rows: int, counts: Mapping[Status, int], seconds: float) -> None:
        del counts
        self._took("commit", seconds)
        if job.state is State.PROCESSING:  # a preview commits nothing
            self._batch_rows.labels(job.importer).inc(rows)

    def stored(self, seconds: float) -> None:
        self._took("ingest", seconds)

    def exported(self, end: ExportEnd) -> None:
        labels = end.format.value, end.way
        self._exports.labels(*labels, end.state.value).inc()
        if end.state is ExportState.COMPLETED:
            self._export_rows.labels(*labels).inc(end.rows)
            self._export_bytes.labels(*labels).inc(end.bytes)
            self._export_seconds.labels(*labels).observe(end.seconds)

    def _took(self, during: str, seconds: float) -> None:
        with self._lock:
            before = self._averages.get(during, 1000 * seconds)
            self._averages[during] = before + _WEIGHT * (1000 * seconds - before)
            self._latency.labels(during).set(self._averages[during])


class HttpMetrics:
    """Counts requests, by the template of their route."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["route", "method", "status"]
        self._requests = Counter("rowcall_http_requests", "Requests that were answered.", labels, registry=registry)
        self._seconds = Histogram(
            "rowcall_http_request_duration_seconds",
            "Seconds from a request's first byte to the answer's last.",
            labels[:2],
            buckets=_SECONDS,
            registry=registry,
        )

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        known = method if method in _METHODS else "OTHER"
        self._requests.labels(route, known, str(status)).inc()
        self._seconds.labels(route, known).observe(seconds)


class PoolMetrics(Collector):
    """How a service's connections are used."""

    def __init__(self, registry: CollectorRegistry, pool: ConnectionPool[Any]) -> None:
        self._pool = pool
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        stats = self._pool.get_stats()
        told = "Milliseconds that requests waited for a connection, in all."
        yield CounterMetricFamily("rowcall_pool_wait_ms", told, stats.get("requests_wait_ms", 0))
        told = "Connections that were asked for."
        yield CounterMetricFamily("rowcall_pool_requests", told, stats.get("requests_num", 0))
        yield GaugeMetricFamily("rowcall_pool_size", "Connections that are open.", stats.get("pool_size", 0))
        told = "Connections that are free."
        yield GaugeMetricFamily("rowcall_pool_available", told, stats.get("pool_available", 0))


class DatabaseMetrics(Collector):
    """What the database knows of all processes together, as it was last asked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.standing: Standing | None = None
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        return self._families(Standing())

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("rowcall_database_up", "Whether the database answers.", int(self.standing is not None))
        if self.standing is not None:
            yield from self._families(self.standing)

    def _families(self, standing: Standing) -> Iterable[Metric]:
        by_state = GaugeMetricFamily("rowcall_jobs", "Jobs there are, by state.", labels=["state"])
        for state, count in standing.jobs.items():
            by_state.add_metric([state], count)
        yield by_state
        exports = GaugeMetricFamily("rowcall_export_jobs", "Exports in the background, by state.", labels=["state"])
        for state, count in standing.exports.items():
            exports.add_metric([state], count)
        yield exports
        depth = GaugeMetricFamily(
            "rowcall_queue_depth", "Jobs that wait for a worker (todo) or have one (doing).", labels=["status"]
        )
        for status, count in standing.queue.items():
            depth.add_metric([status], count)
        yield depth
        told = "Seconds that the oldest file has been waiting for a worker."
        yield GaugeMetricFamily("rowcall_queue_age_seconds", told, standing.oldest_seconds)
        yield GaugeMetricFamily("rowcall_pending_count", "Rows that wait to be committed.", standing.pending_rows)
        yield GaugeMetricFamily("rowcall_workers", "Worker processes seen within a minute.", standing.workers)


def process_metrics(registry: CollectorRegistry) -> None:
    """Memory, processor time and open files of this process."""
    ProcessCollector(registry=registry)
