"""Exports in the background: each is written to a file that is whole or not there.

A worker has an export to itself by an advisory lock, and each attempt has a claim, by which alone it can move the
export on: whoever was cut off and comes back writes into a file that nobody will ever read.
"""

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, Literal, Self
from uuid import UUID

import psycopg
from procrastinate import App
from psycopg import Connection

from rowcall.config import Settings
from rowcall.engine import observe
from rowcall.engine.failures import failure_of
from rowcall.engine.observe import ExportEnd
from rowcall.errors import Final, Retryable, RowcallError
from rowcall.export import Resource
from rowcall.export.count import count_rows
from rowcall.export.request import choose, export_request, snapshot
from rowcall.model import Code, ExportState
from rowcall.store import exports
from rowcall.store.db import Database
from rowcall.store.exports import Export
from rowcall.store.files.filestore import FileStore, file_store
from rowcall.worker.queue import EXPORT, nudge

EXPORTS_AT_ONCE = 2
"""Exports that one worker process writes, beside its jobs."""
_RECOVERY, _TIDYING = "* * * * * */10", "*/5 * * * *"
_ATTEMPTS = 5
_EVERY = 0.5
"""Seconds between two looks at whether an export is still wanted."""
_slots = threading.BoundedSemaphore(EXPORTS_AT_ONCE)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Exporter:
    """Writes the exports that wait, and clears up behind those that are over."""

    database: Database
    resources: Mapping[str, Resource]
    settings: Settings
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def store(self) -> FileStore:
        return file_store(self.settings)

    def work(self) -> None:
        """Write exports until none waits; nothing, if this process writes enough of them already."""
        if not _slots.acquire(blocking=False):
            return
        try:
            while not self.stop.is_set() and self._has_store() and self._write_next():
                pass
        finally:
            _slots.release()

    def _has_store(self) -> bool:
        """Whether the file store is the database's: what is written to another is found by nobody."""
        try:
            self.store.require_own()
        except (RowcallError, OSError) as error:
            _log.warning("no export is begun: %s", failure_of(error).code)
            return False
        return True

    def recover(self) -> None:
        """Nudge for exports that nobody attends to: whoever wrote them is gone, or their nudge is."""
        with self.database.reconnect("recovery") as connection:
            for export_id in exports.unattended(connection):
                nudge(connection, export_id, EXPORT)

    def tidy(self) -> None:
        """Let go of exports whose time is over, and remove files that belong to no export."""
        # Looked for first: the export of a file that is there by now is known by now.
        self.store.require_own()
        found = {location: export_id for location in self.store.exports() if (export_id := _id_in(location))}
        with self.database.reconnect("chores") as connection:
            if expired := exports.expire(connection):
                _log.info("%s exports expired", expired)
            kept = exports.files_of(connection, set(found.values()))
        for location, export_id in found.items():
            if export_id not in kept or kept[export_id] not in (None, location):
                self.store.remove_export(location)

    def _write_next(self) -> bool:
        """Write the next export; False if there is none, or none should be tried right now."""
        with self.database.reconnect("exports") as session:
            export = exports.take_next(session)
            if export is None:
                return False
            try:
                return self._write(session, export)
            finally:
                with suppress(psycopg.Error):
                    exports.let_go(session, export.id)

    def _write(self, session: Connection[Any], export: Export) -> bool:
        location, began = f"{export.id}/{export.claim}.{export.format}", time.monotonic()
        try:
            rows, size = self._written(session, export, location)
        except _NotWanted as ended:
            if ended.why == "stopping":
                exports.put_back(session, export)
            return True
        except Exception as error:
            return self._failed(session, export, error)
        if done := self._complete(session, export, location, rows, size):
            _tell_end(export, done, rows=rows, size=size, seconds=time.monotonic() - began)
        return done is not None

    def _complete(
        self, session: Connection[Any], export: Export, location: str, rows: int, size: int
    ) -> ExportState | None:
        """The state that it is in by this; None if that can't be known now."""
        try:
            days = self.settings.export_days
            if not exports.complete(session, export, rows=rows, size=size, location=location, days=days):
                self.store.remove_export(location)  # cancelled at the last moment
                return ExportState.CANCELLED
        except psycopg.Error as error:  # it may have been noted all the same: the file stays until that is known
            _log.warning("export %s: %s", export.id, failure_of(error).code)
            return None
        return ExportState.COMPLETED

    def _failed(self, session: Connection[Any], export: Export, error: Exception) -> bool:
        failure = failure_of(error)
        _log.warning("export %s: %s", export.id, failure.code)  # its words may quote a value
        with suppress(psycopg.Error):  # if the database is away, it is begun anew by itself
            if not isinstance(failure, Retryable):
                if failed := exports.fail(session, export, failure):
                    _tell_end(export, ExportState.FAILED)
                return failed
            exports.note_error(session, export, failure)
        return False

    def _written(self, session: Connection[Any], export: Export, location: str) -> tuple[int, int]:
        """The rows and bytes of the file, once it is complete and durable at its location."""
        if export.attempts > _ATTEMPTS:
            told = f"It was begun {_ATTEMPTS} times and interrupted each time."
            raise Final(Code.INTERRUPTED, (export.last_error or {}).get("message") or told, hint="Ask for it again.")
        folder = self.store.export_folder(export.id, copies=self.settings.data_dir / "copies")
        for left in folder.iterdir():  # by an earlier attempt
            left.unlink(missing_ok=True)
        path = folder / PurePath(location).name
        with self.database.reconnect("export") as connection:
            watch = _Watch(session, connection, export, folder, self.stop)
            try:
                with watch, snapshot(connection, export.organisation_id):
                    chosen = choose(connection, export.request, self.resources, export.organisation_id)
                    watch.total = count_rows(connection, chosen)
                    rows = export_request(connection, chosen, export.request, path, progress=watch.progress)
            except Exception as error:
                self._leave(session, export, folder)
                if watch.why:
                    raise _NotWanted(watch.why) from error
                raise
        size = path.stat().st_size
        self.store.publish(path, location)
        return rows, size

    def _leave(self, session: Connection[Any], export: Export, folder: Path) -> None:
        """Leave no folder of an export that was cancelled: nobody begins it anew, and nothing is in it."""
        with suppress(psycopg.Error, OSError):
            if export.id not in exports.files_of(session, [export.id]):
                folder.rmdir()


