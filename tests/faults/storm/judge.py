"""Holds jobs against what must be: the product's own checks (I1 to I6, I8 to I11) and calm weather (I7)."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg
from psycopg import Connection

from rowcall.engine.doctor import verify_job
from rowcall.engine.surroundings import check_together
from rowcall.store import jobs

from .account import Calm, Outcomes, outcomes_of, target_of
from .fleet import Fleet

_TOGETHER: dict[str, LiteralString] = {
    "job that has not ended": """
        SELECT number, state FROM rowcall.job
        WHERE state NOT IN ('COMPLETED', 'COMPLETED_WITH_ERRORS', 'CANCELLED', 'FAILED')""",
    "I5 created and there are not as many": """
        SELECT importer, created, there FROM (
            SELECT j.importer, count(*) AS created FROM rowcall.outcome o JOIN rowcall.job j ON j.id = o.job_id
            WHERE o.status = 'created' GROUP BY 1) c
        JOIN (SELECT 'users' AS importer, count(*) AS there FROM users
              UNION ALL SELECT 'articles', count(*) FROM articles
              UNION ALL SELECT 'comments', count(*) FROM comments) t USING (importer)
        WHERE created <> there""",
}


@dataclass
class Judge:
    """Gathers what is not as it must be."""

    fleet: Fleet
    calm: Calm
    violations: list[str] = field(default_factory=list[str])
    verified: int = 0
    rows: int = 0
    """With an outcome, or cancelled."""
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    def verify(self, job_id: str) -> None:
        """I1 to I6 and I8 of a job that has ended."""
        by_name = self.fleet.registry.by_name()

        def verified(connection: Connection[Any]) -> None:
            job = jobs.get_job(connection, job_id)
            for finding in verify_job(connection, job, by_name[job.importer], tuple(by_name.values())):
                if finding.verdict.bad:
                    self._say(f"{job.number} ({job.state}) {finding.name} {finding.said} {list(finding.examples)}")
            self.verified += 1

        self._look(verified)

    def whole(self, job_id: str, name: str, importer: str, token: str) -> None:
        """I7 of a job that went through: its outcomes and its rows in the target are those of calm weather."""

        def look(connection: Connection[Any]) -> None:
            self._compare(job_id, outcomes_of(connection, job_id), self.calm.outcomes[name])
            if target_of(connection, importer, token) != self.calm.targets[name]:
                self._say(f"{job_id}: I7 {importer} with {token} are not those of calm weather")

        self._look(look)

    def part(self, job_id: str, name: str, importer: str, token: str) -> None:
        """I7 of a job that was cancelled: what became of rows is what becomes of them, and no other row is there."""

        def look(connection: Connection[Any]) -> None:
            outcomes = outcomes_of(connection, job_id)
            calm = self.calm.outcomes[name]
            self._compare(job_id, outcomes, {row: calm[row] for row in outcomes})
            written = sum(status == "created" for status, _ in outcomes.values())
            if len(target_of(connection, importer, token)) != written:
                self._say(f"{job_id}: I5 {importer} with {token} are not those {written} that it says it created")

        self._look(look)

    def twins(self, one: str, other: str, token: str) -> None:
        """I7 of two jobs with the same rows: each row was created by one of them, and known to the other."""

        def look(connection: Connection[Any]) -> None:
            both = [outcomes_of(connection, job) for job in (one, other)]
            for row, first in self.calm.outcomes["users"].items():
                expected = Counter([first, self.calm.outcomes["again"][row]])
                if (found := Counter(outcomes[row] for outcomes in both)) != expected:
                    self._say(f"{one} and {other}: I7 row {row} came to {found} instead of {expected}")
                    return
            if target_of(connection, "users", token) != self.calm.targets["again"]:
                self._say(f"{one} and {other}: I7 users with {token} are not those of calm weather")

        self._look(look)

    def all_of_it(self) -> None:
        """What must hold of all jobs together, when every one has ended."""

        def look(connection: Connection[Any]) -> None:
            for name, statement in _TOGETHER.items():
                if found := connection.execute(statement).fetchmany(5):
                    self._say(f"{name}: {found}")
            for finding in check_together(connection):
                if finding.verdict.bad:
                    self._say(f"{finding.name} {finding.said} {list(finding.examples)}")
            (self.rows,) = connection.execute("SELECT count(*) FROM rowcall.row").fetchone() or (0,)

        self._look(look)

    def _compare(self, job_id: str, found: Outcomes, expected: Outcomes) -> None:
        if found != expected:
            rows = sorted(row for row in {*found, *expected} if found.get(row) != expected.get(row))
            shown = [(row, found.get(row), expected.get(row)) for row in rows[:3]]
            self._say(f"{job_id}: I7 {len(rows)} outcomes are not those of calm weather: {shown}")

    def _look(self, look: Any) -> None:
        """Look when the database lets us."""
        while True:
            try:
                with self._one_at_a_time, self.fleet.connect() as connection:
                    return look(connection)
            except psycopg.OperationalError:
                threading.Event().wait(0.3)

    def _say(self, what: str) -> None:
        self.violations.append(what)
