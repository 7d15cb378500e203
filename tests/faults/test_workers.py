"""Workers are killed, stopped and cut off; others go on (FAULTS.md, K11, K13, K15, K16, K18, K29, K35, K37)."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from rowcall.engine import moves
from rowcall.store import jobs

from .clock import wrong_clock
from .conftest import NewTrial
from .gate import gate_at
from .invariants import Account, account_of, differences, violations, violations_at_the_end
from .proxy import proxy_before
from .trial import Trial, wait_for
from .workers import beating, end_all, hand_over, start_worker, wait_until_it_ends

Expected = Callable[..., Account]
_WRITING: LiteralString = "TRIGGER stop AFTER INSERT ON parcel FOR EACH ROW WHEN (NEW.code = 'P001790')"
_ENDING: LiteralString = "TRIGGER stop BEFORE UPDATE ON rowcall.job FOR EACH ROW WHEN (NEW.state LIKE 'COMPLETED%')"


def check(trial: Trial, expected: Account) -> None:
    assert wait_until_it_ends(trial) == "COMPLETED_WITH_ERRORS"
    end_all(trial)
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected) == []


@pytest.mark.parametrize("moment", [_WRITING, _ENDING], ids=["writing", "ending"])
def test_job_of_a_killed_worker_is_ended_by_another(
    new_trial: NewTrial, expected: Expected, moment: LiteralString
) -> None:
    trial = new_trial()
    hand_over(trial)
    with gate_at(trial, moment) as gate:
        first = start_worker(trial)
        gate.wait()
        start_worker(trial)
        first.kill()
    check(trial, expected())


def test_worker_told_to_stop_twice_ends_at_once_and_leaves_nothing_half_done(
    new_trial: NewTrial, expected: Expected
) -> None:
    trial = new_trial()
    hand_over(trial)
    with gate_at(trial, _WRITING) as gate:
        worker = start_worker(trial)
        gate.wait()
        worker.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert not worker.ends()  # the batch under way may end
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(10) == 1
        trial.wait_until_noticed()
        assert violations(trial) == {}
    start_worker(trial)
    check(trial, expected())


def test_stopped_worker_is_replaced_and_writes_nothing_when_it_wakes_up(
    new_trial: NewTrial, expected: Expected
) -> None:
    trial = new_trial()
    hand_over(trial)
    with gate_at(trial, _WRITING) as gate:
        first = start_worker(trial)
        gate.wait()
        first.process.send_signal(signal.SIGSTOP)
    start_worker(trial)
    assert wait_until_it_ends(trial) == "COMPLETED_WITH_ERRORS"
    first.process.send_signal(signal.SIGCONT)
    wait_for(lambda: beating(trial) == 2)
    assert not first.ends()
    check(trial, expected())


def test_worker_that_is_cut_off_is_replaced_and_writes_nothing_when_the_network_is_healed(
    new_trial: NewTrial, expected: Expected
) -> None:
    trial = new_trial()
    hand_over(trial)
    with proxy_before(trial, loses=lambda _: False) as (proxy, url):
        with gate_at(trial, _WRITING) as gate:
            first = start_worker(trial, url=url)
            gate.wait()
            proxy.silence()
        start_worker(trial)
        assert wait_until_it_ends(trial) == "COMPLETED_WITH_ERRORS"
        proxy.heal()
        wait_for(lambda: beating(trial) == 2)
        assert not first.ends()
        check(trial, expected())


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_the_clock_of_the_database_rules(new_trial: NewTrial, expected: Expected, seconds: int, tmp_path: Path) -> None:
    trial = new_trial()
    importing = trial.start(extra=wrong_clock(tmp_path / "clock", seconds))
    assert importing.state() == "COMPLETED_WITH_ERRORS"
    check(trial, expected())
    times = """SELECT created_at <= processing_started_at AND processing_started_at <= completed_at
                      AND completed_at BETWEEN now() - interval '5 minutes' AND now()
                      AND (SELECT bool_and(at BETWEEN j.created_at AND now()) FROM rowcall.outcome)
               FROM rowcall.job j"""
    assert trial.sql(times) == [True]


def test_paused_job_stays_paused_when_all_workers_are_killed_and_others_started(
    new_trial: NewTrial, expected: Expected
) -> None:
    trial = new_trial()
    hand_over(trial)
    with gate_at(trial, _WRITING) as gate:
        start_worker(trial)
        gate.wait()
        with trial.connect() as connection, connection.transaction():
            assert moves.pause(connection, jobs.get_job(connection, str(trial.job.id))).wish == "pause"
        end_all(trial)
    start_worker(trial)
    wait_for(lambda: trial.state() == "PAUSED")
    trial.server.kill()
    trial.server.start()
    wait_for(lambda: _answers(trial) and beating(trial))  # the same worker
    assert trial.state() == "PAUSED"
    with trial.connect() as connection, connection.transaction():
        moves.resume(connection, jobs.get_job(connection, str(trial.job.id)))
    check(trial, expected())


def _answers(trial: Trial) -> bool:
    try:
        return trial.sql("SELECT 1") == [1]
    except psycopg.OperationalError:
        return False


def test_worker_outlives_a_database_that_is_down_for_a_while(new_trial: NewTrial, expected: Expected) -> None:
    trial = new_trial()
    hand_over(trial)
    with gate_at(trial, _WRITING) as gate:
        worker = start_worker(trial)
        gate.wait()
        trial.server.stop()
        time.sleep(2)
        trial.server.start()
    assert wait_until_it_ends(trial) == "COMPLETED_WITH_ERRORS"
    assert not worker.ends()
    check(trial, expected())


def test_worker_that_loses_the_queue_takes_other_jobs_while_one_is_under_way(
    new_trial: NewTrial, expected: Expected
) -> None:
    """Procrastinate stops when its session is lost, and would wait for the job under way before it starts again."""
    trial = new_trial()
    hand_over(trial)
    with gate_at(trial, _WRITING) as gate:
        start_worker(trial)
        gate.wait()
        queue = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'rowcall queue%'"
        assert True in trial.sql(queue)
        other = trial.add_job(b"code,reference,weight,note\nX1,X1,1,note\n")
        trial.sql("UPDATE rowcall.job SET background = true")
        done = "SELECT state = 'COMPLETED' FROM rowcall.job WHERE id = %s"
        wait_for(lambda: trial.sql(done, other.id)[0])
        assert trial.state() == "PROCESSING"
    assert wait_until_it_ends(trial) == "COMPLETED_WITH_ERRORS"
    end_all(trial)
    assert violations_at_the_end(trial) == {}
    assert account_of(trial).outcomes == expected().outcomes


def test_worker_beside_a_service_ends_when_that_is_killed(new_trial: NewTrial) -> None:
    trial = new_trial()
    hand_over(trial)
    config = str(trial.data / "rowcall.toml")
    service = trial.run("serve", "--port", "0", "--workers", "1", CONFIG=config)
    wait_for(lambda: beating(trial) == 1)
    service.kill()
    wait_for(lambda: beating(trial) == 0)