def _tell_end(export: Export, state: ExportState, *, rows: int = 0, size: int = 0, seconds: float = 0) -> None:
    """Tell of what this process did. A cancelled one is told of by whoever cancelled it."""
    if state is not ExportState.CANCELLED:
        end = ExportEnd(format=export.format, way="file", state=state, rows=rows, bytes=size, seconds=seconds)
        observe.exported(end)


class _NotWanted(Exception):
    def __init__(self, why: "_Why") -> None:
        super().__init__(why)
        self.why = why


_Why = Literal["lost", "stopping"]


class _Watch:
    """Tells how far an export is while it is written, and ends it as soon as it isn't wanted any more."""

    def __init__(
        self,
        session: Connection[Any],
        connection: Connection[Any],
        export: Export,
        folder: Path,
        stop: threading.Event,
    ) -> None:
        self.total: int | None = None
        self.why: _Why | None = None
        self._rows = 0
        self._session, self._connection, self._export = session, connection, export
        self._folder, self._stop = folder, stop
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="export watch")

    def progress(self, rows: int) -> None:
        self._rows = rows
        if self.why:
            raise _NotWanted(self.why)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_EVERY):
            self.why = self.why or self._reason()
            if self.why:  # a statement may be far from its next row
                with suppress(psycopg.Error):
                    self._connection.cancel_safe(timeout=2)

    def _reason(self) -> _Why | None:
        if self._stop.is_set():
            return "stopping"
        with suppress(psycopg.Error):  # with the session, the lock is gone
            if exports.note(self._session, self._export, rows=self._rows, size=self._size(), total=self.total):
                return None
        return "lost"

    def _size(self) -> int:
        try:
            return sum(path.stat().st_size for path in self._folder.iterdir())
        except FileNotFoundError:  # it has got its name just now
            return 0


def _id_in(location: str) -> UUID | None:
    """Of which export it is, unless it is something of somebody else's."""
    try:
        return UUID(location.partition("/")[0])
    except ValueError:
        return None


def add_export_tasks(app: App, exporter: Exporter) -> None:
    """Have a worker do what exports need, beside writing them."""

    @app.periodic(cron=_RECOVERY)
    @app.task(name="recover exports")
    def recover(timestamp: int) -> None:  # pyright: ignore[reportUnusedFunction] (registered)
        del timestamp
        exporter.recover()

    @app.periodic(cron=_TIDYING)
    @app.task(name="tidy exports")
    def tidy(timestamp: int) -> None:  # pyright: ignore[reportUnusedFunction] (registered)
        del timestamp
        exporter.tidy()
