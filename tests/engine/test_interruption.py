"""A job that was interrupted goes on where it stopped."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, LiteralString

import pytest
from psycopg import Connection

from rowcall import Final, Importer, Integer, Retryable, Update
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.model import Code, Progress, State
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig

from .importing import declared, result_of, settings_for, sql

IMPORTER = declared("t", key="id", on_match=Update(), id=Integer(), amount=Integer())
ATOMIC = declared("t", name="atomic_things", key="id", on_match=Update(), atomic=True, id=Integer(), amount=Integer())
FILE = b"id,amount\n" + b"".join(b"%d,%d\n" % (number, number) for number in range(60))
SLOW = """
    CREATE TABLE t (id int PRIMARY KEY, amount int);
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION slow();
"""


def started(database: Database, folder: Path, importer: type[Importer] = IMPORTER, *, dry_run: bool = False) -> Job:
    """A job for the file: a new one, or the one that was interrupted."""
    with database.connect() as connection:
        settings = settings_for(database, folder)
        return start_job(
            connection, settings, importer, BytesIO(FILE), file_name="a.csv", config=JobConfig(dry_run=dry_run)
        )


def run_until(
    database: Database, folder: Path, job: Job, importer: type[Importer], when: Callable[[Progress], bool]
) -> None:
    """Work on a job until then."""
    run = Run(database, importer, settings_for(database, folder, batch_rows=7))
    run.tell = lambda progress: run.stop.set() if when(progress) else None
    with pytest.raises(Retryable) as caught:
        run_job(run, job)
    assert caught.value.code == Code.INTERRUPTED
    assert job.number in (caught.value.hint or "")


@pytest.mark.parametrize("phase", ["reading", "writing"])
def test_interrupted_job_is_found_again_and_ends_as_if_nothing_had_been(
    database: Database, tmp_path: Path, phase: str
) -> None:
    sql(database, SLOW)
    job = started(database, tmp_path)
    run_until(database, tmp_path, job, IMPORTER, lambda progress: progress.phase == phase and progress.rows > 0)
    done = sql(database, "SELECT count(*) FROM rowcall.batch WHERE state = 'done'")[0][0]
    assert (done == 0) if phase == "reading" else (0 < done < 9)
    assert sql(database, "SELECT count(*) FROM t")[0][0] == 7 * done
    again = started(database, tmp_path)
    assert again.id == job.id
    ended = run_job(Run(database, IMPORTER, settings_for(database, tmp_path, batch_rows=100)), again)
    assert ended.state is State.COMPLETED
    result = result_of(database, IMPORTER, ended)
    assert (result.told, len(result.rows)) == (["created"] * 60, 60)


def test_interrupted_atomic_job_has_written_nothing_and_goes_on(database: Database, tmp_path: Path) -> None:
    sql(database, SLOW)
    job = started(database, tmp_path, ATOMIC)
    run_until(database, tmp_path, job, ATOMIC, lambda progress: progress.phase == "checking")
    assert sql(database, "SELECT count(*) FROM t") == [(0,)]
    ended = run_job(Run(database, ATOMIC, settings_for(database, tmp_path)), started(database, tmp_path, ATOMIC))
    assert (ended.id, ended.state) == (job.id, State.COMPLETED)


@pytest.mark.parametrize(
    ("state", "sabotage"),
    [
        ("UPLOADED", "CREATE TRIGGER stop BEFORE INSERT ON rowcall.batch EXECUTE FUNCTION stop()"),
        ("COLUMN_MAPPING", "CREATE TRIGGER stop BEFORE DELETE ON rowcall.duplicate EXECUTE FUNCTION stop()"),
        ("PROCESSING", "CREATE TRIGGER stop BEFORE INSERT ON rowcall.outcome EXECUTE FUNCTION stop()"),
    ],
)
def test_job_that_the_database_stops_says_why_and_goes_on(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, sabotage: LiteralString
) -> None:
    monkeypatch.setattr("rowcall.engine.running._PASSING", {Code.DATABASE_BUSY: 3})  # else it waits for half a minute
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, amount int)")
    sql(
        database,
        "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN EXECUTE 'SELECT * FROM nowhere'; RETURN NEW; END $$",
    )
    sql(database, sabotage)
    job = started(database, tmp_path)
    with pytest.raises(Final, match="nowhere"):
        run_job(Run(database, IMPORTER, settings_for(database, tmp_path)), job)
    told = sql(database, "SELECT state, last_error ->> 'code', last_error ->> 'message' FROM rowcall.job")
    assert told[0][0] == state
    assert "nowhere" in told[0][2]
    sql(database, "DROP FUNCTION stop CASCADE")
    ended = run_job(Run(database, IMPORTER, settings_for(database, tmp_path)), started(database, tmp_path))
    assert (ended.id, ended.state, ended.last_error) == (job.id, State.COMPLETED, None)


def test_job_that_its_importer_stops_says_why_and_goes_on(database: Database, tmp_path: Path) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, amount int)")

    def before(self: Importer, connection: Connection[Any], job: Job) -> None:
        raise ValueError("no permit")

    broken = declared("t", key="id", on_match=Update(), before=before, id=Integer(), amount=Integer())
    job = started(database, tmp_path)
    with pytest.raises(Final, match="no permit"):
        run_job(Run(database, broken, settings_for(database, tmp_path)), job)
    told = sql(database, "SELECT state, last_error ->> 'code', last_error ->> 'message' FROM rowcall.job")
    assert told == [("COLUMN_MAPPING", "IMPORTER_FAILED", "before of importer things raised ValueError: no permit.")]
    ended = run_job(Run(database, IMPORTER, settings_for(database, tmp_path)), started(database, tmp_path))
    assert (ended.id, ended.state) == (job.id, State.COMPLETED)


def test_finished_job_is_not_taken_up_again(database: Database, tmp_path: Path) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, amount int)")
    run = Run(database, IMPORTER, settings_for(database, tmp_path))
    job = run_job(run, started(database, tmp_path))
    assert run_job(run, job) == job
    again = started(database, tmp_path)
    assert again.id != job.id
    assert result_of(database, IMPORTER, run_job(run, again)).told == ["unchanged"] * 60


def test_only_the_same_work_is_taken_up(database: Database, tmp_path: Path) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, amount int)")
    job = started(database, tmp_path)
    assert started(database, tmp_path, dry_run=True).id != job.id
    assert started(database, tmp_path, ATOMIC).id != job.id
    assert started(database, tmp_path).id == job.id
