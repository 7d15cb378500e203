"""What is done now and then, by one worker or another."""

from collections.abc import Callable

from procrastinate import App

from rowcall.config import Settings
from rowcall.engine.retention import policy_of, remove_due
from rowcall.importer.registry import Registry
from rowcall.store.db import Database
from rowcall.store.files.filestore import file_store
from rowcall.telemetry.logs import logger

_NIGHTLY = "17 3 * * *"
_log = logger(__name__)


def add_chores(app: App, database: Database, registry: Registry, settings: Settings, stop: Callable[[], bool]) -> None:
    """Have the workers of this queue do the chores. The queue sees to it that one of them does each."""

    @app.periodic(cron=_NIGHTLY)
    @app.task(name="retention")
    def retention(timestamp: int) -> None:  # pyright: ignore[reportUnusedFunction] (registered)
        del timestamp
        file_store(settings).require_own()
        removed = remove_due(database, settings, policy_of(settings, registry), stop=stop)
        sizes = {"rows": removed.rows, "files": removed.files, "bytes": removed.bytes, "leftovers": removed.leftovers}
        say = _log.warning if removed.failed else _log.info
        say("retention", jobs=len(removed.jobs), **sizes, busy=len(removed.busy), failed=list(removed.failed))
