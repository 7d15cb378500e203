"""A process that works on jobs: takes a nudge, takes the job as far as it goes, takes the next.

Whatever happens to it, the jobs go on: their states are in the database, and every few seconds one of the workers looks
for jobs that nobody attends to.
"""

import asyncio
import logging
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from procrastinate import App, PsycopgConnector
from psycopg import AsyncConnection
from psycopg.rows import scalar_row

from rowcall.config import Settings
from rowcall.engine.run import Run, run_job
from rowcall.errors import RowcallError
from rowcall.importer.registry import Registry
from rowcall.model import Code
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.queries import query
from rowcall.worker.queue import ADVANCE, SCHEMA, nudge

_RECOVERY = "* * * * * */10"
"""When to look for jobs that nobody attends to: every ten seconds."""
_GRACE = 30.0
"""Seconds that work under way has to come to an end when the process is told to stop."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Worker:
    """One process."""

    database: Database
    registry: Registry
    settings: Settings
    stop: threading.Event = field(default_factory=threading.Event)

    async def run(self) -> None:
        """Work until told to stop by a signal."""
        app = self._app()
        async with app.open_async():
            try:
                await app.run_worker_async(
                    concurrency=self.settings.jobs_at_once + 1,  # one for the chores
                    fetch_job_polling_interval=2.0,
                    delete_jobs="always",
                    shutdown_graceful_timeout=_GRACE,
                )
            finally:
                self.stop.set()

    def _app(self) -> App:
        app = App(connector=PsycopgConnector(conninfo=self.database.url, configure=_in_schema, min_size=1, max_size=4))
        app.task(name=ADVANCE)(self.advance)

        @app.periodic(cron=_RECOVERY)
        @app.task(name="recover")
        def recover(timestamp: int) -> None:  # pyright: ignore[reportUnusedFunction] (registered)
            del timestamp
            self.recover()

        return app

    def advance(self, job_id: str) -> None:
        """Take a job as far as it goes. What stops it is noted with the job; here it is only logged."""
        with self.database.reconnect("worker") as connection:
            job = jobs.get_job(connection, job_id)
        try:
            run_job(Run(self.database, self.registry.importer(job.importer), self.settings, stop=self.stop), job)
        except RowcallError as error:
            if error.code not in (Code.JOB_BUSY, Code.INTERRUPTED):  # another has it; it goes on elsewhere
                _log.warning("job %s: %s %s", job.number, error.code, error.message)

    def recover(self) -> None:
        """Nudge for jobs that nobody attends to: whoever worked on them is gone, or their nudge is."""
        with self.database.reconnect("recovery") as connection:
            for job_id in connection.cursor(row_factory=scalar_row).execute(query("unattended_jobs")).fetchall():
                nudge(connection, job_id)


async def _in_schema(connection: AsyncConnection[Any]) -> None:
    await connection.set_autocommit(True)
    await connection.execute(f"SET search_path TO {SCHEMA}")


def run_worker(worker: Worker) -> None:
    """Work until a signal comes."""
    with suppress(asyncio.CancelledError):
        asyncio.run(worker.run())
