"""The database fails under an importer, which gets over it by itself (FAULTS.md, K10, K16, K17, K19, K22 to K24)."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime

import pytest

from rowcall.store.rows import RowBatch, all_batches, split

from .conftest import NewTrial
from .gate import gate_at
from .invariants import Account, account_of, differences, violations_at_the_end
from .proxy import proxy_before
from .seed import seed
from .trial import Trial, sessions, wait_for, waiting

Expected = Callable[..., Account]


def check(trial: Trial, expected: Account) -> None:
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected) == []


@pytest.mark.parametrize("remainder", [0, 1])
def test_lost_answers_to_commits_are_found_out(new_trial: NewTrial, expected: Expected, remainder: int) -> None:
    trial = new_trial("parcel_updates", batch_rows=400)
    with proxy_before(trial, loses=lambda commit: commit % 2 == remainder) as (proxy, url):
        assert trial.start(url=url).state() == "COMPLETED_WITH_ERRORS"
    assert proxy.lost >= 6
    check(trial, expected("parcel_updates"))


@pytest.mark.parametrize("importer", ["parcels", "parcels_once"])
def test_importer_outlives_a_killed_server(new_trial: NewTrial, expected: Expected, importer: str) -> None:
    trial = new_trial(importer)
    with gate_at(trial, "TRIGGER stop AFTER INSERT ON parcel FOR EACH ROW WHEN (NEW.code = 'P001790')") as gate:
        importing = trial.start()
        gate.wait()
        trial.server.kill()
        trial.server.start()
    assert importing.state() == "COMPLETED_WITH_ERRORS"
    check(trial, expected(importer))


def test_importer_outlives_a_server_that_is_killed_while_rows_come_in(new_trial: NewTrial, expected: Expected) -> None:
    trial = new_trial()
    with gate_at(trial, "TRIGGER stop BEFORE INSERT ON rowcall.row FOR EACH ROW WHEN (NEW.number = 700)") as gate:
        importing = trial.start()
        gate.wait()
        trial.server.kill()
        trial.server.start()
    assert importing.state() == "COMPLETED_WITH_ERRORS"
    check(trial, expected())


def test_importer_outlives_the_kill_of_a_committing_session(new_trial: NewTrial, expected: Expected) -> None:
    trial = new_trial("parcel_updates")
    trigger = "TRIGGER stop AFTER UPDATE ON rowcall.batch FOR EACH ROW WHEN (NEW.first_row = 401) "
    with gate_at(trial, trigger + "EXECUTE FUNCTION gate_in_commit()") as gate:
        importing = trial.start()
        os.kill(gate.wait(), signal.SIGKILL)  # PostgreSQL then ends all sessions and recovers
        assert importing.state() == "COMPLETED_WITH_ERRORS"
    check(trial, expected("parcel_updates"))


@pytest.mark.parametrize("importer", ["parcels", "parcel_updates"])
def test_sessions_terminated_at_random_are_replaced(new_trial: NewTrial, expected: Expected, importer: str) -> None:
    trial = new_trial(importer, batch_rows=50)
    dice = random.Random(seed())
    importing = trial.start()
    importing.wait_until_it_begins()
    terminated = 0
    with trial.connect() as connection:
        while not importing.ends() and terminated < 15:  # twenty of one and the same session would be given up on
            if found := sessions(connection):
                connection.execute("SELECT pg_terminate_backend(%s)", [dice.choice(found)])
                terminated += 1
            time.sleep(dice.uniform(0, 0.2))
    assert importing.state() == "COMPLETED_WITH_ERRORS"
    assert terminated >= 5
    check(trial, expected(importer))


@pytest.mark.parametrize("importer", ["parcels", "parcel_updates"])
def test_batch_that_is_too_slow_for_the_statement_timeout_is_split(
    new_trial: NewTrial, expected: Expected, importer: str
) -> None:
    trial = new_trial(importer, batch_rows=500, workers=4)
    trial.sql(
        """CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END $$;
           CREATE TRIGGER dawdle BEFORE INSERT ON parcel FOR EACH ROW EXECUTE FUNCTION dawdle();
           DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 500', current_database()); END $$"""
    )
    assert trial.run_to_the_end() == "COMPLETED_WITH_ERRORS"
    assert trial.sql("SELECT count(*) FROM rowcall.batch")[0] > 4
    check(trial, expected(importer))


def test_batches_can_be_split_at_the_same_time_and_the_same_one_only_once(new_trial: NewTrial) -> None:
    trial = new_trial()
    trial.sql(
        "INSERT INTO rowcall.batch SELECT %s, n, 100 * n - 99, 100 * n FROM generate_series(1, 2) n", trial.job.id
    )
    one, two = RowBatch(1, 1, 100), RowBatch(2, 101, 200)
    with trial.connect() as first, trial.connect() as second, trial.connect() as watcher:
        with first.transaction():
            split(first, trial.job.id, one)
            other = threading.Thread(target=split, args=[second, trial.job.id, two])
            other.start()
            wait_for(lambda: waiting(watcher, "transactionid"))
        other.join()
        split(second, trial.job.id, one)
        found = all_batches(first, trial.job.id)
    assert [(batch.first_row, batch.last_row) for batch in found] == [(1, 50), (51, 100), (101, 150), (151, 200)]


def test_deadlock_with_another_program_is_got_over(new_trial: NewTrial, expected: Expected) -> None:
    trial = new_trial("parcel_updates")
    gate_trigger = "TRIGGER stop BEFORE UPDATE ON parcel FOR EACH ROW WHEN (NEW.code = 'P000420')"
    with gate_at(trial, gate_trigger) as gate, trial.connect() as rival, trial.connect() as watcher:
        rival.execute("SET deadlock_timeout = '1min'")  # so that it is Rowcall that has to give way
        importing = trial.start()
        with rival.transaction():
            rival.execute("UPDATE parcel SET note = note WHERE code = 'P000580'")
            gate.wait()
            asking = threading.Thread(
                target=rival.execute, args=["UPDATE parcel SET note = note WHERE code = 'P000420'"]
            )
            asking.start()
            wait_for(lambda: waiting(watcher, "transactionid"))
            gate.open()
            asking.join()
    assert importing.state() == "COMPLETED_WITH_ERRORS"
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database() AND deadlocks > 0"
    assert wait_for(lambda: trial.sql(deadlocks))
    check(trial, expected("parcel_updates"))


def test_lock_timeout_is_waited_out(new_trial: NewTrial, expected: Expected) -> None:
    trial = new_trial("parcel_updates")
    trial.sql("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = 100', current_database()); END $$")
    waits = "SELECT xact_start FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'"
    refused: set[tuple[datetime]] = set()
    with trial.connect() as holder, trial.connect() as watcher, holder.transaction():
        holder.execute("LOCK TABLE parcel IN SHARE MODE")
        importing = trial.start()
        wait_for(lambda: refused.update(watcher.execute(waits).fetchall()) or len(refused) >= 4)
    assert importing.state() == "COMPLETED_WITH_ERRORS"
    check(trial, expected("parcel_updates"))


def test_serialization_failures_are_retried(new_trial: NewTrial, expected: Expected) -> None:
    trial = new_trial("parcel_updates", workers=4)
    trial.sql(
        """DO $$ BEGIN
           EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database());
           END $$"""
    )
    assert trial.run_to_the_end() == "COMPLETED_WITH_ERRORS"
    check(trial, expected("parcel_updates"))
