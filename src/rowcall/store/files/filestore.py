"""The files of jobs, kept by their content in a place that all processes share: a folder or a bucket."""

import hashlib
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from rowcall.config import Settings
from rowcall.errors import Final, Retryable
from rowcall.formats.reading import MIB
from rowcall.model import Code

_OURS = re.compile(r"(^|/)([0-9a-f]{64}|large/[0-9a-f-]{36})$")
Reader = Callable[[int, int], Iterator[bytes]]
"""Takes the first and the last byte that are wanted."""
MARK = "rowcall-store"
"""The name of what has a store's mark in it."""
ABANDONED = 2 * 86_400
"""Seconds after which what came half and was never kept can't be under way any more."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Bytes that are safely stored."""

    sha256: str
    size: int
    location: str
    """Where in the store. It means the same on every host."""
    put_back: Callable[[str], str] | None = field(default=None, compare=False, repr=False)
    """Of one that has just come: see `settled`."""
    held: bool = field(default=False, compare=False)
    """Whether the upload that it came by has it still, and can become a job later."""

    def settled(self, known: str) -> str:
        """Its location once the row of its content is locked, in which this one is `known`.

        Retention removes a file and its row under that lock. Where the same content came in just before, the file is
        gone then, and is put back.
        """
        return self.put_back(known) if self.put_back else self.location


class Incoming(ABC):
    """A file on its way in: hashed as it comes, durable once it is kept, gone if it isn't."""

    def __init__(self, most: int | None) -> None:
        self._digest, self._size, self._most = hashlib.sha256(), 0, most

    def write(self, piece: bytes) -> None:
        """Add bytes. More than the limit are refused."""
        self._size += len(piece)
        if self._most is not None and self._size > self._most:
            raise too_large(self._most)
        self._digest.update(piece)
        self._put(piece)

    @property
    def sha256(self) -> str:
        """Of what has come so far."""
        return self._digest.hexdigest()

    def keep(self) -> StoredFile:
        """Store what has come."""
        return StoredFile(self.sha256, self._size, self._settle(self.sha256), self._put_back)

    @abstractmethod
    def _put(self, piece: bytes) -> None: ...

    @abstractmethod
    def _settle(self, sha256: str) -> str:
        """Make it durable; its location."""

    @abstractmethod
    def _put_back(self, known: str) -> str: ...

    @abstractmethod
    def close(self) -> None:
        """Let go of it, when a job has it; if it was not kept, nothing stays."""


class Ahead(ABC):
    """What a store takes of a resumable upload before all of it has come."""

    @abstractmethod
    def keep(self, received: int) -> None:
        """Strike out all behind so many bytes, before others can come in their place."""

    @abstractmethod
    def come(self, size: int) -> None:
        """So many bytes are in the upload's file."""

    @abstractmethod
    def settle(self) -> None:
        """Wait for what is under way."""

    @abstractmethod
    def close(self) -> None:
        """Have nothing more under way, from now on."""


class FileStore(ABC):
    """Where the files of jobs are."""

    owner: str | None = None
    """The mark that it has to have: that of the database; None where nobody said (see `store.marks`)."""

    def __init__(self, where: str, uploads: Path) -> None:
        self.where = where
        self.uploads = uploads
        """A folder on this host, or one that it shares, in which resumable uploads wait until they are whole."""

    def require_own(self) -> None:
        """Refuse to go on with a store that isn't the database's, or has become another one."""
        if self.owner is not None and self.mark() != self.owner:
            raise foreign(self.where)

    @abstractmethod
    def mark(self) -> str | None:
        """By which it is known from others; None if it has none yet."""

    @abstractmethod
    def set_mark(self, mark: str) -> str:
        """Give it a mark, unless it has one; the one that it has then."""

    @contextmanager
    def kept(self, stream: BinaryIO) -> Generator[StoredFile]:
        """A stream, stored. Its job is to be made before this ends."""
        with closing(self.begin()) as incoming:
            while piece := stream.read(MIB):
                incoming.write(piece)
            yield incoming.keep()

    @contextmanager
    def opened(self, file: StoredFile, *, copies: Path) -> Generator[Path]:
        """The file on this host for as long as this lasts, copied to a folder if need be. It is what was stored."""
        if Path(file.location).is_absolute():  # as they were noted when there were no other stores
            check(Path(file.location), file)
            yield Path(file.location)
            return
        try:
            yield self._fetched(file, copies)
        finally:
            shutil.rmtree(copies, ignore_errors=True)
            with suppress(OSError):
                copies.parent.rmdir()

    @abstractmethod
    def begin(self, *, most: int | None = None) -> Incoming:
        """A file is about to come."""

    def ahead(self, path: Path, length: int) -> Ahead | None:  # noqa: ARG002 (for stores that are elsewhere)
        """For an upload that lies in `uploads` and will have this length: how to store it while it comes."""
        return None

    @abstractmethod
    def adopt(self, path: Path, sha256: str, size: int) -> StoredFile:
        """Store a durable file that lies in `uploads`; if it isn't there any more, it must have been stored before.

        It may stay there, and is to be abandoned when a job has it.
        """

    def abandon(self, path: Path) -> None:
        """Delete what lies in `uploads`: a job has it, or none will be."""
        path.unlink(missing_ok=True)

    @abstractmethod
    def _fetched(self, file: StoredFile, copies: Path) -> Path: ...

    @abstractmethod
    def has(self, location: str) -> bool:
        """Whether something is stored there."""

    @abstractmethod
    def remove(self, location: str) -> None:
        """Delete what is stored there, if it is. Called when its row is locked and no job has it."""

    @abstractmethod
    def check(self) -> str:
        """Whether files can be stored: what there is to say of it. Raises if not."""

    def within(self, location: str) -> str:
        """A location as it would be noted today."""
        return location

    @abstractmethod
    def locations(self, *, older_than: float = 0) -> Iterator[str]:
        """All that is stored; with an age in seconds, only what has a name of ours and was not written to since."""

    @abstractmethod
    def sweep(self) -> int:
        """Take away what processes that were killed left half stored; how many."""

    # -- files of exports, below a folder for each

    @abstractmethod
    def export_folder(self, export_id: UUID, *, copies: Path) -> Path:
        """A folder on this host in which to write the file of an export, before it is published."""

    @abstractmethod
    def publish(self, path: Path, location: str) -> None:
        """Have a durable file that lies in its `export_folder` at a location for all hosts."""

    @abstractmethod
    def export_file(self, location: str) -> Path | Reader:
        """The file of an export: a path on this host, or how to read it; FileNotFoundError if there is none."""

    @abstractmethod
    def exports(self) -> Iterator[str]:
        """All that lies in folders of exports: `ID/NAME`, and `ID/` of one that has no file."""

    @abstractmethod
    def remove_export(self, location: str) -> None:
        """Delete such a file, and its folder if it is empty then."""


