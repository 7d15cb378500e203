"""Rows on their way to a client: written by a thread, sent as they come, ended at once when the client goes.

A stream may last as long as its reader takes. So it has a thread and a connection of its own, never one of those that
other requests wait for, and holds little of what it has read.
"""

import asyncio
import errno
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast
from uuid import UUID

import psycopg
from fastapi import Response
from psycopg import Connection
from starlette.types import Receive, Scope, Send

from rowcall.engine import observe
from rowcall.engine.failures import failure_of
from rowcall.engine.observe import ExportEnd
from rowcall.errors import Final
from rowcall.formats import WriteFormat
from rowcall.model import Code, ExportState

_PIECE = 64 * 1024
_AHEAD = 4
_STALLED = 120.0
"""Seconds after which a client that takes nothing is given up."""
_MOST, _MOST_OF_ONE = 40, 24
"""What streams may weigh in this process, and those of one organisation. A text weighs 1, for some 10 MB of memory."""
_WEIGHTS = {WriteFormat.PARQUET: 4, WriteFormat.XLSX: 4}
_log = logging.getLogger(__name__)
_open: Counter[UUID] = Counter()
_counting = threading.Lock()


@contextmanager
def _place(organisation: UUID, weight: int) -> Generator[None]:
    """A place among the streams of this process: each takes memory, and a session with the database."""
    with _counting:
        if _open.total() + weight > _MOST or _open[organisation] + weight > _MOST_OF_ONE:
            raise Final(
                Code.TOO_MANY_REQUESTS,
                "Too many exports are being streamed at the moment.",
                hint="Try again later, or have the export written in the background: POST /v1/exports.",
            )
        _open[organisation] += weight
    try:
        yield
    finally:
        with _counting:
            _open[organisation] -= weight


class Pipe:
    """Bytes from a thread to the event loop: a few pieces ahead, and no more."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closed = False
        self._loop = loop
        self._held = bytearray()
        self._pieces: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._arrived = asyncio.Event()
        self._ended = False
        self._error: BaseException | None = None

    # -- the thread's end, a file to write to

    def write(self, data: bytes | memoryview) -> int:
        self._held += data
        if len(self._held) >= _PIECE:
            self.flush()
        return len(data)

    def flush(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.closed or len(self._pieces) < _AHEAD)
            if self.closed:
                raise BrokenPipeError(errno.EPIPE, "the client is gone")
            if self._held:
                self._pieces.append(bytes(self._held))
                self._held.clear()
        self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """All is written, or no more can be."""
        with self._changed:
            # Kept only for whoever reads: its trace holds the frames that were on their way, and they would hold us.
            self._ended, self._error = True, None if self.closed else error
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop ended before us
            self._loop.call_soon_threadsafe(self._arrived.set)

    # -- the event loop's end

    async def piece(self) -> bytes:
        """The next bytes; none at the end. Raises what went wrong."""
        while True:
            with self._changed:
                if self._pieces:
                    self._changed.notify()
                    return self._pieces.popleft()
                if self._ended:
                    error, self._error = self._error, None
                    if error:
                        raise error
                    return b""
                self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        """Nobody reads any more."""
        with self._changed:
            self.closed = True
            self._changed.notify()


class ExportStream(Response):
    """An answer that a thread writes. What goes wrong before its first bytes is told as a problem.

    What goes wrong later cuts the connection: a part never looks like the whole.
    """

    def __init__(
        self,
        write: Callable[[Connection[Any], BinaryIO], int],
        connect: Callable[[], Connection[Any]],
        headers: Mapping[str, str],
        *,
        organisation: UUID,
        kind: WriteFormat,
    ) -> None:
        self.status_code, self.background, self.media_type = 200, None, None
        self._write, self._connect = write, connect
        self._organisation, self._kind, self._weight = organisation, kind, _WEIGHTS.get(kind, 1)
        self._rows = self._bytes = 0
        self._state = ExportState.CANCELLED
        self._connection: Connection[Any] | None = None
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("http_version") == "1.0":
            raise Final(
                Code.HTTP_TOO_OLD,
                "With HTTP/1.0 a stream that was cut off looks like a complete one.",
                hint="Use HTTP/1.1 (nginx: proxy_http_version 1.1), or POST /v1/exports.",
            )
        if scope.get("state", {}).get("is_head"):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            return
        with _place(self._organisation, self._weight):
            pipe = Pipe(asyncio.get_running_loop())
            thread = threading.Thread(target=self._run, args=(pipe,), name="export stream", daemon=True)
            sending = asyncio.ensure_future(self._send(pipe, send))
            gone = asyncio.ensure_future(_gone(receive))
            began = time.monotonic()
            thread.start()
            try:
                await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
            finally:
                pipe.close()
                threading.Thread(target=self._end, args=(thread,), name="export end", daemon=True).start()
                for task in (sending, gone):
                    task.cancel()
                await asyncio.wait((sending, gone))
                self._tell_end(time.monotonic() - began)
            if not sending.cancelled():
                sending.result()

    def _tell_end(self, seconds: float) -> None:
        kind, state, rows, size = self._kind, self._state, self._rows, self._bytes
        observe.exported(ExportEnd(format=kind, way="stream", state=state, rows=rows, bytes=size, seconds=seconds))

    async def _send(self, pipe: Pipe, send: Send) -> None:
        try:
            piece = await pipe.piece()
        except Exception:
            self._state = ExportState.FAILED
            raise
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            while piece:
                async with asyncio.timeout(_STALLED):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                self._bytes += len(piece)
                piece = await pipe.piece()
        except Exception as error:
            # Left without an end, the answer is cut off by the server.
            self._state, failure = ExportState.FAILED, failure_of(error)
            _log.warning("an export was cut off: %s %s", failure.code, failure.message)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        self._state = ExportState.COMPLETED

    def _run(self, pipe: Pipe) -> None:
        try:
            with self._connect() as connection:
                self._connection = connection
                self._rows = self._write(connection, cast("BinaryIO", pipe))  # it has what writers use
        except BaseException as error:
            pipe.end(error)
        else:
            pipe.end()

    def _end(self, thread: threading.Thread) -> None:
        """See to it that the thread ends, whatever its statement is busy with."""
        while thread.is_alive():
            if (connection := self._connection) is not None:
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=2)
            thread.join(0.2)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
