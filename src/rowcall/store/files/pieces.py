"""The bytes of an upload that comes piece by piece, in a file that one request at a time writes to."""

import fcntl
import hashlib
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Self
from uuid import UUID

from rowcall.errors import Final
from rowcall.formats.output import sync_folder
from rowcall.formats.reading import MIB
from rowcall.model import Code
from rowcall.store.files.filestore import Ahead, gone, too_large
from rowcall.store.files.synced import SyncedFile

_MOST_DIGESTS = 1_000


class _Digest:
    """The hash of a file's first bytes: fed with what is written, or from the file where that was not seen."""

    def __init__(self) -> None:
        self.hash, self.size, self.lock = hashlib.sha256(), 0, threading.Lock()
        self.left: tuple[int, ...] | None = None
        """The file as this process left it; if it is another now, another server has written to it."""

    def feed(self, piece: bytes, at: int) -> None:
        with self.lock:
            if at <= self.size < at + len(piece):
                self.hash.update(memoryview(piece)[self.size - at :])
                self.size = at + len(piece)


class _Digests:
    """The digests of uploads that this process saw last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[UUID, _Digest] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, upload_id: UUID, received: int, found: tuple[int, ...]) -> _Digest:
        """What there is for so many bytes of a file as it is found, or a new one if it may have seen others.

        A sender may send other bytes in a second attempt, to another server that shares the folder.
        """
        with self._lock:
            digest = self._kept.pop(upload_id, None)
            if digest is None or digest.size > received or digest.left != found:
                digest = _Digest()
            self._kept[upload_id] = digest
            if len(self._kept) > _MOST_DIGESTS:
                self._kept.popitem(last=False)
            return digest

    def forget(self, upload_id: UUID) -> None:
        with self._lock:
            self._kept.pop(upload_id, None)


_digests = _Digests()


class Pieces:
    """An upload's file.

    The lock is the system's: it ends with the process, and is known to all hosts that share the folder.
    """

    def __init__(self, path: Path, upload_id: UUID, handle: int) -> None:
        self.path, self._id, self._handle = path, upload_id, handle
        self._out: SyncedFile | None = None
        self._ahead: Ahead | None = None
        self._digest = _Digest()

    @classmethod
    def of(cls, folder: Path, upload_id: UUID, *, create: bool = False) -> Self | None:
        """The file of an upload; none if it isn't there."""
        path = folder / str(upload_id)
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        try:
            return cls(path, upload_id, os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
        except FileNotFoundError:
            return None

    def lock(self) -> bool:
        """Have it to oneself; false if another has it, or it is at its place no longer."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(self._handle), self.path.stat())
        except (BlockingIOError, FileNotFoundError):
            return False

    def go_on(self, received: int, ahead: Ahead | None = None) -> None:
        """Be ready for more behind the bytes that are known to be on disk; any others are dropped.

        What comes is stored `ahead` where that can be.
        """
        if os.fstat(self._handle).st_size < received:
            told = f"Of upload {self._id}, {received:,} bytes had come, and fewer are here."
            hint = "Begin a new one. Several servers have to share the folder of the file store."
            raise Final(Code.UPLOAD_GONE, told, hint=hint)
        self._ahead = ahead
        if ahead:
            ahead.keep(received)
        self._digest = _digests.of(self._id, received, self._stamp())
        with self._digest.lock:
            os.ftruncate(self._handle, received)
        os.lseek(self._handle, received, os.SEEK_SET)
        self._out = SyncedFile(os.dup(self._handle), received)

    @property
    def out(self) -> SyncedFile:
        assert self._out is not None, "go_on comes first"  # noqa: S101 (ours to get right)
        return self._out

    def write(self, piece: bytes, *, most: int) -> None:
        """Add bytes, up to the length that was announced."""
        at = self.out.size
        if at + len(piece) > most:
            raise too_large(most)
        self.out.write(piece)
        self._digest.feed(piece, at)
        if self._ahead:
            self._ahead.come(self.out.size)

    def settle(self) -> int:
        """Wait until all of it is on disk; how much that is."""
        self.out.settle()
        sync_folder(self.path.parent)
        if self._ahead:
            self._ahead.settle()
        return self.out.size

    def drop(self, received: int) -> None:
        """Take back what came behind so many bytes."""
        if self._ahead:
            self._ahead.keep(received)
        os.ftruncate(self._handle, received)
        _digests.forget(self._id)

    def catch_up(self) -> None:
        """Hash what another process was sent, while more may be coming."""
        with self.path.open("rb") as file:
            while self._digest.size < self.out.size:
                with self._digest.lock:
                    file.seek(self._digest.size)
                    block = file.read(min(MIB, self.out.size - self._digest.size))
                    if not block:  # taken back meanwhile
                        return
                    self._digest.hash.update(block)
                    self._digest.size += len(block)

    def sha256(self) -> str:
        """The hash of all of it."""
        self.catch_up()
        _digests.forget(self._id)
        if self._digest.size != self.out.size:
            raise gone(self.path)
        return self._digest.hash.hexdigest()

    def _stamp(self) -> tuple[int, ...]:
        """Changes whenever somebody writes to the file."""
        found = os.fstat(self._handle)
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def close(self) -> None:
        if self._ahead:
            self._ahead.close()
        if self._out:
            self._out.close()
            self._digest.left = self._stamp()
        os.close(self._handle)
