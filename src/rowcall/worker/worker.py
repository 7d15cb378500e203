"""A process that works on jobs: takes a nudge, takes the job as far as it goes, takes the next.

Whatever happens to it, the jobs go on: their states are in the database, and every few seconds one of the workers looks
for jobs that nobody attends to.

Fair between organisations: each may have so many jobs worked on at a time, one place is kept for an organisation that
has none, and a job makes room at the end of a batch when another organisation waits.
"""

import asyncio
import os
import secrets
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from psycopg import AsyncConnection, Connection
from psycopg.rows import scalar_row

from rowcall.config import Settings
from rowcall.engine import observe
from rowcall.engine.run import Run, run_job
from rowcall.errors import Final, Retryable, RowcallError
from rowcall.export import known_resources
from rowcall.importer import Importer
from rowcall.importer.registry import Registry
from rowcall.model import WORKING, Code, State, Wish
from rowcall.store import jobs
from rowcall.store.db import Database, session_settings
from rowcall.store.files.filestore import file_store
from rowcall.store.jobs import Job
from rowcall.store.queries import query
from rowcall.telemetry.logs import logger
from rowcall.worker.chores import add_chores
from rowcall.worker.exports import EXPORTS_AT_ONCE, Exporter, add_export_tasks
from rowcall.worker.pulse import Listener, beating
from rowcall.worker.queue import ADVANCE, EXPORT, SCHEMA, nudge
from rowcall.worker.webhooks import Sender

_RECOVERY = 0.5
"""Seconds between looks for jobs that nobody attends to."""
_GRACE = 30.0
"""Seconds that work under way has to come to an end when the process is told to stop."""
_NUDGES = 4
"""Nudges and chores that are attended to at a time. What they lead to goes on beside that."""
_STORE_AGAIN = 2.0
"""Seconds between looks whether the file store is the right one again."""
_TURN = 5.0
"""Seconds that a job is worked on before it makes room for others."""
_log = logger(__name__)


