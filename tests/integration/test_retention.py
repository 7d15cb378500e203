"""Old jobs go with rows and file, whatever happens meanwhile; what must stay, stays."""

import io
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rowcall.config import Settings
from rowcall.engine.retention import Removed, policy_of, remove_due
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.errors import Final
from rowcall.importer.registry import load_registry
from rowcall.store import jobs
from rowcall.store.files.filestore import MARK, file_store
from rowcall.store.files.folder import FolderStore
from rowcall.store.files.marks import bind
from rowcall.store.jobs import Job, JobConfig
from rowcall.store.retention import begin_removal, due_jobs, remove_job
from rowcall.worker.queue import migrate_queue
from rowcall.worker.worker import Worker

from .workspace import Workspace

_LEFT = """
    SELECT (SELECT count(*) FROM rowcall.job), (SELECT count(*) FROM rowcall.row),
           (SELECT count(*) FROM rowcall.outcome), (SELECT count(*) FROM rowcall.batch),
           (SELECT count(*) FROM rowcall.duplicate), (SELECT count(*) FROM rowcall.column_mapping),
           (SELECT count(*) FROM rowcall.attempt), (SELECT count(*) FROM rowcall.job_event),
           (SELECT count(*) FROM rowcall.file)
"""
_SESSIONS = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'rowcall retention'"
_NOTHING = [(0, 0, 0, 0, 0, 0, 0, 0, 0)]
EMBEDDED = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)


def settings_of(workspace: Workspace) -> Settings:
    return Settings(database_url=workspace.database.url, data_dir=workspace.folder / "data", workers=1)


def imported(workspace: Workspace, into: str = "people", text: str = "email,name\na@x.org,A\na@x.org,B\n") -> Job:
    importer = load_registry(workspace.folder / "rowcall.toml").importer(into)
    settings = settings_of(workspace)
    with workspace.database.connect() as connection:
        stream = io.BytesIO(text.encode())
        job = start_job(connection, settings, importer, stream, file_name="people.csv", config=JobConfig())
    return run_job(Run(workspace.database, importer, settings), job)


def aged(workspace: Workspace, job: Job, days: int, state: str | None = None) -> None:
    """Have a job look as if this happened so long ago."""
    workspace.ask("UPDATE rowcall.batch SET updated_at = updated_at - make_interval(days => %s)", days)
    workspace.ask("UPDATE rowcall.job_event SET at = at - make_interval(days => %s)", days)
    workspace.ask(
        "UPDATE rowcall.job SET state = coalesce(%s, state), created_at = created_at - make_interval(days => %s), "
        "completed_at = completed_at - make_interval(days => %s), "
        "processing_started_at = processing_started_at - make_interval(days => %s) WHERE id = %s",
        *(state, days, days, days, job.id),
    )


def removed(workspace: Workspace, **options: Any) -> Removed:
    registry = load_registry(workspace.folder / "rowcall.toml")
    settings = settings_of(workspace)
    policy = policy_of(settings, registry)
    return remove_due(workspace.database, settings, policy, stop=lambda: False, **options)


def stored(workspace: Workspace) -> list[Path]:
    return [path for path in (workspace.folder / "data" / "files").rglob("*") if path.is_file() and path.name != MARK]


def test_a17_jobs_go_with_rows_and_file_after_their_time(workspace: Workspace) -> None:
    job = imported(workspace, text="email,name\n" + "".join(f"p{n}@x.org,P\n" for n in range(25)) + "p1@x.org,Q\n")
    aged(workspace, job, 6)
    assert removed(workspace).jobs == []
    aged(workspace, job, 2)
    gone = removed(workspace, at_once=10)
    assert [(one.number, one.reason) for one in gone.jobs] == [(job.number, "ended")]
    assert (gone.rows, gone.files, gone.bytes) == (26, 1, job.file_size)
    assert workspace.ask(_LEFT) == _NOTHING
    assert stored(workspace) == []


@pytest.mark.parametrize(
    ("state", "days", "goes"),
    [
        ("VALIDATED", 89, False),
        ("VALIDATED", 91, True),
        ("COLUMN_MAPPING", 91, True),
        ("CELL_MAPPING", 91, True),
        ("FINGERPRINT_WARN", 89, False),
        ("FINGERPRINT_WARN", 91, True),
        ("FINGERPRINT_ABORT", 89, False),
        ("FINGERPRINT_ABORT", 91, True),
        ("PROCESSING", 1000, False),
        ("REVERTING", 1000, False),
        ("REVERTED", 6, False),
        ("REVERTED", 8, True),
        ("SUPERSEDED", 6, False),
        ("SUPERSEDED", 8, True),
        ("PAUSED", 91, True),
        ("CANCELLED", 8, True),
        ("FAILED", 8, True),
    ],
)
@EMBEDDED
def test_a17_how_long_a_job_is_kept(workspace: Workspace, state: str, days: int, goes: bool) -> None:
    job = imported(workspace, text="email,name\na@x.org,\n")  # which writes nothing
    aged(workspace, job, days, state)
    assert len(removed(workspace).jobs) == goes


