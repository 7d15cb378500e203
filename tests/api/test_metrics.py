"""Metrics: their names and numbers, and who may read them."""

import json
import re
import time
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request

from rowcall.api.metrics import ServiceMetrics, _may_read
from rowcall.api.service import Service
from rowcall.config import Settings
from rowcall.engine.observe import listening
from rowcall.importer.registry import Registry
from rowcall.store.db import Database
from rowcall.store.operations import Standing
from rowcall.telemetry.metrics import WorkMetrics

from .conftest import Site
from .test_client import export_work
from .test_exports import add_users
from .test_imports import sent

DOCS = Path(__file__).parents[2] / "docs"
EMBEDDED = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)


def numbers(text: str) -> dict[str, float]:
    """Samples by name and labels, as they are written."""
    return {
        sample.name + "".join(f" {value}" for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def told(site: Site) -> dict[str, float]:
    answer = site.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return numbers(answer.text)


@EMBEDDED
def test_a18_moves_and_rows_are_counted_by_importer(site: Site) -> None:
    text = "slug,title,body,author\nx,X,Text,nobody@example.org\ny,,Text,\nz,Z,Text,nobody@example.org\n"
    registry = CollectorRegistry()
    with listening(WorkMetrics(registry)):
        site.worker.advance(sent(site, text, importer="articles").json()["id"])

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"importer": "articles", **labels})

    last = {"from": "PROCESSING", "to": "COMPLETED_WITH_ERRORS"}
    assert value("rowcall_job_transitions_total", **last) == 1
    assert value("rowcall_rows_total", status="failed") == value("rowcall_batch_rows_total") == 3
    assert (value("rowcall_error_rate"), value("rowcall_ingest_ms_count")) == (1, 1)
    assert value("rowcall_not_found_rate") == pytest.approx(2 / 3)
    assert (value("rowcall_items_sec") or 0) > 0
    assert (registry.get_sample_value("rowcall_db_latency_ewma", {"during": "commit"}) or 0) > 0


def test_c11_what_the_database_knows_is_told_by_the_service(site: Site) -> None:
    first, _ = sent(site).json()["id"], sent(site)
    with site.database.connect() as connection:
        connection.execute("INSERT INTO rowcall_queue.procrastinate_workers DEFAULT VALUES")
        connection.execute("UPDATE rowcall.job SET created_at = created_at - interval '1 hour' WHERE id = %s", [first])
        connection.execute(
            "INSERT INTO rowcall.batch (job_id, number, first_row, last_row) VALUES (%s, 1, 1, 42)", [first]
        )
    found = told(site)
    assert (found["rowcall_jobs UPLOADED"], found["rowcall_queue_depth todo"], found["rowcall_workers"]) == (2, 2, 1)
    assert (found["rowcall_pending_count"], found["rowcall_database_up"]) == (42, 1)
    assert 3600 <= found["rowcall_queue_age_seconds"] < 3700
    assert found["rowcall_pool_requests_total"] >= 2


@pytest.mark.parametrize(
    ("state", "pending"), [("FINGERPRINT_WARN", 42), ("FINGERPRINT_ABORT", 42), ("SUPERSEDED", 0), ("REVERTED", 0)]
)
@EMBEDDED
def test_jobs_that_wait_or_are_over_are_told_by_state(site: Site, state: str, pending: int) -> None:
    job = sent(site).json()["id"]
    with site.database.connect() as connection:
        connection.execute("UPDATE rowcall.job SET state = %s", [state])
        connection.execute(
            "INSERT INTO rowcall.batch (job_id, number, first_row, last_row) VALUES (%s, 1, 1, 42)", [job]
        )
    found = told(site)
    assert (found[f"rowcall_jobs {state}"], found["rowcall_pending_count"]) == (1, pending)
    assert found["rowcall_queue_age_seconds"] == 0


@EMBEDDED
def test_exports_are_counted_by_format_way_and_end(site: Site) -> None:
    add_users(site, 5)
    registry = CollectorRegistry()
    with listening(WorkMetrics(registry)):
        streamed = site.client.get("/v1/exports", params={"resource": "users", "format": "csv"}).content
        ordered = [site.client.post("/v1/exports", json={"resource": "users", "format": "ndjson"}).json()["id"]]
        ordered += [site.client.post("/v1/exports", json={"resource": "users", "format": "json"}).json()["id"]]
        site.client.post(f"/v1/exports/{ordered[1]}/cancel")
        export_work(site)
        deadline = time.monotonic() + 30
        while not value_of(registry, "exports_total", "csv", "stream", "COMPLETED"):  # told when the thread has ended
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert value_of(registry, "export_rows_total", "csv", "stream") == 5
    assert value_of(registry, "export_bytes_total", "csv", "stream") == len(streamed)
    assert value_of(registry, "exports_total", "ndjson", "file", "COMPLETED") == 1
    assert value_of(registry, "export_rows_total", "ndjson", "file") == 5
    assert value_of(registry, "export_duration_seconds_count", "ndjson", "file") == 1
    assert value_of(registry, "exports_total", "json", "file", "CANCELLED") == 1
    assert value_of(registry, "export_rows_total", "json", "file") is None
    found = told(site)
    assert (found["rowcall_export_jobs COMPLETED"], found["rowcall_export_jobs CANCELLED"]) == (1, 1)


