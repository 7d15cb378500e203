"""What people do to jobs that wait for them, in one transaction each; by this process or by one that is killed."""

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psycopg import Connection
from psycopg.sql import SQL, Identifier

from rowcall.engine import moves
from rowcall.engine.columns import answering as columns
from rowcall.engine.corrections.edit import edit_row
from rowcall.engine.corrections.rejects import KEY, merge_rejects, open_returned
from rowcall.engine.doctor import verify_job
from rowcall.engine.values import answering as decisions
from rowcall.engine.values.answering import ValueUpdate
from rowcall.engine.work import needed_by
from rowcall.formats import Limits
from rowcall.store import jobs
from rowcall.store.jobs import Job

from .parcels import IMPORTERS
from .trial import Trial

WHO = "ann"
_KEPT = (
    *("column_mapping", "value_mapping", "value_field", "fingerprint_check", "plan", "plan_piece"),
    *("batch", "outcome", "row_edit", "cell_edit", "retry", "job_event"),
)


def confirm_columns(connection: Connection[Any], job: Job) -> None:
    importer = IMPORTERS[job.importer]
    columns.confirm(connection, job, importer, needed_by(connection, importer, job.config.mode), WHO)


def decide_values(connection: Connection[Any], job: Job) -> None:
    """Whatever is not known is a box."""
    said = [ValueUpdate(field="kind", status="UNRESOLVED", target="1")]
    targets = decisions.find_targets(
        connection, IMPORTERS[job.importer], decisions.targets_named(connection, job, said)
    )
    decisions.update(connection, job, IMPORTERS[job.importer], said, targets, WHO)


def confirm_values(connection: Connection[Any], job: Job) -> None:
    decisions.confirm(connection, job)


def acknowledge(connection: Connection[Any], job: Job) -> None:
    moves.acknowledge(connection, job, WHO)


def submit(connection: Connection[Any], job: Job) -> None:
    moves.submit(connection, job, {moves.ANY_PLAN})


def correct(connection: Connection[Any], job: Job) -> None:
    """Correct the first parcel that is too heavy to tell."""
    edit_row(connection, job, IMPORTERS[job.importer], 7, {"weight": "7"}, who=WHO, revision=0)


def bring_back(connection: Connection[Any], job: Job) -> None:
    """Bring back the workbook of failed rows, as CSV, with the same one corrected."""
    mark = hashlib.sha256(f"{job.id} 7 1 0".encode()).hexdigest()[:16]
    with tempfile.TemporaryDirectory(prefix="rowcall-test-") as folder:
        path = Path(folder) / "rejects.csv"
        path.write_text(f"weight,{KEY}\n7,{job.number}.7.1.0.{mark}\n")
        with open_returned(path, path.name, Limits()) as reading:
            merged = merge_rejects(connection, job, IMPORTERS[job.importer], reading, who=WHO)
    assert (merged.laid.rows, merged.refused) == (1, 0), merged


def start(connection: Connection[Any], job: Job) -> None:
    moves.start(connection, job)


def pause(connection: Connection[Any], job: Job) -> None:
    moves.pause(connection, job)


def resume(connection: Connection[Any], job: Job) -> None:
    moves.resume(connection, job)


def cancel(connection: Connection[Any], job: Job) -> None:
    moves.cancel(connection, job)


Deed = Callable[[Connection[Any], Job], None]
_ALL: tuple[Deed, ...] = (confirm_columns, confirm_values, acknowledge, submit, correct, bring_back)
DEEDS: dict[str, Deed] = {deed.__name__: deed for deed in _ALL}
"""Those that a process can be told to do."""


def do(trial: Trial, job: Job, *wanted: Deed) -> None:
    """Have somebody do that, in this process."""
    for deed in wanted:
        with trial.connect() as connection, connection.transaction():
            deed(connection, jobs.get_job(connection, str(job.id)))


def memory(trial: Trial, *found: Job) -> dict[str, list[Any]]:
    """All that is kept of jobs: their states, questions, answers, plans, findings, and how they came there."""
    with trial.connect() as connection:
        kept = {
            table: connection.execute(
                SQL("SELECT t::text FROM {} t WHERE job_id = ANY (%s) ORDER BY 1").format(Identifier("rowcall", table)),
                [[job.id for job in found]],
            ).fetchall()
            for table in _KEPT
        }
        return kept | {"job": [jobs.get_job(connection, str(job.id)) for job in found]}


def account(trial: Trial, **found: Job) -> dict[str, list[Any]]:
    """What jobs came to, each row; and the target."""
    with trial.connect() as connection:
        outcomes = {
            name: connection.execute(
                """SELECT row_number, status::text, jsonb_path_query_array(issues, '$[*].code')::text
                   FROM rowcall.outcome WHERE job_id = %s ORDER BY 1""",
                [job.id],
            ).fetchall()
            for name, job in found.items()
        }
        target = connection.execute("SELECT code, reference, weight, note, kind FROM parcel ORDER BY 1").fetchall()
    return outcomes | {"target": target}


def wrong(trial: Trial) -> list[Any]:
    """What `rowcall doctor --verify` finds wrong with all jobs."""
    with trial.connect() as connection:
        found = [(job, IMPORTERS[job.importer]) for job in jobs.list_jobs(connection)]
        checked = [
            each for job, importer in found for each in verify_job(connection, job, importer, [*IMPORTERS.values()])
        ]
    return [finding for finding in checked if finding.verdict.bad]
