"""Worker processes for the fault tests: `rowcall worker` as it is, on the parcels of a trial."""

from typing import LiteralString

from rowcall.worker.queue import migrate_queue, nudge

from . import parcels
from .trial import Importing, Trial, wait_for

_BEATING: LiteralString = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'rowcall pulse%'
"""
_UNDER_WAY = ("UPLOADED", "COLUMN_MAPPING", "VALIDATING", "PROCESSING")


def hand_over(trial: Trial) -> None:
    """Make the trial's job one for workers, and tell them."""
    (trial.data / "rowcall.toml").write_text(f'importers = ["{parcels.__file__}"]')
    with trial.connect() as connection:
        migrate_queue(connection)
        connection.execute("UPDATE rowcall.job SET background = true")
        nudge(connection, trial.job.id)


def start_worker(trial: Trial, *, url: str | None = None) -> Importing:
    """A worker that is up."""
    config = str(trial.data / "rowcall.toml")
    worker = trial.run("worker", CONFIG=config, DATABASE_URL=url or trial.url)
    wait_for(lambda: "worker started" in worker.errors.read_text() or worker.ends())
    assert not worker.ends(), worker.errors.read_text()
    return worker


def beating(trial: Trial) -> int:
    """How many workers give signs of life."""
    (count,) = trial.sql(_BEATING)
    return count


def wait_until_it_ends(trial: Trial) -> str:
    """The state that the trial's job ends in, by itself."""
    return wait_for(lambda: state if (state := trial.state()) not in _UNDER_WAY else None)


def end_all(trial: Trial) -> None:
    """Kill all workers."""
    while trial.importings:
        trial.importings.pop().kill()
