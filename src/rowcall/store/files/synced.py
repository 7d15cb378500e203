"""A file that becomes durable while it is written, so that little is left to wait for at its end."""

import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait

from rowcall.formats.reading import MIB

_STRETCH = 16 * MIB
_SECONDS = 2.0
_syncing = ThreadPoolExecutor(16, thread_name_prefix="sync")


class SyncedFile:
    """Bytes at the end of an open file. At most two stretches of them are ever not on disk.

    Another thread syncs each stretch while the next is written. A sync that fails is raised by all that is called
    later: the system tells such an error once, and another sync might claim that all is well.
    """

    def __init__(self, handle: int, size: int = 0) -> None:
        self.handle, self.size, self.durable = handle, size, size
        self._asked, self._asked_at = size, time.monotonic()
        self._sync: Future[None] | None = None
        self._lock = threading.Lock()  # a request that is cancelled closes it while a thread still writes

    def write(self, piece: bytes) -> None:
        """Add bytes."""
        with self._lock:
            self._write(piece)

    def _write(self, piece: bytes) -> None:
        rest = memoryview(piece)
        while rest:
            written = os.write(self.handle, rest)
            self.size += written
            rest = rest[written:]
        if self._sync and self._sync.done():
            self._wait()
        if self.size - self._asked >= _STRETCH or time.monotonic() - self._asked_at > _SECONDS:
            self._wait()
            self._asked, self._asked_at = self.size, time.monotonic()
            self._sync = _syncing.submit(os.fdatasync, self.handle)

    def settle(self) -> None:
        """Wait until all of it is on disk."""
        self._wait()
        os.fsync(self.handle)
        self.durable = self.size

    def _wait(self) -> None:
        if self._sync:
            self._sync.result()
            self.durable = self._asked

    def close(self) -> None:
        with self._lock:
            if self._sync:
                wait([self._sync])
            handle, self.handle = self.handle, -1
            os.close(handle)
