"""Importers, sessions and the server are killed at random moments, again and again, until the job is done."""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest

from .conftest import ROWS, NewTrial
from .invariants import Account, account_of, differences, violations, violations_at_the_end
from .parcels import faultless_parcels
from .seed import seed
from .trial import Importing, Trial, sessions, wait_for

_KILLS = 11
"""For each importer: over thirty in all."""


@pytest.mark.parametrize("importer", ["parcels", "parcel_updates", "parcels_once"])
def test_kills_at_random_moments_do_no_harm(
    new_trial: NewTrial, expected: Callable[..., Account], importer: str
) -> None:
    dice = random.Random(seed())
    kills = 0
    while kills < _KILLS:
        trial = new_trial(importer, batch_rows=dice.choice([50, 100, 400]))
        kills += _work_through(trial, dice, most=_KILLS - kills)
        assert violations_at_the_end(trial) == {}
        assert differences(account_of(trial), expected(importer)) == []


def test_all_or_nothing_whenever_it_is_killed(new_trial: NewTrial) -> None:
    dice = random.Random(seed())
    trial = new_trial("parcels_together", content=faultless_parcels(ROWS), batch_rows=100)
    all_of_it = ROWS - ROWS // 20 + ROWS // 40  # a tenth of the first half is known, every other of them has changed
    for _ in range(6):
        importing = _begun(trial)
        if _ends_within(importing, dice.uniform(0, 2)):
            break
        importing.kill()
        assert trial.sql("SELECT count(*) FROM effect") in ([0], [all_of_it])
    assert trial.run_to_the_end() == "COMPLETED"
    assert trial.sql("SELECT count(*) FROM effect") == [all_of_it]
    found = violations_at_the_end(trial)
    # rows that were written in a savepoint carry its number, not that of the transaction around all of them
    found.pop("I8 effect and outcome by different transactions", None)
    assert found == {}


def _work_through(trial: Trial, dice: random.Random, *, most: int) -> int:
    """Work on a job until it is done, killing up to so many times; how often."""
    kills = 0
    importing = _begun(trial)
    while kills < most and not _ends_within(importing, dice.uniform(0, 1.2)):
        match dice.choices(["importer", "session", "server"], [6, 1, 1])[0]:
            case "importer":
                importing.kill()
                assert violations(trial) == {}
                importing = _begun(trial)
            case "session":
                _kill_session(trial, dice)
            case _:
                trial.server.kill()
                trial.server.start()
        kills += 1
    assert importing.state() == "COMPLETED_WITH_ERRORS"
    return kills


def _begun(trial: Trial) -> Importing:
    importing = trial.start()
    importing.wait_until_it_begins()
    return importing


def _ends_within(importing: Importing, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not importing.ends() and time.monotonic() < deadline:
        time.sleep(0.01)
    return importing.ends()


def _kill_session(trial: Trial, dice: random.Random) -> None:
    """Kill -9 a session's process: PostgreSQL ends all others too, and recovers."""
    with trial.connect() as connection:
        found = sessions(connection)
    if found:
        with suppress(ProcessLookupError):  # it ended by itself meanwhile
            os.kill(dice.choice(found), signal.SIGKILL)
    wait_for(lambda: _is_up(trial))


def _is_up(trial: Trial) -> bool:
    try:
        return bool(trial.sql("SELECT 1"))
    except psycopg.OperationalError:
        return False
