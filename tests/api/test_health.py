"""Whether the service lives and can take work, told with each check."""

import asyncio
import time
from typing import Any

import psycopg
import pytest

from rowcall.api import health
from rowcall.api.probes import DatabaseProbe, Probe
from rowcall.config import Settings

from .conftest import Site

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)


@pytest.fixture(autouse=True)
def _always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_FRESH", -1.0)


def ready(site: Site) -> tuple[int, Any]:
    answer = site.client.get("/health/ready")
    return answer.status_code, answer.json()


def test_the_process_says_that_it_lives(site: Site) -> None:
    assert site.client.get("/health/live").json() == {"status": "alive"}


def test_without_workers_work_is_taken_but_it_is_told(site: Site) -> None:
    status, found = ready(site)
    assert (status, found["status"]) == (200, "degraded")
    assert {name for name, check in found["checks"].items() if not check["ok"]} == {"workers"}
    with site.database.connect() as connection:
        connection.execute("INSERT INTO rowcall_queue.procrastinate_workers DEFAULT VALUES")
    assert ready(site)[1]["status"] == "ready"
    with site.database.connect() as connection:
        connection.execute("UPDATE rowcall_queue.procrastinate_workers SET last_heartbeat = now() - interval '61 s'")
    assert ready(site)[1]["status"] == "degraded"


def test_pending_migrations_are_told(site: Site) -> None:
    with site.database.connect() as connection:
        connection.execute("DELETE FROM rowcall.migration WHERE id = '0002_service'")
    status, found = ready(site)
    assert (status, found["status"], found["checks"]["migrations"]["ok"]) == (503, "unready", False)
    assert found["checks"]["migrations"]["detail"] == "1 pending: 0002_service"


def test_a_store_that_takes_no_files_is_told(site: Site) -> None:
    site.files.write_text("no folder")
    status, found = ready(site)
    assert (status, found["checks"]["files"]["ok"]) == (503, False)
    assert str(site.files) not in found["checks"]["files"]["detail"]


def test_what_does_not_answer_in_time_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowcall.api.probes._PATIENCE", 0.1)
    monkeypatch.setattr(health, "_writable", _slowly)
    began = time.monotonic()
    status, found = ready(site)
    assert (status, found["checks"]["files"]["detail"]) == (503, "no answer in time")
    assert time.monotonic() - began < 1.2


def _slowly(settings: Settings) -> None:
    time.sleep(1.5)


def _one(connection: psycopg.Connection[Any]) -> int:
    return (connection.execute("SELECT 1").fetchone() or (0,))[0]


async def _asked(probe: DatabaseProbe) -> int:
    return await probe.ask("one", _one, fresh=-1)


def test_a_watch_gets_over_the_loss_of_its_session(site: Site) -> None:
    probe = DatabaseProbe(site.database.url)
    assert asyncio.run(_asked(probe)) == 1
    with psycopg.connect(site.database.url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rowcall probe'")
    assert asyncio.run(_asked(probe)) == 1
    probe.close()


def test_those_who_ask_at_once_share_the_answer(site: Site) -> None:
    probe, looks = Probe("test"), list[int]()

    async def ask() -> None:
        await asyncio.gather(
            *(probe.look("it", lambda: (time.sleep(0.05), looks.append(1)), fresh=1) for _ in range(9))
        )

    asyncio.run(ask())
    assert looks == [1]
    probe.close()
