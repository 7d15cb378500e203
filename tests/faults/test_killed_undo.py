"""An undo is killed at every named moment; another process goes on with it (FAULTS.md, K38)."""

from typing import Any, LiteralString

import pytest

from rowcall.engine import moves
from rowcall.engine.doctor import verify_job
from rowcall.store.grid import Wanted
from rowcall.store.jobs import counts_of, get_job
from rowcall.store.undos import undos_of

from .conftest import ROWS, NewTrial
from .gate import gate_at
from .parcels import IMPORTERS, faultless_parcels
from .trial import Trial

_CREATED, _UPDATED = ROWS - ROWS // 20, ROWS // 40
MOMENTS: dict[str, LiteralString] = {
    "restoring": "TRIGGER stop AFTER UPDATE ON parcel FOR EACH ROW WHEN (NEW.code = 'P000900')",
    "deleting": "TRIGGER stop AFTER DELETE ON parcel FOR EACH ROW WHEN (OLD.code = 'P000899')",
    "noting what was done": """TRIGGER stop AFTER INSERT ON rowcall.reversal FOR EACH ROW
                               WHEN (NEW.row_number = 899)""",
    "counting": """TRIGGER stop BEFORE UPDATE ON rowcall.batch FOR EACH ROW
                   WHEN (NEW.reverted > 0 AND NEW.first_row = 801)""",
    "between slices": "TRIGGER stop BEFORE UPDATE ON rowcall.undo FOR EACH ROW WHEN (NEW.next_row <= 800)",
    "inside COMMIT": """TRIGGER stop AFTER UPDATE ON rowcall.undo FOR EACH ROW WHEN (NEW.next_row <= 800)
                        EXECUTE FUNCTION gate_in_commit()""",
    "ending": "TRIGGER stop BEFORE UPDATE ON rowcall.undo FOR EACH ROW WHEN (NEW.completed_at IS NOT NULL)",
    "ending, inside COMMIT": """TRIGGER stop AFTER UPDATE ON rowcall.job FOR EACH ROW WHEN (NEW.state = 'REVERTED')
                                EXECUTE FUNCTION gate_in_commit()""",
}
_TOGETHER: dict[str, LiteralString] = {
    "restoring": MOMENTS["restoring"],
    "between slices": MOMENTS["between slices"],
    "ending, inside COMMIT": MOMENTS["ending, inside COMMIT"],
}


def to_be_undone(new_trial: NewTrial, importer: str) -> tuple[Trial, list[Any]]:
    """A job that is to be taken back, and the target as it was before it."""
    trial = new_trial(importer, content=faultless_parcels(ROWS))
    before = target(trial)
    assert trial.run_to_the_end() == "COMPLETED"
    assert target(trial) != before
    with trial.connect() as connection, connection.transaction():
        job = get_job(connection, str(trial.job.id))
        moves.undo(connection, job, IMPORTERS[importer], Wanted(), account="ann")
    return trial, before


def target(trial: Trial) -> list[Any]:
    return trial.sql("SELECT p::text FROM parcel p ORDER BY code")


def check(trial: Trial) -> None:
    """What must hold at any moment."""
    importer = IMPORTERS[trial.job.importer]
    with trial.connect() as connection:
        found = verify_job(connection, get_job(connection, str(trial.job.id)), importer, [importer])
    assert [finding for finding in found if finding.verdict.bad] == []


def check_end(trial: Trial, before: list[Any]) -> None:
    trial.wait_until_noticed()
    check(trial)
    assert trial.state() == "REVERTED"
    assert target(trial) == before
    with trial.connect() as connection:
        job = get_job(connection, str(trial.job.id))
        [done] = undos_of(connection, job)
        assert (done.deleted, done.restored, done.kept, done.gone) == (_CREATED, _UPDATED, 0, 0)
        counts = counts_of(connection, job)
        assert (counts.reverted, counts.created, counts.updated) == (_CREATED + _UPDATED, 0, 0)


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_undo_is_gone_on_with(new_trial: NewTrial, moment: str) -> None:
    trial, before = to_be_undone(new_trial, "parcel_updates")
    with gate_at(trial, MOMENTS[moment]) as gate:
        importing = trial.start()
        gate.wait()
        importing.kill()
        trial.wait_until_noticed()
        check(trial)
    assert trial.run_to_the_end() == "REVERTED"
    check_end(trial, before)


@pytest.mark.parametrize("moment", MOMENTS)
def test_session_that_outlives_its_undo_does_no_harm(new_trial: NewTrial, moment: str) -> None:
    trial, before = to_be_undone(new_trial, "parcel_updates")
    with gate_at(trial, MOMENTS[moment]) as gate:
        importing = trial.start()
        gate.wait()
        importing.kill()
    assert trial.run_to_the_end() == "REVERTED"
    check_end(trial, before)


@pytest.mark.parametrize("moment", _TOGETHER)
def test_killed_undo_of_all_or_nothing_leaves_all_or_nothing(new_trial: NewTrial, moment: str) -> None:
    trial, before = to_be_undone(new_trial, "parcels_together")
    imported = target(trial)
    with gate_at(trial, _TOGETHER[moment]) as gate:
        importing = trial.start()
        gate.wait()
        importing.kill()
        trial.wait_until_noticed()
        assert target(trial) == imported
        check(trial)
    assert trial.run_to_the_end() == "REVERTED"
    check_end(trial, before)