def value_of(registry: CollectorRegistry, name: str, *labels: str) -> float | None:
    return registry.get_sample_value(f"rowcall_{name}", dict(zip(("format", "way", "state"), labels, strict=False)))


@EMBEDDED
def test_requests_are_counted_by_the_template_of_their_route(site: Site) -> None:
    for number in range(3):
        site.client.get(f"/v1/imports/00000000-0000-7000-8000-00000000000{number}")
        site.client.get(f"/wp-admin/{number}")
        site.client.request(f"X{number}", "/v1/imports")
    found = {name: value for name, value in told(site).items() if name.startswith("rowcall_http_requests_total")}
    assert found == {
        "rowcall_http_requests_total GET /v1/imports/{job_id} 404": 3,
        "rowcall_http_requests_total GET unmatched 404": 3,
        "rowcall_http_requests_total OTHER /v1/imports 405": 3,
    }


@pytest.mark.parametrize(
    ("host", "token", "shown", "may"),
    [
        ("127.0.0.1", None, "", True),
        ("127.0.0.1", None, "by a proxy", False),
        ("::1", None, "", True),
        ("192.0.2.7", None, "", False),
        ("testclient", None, "", False),
        ("192.0.2.7", "t0ken", "Bearer t0ken", True),
        ("127.0.0.1", "t0ken", "Bearer t0kem", False),
        ("127.0.0.1", "t0ken", "", False),
    ],
)
def test_metrics_are_for_this_machine_or_who_shows_the_token(
    host: str, token: str | None, shown: str, may: bool
) -> None:
    headers = [(b"authorization", shown.encode()), (b"host", b"localhost:8765")]
    if shown == "by a proxy":
        headers = [(b"x-forwarded-for", b"192.0.2.7"), *headers[1:]]
    assert _may_read(Request({"type": "http", "headers": headers, "client": (host, 1)}), token) == may


@pytest.fixture
def names(tmp_path: Path) -> dict[str, str]:
    """The metrics there are, with their types."""
    pool = Database("postgresql://nowhere/db").pool("test", 1)
    metrics = ServiceMetrics(Service(Settings(data_dir=tmp_path), Registry(()), pool))
    metrics.database.standing = Standing()
    families = [family for family in metrics.registry.collect() if family.name.startswith("rowcall_")]
    return {family.name + ("_total" if family.type == "counter" else ""): family.type for family in families}


def test_the_names_that_were_asked_for_are_there(names: dict[str, str]) -> None:
    asked = ("ingest_ms", "items_sec", "error_rate", "not_found_rate", "db_latency_ewma", "pool_wait_ms_total")
    more = ("queue_depth", "pending_count", "throttle_rate", "job_transitions_total", "http_requests_total")
    assert {f"rowcall_{name}" for name in (*asked, *more)} <= set(names)


def test_every_metric_is_documented_and_no_other(names: dict[str, str]) -> None:
    page = (DOCS / "operations.md").read_text()
    assert set(re.findall(r"^\| `(rowcall_\w+)`", page, re.MULTILINE)) == set(names)


def test_the_dashboard_asks_for_metrics_that_exist(names: dict[str, str]) -> None:
    parts = ("_bucket", "_sum", "_count")
    known = {*names, *(name + part for name, kind in names.items() if kind == "histogram" for part in parts)}
    board = json.loads((DOCS / "grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    asked = {name for query in queries for name in re.findall(r"rowcall_\w+", query)}
    assert len(queries) >= 10
    assert asked <= known
    plain = {re.sub(r"(_bucket|_sum|_count)$", "", name) if name not in names else name for name in asked}
    assert set(names) - plain <= {"rowcall_pool_size", "rowcall_pool_available", "rowcall_database_up"}


@EMBEDDED
def test_metrics_are_told_while_the_database_is_away(site: Site) -> None:
    with site.database.connect() as connection:
        connection.execute("ALTER TABLE rowcall.batch RENAME TO away")
    answer = httpx.get(f"{site.client.base_url}/metrics")
    assert answer.status_code == 200
    assert "rowcall_database_up 0.0" in answer.text
    assert "rowcall_pending_count 0" not in answer.text
