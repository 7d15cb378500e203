"""Jobs are cancelled, and their table is changed, at every named moment (FAULTS.md, K25 and K36)."""

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from rowcall.config import Settings
from rowcall.engine import moves
from rowcall.engine.doctor import verify_job
from rowcall.engine.run import Run, run_job
from rowcall.errors import RowcallError, WrongState
from rowcall.store.db import Database
from rowcall.store.jobs import JobCounts, counts_of, get_job

from .conftest import NewTrial
from .gate import gate_at
from .invariants import violations, violations_at_the_end
from .moments import MOMENTS
from .parcels import IMPORTERS
from .trial import Trial, wait_for, waiting


@contextmanager
def running(trial: Trial) -> Generator[Run]:
    """Somebody who works on the trial's job meanwhile."""
    settings = Settings(database_url=trial.url, data_dir=trial.data, batch_rows_min=200, batch_rows_max=200)
    run = Run(Database(trial.url), IMPORTERS[trial.job.importer], settings)

    def work() -> None:
        with suppress(RowcallError):  # it stands with the job
            run_job(run, trial.job)

    thread = threading.Thread(target=work)
    thread.start()
    yield run
    thread.join()


def cancel(trial: Trial) -> None:
    with suppress(WrongState), trial.connect() as connection, connection.transaction():
        moves.cancel(connection, get_job(connection, str(trial.job.id)))


def check(trial: Trial) -> None:
    assert violations(trial) == {}
    importer = IMPORTERS[trial.job.importer]
    with trial.connect() as connection:
        found = verify_job(connection, get_job(connection, str(trial.job.id)), importer, [importer])
    assert [finding for finding in found if finding.verdict.bad] == []


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if not moment.startswith("K11")])
def test_cancelled_job_ends_with_the_batches_under_way(new_trial: NewTrial, moment: str) -> None:
    trial = new_trial()
    with gate_at(trial, MOMENTS[moment]) as gate, running(trial) as run:
        gate.wait()
        cancel(trial)
        wait_for(run.stop.is_set)
        gate.open()
    assert trial.state() == "CANCELLED"
    check(trial)


def test_batch_that_outlives_the_hold_on_its_job_is_waited_for(new_trial: NewTrial) -> None:
    trial = new_trial()
    told: list[JobCounts] = []

    def cancelled() -> None:
        with trial.connect() as connection, connection.transaction():
            job = moves.cancel(connection, get_job(connection, str(trial.job.id)))
            told.append(counts_of(connection, job))

    with gate_at(trial, MOMENTS["K8 batch marked"]) as gate, running(trial), trial.connect() as watcher:
        gate.wait()
        watcher.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE 'rowcall runner%'"
        )
        cancelling = threading.Thread(target=cancelled)
        cancelling.start()
        wait_for(lambda: waiting(watcher, "transactionid") or not cancelling.is_alive())
        gate.open()
        cancelling.join()
    assert trial.state() == "CANCELLED"
    with trial.connect() as connection:
        assert told == [counts_of(connection, get_job(connection, str(trial.job.id)))]
    check(trial)


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if moment.startswith("K11")])
def test_job_that_is_cancelled_as_it_moves_is_cancelled_or_ends(new_trial: NewTrial, moment: str) -> None:
    trial = new_trial()
    with gate_at(trial, MOMENTS[moment]) as gate, running(trial), trial.connect() as watcher:
        gate.wait()
        cancelling = threading.Thread(target=cancel, args=[trial])
        cancelling.start()
        wait_for(lambda: waiting(watcher, "transactionid"))
        gate.open()
        cancelling.join()
    assert trial.state() in ("CANCELLED", "COMPLETED_WITH_ERRORS")
    check(trial)


def test_job_whose_table_lacks_a_column_all_at_once_pauses_and_goes_on_later(
    new_trial: NewTrial,
) -> None:
    trial = new_trial()
    trial.sql("UPDATE rowcall.job SET background = true")
    with gate_at(trial, MOMENTS["K8 batch marked"]) as gate, running(trial), trial.connect() as watcher:
        gate.wait()
        changing = threading.Thread(target=trial.sql, args=["ALTER TABLE parcel RENAME COLUMN note TO remark"])
        changing.start()
        wait_for(lambda: waiting(watcher, "relation"))
        gate.open()
        changing.join()
    assert trial.state() == "PAUSED"
    (said,) = trial.sql("SELECT last_error ->> 'message' FROM rowcall.job")
    assert "note" in said
    assert violations(trial) == {}
    trial.sql("ALTER TABLE parcel RENAME COLUMN remark TO note")
    with trial.connect() as connection, connection.transaction():
        moves.resume(connection, get_job(connection, str(trial.job.id)))
    assert trial.run_to_the_end() == "COMPLETED_WITH_ERRORS"
    assert violations_at_the_end(trial) == {}
