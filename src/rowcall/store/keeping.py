"""Sessions that are used again: a new one costs PostgreSQL more than a small job's statements do.

It forks, and reads from its catalogues anew whatever the first statements need. One that lay idle knows all that, and
has forgotten all else: settings, temporary tables, locks and statements of whoever had it before.
"""

import select
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from psycopg import Connection
from psycopg.pq import ConnStatus, ExecStatus, PGconn, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn as Session
from psycopg.rows import TupleRow, tuple_row

_MOST = 8
"""Idle sessions of a process; of more than that, those that lie there longest end."""
_IDLE = 30.0
"""Seconds after which an idle session ends, as soon as another is asked for or given back."""
_OLD = 300.0
"""Seconds after which a session isn't used again: roles are dropped and made anew, and what it remembers grows."""
_NOWHERE = b"none"
"""No address of a server: what is made of it is closed from the first."""
# DISCARD ALL, but for the plans of functions
_FORGET = """
    CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; RESET ALL; DEALLOCATE ALL; UNLISTEN *;
    SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES"""


@dataclass(frozen=True, slots=True)
class _Idle:
    """A session that nobody uses, where it leads, and since when it is there and here."""

    session: Session
    conninfo: str
    born: float
    since: float


class Keep:
    """The idle sessions of a process. While they are here they have these settings, and none of anybody else's."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._forget = "; ".join([_FORGET, *(f"SET {name} TO '{value}'" for name, value in settings.items())]).encode()
        self._idle: list[_Idle] = []
        self._guard = threading.Lock()
        self._open = True

    def lend(self, conninfo: str) -> "Kept":
        """A session in autocommit: the one with this address that was used last, else a new one."""
        while known := self._known(conninfo):
            if not has_spoken(known.session.socket):
                return Kept(known.session, tuple_row).of(self, conninfo, known.born)
            known.session.finish()  # between statements, a server speaks only to end the session
        return Kept.connect(conninfo).of(self, conninfo, time.monotonic())

    def take_back(self, session: Session, conninfo: str, born: float) -> None:
        """Have a session forget all, and keep it unless it is old, or in the middle of something."""
        now = time.monotonic()
        if self._open and now - born < _OLD and _at_rest(session) and self._forgets(session):
            with self._guard:
                self._idle.append(_Idle(session, conninfo, born, now))
        else:
            session.finish()
        self._end_some()

    def close(self) -> None:
        """End the sessions that are here, and each that comes back later."""
        self._open = False
        self._end_some()

    def _forgets(self, session: Session) -> bool:
        return session.exec_(self._forget).status == ExecStatus.COMMAND_OK

    def _known(self, conninfo: str) -> _Idle | None:
        self._end_some()
        with self._guard:
            found = next((idle for idle in reversed(self._idle) if idle.conninfo == conninfo), None)
            if found:
                self._idle.remove(found)
        return found

    def _end_some(self) -> None:
        oldest = time.monotonic() - _IDLE
        with self._guard:
            kept = [idle for idle in self._idle[-_MOST:] if idle.since > oldest] if self._open else []
            ended = self._idle[: len(self._idle) - len(kept)]  # who came first is first
            self._idle = kept
        for idle in ended:
            idle.session.finish()


class Kept(Connection[TupleRow]):
    """A session that goes back to where it is kept when it is closed. Others have it then: for this one it is over."""

    _keep: Keep | None = None
    _conninfo = ""
    _born = 0.0

    def of(self, keep: Keep, conninfo: str, born: float) -> Self:
        """The same, in autocommit, to be given back."""
        self.autocommit = True
        self._keep, self._conninfo, self._born = keep, conninfo, born
        return self

    def close(self) -> None:
        """Give the session back."""
        session, keep = self.pgconn, self._keep
        if keep and not self.closed:
            self.pgconn = PGconn.connect_start(_NOWHERE)
            keep.take_back(session, self._conninfo, self._born)
        super().close()


def has_spoken(socket: int) -> bool:
    """Whether a server has said something over a session that nobody used."""
    said = select.poll()
    said.register(socket, select.POLLIN)
    return bool(said.poll(0))


def _at_rest(session: Session) -> bool:
    return (
        session.status == ConnStatus.OK
        and session.transaction_status == TransactionStatus.IDLE
        and session.pipeline_status == PipelineStatus.OFF
    )
