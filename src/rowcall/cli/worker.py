"""`rowcall worker`: a process that works on jobs which came over HTTP."""

from rowcall.config import settings_from
from rowcall.importer.registry import load_registry
from rowcall.store.db import open_database
from rowcall.worker.queue import migrate_queue
from rowcall.worker.worker import Worker, run_worker


def worker() -> None:
    """Work on jobs until told to stop; any number of workers on any number of hosts share the work."""
    settings, registry = settings_from(), load_registry()
    with open_database(settings) as database:
        with database.connect("migrate") as connection:
            migrate_queue(connection)
        run_worker(Worker(database, registry, settings))
