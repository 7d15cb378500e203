"""Opens the zip that a workbook is, and trusts nothing its directory says.

Names are keys here, never paths. What inflates is bounded twice: the sizes the directory claims must be sane, and
`zipfile` hands out no byte beyond the claimed size (a lie ends in a wrong checksum).
"""

import struct
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rowcall.errors import FileRefused
from rowcall.formats.reading import MIB, Limits
from rowcall.model import Code

_READ = MIB
_ALWAYS_FINE = 64 * MIB  # small parts may be as repetitive as they like
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_ENTRY_BYTES = 512  # an entry of the directory is 46 bytes and a name; ten times that is generous


class Package:
    """The parts of a zipped workbook, by name."""

    def __init__(self, path: Path, limits: Limits) -> None:
        check_directory(path, limits)
        self._file = path.open("rb")  # ours, so that closing doesn't wait for parts that are still being read
        try:
            with corrupt_zip():
                self._zip = zipfile.ZipFile(self._file)
            self._parts = _checked(self._zip, limits)
        except FileRefused:
            self._file.close()
            raise

    def __contains__(self, name: str) -> bool:
        return _key(name) in self._parts

    def size(self, name: str) -> int:
        """The bytes this part inflates to, at most."""
        return self._part(name).file_size

    def stream(self, name: str) -> Iterator[bytes]:
        """The inflated bytes of a part, piece by piece; the checksum is verified at the end."""
        part = self._part(name)
        with corrupt_zip(), self._zip.open(part) as source:
            yield from iter(lambda: source.read(_READ), b"")

    def check_names(self) -> None:
        """Refuse names that stand for two parts, for a reader that picks the parts itself."""
        for name in self._parts:
            self._part(name)

    def close(self) -> None:
        self._zip.close()
        self._file.close()

    def _part(self, name: str) -> zipfile.ZipInfo:
        parts = self._parts.get(_key(name), [])
        if not parts:
            raise corrupt(f"the part {name!r} is missing.")
        if len(parts) > 1:
            raise corrupt(f"it holds two parts named {name!r}, and programs differ in which one they read.")
        return parts[0]


def corrupt(what: str) -> FileRefused:
    """The refusal of a workbook that breaks its own format."""
    return FileRefused(
        Code.WORKBOOK_CORRUPT,
        f"The workbook is damaged: {what}",
        hint="Open it in its own program and save it again.",
    )


@contextmanager
def corrupt_zip() -> Generator[None]:
    """Everything `zipfile` may raise about a broken archive, as a refusal."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, NotImplementedError) as error:
        raise corrupt(f"{error}.") from error
    except (ValueError, UnicodeError) as error:  # offsets before the file's start, names that don't decode
        raise corrupt(f"its zip directory is broken ({error}).") from error


def _key(name: str) -> str:
    """Part names differ in case and slashes only by mistake."""
    return name.replace("\\", "/").lstrip("/").casefold()


def check_directory(path: Path, limits: Limits) -> None:
    """Refuse a directory too large to hold in memory, before `zipfile` makes an object of each entry."""
    with path.open("rb") as file, corrupt_zip():
        size = _directory_size(file, path.stat().st_size)
    if size > limits.zip_entries * _ENTRY_BYTES:
        raise _too_many_entries(limits)


def _directory_size(file: IO[bytes], total: int) -> int:
    start = max(0, total - _END.size - 2**16)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0:
        raise corrupt("the end of the zip archive is missing; the file is cut short or not a workbook.")
    size = _END.unpack_from(tail, at)[5]
    if size != 0xFFFFFFFF:
        return size
    file.seek(start + at - _LOCATOR_64.size)
    locator = _LOCATOR_64.unpack(file.read(_LOCATOR_64.size))
    file.seek(locator[2])
    return _END_64.unpack(file.read(_END_64.size))[8]


def _checked(archive: zipfile.ZipFile, limits: Limits) -> dict[str, list[zipfile.ZipInfo]]:
    entries = archive.infolist()
    if len(entries) > limits.zip_entries:
        raise _too_many_entries(limits)
    _check_overlap(entries, archive.start_dir)
    _check_sizes(entries, limits)
    parts: dict[str, list[zipfile.ZipInfo]] = defaultdict(list)
    for entry in entries:
        if entry.flag_bits & 1:
            raise password_protected()
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise corrupt(f"the part {entry.filename!r} is packed with a method that workbooks don't use.")
        parts[_key(entry.filename)].append(entry)
    return parts


def _check_overlap(entries: list[zipfile.ZipInfo], directory_start: int) -> None:
    """Entries that share bytes inflate the same data again and again."""
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            raise corrupt(f"the part {entry.filename!r} overlaps another one.")
        end = entry.header_offset + 30 + entry.compress_size
    if end > directory_start:
        raise corrupt("a part reaches beyond the end of the archive's data.")


def _check_sizes(entries: list[zipfile.ZipInfo], limits: Limits) -> None:
    total = sum(entry.file_size for entry in entries)
    if total > limits.inflated_bytes:
        raise too_large(f"Unpacked, the workbook has {total / 2**30:,.1f} GB.")
    for entry in entries:
        ratio = entry.file_size / max(entry.compress_size, 1)
        if entry.file_size > _ALWAYS_FINE and ratio > limits.inflate_ratio:
            raise too_large(f"The part {entry.filename!r} unpacks to {ratio:,.0f} times its size.")


def row_too_long(part: str) -> FileRefused:
    """The refusal of a row or text that can't be held in memory."""
    return too_large(f"One row or text of {part!r} is too long to be real.")


def too_large(what: str) -> FileRefused:
    """The refusal of a workbook that is larger than any real one."""
    return FileRefused(
        Code.WORKBOOK_TOO_LARGE, f"{what} It looks made to exhaust memory.", hint="Split it, or export it as CSV."
    )


def _too_many_entries(limits: Limits) -> FileRefused:
    return FileRefused(
        Code.WORKBOOK_TOO_LARGE,
        f"The workbook's archive has more than {limits.zip_entries:,} entries.",
        hint="A real workbook has a few dozen: save it again in its own program.",
    )


def password_protected() -> FileRefused:
    """The refusal of a workbook that only its password opens."""
    return FileRefused(
        Code.PASSWORD_PROTECTED,
        "The workbook is protected with a password.",
        hint="Open it in its own program, remove the password, and save it again.",
    )