def file_store(settings: Settings) -> FileStore:
    """The file store of the settings."""
    return _file_store(settings.file_store, settings.s3_endpoint, settings.data_dir)


@cache
def _file_store(where: str, endpoint: str | None, data_dir: Path) -> FileStore:
    if where.startswith("s3://"):
        from rowcall.store.files.bucket import BucketStore  # takes long to load, and few need it

        return BucketStore(where, endpoint, data_dir / "incoming")
    from rowcall.store.files.folder import FolderStore  # is one of these

    return FolderStore(Path(where) if where else data_dir / "files")


def too_large(most: int) -> Final:
    """The refusal of a file that is larger than this."""
    return Final(
        Code.FILE_TOO_LARGE,
        f"The file is larger than the {most:,} bytes that are taken.",
        hint="Divide it, compress it, or raise ROWCALL_MAX_UPLOAD.",
    )


def remove_old(folder: Path, names: str, age: float) -> int:
    """Delete the files of a folder that nobody wrote to for so many seconds; how many."""
    count = 0
    for path in folder.glob(names):
        if path.is_file() and is_older(path, age):
            with suppress(FileNotFoundError):
                path.unlink()
                count += 1
    return count


def is_older(path: Path, age: float) -> bool:
    """Whether nobody wrote to a file for so many seconds; not if it has just gone."""
    try:
        return time.time() - path.stat().st_mtime > age
    except FileNotFoundError:
        return False


def by_content(sha256: str) -> str:
    """The location of a file that is named by its content."""
    return f"{sha256[:2]}/{sha256}"


def content_of(location: str) -> str | None:
    """The hash that a file is named by; None of one that is named by chance."""
    name = location.rpartition("/")[2]
    return name if len(name) == 64 else None


def is_ours(location: str) -> bool:
    """Whether we gave it that name, whatever the database says."""
    return _OURS.search(location) is not None


def foreign(where: str) -> Retryable:
    """The refusal of a store that is another one than the database's."""
    return Retryable(
        Code.FOREIGN_FILE_STORE,
        f"The file store {where} is not the one that the database belongs to.",
        hint="Set ROWCALL_FILE_STORE to the same store for all processes, and see that it is mounted. If the files "
        f"were moved there without {MARK!r}: `rowcall migrate --new-file-store`.",
    )


def gone(where: Path | str) -> Final:
    """The refusal of a stored file that is not there."""
    return Final(
        Code.FILE_CORRUPT,
        f"The stored file {where} is gone; nothing more of it can be imported.",
        hint="Import the original again.",
    )


def changed(where: Path | str, file: StoredFile, size: int, sha256: str) -> Final:
    """The refusal of a stored file that is not what was stored."""
    return Final(
        Code.FILE_CORRUPT,
        f"The stored file {where} has changed: {file.size:,} bytes with SHA-256 {file.sha256[:12]}… were stored, "
        f"{size:,} bytes with {sha256[:12]}… are there.",
        hint="Import the original again.",
    )


def check(path: Path, file: StoredFile) -> None:
    """Refuse a stored file that is not what was stored."""
    if not path.is_file():
        raise gone(path)
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != file.sha256:
        raise changed(path, file, path.stat().st_size, found)
