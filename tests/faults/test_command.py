"""The command is killed, and called again: it goes on with its job, and `doctor` finds the account right."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ..integration.command import rowcall
from . import parcels
from .conftest import NewTrial
from .gate import gate_at
from .invariants import Account, account_of, differences, violations_at_the_end


@pytest.mark.parametrize("again", ["import", "resume"])
def test_killed_command_goes_on_when_called_again(
    new_trial: NewTrial, expected: Callable[..., Account], tmp_path: Path, again: str
) -> None:
    trial = new_trial("parcel_updates")
    file, config = tmp_path / "parcels.csv", tmp_path / "rowcall.toml"
    file.write_bytes(parcels.parcels(2_000))
    config.write_text(f'importers = ["{parcels.__file__}"]')
    command = ["import", str(file), "--into", "parcel_updates"]
    stop = """TRIGGER stop AFTER UPDATE ON rowcall.batch FOR EACH ROW WHEN (NEW.state = 'done' AND NEW.first_row = 401)
              EXECUTE FUNCTION gate_in_commit()"""
    with gate_at(trial, stop) as gate:
        importing = trial.run(*command, CONFIG=str(config))
        gate.wait()
        importing.kill()
    settings = trial.environment(CONFIG=str(config))
    done = rowcall(*(command if again == "import" else ["resume", trial.job.number]), stdin=b"", **settings)
    assert done.status == 2, done.err
    assert trial.sql("SELECT number FROM rowcall.job") == [trial.job.number]
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected("parcel_updates")) == []
    verified = rowcall("doctor", "--verify", trial.job.number, stdin=b"", **settings)
    assert verified.status == 0, verified.out
