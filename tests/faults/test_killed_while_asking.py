"""Whoever asks people, or does what they say, is killed at every step of it; then it is done as if nothing had been."""

from dataclasses import dataclass
from typing import LiteralString

import pytest

from . import deeds
from .conftest import NewTrial
from .deeds import Deed, account, do, memory, wrong
from .gate import gate_at
from .invariants import violations_at_the_end
from .parcels import some_parcels
from .trial import Trial

_FILES = {
    "parcels": some_parcels("A"),
    "parcels_asking": some_parcels("C"),
    "parcels_of_kinds": some_parcels("V", kinds=("Box", "Palette", "Barrel")),
    "parcels_of_late_kinds": some_parcels("L", kinds=("Box", "Box", "Sack")),
    "parcels_compared": some_parcels("P", step=10, others=2),
    "parcels_shown": some_parcels("S"),
}
_ANSWERS: dict[str, tuple[Deed, ...]] = {
    "parcels_asking": (deeds.confirm_columns,),
    "parcels_of_kinds": (deeds.decide_values, deeds.confirm_values),
    "parcels_of_late_kinds": (deeds.decide_values, deeds.confirm_values),
    "parcels_compared": (deeds.acknowledge,),
    "parcels_shown": (deeds.submit,),
}
_MOVING: LiteralString = "TRIGGER stop BEFORE UPDATE ON rowcall.job FOR EACH ROW WHEN "
_AT_WORK: dict[str, tuple[str, LiteralString]] = {
    "gathering values": (
        "parcels_of_kinds",
        "TRIGGER stop BEFORE INSERT ON rowcall.value_mapping FOR EACH ROW WHEN (NEW.value = 'Palette')",
    ),
    "late value": (
        "parcels_of_late_kinds",
        _MOVING + "(OLD.state = 'PROCESSING' AND NEW.state = 'CELL_MAPPING')",
    ),
    "comparing": ("parcels_compared", "TRIGGER stop BEFORE INSERT ON rowcall.fingerprint_check FOR EACH ROW"),
    "warning": ("parcels_compared", _MOVING + "(NEW.state = 'FINGERPRINT_WARN')"),
    "planning": (
        "parcels_shown",
        "TRIGGER stop BEFORE INSERT ON rowcall.plan_piece FOR EACH ROW WHEN (NEW.first_row = 21)",
    ),
    "plan complete": ("parcels_shown", _MOVING + "(NEW.state = 'VALIDATED')"),
}


@dataclass(frozen=True, kw_only=True)
class _Deed:
    """What a process that is killed was to do, after what, and before what."""

    importer: str
    before: tuple[Deed, ...] = ()
    deed: Deed
    moment: LiteralString
    after: tuple[Deed, ...] = ()


_DEEDS = {
    "confirming columns": _Deed(
        importer="parcels_asking", deed=deeds.confirm_columns, moment=_MOVING + "(OLD.wish = 'hold')"
    ),
    "confirming values": _Deed(
        importer="parcels_of_kinds",
        before=(deeds.decide_values,),
        deed=deeds.confirm_values,
        moment=_MOVING + "(OLD.wish = 'hold')",
    ),
    "acknowledging": _Deed(
        importer="parcels_compared", deed=deeds.acknowledge, moment=_MOVING + "(OLD.state = 'FINGERPRINT_WARN')"
    ),
    "submitting": _Deed(importer="parcels_shown", deed=deeds.submit, moment=_MOVING + "(NEW.state = 'PROCESSING')"),
    "correcting": _Deed(
        importer="parcels_shown",
        deed=deeds.correct,
        moment="TRIGGER stop BEFORE UPDATE ON rowcall.plan_piece FOR EACH ROW",
        after=(deeds.submit,),
    ),
    "correcting what failed": _Deed(
        importer="parcels",
        deed=deeds.correct,
        moment="TRIGGER stop AFTER INSERT ON rowcall.row_edit FOR EACH ROW",
    ),
    "merging a workbook": _Deed(
        importer="parcels", deed=deeds.bring_back, moment="TRIGGER stop BEFORE INSERT ON rowcall.retry FOR EACH ROW"
    ),
}


def begun(new_trial: NewTrial, importer: str) -> Trial:
    return new_trial(importer, rows=400, content=_FILES[importer], batch_rows=20, workers=1)


def goes_on(trial: Trial, *wanted: Deed) -> None:
    """As far as it goes, with what people do then."""
    trial.run_to_the_end()
    if wanted:
        do(trial, trial.job, *wanted)
        trial.run_to_the_end()


def check(trial: Trial, calm: Trial) -> None:
    assert violations_at_the_end(trial) == {}
    assert wrong(trial) == []
    assert account(trial, job=trial.job) == account(calm, job=calm.job)


@pytest.mark.parametrize("moment", _AT_WORK)
def test_killed_where_people_are_asked_next_it_asks_the_same(new_trial: NewTrial, moment: str) -> None:
    importer, trigger = _AT_WORK[moment]
    trial, calm = begun(new_trial, importer), begun(new_trial, importer)
    with gate_at(trial, trigger) as gate:
        importing = trial.start()
        gate.wait()
        importing.kill()
        trial.wait_until_noticed()
        assert wrong(trial) == []
    goes_on(trial, *_ANSWERS[importer])
    goes_on(calm, *_ANSWERS[importer])
    check(trial, calm)


@pytest.mark.parametrize("name", _DEEDS)
def test_killed_while_it_does_what_a_person_says_nothing_of_it_is_done(new_trial: NewTrial, name: str) -> None:
    said = _DEEDS[name]
    trial, calm = begun(new_trial, said.importer), begun(new_trial, said.importer)
    goes_on(calm, *said.before, said.deed, *said.after)
    trial.run_to_the_end()
    do(trial, trial.job, *said.before)
    before = memory(trial, trial.job)
    with gate_at(trial, said.moment) as gate:
        doing = trial.start(deed=said.deed.__name__)
        gate.wait()
        doing.kill()
        trial.wait_until_noticed()
        assert memory(trial, trial.job) == before
    goes_on(trial, said.deed, *said.after)
    check(trial, calm)
