"""Files in a folder: of this host, or one that it shares with others."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from rowcall.errors import Retryable
from rowcall.formats.output import sync_folder
from rowcall.formats.reading import MIB
from rowcall.model import Code
from rowcall.store.files.filestore import (
    ABANDONED,
    MARK,
    FileStore,
    Incoming,
    Reader,
    StoredFile,
    by_content,
    check,
    gone,
    is_older,
    is_ours,
    remove_old,
)
from rowcall.store.files.synced import SyncedFile


class FolderStore(FileStore):
    """Files by their content, below folders of two letters."""

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
        return StoredFile(sha256, size, location, put_back, held=True)

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

    def locations(self, *, older_than: float = 0) -> Iterator[str]:
        for path in self.folder.rglob("*"):
            if path.name == MARK or {self.uploads, self._exports}.intersection(path.parents) or not path.is_file():
                continue
            location = str(path.relative_to(self.folder))
            if not older_than or (is_ours(location) and is_older(path, older_than)):
                yield location

    def sweep(self) -> int:
        return remove_old(self.folder, "incoming-*", ABANDONED)

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
