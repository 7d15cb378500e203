"""The files of jobs, kept by their content in a place that all processes share: a folder (here) or a bucket."""

import hashlib
import os
import re
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import psycopg

from rowcall.config import Settings
from rowcall.errors import Final, Retryable
from rowcall.formats.output import sync_folder
from rowcall.formats.reading import MIB
from rowcall.model import Code
from rowcall.store.synced import SyncedFile

_OURS = re.compile(r"(^|/)([0-9a-f]{64}|large/[0-9a-f-]{36})$")
Reader = Callable[[int, int], Iterator[bytes]]
"""Takes the first and the last byte that are wanted."""
MARK = "rowcall-store"
"""The name of what has a store's mark in it."""
_ABANDONED = 2 * 86_400
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

    def keep(self) -> StoredFile:
        """Store what has come."""
        sha256 = self._digest.hexdigest()
        return StoredFile(sha256, self._size, self._settle(sha256), self._put_back)

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
            file = incoming.keep()
            with self.unless_refused(file):
                yield file

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

    @abstractmethod
    def adopt(self, path: Path, sha256: str, size: int) -> StoredFile:
        """Store a durable file that lies in `uploads`; if it isn't there any more, it must have been stored before.

        It may stay there, and is to be deleted when a job has it.
        """

    @abstractmethod
    def _fetched(self, file: StoredFile, copies: Path) -> Path: ...

    @abstractmethod
    def has(self, location: str) -> bool:
        """Whether something is stored there."""

    @abstractmethod
    def remove(self, location: str) -> None:
        """Delete what is stored there, if it is. Called when its row is locked and no job has it."""

    @abstractmethod
    def discard(self, file: StoredFile) -> None:
        """Delete what no job was made from, unless it could be another's. If that fails, it is left over."""

    def discard_unless_of(self, location: str | None, file: StoredFile) -> None:
        """Delete what came if its job has the same bytes from elsewhere."""
        if location != file.location:
            self.discard(file)

    @contextmanager
    def unless_refused(self, file: StoredFile) -> Generator[None]:
        """Discard it if this fails, unless its job may have been made all the same: a COMMIT can lose its answer."""
        try:
            yield
        except (psycopg.OperationalError, Retryable):
            raise
        except BaseException:
            self.discard(file)
            raise

    @abstractmethod
    def check(self) -> str:
        """Whether files can be stored: what there is to say of it. Raises if not."""

    def within(self, location: str) -> str:
        """A location as it would be noted today."""
        return location

    @abstractmethod
    def locations(self) -> Iterator[str]:
        """All that is stored."""

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


