"""The faults. Each does its harm now, and says what is to be done later to undo it, if anything."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from ..trial import waiting
from .fleet import Fleet, Process
from .sabotage import GATES, LOCK
from .takeover import Takeovers

_SHOWING_UP = 3.0
"""Seconds to wait for somebody to come to a gate."""
_ENDING = 40.0
"""Seconds within which a worker ends that was told to: its grace and some more."""
_DDL = (
    "ALTER TABLE users ADD COLUMN IF NOT EXISTS extra text",
    "ALTER TABLE users DROP COLUMN IF EXISTS extra",
    "ALTER TABLE articles ADD COLUMN IF NOT EXISTS extra integer DEFAULT 1",
    "ALTER TABLE articles DROP COLUMN IF EXISTS extra",
    "CREATE INDEX IF NOT EXISTS extra ON comments (created_at)",
    "DROP INDEX IF EXISTS extra",
    "VACUUM FULL users",
    "REINDEX TABLE articles",
)


@dataclass
class Storm:
    """What blows, and what is to be mended later."""

    fleet: Fleet
    dice: random.Random
    takeovers: Takeovers
    told: Callable[[str], None]
    later: list[tuple[float, Callable[[], None]]] = field(default_factory=list[tuple[float, Callable[[], None]]])

    def blow(self, name: str) -> bool:
        """One fault; whether there was anybody for it to hit."""
        return FAULTS[name][1](self) is not False

    def mend(self, *, all_of_it: bool = False) -> None:
        """Undo what was to last until now, and start what is down."""
        now = time.monotonic()
        due = [undo for at, undo in self.later if all_of_it or at <= now]
        self.later = [] if all_of_it else [(at, undo) for at, undo in self.later if at > now]
        for undo in due:
            undo()
        self.fleet.look_after()

    def _after(self, shortest: float, longest: float, undo: Callable[[], None]) -> None:
        self.later.append((time.monotonic() + self.dice.uniform(shortest, longest), undo))

    def _worker(self) -> Process | None:
        able = [worker for worker in self.fleet.workers if worker.runs and not worker.stopped and not worker.ending]
        return self.dice.choice(able) if able else None

    # ---------------------------------------------------------------------------------------------- processes

    def kill_worker(self) -> bool:
        worker = self._worker()
        if worker:
            self._kill(worker)
        return bool(worker)

    def _kill(self, worker: Process) -> None:
        with self.takeovers.measured(worker.name):
            worker.kill()
        self._after(0, 3, worker.start)

    def kill_api(self) -> bool:
        api = self.dice.choice(self.fleet.apis)
        if not api.runs:
            return False
        api.kill()
        self._after(0, 2, api.start)
        return True

    def kill_all_workers(self) -> None:
        self.takeovers.disturb()
        for worker in self.fleet.workers:
            worker.kill()
        self._after(0.5, 3, self._start_workers)

    def _start_workers(self) -> None:
        for worker in self.fleet.workers:
            if not worker.runs:
                worker.start()

    def term_worker(self) -> bool:
        return self._term(twice=False)

    def term_worker_twice(self) -> bool:
        return self._term(twice=True)

    def _term(self, *, twice: bool) -> bool:
        worker = self._worker()
        if not worker:
            return False
        worker.ending = True
        worker.signal(signal.SIGTERM)
        if twice:
            time.sleep(self.dice.uniform(0.01, 0.5))
            worker.signal(signal.SIGTERM)

        told = time.monotonic()

        def restart() -> None:
            if not worker.runs:
                worker.start()
            elif time.monotonic() < told + _ENDING:
                self._after(0.2, 0.5, restart)
            else:
                self.fleet.trouble.append(f"{worker.name} did not end within {_ENDING} s of SIGTERM")
                worker.signal(signal.SIGABRT)  # its threads are told in its log
                time.sleep(0.5)
                worker.kill()
                worker.start()

        self._after(1, 4, restart)
        return True

    def stop_worker(self) -> bool:
        """SIGSTOP, mostly for longer than it takes others to notice."""
        worker = self._worker()
        if not worker:
            return False
        worker.stopped = True
        worker.signal(signal.SIGSTOP)

        def go_on() -> None:
            worker.stopped = False
            worker.signal(signal.SIGCONT)

        self._after(1, 30, go_on)
        return True

    # ------------------------------------------------------------------------------------------- the database

    def kill_postmaster(self) -> None:
        self.takeovers.disturb()
        self.fleet.server.kill()
        time.sleep(self.dice.uniform(0, 3))
        self.fleet.server.start()
        self.takeovers.disturb()

    def restart_database(self) -> None:
        self.takeovers.disturb()
        self.fleet.server.stop()
        time.sleep(self.dice.uniform(0.5, 8))
        self.fleet.server.start()
        self.takeovers.disturb()

    def kill_backend(self) -> bool:
        """Kill -9 of a session's process: PostgreSQL ends all others too, and recovers."""
        pid = self._session()
        if pid is None:
            return False
        self.takeovers.disturb()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return True

    def terminate_sessions(self) -> bool:
        pids = [pid for pid in (self._session() for _ in range(self.dice.randint(1, 4))) if pid]
        for pid in pids:
            self.fleet.try_sql("SELECT pg_terminate_backend(%s)", [pid])
        return bool(pids)

    def _session(self) -> int | None:
        found = self.fleet.try_sql(
            "SELECT pid FROM pg_stat_activity WHERE datname = 'storm' AND application_name LIKE 'rowcall%'"
        )
        return self.dice.choice(found)[0] if found else None

    def _mischief(self, code: str, chance: float) -> bool:
        if self.fleet.try_sql("INSERT INTO storm.mischief VALUES (%s, %s)", [code, chance]) is None:
            return False
        self._after(0.5, 3, self.no_more_mischief)
        return True

    def no_more_mischief(self) -> None:
        while self.fleet.try_sql("DELETE FROM storm.mischief") is None:
            time.sleep(0.1)

    def deadlocks(self) -> bool:
        return self._mischief("40P01", 0.5)

    def serialization_failures(self) -> bool:
        return self._mischief("40001", 0.5)

    def lock_timeouts(self) -> bool:
        return self._mischief("55P03", 0.5)

    def statement_timeouts(self) -> bool:
        return self._mischief("57014", 0.4)

    def disk_full(self) -> bool:
        return self._mischief("53100", 1)

    def ddl(self) -> bool:
        statement = self.dice.choice(_DDL)
        return self.fleet.try_sql(statement) is not None

    # -------------------------------------------------------------------------------------------- the network

    def cut_network(self) -> None:
        self.fleet.proxy.cut()

    def silent_network(self) -> None:
        """Nothing comes through; in the end both sides have given up on each other, if it was long."""
        self.fleet.proxy.silence()

        def heal() -> None:
            if long:
                self.fleet.proxy.cut()
            self.fleet.proxy.heal()

        seconds = self.dice.uniform(1, 20)
        long = seconds > 5
        self.later.append((time.monotonic() + seconds, heal))

    def lose_commits(self) -> None:
        self.fleet.proxy.lose(lambda _: True)
        self._after(0.2, 2, lambda: self.fleet.proxy.lose(lambda _: False))

    # ---------------------------------------------------------------------------------------------- the queue

    def duplicate_nudges(self) -> bool:
        added = self.fleet.try_sql(
            """INSERT INTO rowcall_queue.procrastinate_jobs (queue_name, task_name, args)
               SELECT 'default', 'advance', jsonb_build_object('job_id', id)
               FROM (SELECT id FROM rowcall.job ORDER BY random() LIMIT 1) one, generate_series(1, 100)"""
        )
        return added is not None

    def delete_nudges(self) -> bool:
        return self.fleet.try_sql("DELETE FROM rowcall_queue.procrastinate_jobs WHERE status = 'todo'") is not None

    def strand_nudges(self) -> bool:
        """Nudges in the hands of a worker that isn't there."""
        stranded = self.fleet.try_sql(
            "UPDATE rowcall_queue.procrastinate_jobs SET status = 'doing', worker_id = NULL WHERE status = 'todo'"
        )
        return stranded is not None

    # ------------------------------------------------------------------------------------------ named moments

    def at_a_gate(self) -> bool:
        """Whoever comes to a named moment next is met there."""
        place = self.dice.choice(GATES)
        harm = self.dice.choice(["kill", "kill", "kill", "terminate", "stop", "postmaster"])
        try:
            with self.fleet.connect() as keeper:
                keeper.execute("SELECT pg_advisory_lock(%s)", [LOCK])
                keeper.execute("INSERT INTO storm.gate VALUES (%s) ON CONFLICT DO NOTHING", [place])
                pid = self._shows_up(keeper)
                keeper.execute("DELETE FROM storm.gate")
                if pid is None:
                    return False
                self.told(f"{harm} at {place}")
                self._meet(keeper, pid, harm)
        except psycopg.OperationalError:  # the server went away, as it was told to
            return True
        return True

    def _shows_up(self, keeper: psycopg.Connection[tuple[object, ...]]) -> int | None:
        deadline = time.monotonic() + _SHOWING_UP
        while time.monotonic() < deadline:
            if found := waiting(keeper, "advisory"):
                return found[0]
            time.sleep(0.02)
        return None

    def _meet(self, keeper: psycopg.Connection[tuple[object, ...]], pid: int, harm: str) -> None:
        found = keeper.execute("SELECT usename FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
        who = next((one for one in self.fleet.processes if found and one.name == found[0]), None)
        if harm == "postmaster":
            self.kill_postmaster()
        elif harm == "terminate" or who is None or not who.runs or who.ending:
            keeper.execute("SELECT pg_terminate_backend(%s)", [pid])
        elif harm == "stop":
            who.signal(signal.SIGSTOP)
            self.later.append((time.monotonic() + self.dice.uniform(0, 12), lambda: who.signal(signal.SIGCONT)))
        elif who in self.fleet.apis:
            who.kill()
            self._after(0, 2, who.start)
        else:
            self._kill(who)


FAULTS: dict[str, tuple[float, Callable[[Storm], bool | None]]] = {
    "kill -9 worker": (6, Storm.kill_worker),
    "kill -9 API": (3, Storm.kill_api),
    "kill -9 all workers": (1, Storm.kill_all_workers),
    "SIGTERM worker": (2, Storm.term_worker),
    "SIGTERM worker twice": (1, Storm.term_worker_twice),
    "SIGSTOP worker": (1.5, Storm.stop_worker),
    "kill -9 postmaster": (1, Storm.kill_postmaster),
    "database down for a while": (1, Storm.restart_database),
    "kill -9 backend": (1, Storm.kill_backend),
    "pg_terminate_backend": (4, Storm.terminate_sessions),
    "deadlock": (1, Storm.deadlocks),
    "serialization failure": (1, Storm.serialization_failures),
    "lock timeout": (1, Storm.lock_timeouts),
    "statement timeout": (1, Storm.statement_timeouts),
    "database disk full": (1, Storm.disk_full),
    "DDL on a target": (2, Storm.ddl),
    "network cut": (2, Storm.cut_network),
    "network silent": (1.5, Storm.silent_network),
    "COMMIT's answer lost": (2, Storm.lose_commits),
    "100 duplicate nudges": (1, Storm.duplicate_nudges),
    "nudges deleted": (2, Storm.delete_nudges),
    "nudges stranded": (1, Storm.strand_nudges),
    "at a named moment": (8, Storm.at_a_gate),
}
"""By name: how often, and what."""


def blow_until(storm: Storm, over: threading.Event, counted: Callable[[str], None]) -> None:
    """Fault after fault."""
    names, weights = list(FAULTS), [weight for weight, _ in FAULTS.values()]
    while not over.is_set():
        storm.mend()
        name = storm.dice.choices(names, weights)[0]
        storm.told(name)
        if storm.blow(name):
            counted(name)
        over.wait(storm.dice.uniform(0.3, 2.5))
