"""Workers on several hosts, one of which is cut off from all others for a while (FAULTS.md, K37).

How long it takes until another has taken over is printed: `pytest -s tests/faults/test_hosts.py`.
"""

import os
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import Connection
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from rowcall.engine.doctor import verify_job
from rowcall.store import jobs

from ..api.town import prepared
from ..database import Server, installed
from ..integration.command import COMMAND
from ..integration.s3 import CREDENTIALS, s3_server
from .conftest import ROWS
from .gate import gate_at
from .invariants import Account, account_of, differences, violations
from .network import Host, Network, network
from .parcels import IMPORTERS, KNOWN, TABLES, parcels
from .trial import Importing, Trial, wait_for, waiting

_SERVICE = "http://127.0.0.1:8765"  # of its own host
_WRITING = "TRIGGER stop AFTER INSERT ON parcel FOR EACH ROW WHEN (NEW.code = 'P001790')"
_COMMITTING = """TRIGGER stop AFTER UPDATE ON rowcall.batch FOR EACH ROW
                 WHEN (NEW.state = 'done' AND NEW.first_row = 401) EXECUTE FUNCTION gate_in_commit()"""
_WHO_WROTE = "ALTER TABLE effect ADD COLUMN host inet DEFAULT inet_client_addr()"
_AFRESH = """
DROP FUNCTION IF EXISTS gate, gate_in_commit CASCADE;
DROP TABLE IF EXISTS commit_gate;
TRUNCATE parcel, effect, rowcall.row, rowcall.outcome, rowcall.row_key, rowcall.job CASCADE
"""
_KNOWN_ALREADY = b"code,reference,weight,note\nP000010,R000010,11,note\n"
Expected = Callable[..., Account]


@dataclass(frozen=True)
class Site:
    """A database and a bucket on one host, the service on another, a worker on each of two more."""

    network: Network
    server: Server
    url: str
    data: Path
    workers: tuple[Host, Host]
    importings: list[Importing] = field(default_factory=list[Importing])

    def connect(self) -> Connection[TupleRow]:
        return psycopg.connect(self.url, autocommit=True, application_name="harness")

    def upload(self, content: bytes) -> Trial:
        """A job by the service; whoever is free works on it."""
        files, data = {"file": ("parcels.csv", content)}, {"importer": "parcels"}
        answer = self.network.hosts["service"].do(lambda: httpx.post(f"{_SERVICE}/v1/imports", files=files, data=data))
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        with self.connect() as connection:
            return Trial(self.server, self.url, self.data, jobs.get_job(connection, answer.json()["id"]))

    def sessions(self, host: Host) -> list[int]:
        """The sessions that the database has with a host."""
        with self.connect() as connection:
            found = connection.execute("SELECT pid FROM pg_stat_activity WHERE client_addr = %s::inet", [host.address])
            return [pid for (pid,) in found]

    def at_the_gate(self, host: Host) -> bool:
        with self.connect() as connection:
            return not set(waiting(connection, "advisory")).isdisjoint(self.sessions(host))

    def who_is_it(self, session: int) -> tuple[Host, Host]:
        """The host of a session, and the other one."""
        one, two = self.workers
        return (one, two) if session in self.sessions(one) else (two, one)

    def written_by(self, host: Host) -> int:
        """How many rows of the target came from a host."""
        with self.connect() as connection:
            found = connection.execute("SELECT count(*) FROM effect WHERE host = %s::inet", [host.address]).fetchone()
        return found[0] if found else 0


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    data = tmp_path_factory.mktemp("hosts")
    with ExitStack() as stack:
        hosts = stack.enter_context(network("database", "service", "one", "two"))
        server = Server(installed()["embedded18"])
        stack.callback(server.remove)
        _listen(server, hosts.first)
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER ROLE postgres SET synchronous_commit = on")
        bucket = hosts.first.enter(stack, s3_server(hosts.first.address))
        hosts.first.do(lambda: httpx.put(f"{bucket}/parcels").raise_for_status())
        with server.new_database() as database:
            prepared(database)
            with database.connect() as connection:
                connection.execute(TABLES)
                connection.execute(_WHO_WROTE)
            site = Site(hosts, server, database.url, data, (hosts.hosts["one"], hosts.hosts["two"]))
            (data / "rowcall.toml").write_text(f'importers = ["{Path(__file__).with_name("parcels.py")}"]\n')
            _start(site, bucket)
            try:
                wait_for(lambda: _is_up(site))
                yield site
                assert [each.errors.read_text() for each in site.importings if each.ends()] == []
            finally:
                for importing in site.importings:
                    importing.kill()


@pytest.fixture
def site(whole_site: Site) -> Generator[Site]:
    """The site, with nothing done yet and everybody connected."""
    with whole_site.connect() as connection:
        connection.execute(_AFRESH)
        connection.execute(KNOWN, {"rows": ROWS})
    wait_for(lambda: all(whole_site.sessions(host) for host in whole_site.workers))
    yield whole_site
    for host in whole_site.workers:
        whole_site.network.heal(host)