class FolderStore(FileStore):
    """Files in a folder: of this host, or one that it shares with others."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), folder / "incoming")
        self.folder, self._exports = folder, folder / "exports"

    def mark(self) -> str | None:
        try:
            return (self.folder / MARK).read_text().strip()
        except FileNotFoundError:
            return None

    def set_mark(self, mark: str) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        own = self.folder / f"{MARK}-{mark}"
        with own.open("w") as file:
            file.write(f"{mark}\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(own, self.folder / MARK)
        except FileExistsError:
            pass
        except OSError:  # a file system without second names
            own.replace(self.folder / MARK)
        own.unlink(missing_ok=True)
        sync_folder(self.folder)
        return self.mark() or mark

    def begin(self, *, most: int | None = None) -> Incoming:
        self.require_own()
        return _IntoFolder(self.folder, most)

    def adopt(self, path: Path, sha256: str, size: int) -> StoredFile:
        location = by_content(sha256)

        def put_back(_: str) -> str:
            if not self.has(location):
                _place_again(path, _place(self.folder, sha256))
            return location

        self.require_own()
        if path.is_file():
            _place_again(path, _place(self.folder, sha256))
        elif not self.has(location):
            raise gone(path)
        return StoredFile(sha256, size, location, put_back)

    def _fetched(self, file: StoredFile, copies: Path) -> Path:  # noqa: ARG002 (needs none)
        if not self.has(file.location):
            self.require_own()
        check(self.folder / file.location, file)
        return self.folder / file.location

    def has(self, location: str) -> bool:
        return (self.folder / location).is_file()  # an absolute one stays what it is

    def remove(self, location: str) -> None:
        if is_ours(location):
            (self.folder / location).unlink(missing_ok=True)

    def discard(self, file: StoredFile) -> None:
        pass  # named by its content, it may be another job's as well

    def check(self) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            file.write(b"rowcall")
            file.flush()
            os.fsync(file.fileno())
        return str(self.folder)

    def within(self, location: str) -> str:
        path = Path(location)
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else location

    def locations(self) -> Iterator[str]:
        for path in self.folder.rglob("*"):
            if path.name == MARK or not path.is_file():
                continue
            if not {self.uploads, self._exports}.intersection(path.parents):
                yield str(path.relative_to(self.folder))

    def sweep(self) -> int:
        return remove_old(self.folder, "incoming-*", _ABANDONED)

    def export_folder(self, export_id: UUID, *, copies: Path) -> Path:  # noqa: ARG002 (needs none)
        folder = self._exports / str(export_id)
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(self._exports)
        return folder

    def publish(self, path: Path, location: str) -> None:
        pass  # written where it belongs

    def export_file(self, location: str) -> Path | Reader:
        path = self._exports / location
        path.stat()
        return path

    def exports(self) -> Iterator[str]:
        for folder in self._exports.glob("*/"):
            names = [path.name for path in folder.glob("*")] or [""]
            yield from (f"{folder.name}/{name}" for name in names)

    def remove_export(self, location: str) -> None:
        path = self._exports / location
        with suppress(OSError):
            if not location.endswith("/"):
                path.unlink(missing_ok=True)
                path = path.parent
            path.rmdir()


class _IntoFolder(Incoming):
    """Into a file that has no name until it is kept, so that nothing is left if the process is killed."""

    def __init__(self, folder: Path, most: int | None) -> None:
        super().__init__(most)
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._temporary: Path | None = None
        try:
            handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        except (OSError, AttributeError):  # not on every system, nor on every network's folder
            handle, name = tempfile.mkstemp(dir=folder, prefix="incoming-")
            self._temporary = Path(name)
        self._out = SyncedFile(handle)

    def _put(self, piece: bytes) -> None:
        self._out.write(piece)

    def _settle(self, sha256: str) -> str:
        self._out.settle()
        self._put_in_place(sha256)
        return by_content(sha256)

    def _put_in_place(self, sha256: str) -> None:
        place = _place(self._folder, sha256)
        self._name().replace(place)
        self._temporary = None
        sync_folder(place.parent)

    def _name(self) -> Path:
        """A name of its own: what lies at its place already may be damaged, and can be replaced only by a name."""
        if self._temporary is None:
            name = self._folder / f"incoming-{os.getpid()}-{id(self)}-{time.monotonic_ns()}"
            handles = os.open("/proc/self/fd", os.O_RDONLY)
            try:  # only where a folder is given does Python follow the link to the file itself
                os.link(str(self._out.handle), name, src_dir_fd=handles, follow_symlinks=True)
            finally:
                os.close(handles)
            self._temporary = name
        return self._temporary

    def _put_back(self, known: str) -> str:  # noqa: ARG002 (by content there is one place only)
        sha256 = self._digest.hexdigest()
        if not (self._folder / by_content(sha256)).is_file():
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="incoming-")
            self._temporary = Path(name)
            with os.fdopen(handle, "wb") as copy, Path(f"/proc/self/fd/{self._out.handle}").open("rb") as source:
                shutil.copyfileobj(source, copy, MIB)
                copy.flush()
                os.fsync(copy.fileno())
            self._put_in_place(sha256)
        return by_content(sha256)

    def close(self) -> None:
        self._out.close()
        if self._temporary:
            self._temporary.unlink(missing_ok=True)


def file_store(settings: Settings) -> FileStore:
    """The file store of the settings."""
    return _file_store(settings.file_store, settings.s3_endpoint, settings.data_dir)


@cache
def _file_store(where: str, endpoint: str | None, data_dir: Path) -> FileStore:
    if where.startswith("s3://"):
        from rowcall.store.bucket import BucketStore  # takes long to load, and few need it

        return BucketStore(where, endpoint, data_dir / "incoming")
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
        with suppress(FileNotFoundError):
            if path.is_file() and time.time() - path.stat().st_mtime > age:
                path.unlink()
                count += 1
    return count


def by_content(sha256: str) -> str:
    """The location of a file that is named by its content."""
    return f"{sha256[:2]}/{sha256}"


def _place(folder: Path, sha256: str) -> Path:
    """Where a file of that content belongs, its folder made durable."""
    place = folder / by_content(sha256)
    if not place.parent.is_dir():
        place.parent.mkdir(exist_ok=True)
        sync_folder(folder)
    return place


def _place_again(path: Path, place: Path) -> None:
    """Give a file its place, instead of whatever is there. Its first name stays too, where the system can do that."""
    second = path.with_name(f"{path.name}-placed")
    try:
        os.link(path, second)
    except FileNotFoundError as error:
        told = "The stored file was removed while the same content came in again."
        raise Retryable(Code.FILE_STORE_AWAY, told, hint="Send it once more.") from error
    except OSError:  # a file system without second names
        second = path
    second.replace(place)
    if second != path:  # it stays where its place was a name of the same file
        second.unlink(missing_ok=True)
    sync_folder(place.parent)


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
