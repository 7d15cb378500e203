"""The files of jobs, kept by their content under the data directory."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rowcall.errors import Final
from rowcall.formats.reading import MIB
from rowcall.model import Code


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Bytes that are safely on disk."""

    sha256: str
    size: int
    location: Path


def keep(folder: Path, stream: BinaryIO) -> StoredFile:
    """Store a stream: hashed on the way, durable when this returns."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix="incoming-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            sha256, size = _copied(stream, out)
            out.flush()
            os.fsync(out.fileno())
        location = folder / sha256[:2] / sha256
        location.parent.mkdir(exist_ok=True)
        temporary.replace(location)
        _sync_folder(location.parent)
    finally:
        temporary.unlink(missing_ok=True)
    return StoredFile(sha256, size, location)


def _copied(stream: BinaryIO, out: BinaryIO) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while piece := stream.read(MIB):
        digest.update(piece)
        out.write(piece)
        size += len(piece)
    return digest.hexdigest(), size


def _sync_folder(folder: Path) -> None:
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
