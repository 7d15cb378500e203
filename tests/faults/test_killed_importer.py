"""An importer is killed at every named moment; another one finishes its job (FAULTS.md, K4 to K12 and K28)."""

from collections.abc import Callable

import pytest

from .conftest import NewTrial
from .gate import gate_at
from .invariants import Account, account_of, differences, violations, violations_at_the_end
from .moments import MOMENTS
from .trial import wait_for, waiting

Expected = Callable[..., Account]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_importer_leaves_nothing_half_done(new_trial: NewTrial, expected: Expected, moment: str) -> None:
    trial = new_trial()
    with gate_at(trial, MOMENTS[moment]) as gate:
        importing = trial.start()
        gate.wait()
        importing.kill()
        trial.wait_until_noticed()
        assert violations(trial) == {}
    assert trial.run_to_the_end() == "COMPLETED_WITH_ERRORS"
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected()) == []


@pytest.mark.parametrize(
    ("importer", "moment"),
    [
        ("parcels", "K4 mid-COPY into row"),
        ("parcels", "K5 rows in, inside COMMIT"),
        ("parcels_once", "K7 target write"),
        ("parcel_updates", "K8 outcomes"),
        ("parcel_updates", "K9 inside COMMIT"),
        ("parcels_once", "K9 inside COMMIT"),
        ("parcels_once", "K12 splitting a refused batch"),
        ("parcel_updates", "K11 ending"),
    ],
)
def test_session_that_outlives_its_importer_does_no_harm(
    new_trial: NewTrial, expected: Expected, importer: str, moment: str
) -> None:
    trial = new_trial(importer)
    with gate_at(trial, MOMENTS[moment]) as gate:
        importing = trial.start()
        gate.wait()
        importing.kill()
    assert trial.run_to_the_end() == "COMPLETED_WITH_ERRORS"
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected(importer)) == []


def test_importer_killed_while_it_plans_has_written_nothing(new_trial: NewTrial, expected: Expected) -> None:
    trial = new_trial()
    with gate_at(trial, MOMENTS["K11 starting"]) as gate, trial.connect() as holder, trial.connect() as watcher:
        importing = trial.start()
        gate.wait()
        with holder.transaction():
            holder.execute("LOCK TABLE rowcall.duplicate")
            gate.open()
            wait_for(lambda: waiting(watcher, "relation"))  # a transaction sees one state of other sessions only
            importing.kill()
            trial.wait_until_noticed()
        assert violations(trial) == {}
        assert trial.sql("SELECT count(*) FROM effect") == [0]
    assert trial.run_to_the_end() == "COMPLETED_WITH_ERRORS"
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected()) == []


def test_file_is_not_needed_once_its_rows_are_in(new_trial: NewTrial, expected: Expected) -> None:
    trial = new_trial()
    with gate_at(trial, MOMENTS["K7 target write"]) as gate:
        importing = trial.start()
        gate.wait()
        importing.kill()
    (trial.data / "files" / (trial.job.file_location or "")).unlink()
    assert trial.run_to_the_end() == "COMPLETED_WITH_ERRORS"
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected()) == []
