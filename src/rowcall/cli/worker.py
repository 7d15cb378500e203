"""`rowcall worker`: a process that works on jobs which came over HTTP."""

import os
import signal
import threading
from typing import Annotated

import typer

from rowcall.config import settings_from
from rowcall.importer.registry import load_registry
from rowcall.store.db import open_database
from rowcall.store.files.filestore import file_store
from rowcall.store.files.marks import bind
from rowcall.telemetry.work import telling
from rowcall.worker.queue import migrate_queue
from rowcall.worker.worker import Worker, run_worker

_BEHIND = 5
"""How far a worker stands back where it shares a machine with the service: somebody waits for its answers."""


def worker(
    metrics_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Serve this process' /metrics on this port.")
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="The address to serve them on.")] = "127.0.0.1",
    beside: Annotated[bool, typer.Option(hidden=True, help="End when standard input does.")] = False,
) -> None:
    """Work on jobs until told to stop; any number of workers on any number of hosts share the work."""
    settings, registry = settings_from(), load_registry()
    with telling(settings.log_level, host=metrics_host, port=metrics_port), open_database(settings) as database:
        with database.connect("migrate") as connection:
            migrate_queue(connection)
            bind(connection, file_store(settings))
        if beside:
            os.nice(_BEHIND)
            threading.Thread(target=_end_with_service, name="beside", daemon=True).start()
        run_worker(Worker(database, registry, settings))


def _end_with_service() -> None:
    """Stop when the service that this worker runs beside has gone, however it went: that closes the pipe."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