@dataclass(slots=True)
class Worker:
    """One process."""

    database: Database
    registry: Registry
    settings: Settings
    stopping: bool = False
    stop_exports: threading.Event = field(default_factory=threading.Event)
    _runs: dict[UUID, Run | None] = field(default_factory=dict[UUID, Run | None])
    """Jobs that are worked on here; None: about to be."""
    _places: Counter[UUID] = field(default_factory=Counter[UUID])
    """How many of each organisation."""
    _threads: ThreadPoolExecutor | None = None
    _under_way: "set[asyncio.Future[None]]" = field(default_factory=set["asyncio.Future[None]"])
    _listener: Listener = field(default_factory=Listener)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _lost_store: bool = False
    """The file store has become another one, such as the empty folder under a disk that isn't mounted any more."""
    _leave: Callable[[], object] = lambda: None
    """Ends the listening for nudges."""

    async def run(self) -> None:
        """Work until told to stop by a signal; a second one ends it at once."""
        self.database = replace(self.database, process=secrets.token_hex(4))
        app = self._app()
        with beating(self.database), Sender(self.database, self.settings).running():
            await self._work_always(app)

    async def _work_always(self, app: App) -> None:
        async with app.open_async():
            recovering = asyncio.create_task(self._recover_always())
            while not self.stopping:
                if await asyncio.to_thread(self._has_store):
                    await self._listen(app)
                else:
                    await asyncio.sleep(_STORE_AGAIN)
            recovering.cancel()
            if self._under_way:
                await asyncio.wait(self._under_way)

    async def _listen(self, app: App) -> None:
        """Take nudges until told to stop, or the queue is lost: Procrastinate gives up when the database goes away."""
        listening = asyncio.create_task(
            app.run_worker_async(
                concurrency=_NUDGES,
                fetch_job_polling_interval=2.0,
                delete_jobs="always",
                shutdown_graceful_timeout=_GRACE,
                install_signal_handlers=False,
            )
        )
        loop = asyncio.get_running_loop()
        self._leave = lambda: loop.call_soon_threadsafe(listening.cancel)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._told_to_stop, listening)
        try:
            await listening
        except asyncio.CancelledError:
            return
        except (ConnectorException, psycopg.Error):
            _log.warning("queue lost", exc_info=True)
        if not self.stopping:
            await asyncio.sleep(_RECOVERY)

    def _told_to_stop(self, listening: "asyncio.Task[None]") -> None:
        if self.stopping:
            os._exit(1)
        _exit_after(_GRACE)
        self.halt()
        listening.cancel()

    def halt(self) -> None:
        """Take no new work, and end what is under way with the batches that are."""
        self.stopping = True
        self.stop_exports.set()
        with self._guard:
            for run in self._runs.values():
                if run:
                    run.stop.set()

    def _app(self) -> App:
        conninfo = self.database.conninfo("queue")
        app = App(connector=PsycopgConnector(conninfo=conninfo, configure=_in_schema, min_size=1, max_size=4))
        # one more for an organisation that has none, one to tell those who come that there is no place
        self._threads = ThreadPoolExecutor(self.settings.jobs_at_once + 2 + EXPORTS_AT_ONCE, "job")
        app.task(name=ADVANCE)(self._apart(self.advance))
        exporter = Exporter(self.database, known_resources(self.registry), self.settings, self.stop_exports)
        app.task(name=EXPORT)(self._apart(lambda _: exporter.work()))  # any that waits: not just that one
        add_export_tasks(app, exporter)
        add_chores(app, self.database, self.registry, self.settings, lambda: self.stopping)
        return app

    def _apart(self, work: Callable[[str], None]) -> Callable[[str], Awaitable[None]]:
        """The work as a task that ends as soon as the work has begun.

        Procrastinate stops, to be started again, whenever its session is lost, and waits for its tasks before: for as
        long as a large job takes, no other would be begun here.
        """

        async def begin(job_id: str) -> None:
            future = asyncio.get_running_loop().run_in_executor(self._threads, work, job_id)
            self._under_way.add(future)
            future.add_done_callback(self._ended)

        return begin

    def _ended(self, future: "asyncio.Future[None]") -> None:
        self._under_way.discard(future)
        if not future.cancelled() and (error := future.exception()):
            _log.error("nudge failed", exc_info=error)

    async def _recover_always(self) -> None:
        while True:
            await asyncio.sleep(_RECOVERY)
            if self._lost_store:
                continue
            with suppress(psycopg.Error, RowcallError):  # also a refusal: passwords change, servers take over
                await asyncio.to_thread(self.recover)

    def advance(self, job_id: str) -> None:
        """Take a job as far as it goes. What stops it is noted with the job; here it is only logged."""
        with self.database.reconnect("turn", idle_timeout=3600) as connection:
            try:
                job = jobs.get_job(connection, job_id)
            except Final:  # it was removed since
                return
            if _one(connection, "is_worked_on", {"id": job.id}):
                return
            with self._place(connection, job) as has_place:
                if not has_place or self.stopping or self._lost_store:
                    return
                if importer := self._importer(connection, job):
                    self._work(job, importer)
        with suppress(psycopg.Error, Retryable), self.database.connect("turn") as connection:
            self._nudge_next(connection, jobs.get_job(connection, job_id))

    def _importer(self, connection: Connection[Any], job: Job) -> type[Importer] | None:
        """The job's importer. Without it the job is for a person: it would be tried again for ever."""
        try:
            return self.registry.importer(job.importer)
        except Final as error:
            with suppress(Final):  # it was moved just now
                observe.moved(connection, job, jobs.move(connection, job, State.PAUSED, error=error))
            return None

    def _work(self, job: Job, importer: type[Importer]) -> None:
        run = Run(self.database, importer, self.settings, yields=_Turn(self, job).is_over)
        with self._guard:
            self._runs[job.id] = run
            if self.stopping:
                run.stop.set()
        try:
            with observe.working(job):
                run_job(run, job)
        except RowcallError as error:
            if error.code == Code.FOREIGN_FILE_STORE:
                self._leave_to_others(error)
            elif error.code not in (Code.JOB_BUSY, Code.INTERRUPTED):  # another has it; it goes on elsewhere
                told = {"job": job.number, "importer": job.importer, "request_id": job.request_id}
                _log.warning("job stopped", **told, code=error.code, exc_info=True)

    def _leave_to_others(self, error: RowcallError) -> None:
        """Take no more jobs while the file store is another's: none of their files are here."""
        if not self._lost_store:
            _log.error("file store lost: jobs are left to other workers", code=error.code, reason=error.message)
        self._lost_store = True
        self._leave()

    def _has_store(self) -> bool:
        """Whether the file store is the database's. What else may be wrong with it is told by whoever needs it."""
        try:
            file_store(self.settings).require_own()
        except (RowcallError, OSError) as error:
            if isinstance(error, RowcallError) and error.code == Code.FOREIGN_FILE_STORE:
                self._lost_store = True
                return False
        if self._lost_store:
            _log.info("file store is back")
        self._lost_store = False
        return True

    @contextmanager
    def _place(self, connection: Connection[Any], job: Job) -> Generator[bool]:
        """Whether this job may be worked on here and now; that is kept until this ends, or the process does."""
        with self._guard:
            full = self._places.total() - self.settings.jobs_at_once
            may = job.id not in self._runs and (full < 0 or (full == 0 and not self._places[job.organisation_id]))
            if may:
                self._runs[job.id] = None  # whoever is nudged for the same job meanwhile leaves it alone
                self._places[job.organisation_id] += 1
        try:
            places = range(self.settings.jobs_per_organisation)
            whose = {"organisation": job.organisation_id}
            yield may and any(_one(connection, "take_place", {**whose, "place": place}) for place in places)
        finally:
            if may:
                with self._guard:
                    del self._runs[job.id]
                    self._places[job.organisation_id] -= 1

    def _nudge_next(self, connection: Connection[Any], job: Job) -> None:
        """A place is free: for the next job of the organisation that waits, then for this one if it is not through."""
        waiting = _one(connection, "next_waiting", {"organisation": job.organisation_id})
        goes_on = job.state in WORKING and job.wish is not Wish.HOLD
        for job_id in dict.fromkeys([waiting, job.id if goes_on else None]):
            if job_id:
                nudge(connection, job_id)

    def recover(self) -> None:
        """Nudge for jobs that nobody attends to: whoever worked on them is gone, or their nudge is."""
        with self.database.connect("recovery") as connection:
            connection.execute(query("stale_nudges"))
            given = {"most": self.settings.jobs_per_organisation}
            for job_id in connection.cursor(row_factory=scalar_row).execute(query("unattended_jobs"), given).fetchall():
                nudge(connection, job_id)
            self._listener.end_silent(connection)


