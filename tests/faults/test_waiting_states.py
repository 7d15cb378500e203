"""Jobs that wait for a person wait on, whatever is killed, and then end as they would have (issue 5, §10)."""

from typing import Any

from psycopg import Connection

from rowcall.model import WORKING
from rowcall.store import jobs
from rowcall.store.jobs import Job
from rowcall.worker.queue import nudge

from . import deeds
from .conftest import NewTrial
from .deeds import Deed, account, do, memory, wrong
from .invariants import violations
from .parcels import LATE_KINDS, some_parcels
from .trial import Trial, new_job, wait_for
from .workers import end_all, hand_over, start_worker

# importer, file, the state that it waits in, who can let it go on and how, the state that it ends in
_WAITING: dict[str, tuple[str, bytes, str, tuple[Deed, ...], str]] = {
    "held": ("parcels", some_parcels("H"), "UPLOADED", (deeds.start,), "COMPLETED_WITH_ERRORS"),
    "paused": ("parcels", some_parcels("Z"), "PAUSED", (deeds.resume,), "COMPLETED_WITH_ERRORS"),
    "columns": (
        "parcels_asking",
        some_parcels("C"),
        "COLUMN_MAPPING",
        (deeds.confirm_columns,),
        "COMPLETED_WITH_ERRORS",
    ),
    "values": (
        "parcels_of_kinds",
        some_parcels("V", kinds=("Box", "Palette", "Barrel")),
        "CELL_MAPPING",
        (deeds.confirm_values,),
        "COMPLETED_WITH_ERRORS",
    ),
    "late value": (
        "parcels_of_late_kinds",
        some_parcels("L", kinds=("Box", "Box", "Sack")),
        "CELL_MAPPING",
        (deeds.decide_values, deeds.confirm_values),
        "COMPLETED_WITH_ERRORS",
    ),
    "warned": (
        "parcels_compared",
        some_parcels("P", step=10, others=2),
        "FINGERPRINT_WARN",
        (deeds.acknowledge,),
        "COMPLETED_WITH_ERRORS",
    ),
    "aborted": (
        "parcels_compared",
        some_parcels("P", step=10, others=9),
        "FINGERPRINT_ABORT",
        (deeds.cancel,),
        "FAILED",
    ),
    "previewed": ("parcels_shown", some_parcels("S"), "VALIDATED", (deeds.submit,), "COMPLETED_WITH_ERRORS"),
}
Jobs = dict[str, Job]


def bring(trial: Trial) -> Jobs:
    """All that waits, before anybody works on it."""
    with trial.connect() as connection:
        connection.execute(LATE_KINDS)
    found = {
        name: new_job(trial.url, trial.data, importer, content) for name, (importer, content, *_) in _WAITING.items()
    }
    trial.sql("UPDATE rowcall.job SET wish = 'hold' WHERE id IN (%s, %s)", found["held"].id, trial.job.id)
    do(trial, found["paused"], deeds.pause)
    return found


def answer(trial: Trial, found: Jobs) -> None:
    for name, job in found.items():
        do(trial, job, *_WAITING[name][3])


def states(trial: Trial, found: Jobs) -> dict[str, str]:
    with trial.connect() as connection:
        return {name: jobs.get_job(connection, str(job.id)).state for name, job in found.items()}


def attended(connection: Connection[Any]) -> bool:
    """Whether somebody works on a job, or should."""
    row = connection.execute(
        """SELECT EXISTS (
               SELECT FROM rowcall.job
               WHERE rowcall.is_worked_on(id) OR (wish IS DISTINCT FROM 'hold' AND state = ANY (%s)))""",
        [[*WORKING]],
    ).fetchone()
    return row != (False,)


def tell_workers(trial: Trial, found: Jobs) -> None:
    with trial.connect() as connection:
        for job in found.values():
            nudge(connection, job.id)


def all_rest(trial: Trial) -> None:
    with trial.connect() as connection:
        wait_for(lambda: not attended(connection))


def without_faults(trial: Trial) -> dict[str, list[Any]]:
    found = bring(trial)
    for job in found.values():
        trial.run_to_the_end(job=job)
    do(trial, found["values"], deeds.decide_values)
    answer(trial, found)
    for job in found.values():
        trial.run_to_the_end(job=job)
    assert states(trial, found) == {name: ended for name, (*_, ended) in _WAITING.items()}
    return account(trial, **found)


def test_whoever_waits_for_a_person_waits_through_kills_of_workers_and_database(new_trial: NewTrial) -> None:
    """One job for each state in which jobs wait, also where rows are written already."""
    trial = new_trial(rows=400, content=some_parcels("X"), batch_rows=20, workers=1)
    found = bring(trial)
    hand_over(trial)
    tell_workers(trial, found)
    start_worker(trial)
    all_rest(trial)
    assert states(trial, found) == {name: state for name, (_, _, state, *_) in _WAITING.items()}
    written = "SELECT count(*) FROM rowcall.outcome WHERE job_id = %s AND attempt > 0"
    assert (trial.sql(written, found["values"].id), trial.sql(written, found["late value"].id)) == ([0], [40])
    do(trial, found["values"], deeds.decide_values)  # answered, and not yet confirmed
    before = memory(trial, *found.values())
    end_all(trial)
    trial.server.kill()
    trial.server.start()
    assert memory(trial, *found.values()) == before
    tell_workers(trial, found)
    do(trial, trial.job, deeds.start)
    start_worker(trial)
    wait_for(lambda: trial.state() == "COMPLETED_WITH_ERRORS")  # it works, and on others only
    all_rest(trial)
    assert memory(trial, *found.values()) == before
    answer(trial, found)
    tell_workers(trial, found)
    all_rest(trial)
    end_all(trial)
    assert states(trial, found) == {name: ended for name, (*_, ended) in _WAITING.items()}
    assert violations(trial) == {}
    assert wrong(trial) == []
    calm = new_trial(rows=400, content=some_parcels("X"), batch_rows=20, workers=1)
    expected = without_faults(calm)
    reached = account(trial, **found)
    reached["target"] = [row for row in reached["target"] if not row[0].startswith("X")]
    assert reached == expected
