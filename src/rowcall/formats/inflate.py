"""Takes a file out of its compression, onto disk, with a cap on what really comes out.

Inflating onto disk rather than on the fly gives every reader a plain, seekable file, and lets the caps stop a bomb
before anything parses it.
"""

import bz2
import lzma
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import zstandard

from rowcall.errors import FileRefused
from rowcall.formats.reading import MIB, Limits, LocalFile, Note
from rowcall.model import Code

_CHUNK = 256 * 1024
_ZSTD_CHUNK = 1024  # may inflate to 32 MB
_RATIO_FROM = 64 * MIB  # below this, no ratio is suspicious
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES = (".gz", ".gzip", ".bz2", ".xz", ".zst", ".zip")


def compression_of(head: bytes) -> str | None:
    """The compression that the first bytes of a file tell (a zip is looked into by `detect.py`)."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def inflate(file: LocalFile, compression: str, limits: Limits, folder: Path) -> tuple[LocalFile, list[Note]]:
    """Write the file's inflated content into `folder`."""
    with file.path.open("rb") as raw:
        junk: list[int] = []
        chunks = _zstd(raw, junk) if compression == "zstd" else _members(raw, compression, junk)
        inner = _write(chunks, file, limits, folder, compression)
    message = "Bytes after the end of the compressed data are not part of it and were left out."
    return inner, [Note(Code.TRAILING_BYTES, f"{message} ({junk[0]:,} bytes)")] if junk else []


def unzip(file: LocalFile, entry: zipfile.ZipInfo, limits: Limits, folder: Path) -> LocalFile:
    """Write one entry of a zip archive into `folder`. Its name is kept as a hint, never used as a path."""
    if entry.flag_bits & 1:
        raise FileRefused(
            Code.PASSWORD_PROTECTED, "The zip archive is encrypted.", hint="Unpack it with its password first."
        )
    with zipfile.ZipFile(file.path) as archive, archive.open(entry) as raw:
        named = LocalFile(file.path, entry.filename.replace("\\", "/").rsplit("/", 1)[-1])
        return _write(iter(lambda: raw.read(_CHUNK), b""), named, limits, folder, "zip", packed=file.size)


class _Gzip:
    """zlib's decompressor with the interface of bz2's and lzma's: it hands out at most so much at a time."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._pending = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._inner.decompress(self._pending + data, max_length)
        self._pending = self._inner.unconsumed_tail
        return out

    @property
    def needs_input(self) -> bool:
        return not self._pending

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def eof(self) -> bool:
        return self._inner.eof


def _members(raw: BinaryIO, compression: str, junk: list[int]) -> Iterator[bytes]:
    """The content of joined members; what follows them without being one is counted into `junk`."""
    magic = next(m for m, name in _MAGIC.items() if name == compression)
    data = raw.read(_CHUNK)
    while data:
        one = _decompressor(compression)
        while not one.eof:
            if one.needs_input and not data:
                data = raw.read(_CHUNK)
                if not data:
                    raise EOFError
            yield one.decompress(data, _CHUNK)
            data = b""
        data = one.unused_data + raw.read(_CHUNK)
        if data.strip(b"\0") and not data.startswith(magic):
            junk.append(len(data) + sum(len(more) for more in iter(lambda: raw.read(_CHUNK), b"")))
            return
        data = data.lstrip(b"\0")


def _decompressor(compression: str) -> "_Gzip | bz2.BZ2Decompressor | lzma.LZMADecompressor":
    if compression == "gzip":
        return _Gzip()
    return bz2.BZ2Decompressor() if compression == "bzip2" else lzma.LZMADecompressor(memlimit=128 * MIB)


def _zstd(raw: BinaryIO, junk: list[int]) -> Iterator[bytes]:
    """The same for zstd, whose decompressor can't be told to stop: so it gets little input at a time."""
    one, frames = None, 0
    for data in iter(lambda: raw.read(_ZSTD_CHUNK), b""):
        piece = data
        while piece:
            if one is None:
                # a window beyond 128 MB would be allocated at once, whatever the content
                one = zstandard.ZstdDecompressor(max_window_size=128 * MIB).decompressobj()
            try:
                yield one.decompress(piece)
            except zstandard.ZstdError:
                if frames and piece is not data:
                    junk.append(len(piece) + sum(len(more) for more in iter(lambda: raw.read(_CHUNK), b"")))
                    return
                raise
            piece = one.unused_data
            if one.eof:
                one, frames = None, frames + 1
    if one is not None:
        raise EOFError


def _write(
    chunks: Iterator[bytes],
    file: LocalFile,
    limits: Limits,
    folder: Path,
    compression: str,
    *,
    packed: int = 0,
) -> LocalFile:
    packed = packed or file.size
    size = 0
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as out:
        try:
            for chunk in chunks:
                size += len(chunk)
                _check(size, packed, limits)
                out.write(chunk)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, zipfile.BadZipFile) as error:
            raise _corrupt(error, compression, size) from error
    return LocalFile(Path(out.name), _without_suffix(file.name))


def _check(size: int, packed: int, limits: Limits) -> None:
    if size > limits.inflated_bytes or (size > _RATIO_FROM and size > packed * limits.inflate_ratio):
        raise FileRefused(
            Code.ARCHIVE_TOO_LARGE,
            f"The compressed file of {packed:,} bytes inflates beyond {size:,} bytes.",
            hint=f"At most {limits.inflated_bytes:,} bytes and {limits.inflate_ratio} times its size are read; "
            "bring it uncompressed if it is what it should be.",
        )


def _corrupt(error: Exception, compression: str, size: int) -> FileRefused:
    if isinstance(error, OSError) and error.errno is not None:
        return FileRefused(
            Code.WRITE_FAILED, f"The file can't be unpacked: {error.strerror}.", hint="Make room on disk."
        )
    what = "ends too early" if isinstance(error, EOFError) else f"is damaged ({error})"
    return FileRefused(
        Code.ARCHIVE_CORRUPT,
        f"The {compression} data {what}, after {size:,} good bytes.",
        hint="Transfer or compress the file again.",
    )


def _without_suffix(name: str) -> str:
    path = Path(name)
    return path.stem if path.suffix.lower() in _SUFFIXES else name
