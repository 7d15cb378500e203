"""The files of jobs, kept by their content under the data directory."""

import hashlib
import os
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rowcall.errors import Final, Retryable
from rowcall.formats.reading import MIB
from rowcall.model import Code


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Bytes that are safely on disk."""

    sha256: str
    size: int
    location: Path
    spare: Path | None = None
    """Its second name, for as long as it is on its way in: see `put_back`."""


class Incoming:
    """A file on its way in: hashed as it comes, durable once it is kept, gone if it isn't."""

    def __init__(self, folder: Path, *, most: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix="incoming-")
        self._folder, self._temporary = folder, Path(name)
        self._out = os.fdopen(handle, "wb")
        self._digest, self._size, self._most = hashlib.sha256(), 0, most

    def write(self, piece: bytes) -> None:
        """Add bytes. More than the limit are refused."""
        self._size += len(piece)
        if self._most is not None and self._size > self._most:
            raise too_large(self._most)
        self._digest.update(piece)
        self._out.write(piece)

    def keep(self) -> StoredFile:
        """Store what has come."""
        self._out.flush()
        os.fsync(self._out.fileno())
        sha256 = self._digest.hexdigest()
        location = self._folder / sha256[:2] / sha256
        location.parent.mkdir(exist_ok=True)
        _place(self._temporary, location)
        return StoredFile(sha256, self._size, location, self._temporary)

    def close(self) -> None:
        """Let go of it, when a job has it; if it was not kept, nothing stays."""
        self._out.close()
        self._temporary.unlink(missing_ok=True)


def too_large(most: int) -> Final:
    """The refusal of a file that is larger than this."""
    return Final(
        Code.FILE_TOO_LARGE,
        f"The file is larger than the {most:,} bytes that are taken.",
        hint="Divide it, compress it, or raise ROWCALL_MAX_UPLOAD.",
    )


@contextmanager
def kept(folder: Path, stream: BinaryIO) -> Generator[StoredFile]:
    """A stream, stored. Its job is to be made before this ends."""
    with closing(Incoming(folder)) as incoming:
        while piece := stream.read(MIB):
            incoming.write(piece)
        yield incoming.keep()


def put_back(file: StoredFile) -> None:
    """See that a stored file is in its place, once its row in the database is locked.

    Retention removes a file and its row under that lock. Where the same content came in just before, the file is gone
    then, and comes back from its second name.
    """
    if file.location.is_file():
        return
    if file.spare is None or not file.spare.is_file():
        told = "The stored file was removed while the same content came in again."
        raise Retryable(Code.FILE_CORRUPT, told, hint="Send it once more.")
    file.location.parent.mkdir(exist_ok=True)
    _place(file.spare, file.location)


def remove(location: Path, sha256: str) -> None:
    """Delete a stored file. Called when its row is locked and no job has it."""
    if location.name == sha256:  # it is one of ours, whatever the database says
        location.unlink(missing_ok=True)


def _place(temporary: Path, location: Path) -> None:
    """Give a file its place, instead of whatever is there. Its first name stays too, where the system can do that."""
    second = temporary.with_name(f"{temporary.name}-placed")
    try:
        os.link(temporary, second)
    except OSError:  # a file system without second names
        second = temporary
    second.replace(location)
    sync_folder(location.parent)


def sync_folder(folder: Path) -> None:
    """A new name is durable only when its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check(location: Path, sha256: str, size: int) -> None:
    """Refuse a stored file that is not what was stored."""
    if not location.is_file():
        raise Final(
            Code.FILE_CORRUPT,
            f"The stored file {location} is gone; nothing more of it can be imported.",
            hint="Import the original again.",
        )
    with location.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise Final(
            Code.FILE_CORRUPT,
            f"The stored file {location} has changed: {size:,} bytes with SHA-256 {sha256[:12]}… were stored, "
            f"{location.stat().st_size:,} bytes with {found[:12]}… are there.",
            hint="Import the original again.",
        )