@dataclass(slots=True)
class _Turn:
    """The time that a job may be worked on while others wait."""

    worker: Worker
    job: Job
    next_look: float = field(default_factory=lambda: time.monotonic() + _TURN)

    def is_over(self) -> bool:
        """Whether the job had its turn and another organisation waits for one."""
        if time.monotonic() < self.next_look:
            return False
        self.next_look = time.monotonic() + 1
        given = {
            "organisation": self.job.organisation_id,
            "most": self.worker.settings.jobs_per_organisation,
        }
        with suppress(psycopg.Error, Retryable), self.worker.database.connect("turn") as connection:
            return bool(_one(connection, "others_wait", given))
        return False


def _one(connection: Connection[Any], name: str, given: dict[str, Any]) -> Any:
    """The one value that a query gives."""
    return connection.cursor(row_factory=scalar_row).execute(query(name), given).fetchone()


def _exit_after(seconds: float) -> None:
    """See that the process ends by then, whatever it waits for. What it has begun is rolled back by PostgreSQL."""
    timer = threading.Timer(seconds, os._exit, [1])
    timer.daemon = True
    timer.start()


async def _in_schema(connection: AsyncConnection[Any]) -> None:
    await connection.set_autocommit(True)
    await connection.execute(*session_settings())
    await connection.execute(f"SET search_path TO {SCHEMA}")


def run_worker(worker: Worker) -> None:
    """Work until a signal comes."""
    asyncio.run(worker.run())
