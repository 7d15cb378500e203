"""A job on one page: the file, how it was read, what became of its rows, who and when."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection

from rowcall.engine.finish import Balance, balance_of
from rowcall.importer import Importer
from rowcall.importer.conditions import mode_for
from rowcall.model import Mode
from rowcall.store.edits import EditCount, count_edits
from rowcall.store.fingerprints import FingerprintCheck, check_of
from rowcall.store.jobs import Job
from rowcall.store.mappings import ColumnMapping, columns_of
from rowcall.store.results import IssueCount, count_issues, last_sign_of
from rowcall.store.undos import Undone, undos_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a job did, for the files of whoever had it done."""

    job: Job
    target: str | None
    """The table that rows went to; None when the importer is no longer declared."""
    mode: Mode | None
    columns: list[ColumnMapping]
    balance: Balance
    issues: list[IssueCount]
    last_sign: datetime
    edits: list[EditCount]
    """Who corrected how much."""
    fingerprint: FingerprintCheck | None
    """Whether its file was about the same things as the target, and who let it go on."""
    undos: list[Undone]

    @property
    def milliseconds(self) -> int:
        """From the job's beginning to its end or, while it goes on, to what happened last."""
        return round((self.last_sign - self.job.created_at).total_seconds() * 1000)

    @property
    def rows_per_second(self) -> int | None:
        """None when there is nothing to divide by."""
        return round(1000 * self.balance.outcomes / self.milliseconds) if self.milliseconds else None


def receipt_of(connection: Connection[Any], job: Job, importer: type[Importer] | None) -> Receipt:
    """The receipt of a job, asked of the database; of an unfinished job, as far as it is."""
    return Receipt(
        job=job,
        target=importer.target if importer else None,
        mode=mode_of(job, importer),
        columns=columns_of(connection, job.id),
        balance=balance_of(connection, job),
        issues=count_issues(connection, job.id),
        last_sign=last_sign_of(connection, job),
        edits=count_edits(connection, job.id),
        fingerprint=check_of(connection, job.id),
        undos=undos_of(connection, job),
    )


def mode_of(job: Job, importer: type[Importer] | None) -> Mode | None:
    """What the job does with rows that are there already: as it was told, else as its importer says."""
    return mode_for(importer, job.config.mode) if importer else job.config.mode
