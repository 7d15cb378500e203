"""`rowcall doctor`: what it finds, and that it finds it."""

from collections.abc import Callable

import psycopg
import pytest

from rowcall.config import Settings
from rowcall.engine.doctor import Finding, Verdict, verify_job
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.engine.surroundings import check_together
from rowcall.importer.registry import load_registry
from rowcall.store.jobs import Job, JobConfig
from rowcall.worker.queue import migrate_queue

from .workspace import Workspace


@pytest.fixture
def verified(workspace: Workspace) -> Callable[[], list[Finding]]:
    """Imports a file and gives what verifies the job, as often as it is called."""
    registry = load_registry(workspace.folder / "rowcall.toml")
    importer = registry.importer("once")
    settings = Settings(
        database_url=workspace.database.url,
        data_dir=workspace.folder / "data",
        workers=1,  # batches draw their keys in the order of the file
        batch_rows_min=10,
        batch_rows_max=10,
    )
    with workspace.database.connect() as connection, workspace.many(range(35)).open("rb") as stream:
        job = start_job(connection, settings, importer, stream, file_name="people.csv", config=JobConfig())
    done: Job = run_job(Run(workspace.database, importer, settings), job)

    def verify() -> list[Finding]:
        with workspace.database.connect() as connection:
            return verify_job(connection, done, importer, registry.all())

    return verify


def test_a_good_job_is_verified(verified: Callable[[], list[Finding]]) -> None:
    assert {finding.name: finding.verdict for finding in verified()} == dict.fromkeys(
        ("I1", "I2", "I3", "I4", "I5", "I6", "I8"), Verdict.OK
    )


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        ("DELETE FROM rowcall.outcome WHERE row_number = 7", {"I1", "I3", "I4", "I6"}),
        ("DELETE FROM rowcall.row WHERE number = 7", {"I1", "I2", "I4"}),
        ("DELETE FROM rowcall.batch WHERE first_row = 11", {"I2"}),
        ("UPDATE rowcall.batch SET created = 9, failed = 1 WHERE first_row = 11", {"I4"}),
        ("UPDATE rowcall.outcome SET target_key = '{1}' WHERE row_number = 2", {"I5"}),
        ("DELETE FROM rowcall.row_key WHERE row_number = 7", {"I6"}),
        ("UPDATE rowcall.outcome SET result = '{}' WHERE row_number = 7", {"I8"}),
    ],
)
def test_harm_is_found_by_the_invariant_that_it_breaks(
    workspace: Workspace, verified: Callable[[], list[Finding]], harm: str, named: set[str]
) -> None:
    workspace.ask(harm)
    assert {finding.name for finding in verified() if finding.verdict is Verdict.VIOLATED} == named


def test_rows_that_others_changed_or_deleted_are_noted(
    workspace: Workspace, verified: Callable[[], list[Finding]]
) -> None:
    workspace.ask("DELETE FROM people WHERE name = 'P3'")
    workspace.ask("UPDATE people SET age = 4 WHERE name = 'P4'")
    noted = {finding.name: (finding.count, *finding.examples) for finding in verified() if finding.verdict != "ok"}
    assert set(noted) == {"I5", "I8"}
    assert noted["I5"][0] == noted["I8"][0] == 1


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_the_command_verifies_a_job_and_says_so_by_its_exit_code(workspace: Workspace) -> None:
    number = workspace.json("import", workspace.many(range(5)), "--into", "people")["number"]
    assert workspace.json("doctor", "--verify", number)["ok"] is True
    workspace.ask("DELETE FROM rowcall.outcome WHERE row_number = 2")
    done = workspace.run("doctor", "--verify", number)
    assert done.status == 1
    assert "violated  I1  Every row has its outcome, and every outcome its row." in done.out
    assert "row 2" in done.out


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_the_surroundings_are_checked(workspace: Workspace) -> None:
    workspace.json("import", workspace.many(range(5)), "--into", "people")
    assert workspace.run("migrate").status == 0
    assert {f["verdict"] for f in workspace.json("doctor")["findings"]} == {"ok"}
    (workspace.folder / "data" / "files" / "incoming-1").write_text("half")
    workspace.ask("UPDATE rowcall.job SET state = 'PROCESSING'")
    workspace.ask("ALTER TABLE people DROP COLUMN paid")
    found = {f["name"]: f["verdict"] for f in workspace.json("doctor", status=1)["findings"]}
    assert found["files"] == found["jobs"] == "note"
    assert found["importer people"] == "failed"


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_a_database_that_can_not_be_reached_is_a_finding(workspace: Workspace) -> None:
    done = workspace.run("doctor", ROWCALL_DATABASE_URL="postgresql://127.0.0.1:1/nowhere")
    assert (done.status, done.err) == (1, "")
    assert "failed    database" in done.out


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_psql_opens_the_database_with_options_of_its_own(workspace: Workspace) -> None:
    done = workspace.run("psql", "-At", "-c", "SELECT 'there' FROM pg_class WHERE relname = 'people'")
    assert (done.status, done.out) == (0, "there\n"), done.err
    assert workspace.run("psql", "-v", "ON_ERROR_STOP=1", stdin=b"nonsense").status == 1
    assert "DATABASE_UNREACHABLE" in workspace.run("psql", ROWCALL_DATABASE_URL="postgresql://127.0.0.1:1/x").err


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_doctor_tells_where_the_database_is(workspace: Workspace) -> None:
    said = next(f["said"] for f in workspace.json("doctor")["findings"] if f["name"] == "database")
    where = said.partition(", ")[2]
    with psycopg.connect(where) as connection:
        assert connection.info.dbname == workspace.ask("SELECT current_database()")[0][0]


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        ("SELECT", set[str]()),
        ("UPDATE rowcall.job SET state = 'PROCESSING'", {"I9"}),
        ("SELECT pg_advisory_lock(hashtextextended('rowcall job ' || id::text, 0)) FROM rowcall.job", {"I10"}),
        ("DROP INDEX rowcall.job_idempotency_key; UPDATE rowcall.job SET idempotency_key = 'k'", {"I11"}),
    ],
)
def test_what_must_hold_of_all_jobs_is_checked(workspace: Workspace, harm: str, named: set[str]) -> None:
    for first in (0, 100):
        assert workspace.run("import", workspace.many(range(first, first + 10)), "--into", "people").status == 0
    with workspace.database.connect() as connection:
        migrate_queue(connection)
        connection.execute("INSERT INTO rowcall_queue.procrastinate_workers DEFAULT VALUES")
        past = "UPDATE rowcall.job SET background = true, created_at = created_at - interval '1 hour', completed_at = "
        connection.execute(f"{past} completed_at - interval '1 hour'".encode())
        connection.execute("UPDATE rowcall.job_event SET at = at - interval '1 hour'")
        connection.execute("UPDATE rowcall.batch SET updated_at = updated_at - interval '1 hour'")
        connection.execute(harm.encode())
        found = list(check_together(connection))
    assert {finding.name for finding in found if finding.verdict.bad} == named


def test_verifying_only_looks(workspace: Workspace) -> None:
    with psycopg.connect(workspace.database.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA rowcall CASCADE")
        refused = workspace.run("doctor", "--verify", "BU202601010001")
        assert (refused.status, "MIGRATIONS_PENDING" in refused.err) == (1, True)
        assert connection.execute("SELECT to_regnamespace('rowcall')").fetchone() == (None,)
