"""The sign of life of a worker process, and the end of those that give none.

A process that is killed loses its sessions, and with them its claims. One that stands still does not: its host is
frozen, or it is cut off behind something that keeps connections open. So each worker has a session that PostgreSQL ends
when nothing is heard over it for some seconds; then the others end all sessions of that process. When it wakes up, it
finds them gone, and has a claim to nothing.
"""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.errors import RowcallError
from rowcall.store.db import Database
from rowcall.store.queries import query
from rowcall.telemetry.logs import logger

_BEAT = 1.0
_SILENCE = "5s"
"""After which PostgreSQL ends the session."""
_GRACE = 2.0
"""Seconds that a process has to make a new one: it may have lost it otherwise."""
_log = logger(__name__)


@contextmanager
def beating(database: Database) -> Generator[None]:
    """Give signs of life for as long as this lasts."""
    stop = threading.Event()
    thread = threading.Thread(target=_beat, args=(database, stop), name="pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(2 * _BEAT)


def _beat(database: Database, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            with database.connect("pulse") as connection:
                connection.execute("SELECT set_config('idle_session_timeout', %s, false)", [_SILENCE])
                while not stop.wait(_BEAT):
                    connection.execute("SELECT")
        except (psycopg.Error, RowcallError):  # also a refusal: passwords change, servers take over
            stop.wait(_BEAT / 2)


@dataclass(slots=True)
class Listener:
    """Knows which processes are silent, and since when."""

    _since: dict[str, float] = field(default_factory=dict[str, float])

    def end_silent(self, connection: Connection[Any]) -> None:
        """End the sessions of processes that have been silent for long."""
        silent = connection.cursor(row_factory=scalar_row).execute(query("silent_processes")).fetchall()
        now = time.monotonic()
        self._since = {process: self._since.get(process, now) for process in silent}
        given_up = [process for process, since in self._since.items() if now - since > _GRACE]
        if given_up:
            _log.warning("sessions ended of workers that stand still", processes=given_up)
            connection.execute(query("end_processes"), {"processes": given_up})