def _listen(server: Server, host: Host) -> None:
    """Start a server on a host; all hosts may connect."""
    with (server.data / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"listen_addresses = '{host.address}'\n")
    with (server.data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all samenet trust\n")
    host.do(server.start)
    server.make_template()


def _start(site: Site, bucket: str) -> None:
    """A service and two workers that have nothing in common but the database and the bucket."""
    shared = {
        **os.environ,
        **CREDENTIALS,
        "ROWCALL_DATABASE_URL": make_conninfo(site.url, host=site.network.first.address),
        "ROWCALL_CONFIG": str(site.data / "rowcall.toml"),
        "ROWCALL_FILE_STORE": "s3://parcels",
        "ROWCALL_S3_ENDPOINT": bucket,
        "ROWCALL_BATCH_ROWS_MIN": "200",
        "ROWCALL_BATCH_ROWS_MAX": "200",
        "ROWCALL_JOBS_AT_ONCE": "1",  # whoever stands at the gate leaves the next job to the other
    }
    site.importings.append(_process(site, site.network.hosts["service"], shared, "serve", "--workers", "0"))
    site.importings.extend(_process(site, worker, shared, "worker") for worker in site.workers)


def _process(site: Site, host: Host, shared: dict[str, str], *command: str) -> Importing:
    errors, environment = site.data / f"{host.name}.log", {**shared, "ROWCALL_DATA_DIR": str(site.data / host.name)}
    with errors.open("wb") as log:
        return Importing(
            host.do(lambda: subprocess.Popen([COMMAND, *command], env=environment, stdout=log, stderr=log)), errors
        )


def _is_up(site: Site) -> bool:
    for importing in site.importings:
        assert not importing.ends(), importing.errors.read_text()
    try:
        said = site.network.hosts["service"].do(lambda: httpx.get(f"{_SERVICE}/health/ready", timeout=10))
    except httpx.TransportError:
        return False
    return said.json()["status"] == "ready" and all(site.sessions(host) for host in site.workers)


def _taken_over(happened: Callable[[], object]) -> None:
    """Wait for it, and tell how long that took."""
    started = time.monotonic()
    wait_for(happened)
    print(f"taken over after {time.monotonic() - started:.1f} s", end=" ")  # noqa: T201


def _ended_well(trial: Trial, expected: Account) -> None:
    wait_for(lambda: trial.state() == "COMPLETED_WITH_ERRORS")
    assert violations(trial) == {}
    assert differences(account_of(trial), expected) == []
    with trial.connect() as connection:
        job = jobs.get_job(connection, str(trial.job.id))
        found = verify_job(connection, job, IMPORTERS["parcels"], list(IMPORTERS.values()))
    assert [finding for finding in found if finding.verdict.bad] == []


def test_k37_cut_off_in_the_midst_of_a_batch(site: Site, expected: Expected) -> None:
    with gate_at(site, _WRITING) as gate:
        trial = site.upload(parcels(ROWS))
        lost, other = site.who_is_it(gate.wait())
        site.network.cut(lost)
        _taken_over(lambda: site.at_the_gate(other))
        written = site.written_by(lost)
        site.network.heal(lost)
        # the other has its hands full, so this is for the one that came back
        more = site.upload(_KNOWN_ALREADY)
        wait_for(lambda: more.state() == "COMPLETED")
    _ended_well(trial, expected())
    assert site.written_by(lost) == written


@pytest.mark.parametrize("answer", ["never comes", "is lost"])
def test_k37_cut_off_inside_commit(site: Site, expected: Expected, answer: str) -> None:
    with gate_at(site, _COMMITTING) as gate:
        trial = site.upload(parcels(ROWS))
        lost, other = site.who_is_it(gate.wait())
        site.network.cut(lost)
        if answer == "is lost":  # it commits, and nobody hears of it
            gate.open()
            wait_for(lambda: trial.sql("SELECT true FROM rowcall.batch WHERE first_row = 401 AND state = 'done'"))
            _taken_over(lambda: trial.state() == "COMPLETED_WITH_ERRORS")
        else:
            _taken_over(lambda: site.at_the_gate(other))
        written = site.written_by(lost)
        site.network.heal(lost)
        wait_for(lambda: site.sessions(lost))
    _ended_well(trial, expected())
    assert site.written_by(lost) == written


def test_k37_cut_off_while_idle(site: Site, expected: Expected) -> None:
    one, two = site.workers
    site.network.cut(one)
    wait_for(lambda: not site.sessions(one))
    trial = site.upload(parcels(ROWS))
    _ended_well(trial, expected())
    assert site.written_by(one) == 0
    site.network.heal(one)
    site.network.cut(two)
    _taken_over(lambda: site.sessions(one) and not site.sessions(two))
    more = site.upload(_KNOWN_ALREADY)
    wait_for(lambda: more.state() == "COMPLETED")