@EMBEDDED
def test_a_job_that_has_written_stays_while_it_is_unfinished(workspace: Workspace) -> None:
    job = imported(workspace)
    for state in ("PAUSED", "CELL_MAPPING"):
        aged(workspace, job, 1000, state)
        assert removed(workspace).jobs == []
    aged(workspace, job, 0, "CANCELLED")
    assert len(removed(workspace).jobs) == 1


@EMBEDDED
def test_an_importer_may_say_how_long(workspace: Workspace) -> None:
    text = (workspace.folder / "importers.py").read_text()
    (workspace.folder / "importers.py").write_text(text.replace("once = True", "once = True\n    retention_days = 180"))
    job = imported(workspace, "once")
    aged(workspace, job, 179)
    assert removed(workspace).jobs == []
    aged(workspace, job, 2)
    assert len(removed(workspace).jobs) == 1


def test_row_keys_hold_when_their_job_is_gone(workspace: Workspace) -> None:
    aged(workspace, imported(workspace, "once", "email,name\na@x.org,A\n"), 8)
    assert len(removed(workspace).jobs) == 1
    workspace.ask("DELETE FROM people")
    again = imported(workspace, "once", "email,name\na@x.org,A\nb@x.org,B\n")
    found = workspace.ask("SELECT status::text, issues[0]->>'code' FROM rowcall.outcome ORDER BY row_number")
    assert found == [("skipped", "ALREADY_IMPORTED"), ("created", None)]
    assert again.state == "COMPLETED"


def test_a_file_stays_until_its_last_job_goes(workspace: Workspace) -> None:
    first, second = imported(workspace), imported(workspace)
    aged(workspace, first, 8)
    gone = removed(workspace)
    assert ([one.number for one in gone.jobs], gone.files) == ([first.number], 0)
    assert [path.name for path in stored(workspace)] == [second.file_sha256]
    aged(workspace, second, 8)
    assert removed(workspace).files == 1
    assert stored(workspace) == []


@EMBEDDED
def test_a_job_that_somebody_works_on_stays(workspace: Workspace) -> None:
    job = imported(workspace)
    aged(workspace, job, 8)
    with workspace.database.connect() as worker:
        assert jobs.lock(worker, job.id)
        assert removed(workspace).busy == [job.number]
        jobs.unlock(worker, job.id)
        assert len(removed(workspace).jobs) == 1


def test_an_upload_of_the_same_content_at_that_moment_keeps_its_file(workspace: Workspace) -> None:
    text = b"email,name\na@x.org,A\n"
    old = imported(workspace, text=text.decode())
    aged(workspace, old, 8)
    store = FolderStore(workspace.folder / "data" / "files")
    policy = policy_of(settings_of(workspace), load_registry(workspace.folder / "rowcall.toml"))
    with (
        workspace.database.connect() as keeper,
        workspace.database.connect() as uploader,
        ThreadPoolExecutor(1) as pool,
    ):
        (due,) = due_jobs(keeper, policy)
        assert begin_removal(keeper, policy, due)
        with store.kept(io.BytesIO(text)) as file:  # the upload is in, its job not yet made
            with keeper.transaction():
                assert remove_job(keeper, store, due.id) == len(text)
                assert not store.has(file.location)
                making = pool.submit(
                    jobs.create_job, uploader, "people", file, file_name="again.csv", config=JobConfig()
                )
                time.sleep(0.2)
                assert not making.done()  # it waits for the lock
            new = making.result()
    assert new.file_sha256 == old.file_sha256
    assert (store.folder / file.location).read_bytes() == text
    assert stored(workspace) == [store.folder / file.location]


def test_a_job_made_first_keeps_the_file_from_removal(workspace: Workspace) -> None:
    text = b"email,name\na@x.org,A\n"
    aged(workspace, imported(workspace, text=text.decode()), 8)
    store = FolderStore(workspace.folder / "data" / "files")
    with workspace.database.connect() as uploader, ThreadPoolExecutor(1) as pool:
        with store.kept(io.BytesIO(text)) as file, uploader.transaction():
            jobs.create_job(uploader, "people", file, file_name="again.csv", config=JobConfig())
            removing = pool.submit(removed, workspace)
            time.sleep(0.3)
            assert not removing.done()
        gone = removing.result()
    assert (len(gone.jobs), gone.files) == (1, 0)
    assert (store.folder / file.location).read_bytes() == text


