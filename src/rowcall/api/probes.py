"""A look at what the service stands on, which never waits behind requests, and never for long."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import Connection
from psycopg.conninfo import make_conninfo

_PATIENCE = 2.0
"""Seconds that a look may take. PostgreSQL's client waits no shorter than two for a connection."""
_T = TypeVar("_T")


class Probe:
    """Looks at one thing at a time, from a thread of its own. Those who ask at the same time share the answer."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"probe-{name}")
        self._looks: dict[str, tuple[float, Future[Any]]] = {}

    async def look(self, name: str, what: Callable[[], _T], *, fresh: float) -> _T:
        """What a look finds, or found at most `fresh` seconds ago. Raises TimeoutError when it takes too long."""
        began, found = self._looks.get(name, (0.0, None))
        if found is None or (found.done() and time.monotonic() - began > fresh):
            found = self._thread.submit(what)
            self._looks[name] = time.monotonic(), found
        answer: Awaitable[_T] = asyncio.shield(asyncio.wrap_future(found))
        return await asyncio.wait_for(answer, _PATIENCE)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


class DatabaseProbe(Probe):
    """Looks at the database over a session that nobody else has."""

    def __init__(self, address: str) -> None:
        super().__init__("database")
        self._address = make_conninfo(address, application_name="rowcall probe", connect_timeout=2)
        self._connection: Connection[Any] | None = None

    async def ask(self, name: str, question: Callable[[Connection[Any]], _T], *, fresh: float) -> _T:
        """What the database says."""
        return await self.look(name, lambda: self._asked(question), fresh=fresh)

    def _asked(self, question: Callable[[Connection[Any]], _T]) -> _T:
        try:
            return question(self._session())
        except psycopg.OperationalError:  # the server may have been started again since
            self._hang_up()
            return question(self._session())

    def _session(self) -> Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._address, autocommit=True)
            self._connection.execute("SELECT set_config('statement_timeout', '2s', false)")
        return self._connection

    def _hang_up(self) -> None:
        if self._connection:
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    def close(self) -> None:
        self._thread.submit(self._hang_up)
        self._thread.shutdown(wait=False)


class Probes:
    """What looks at the surroundings of a service."""

    def __init__(self, address: str) -> None:
        self.database = DatabaseProbe(address)
        self.files = Probe("files")

    def close(self) -> None:
        self.database.close()
        self.files.close()
