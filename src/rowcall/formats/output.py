"""Where a writer's bytes go: a file that appears only when it is complete, or a stream; compressed on the way."""

import bz2
import errno
import lzma
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, cast

import zstandard

from rowcall.errors import FileRefused
from rowcall.formats.reading import MIB
from rowcall.model import Code

Compression = Literal["gz", "bz2", "xz", "zst"]


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


# Compressor objects rather than file wrappers: dropping one writes nothing, so an aborted stream stays recognisably
# cut off, and no finalizer touches a closed file.
_COMPRESSORS: dict[Compression, Callable[[], _Compressor]] = {
    "gz": lambda: zlib.compressobj(wbits=31),
    "bz2": bz2.BZ2Compressor,
    "xz": lzma.LZMACompressor,
    "zst": lambda: cast("_Compressor", zstandard.ZstdCompressor().compressobj()),
}

_HINTS = {
    errno.ENOSPC: "Free some space, or write somewhere else.",
    errno.EDQUOT: "Free some space, or write somewhere else.",
    errno.ENOENT: "Create the folder first.",
    errno.ENOTDIR: "A part of the path is a file, not a folder.",
    errno.EISDIR: "Name a file inside the folder.",
    errno.EACCES: "Choose a folder that may be written to.",
    errno.EPERM: "Choose a folder that may be written to.",
    errno.EROFS: "Choose a folder that may be written to.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EPIPE: "The program that reads the output stopped reading.",
}


def suffix_compression(path: Path) -> Compression | None:
    """The compression that a file's name asks for by its last suffix."""
    suffix = path.suffix.lower().lstrip(".")
    return next((known for known in _COMPRESSORS if known == suffix), None)


@contextmanager
def write_errors_told(name: str) -> Generator[None]:
    """Turn what the operating system refuses into a FileRefused that says why."""
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "")
        raise FileRefused(
            Code.WRITE_FAILED, f"{name} can't be written: {error.strerror or error}.", hint=hint
        ) from error


class Output:
    """The bytes of one file on their way out. Either `commit` or `discard` ends it."""

    def __init__(self, target: Path | BinaryIO, compression: Compression | None = None) -> None:
        self.name = repr(str(target)) if isinstance(target, Path) else "The output"
        self._compressor = _COMPRESSORS[compression]() if compression else None
        with write_errors_told(self.name):
            self._place = _place_of(target)

    def write(self, data: bytes | memoryview) -> None:
        with write_errors_told(self.name):
            self._place.write(self._compressor.compress(bytes(data)) if self._compressor else data)

    def commit(self) -> None:
        """Make the file complete, durable and visible."""
        with write_errors_told(self.name):
            if self._compressor:
                self._place.write(self._compressor.flush())
            self._place.commit()

    def discard(self) -> None:
        """Leave nothing behind. What went into a stream can't be taken back."""
        with suppress(OSError):
            self._place.discard()


class OutputFile:
    """An output as a file object, for libraries that want one. Once closed, it takes no more bytes."""

    def __init__(self, output: Output) -> None:
        self.closed = False
        self._output = output

    def write(self, data: bytes | memoryview) -> int:
        if not self.closed:
            self._output.write(data)
        return len(data)

    def flush(self) -> None:
        """The output does that at its end."""

    def close(self) -> None:
        self.closed = True


class _Place(Protocol):
    def write(self, data: bytes | memoryview) -> None: ...
    def commit(self) -> None: ...
    def discard(self) -> None: ...


def _place_of(target: Path | BinaryIO) -> _Place:
    if not isinstance(target, Path):
        return _Stream(target)
    if "\0" in str(target):
        raise OSError(errno.EINVAL, "its name has a null byte")
    path = target.resolve()  # a link stays a link; the file that it names is replaced
    if path.exists() and not path.is_file() and not path.is_dir():
        return _Device(path)
    return _NewFile(path)


class _Stream:
    """Someone else's stream: written to and flushed, never closed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes | memoryview) -> None:
        if self._stream.closed:
            raise OSError(errno.EBADF, "it is closed")
        rest = memoryview(data)
        while rest:  # an unbuffered stream may take less than all
            taken = cast("int | None", self._stream.write(rest))  # None from file-likes that don't count
            rest = rest[len(rest) if taken is None else taken :]

    def commit(self) -> None:
        self._stream.flush()

    def discard(self) -> None:
        """Nothing to undo."""


class _Device:
    """A device or a named pipe: never replaced by a file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)

    def commit(self) -> None:
        self._file.close()

    def discard(self) -> None:
        self._file.close()


class _NewFile:
    """A file under a passing name beside its own, which it gets when it is complete and on disk."""

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        self._path = path
        self._part = path.with_name(f".rowcall-{secrets.token_hex(8)}.part")
        self._file = self._part.open("xb", buffering=MIB)
        if path.exists():
            self._part.chmod(stat.S_IMODE(path.stat().st_mode))  # a private file stays private

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)

    def commit(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.replace(self._path)
        sync_folder(self._path.parent)

    def discard(self) -> None:
        try:
            self._file.close()
        finally:
            self._part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """A new name is durable only when its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