def test_k39_killed_in_the_middle_it_goes_on_from_there(workspace: Workspace) -> None:
    job = imported(workspace, text="email,name\n" + "".join(f"p{n}@x.org,P\n" for n in range(25_000)))
    aged(workspace, job, 8)
    with workspace.database.connect(idle_timeout=60) as other, other.transaction():
        other.execute("SELECT FROM rowcall.row WHERE job_id = %s AND number = 15000 FOR UPDATE", [job.id])
        with workspace.begun("retention") as command:
            workspace.await_rows(f"{_SESSIONS} AND wait_event_type = 'Lock'", command)
            command.kill()
            command.wait()
        deadline = time.monotonic() + 10
        while workspace.ask(_SESSIONS) and time.monotonic() < deadline:
            time.sleep(0.05)  # the server notices within a second
    assert workspace.ask("SELECT min(number), count(*) FROM rowcall.row") == [(10_001, 15_000)]
    with workspace.database.connect() as connection:
        assert jobs.list_jobs(connection) == []  # half of it is nothing to look at
        with pytest.raises(Final, match="There is no job"):
            jobs.get_job(connection, job.number)
    gone = removed(workspace)
    assert ([one.reason for one in gone.jobs], gone.rows) == (["begun"], 15_000)
    assert workspace.ask(_LEFT) == _NOTHING
    assert stored(workspace) == []


@EMBEDDED
def test_leftovers_of_dead_processes_go(workspace: Workspace) -> None:
    job = imported(workspace)
    data = workspace.folder / "data"
    scratch = [data / "scratch" / name / "77" for name in (str(job.id), "a", "b")]
    halves = [data / "files" / name for name in ("incoming-old", "incoming-new")]
    for path in scratch:
        path.mkdir(parents=True)
    for path in halves:
        path.write_text("half")
    for path in (scratch[0].parent, scratch[1].parent, halves[0]):
        os.utime(path, (1, 1))
    with workspace.database.connect() as worker:
        assert jobs.lock(worker, job.id)
        assert removed(workspace).leftovers == 2
    assert [path.exists() for path in (*scratch, *halves)] == [True, False, True, False, True]


@EMBEDDED
def test_stored_files_that_no_job_has_go_after_a_while(workspace: Workspace) -> None:
    job = imported(workspace)
    store = file_store(settings_of(workspace))
    with store.kept(io.BytesIO(b"refused or killed")) as lost, store.kept(io.BytesIO(b"just coming")) as new:
        pass
    ours, other = Path(store.where) / lost.location, Path(store.where) / "readme.txt"
    other.write_text("not ours")
    for path in (ours, other, Path(store.where) / (job.file_location or "")):
        os.utime(path, (1, 1))
    assert removed(workspace).leftovers == 0  # nobody knows whether the store is this database's alone
    with workspace.database.connect() as connection:
        bind(connection, store)
    assert removed(workspace).leftovers == 1
    assert {path.name for path in stored(workspace)} == {other.name, Path(job.file_location or "").name, new.sha256}
    assert workspace.ask("SELECT sha256 FROM rowcall.file") == [(job.file_sha256,)]


@EMBEDDED
def test_the_command_tells_what_would_go_and_what_went(workspace: Workspace) -> None:
    job = imported(workspace)
    aged(workspace, job, 8)
    would = workspace.json("retention", "--dry-run")
    assert [(one["number"], one["reason"], one["rows"]) for one in would["jobs"]] == [(job.number, "ended", 2)]
    kept = workspace.run("retention", "--dry-run", ROWCALL_RETENTION_ENDED_DAYS="30")
    assert "No job is due to go." in kept.out
    gone = workspace.run("retention")
    assert (gone.status, "1 job with 2 rows and 1 file " in gone.out) == (0, True), gone.out + gone.err
    assert workspace.ask(_LEFT) == _NOTHING


@EMBEDDED
def test_one_process_at_a_time_removes(workspace: Workspace) -> None:
    aged(workspace, imported(workspace), 8)
    with workspace.database.connect() as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended('rowcall retention', 0))")
        assert removed(workspace).elsewhere


@EMBEDDED
def test_a_file_that_can_not_be_deleted_is_told_and_tried_again(workspace: Workspace) -> None:
    job = imported(workspace)
    aged(workspace, job, 8)
    location = workspace.folder / "data" / "files" / (job.file_location or "")
    content = location.read_bytes()
    location.unlink()
    location.mkdir()  # no unlink takes that away, not even root's
    assert set(removed(workspace).failed) == {job.number}
    location.rmdir()
    location.write_bytes(content)
    assert removed(workspace).files == 1
    assert workspace.ask(_LEFT) == _NOTHING


@EMBEDDED
def test_workers_see_to_it_every_night(workspace: Workspace) -> None:
    aged(workspace, imported(workspace), 8)
    with workspace.database.connect() as connection:
        migrate_queue(connection)
    registry = load_registry(workspace.folder / "rowcall.toml")
    app: Any = Worker(workspace.database, registry, settings_of(workspace))._app()
    schedules = {task.task.name: task.cron for task in app.periodic_registry.periodic_tasks.values()}
    assert schedules["retention"] == "17 3 * * *"
    app.tasks["retention"](timestamp=0)
    assert workspace.ask(_LEFT) == _NOTHING
