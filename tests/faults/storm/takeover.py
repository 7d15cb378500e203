"""How long the jobs of a killed worker wait for the next one."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from .fleet import Fleet

_HELD = """
SELECT j.id FROM rowcall.job j
WHERE j.state IN ('UPLOADED', 'COLUMN_MAPPING', 'VALIDATING', 'PROCESSING') AND EXISTS (
    SELECT FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND (a.usename = %(who)s) = %(by)s
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('rowcall job ' || j.id::text, 0))
"""
_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'rowcall pulse%%' AND usename <> ALL (%s)
"""
_WAITS = "SELECT id FROM rowcall.job WHERE id = ANY (%s) AND state IN ('UPLOADED', 'COLUMN_MAPPING', 'PROCESSING')"
_LONGEST = 90.0


@dataclass
class Takeovers:
    """Seconds from each kill -9 to the moment when another worker has the job; if there was one all the time."""

    fleet: Fleet
    seconds: list[float] = field(default_factory=list[float])
    _disturbed: float = 0.0
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    def disturb(self) -> None:
        """Nobody could have taken over just now."""
        self._disturbed = time.monotonic()

    @contextmanager
    def measured(self, who: str) -> Generator[None]:
        """Around the kill of a worker."""
        held = self.fleet.try_sql(_HELD, {"who": who, "by": True}) or []
        yield
        if held:
            arguments = ({job for (job,) in held}, who, time.monotonic())
            self._threads.append(threading.Thread(target=self._watch, args=arguments, name="takeover", daemon=True))
            self._threads[-1].start()

    def finish(self) -> None:
        for thread in self._threads:
            thread.join(_LONGEST)

    def _watch(self, jobs: set[UUID], who: str, killed: float) -> None:
        while jobs and time.monotonic() < killed + _LONGEST:
            time.sleep(0.04)
            taken = self.fleet.try_sql(_HELD, {"who": who, "by": False})
            waiting = self.fleet.try_sql(_WAITS, [list(jobs)])
            unable = [worker.name for worker in self.fleet.workers if worker.stopped]
            others = self.fleet.try_sql(_OTHERS, [[who, *unable]])
            now = time.monotonic()
            if self._disturbed > killed or others == [(0,)]:
                return
            if taken is None or waiting is None:
                continue
            gone = jobs & {job for (job,) in taken} | jobs - {job for (job,) in waiting}
            self.seconds += [now - killed] * len(gone)
            jobs -= gone
