"""A preview is killed, then the commit of what it planned: nothing of either is half there (FAULTS.md, I1 to I8)."""

from collections.abc import Callable
from typing import LiteralString

import pytest

from rowcall.engine import moves
from rowcall.engine.doctor import verify_job
from rowcall.store.jobs import get_job

from .conftest import NewTrial
from .gate import gate_at
from .invariants import Account, account_of, differences, violations, violations_at_the_end
from .moments import MOMENTS
from .parcels import IMPORTERS
from .trial import Trial

PLANNING: dict[str, LiteralString] = {
    "piece": "TRIGGER stop AFTER INSERT ON rowcall.plan_piece FOR EACH ROW WHEN (NEW.first_row = 401)",
    "inside COMMIT": """TRIGGER stop AFTER INSERT ON rowcall.plan_piece FOR EACH ROW WHEN (NEW.first_row = 401)
                        EXECUTE FUNCTION gate_in_commit()""",
    "plan": "TRIGGER stop AFTER INSERT ON rowcall.plan FOR EACH ROW WHEN (true)",
}
COMMITTING = ("K7 target write", "K8 batch marked", "K9 inside COMMIT", "K11 ending")


def check(trial: Trial) -> None:
    """What must hold at any moment, by both accounts."""
    assert violations(trial) == {}
    importer = IMPORTERS[trial.job.importer]
    with trial.connect() as connection:
        found = verify_job(connection, get_job(connection, str(trial.job.id)), importer, [importer])
    assert [finding for finding in found if finding.verdict.bad] == []


def killed_at(trial: Trial, moment: LiteralString) -> None:
    with gate_at(trial, moment) as gate:
        importing = trial.start()
        gate.wait()
        importing.kill()
        trial.wait_until_noticed()
        check(trial)


def previewed(new_trial: NewTrial, importer: str) -> Trial:
    trial = new_trial(importer)
    trial.sql("""UPDATE rowcall.job SET config = config || '{"preview": true}'""")
    return trial


def submitted(trial: Trial) -> None:
    with trial.connect() as connection, connection.transaction():
        moves.submit(connection, get_job(connection, str(trial.job.id)), {moves.ANY_PLAN})
    check(trial)


@pytest.mark.parametrize("moment", PLANNING)
def test_killed_preview_is_gone_on_with(new_trial: NewTrial, expected: Callable[..., Account], moment: str) -> None:
    trial = previewed(new_trial, "parcel_updates")
    killed_at(trial, PLANNING[moment])
    assert trial.run_to_the_end() == "VALIDATED"
    check(trial)
    submitted(trial)
    trial.run_to_the_end()
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected("parcel_updates")) == []


@pytest.mark.parametrize("moment", COMMITTING)
@pytest.mark.parametrize("importer", ["parcels_once", "parcel_updates"])
def test_killed_commit_of_a_plan_is_gone_on_with(
    new_trial: NewTrial, expected: Callable[..., Account], importer: str, moment: str
) -> None:
    trial = previewed(new_trial, importer)
    assert trial.run_to_the_end() == "VALIDATED"
    submitted(trial)
    killed_at(trial, MOMENTS[moment])
    trial.run_to_the_end()
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected(importer)) == []


def test_preview_with_a_batch_that_lost_its_plan_is_found_out(new_trial: NewTrial) -> None:
    trial = previewed(new_trial, "parcels")
    assert trial.run_to_the_end() == "VALIDATED"
    trial.sql("DELETE FROM rowcall.plan_piece WHERE first_row = 401")
    trial.sql("DELETE FROM rowcall.outcome WHERE row_number = 7")
    assert {name[:2] for name in violations(trial)} == {"I3", "I4"}
    with trial.connect() as connection:
        job = get_job(connection, str(trial.job.id))
        found = verify_job(connection, job, IMPORTERS["parcels"], [IMPORTERS["parcels"]])
    assert {"I3", "I4"} <= {finding.name for finding in found if finding.verdict.bad}
