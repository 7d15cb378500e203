"""The records of a JSON file before they are decoded: where each begins and ends, and what is no record."""

from dataclasses import dataclass
from typing import IO, Literal

from rowcall.formats.reading import KIB, MIB, Ints, SkippedLines
from rowcall.model import Code

BLOCK = MIB
"""Bytes read from the file at a time."""
HEAD = 64 * KIB
"""Bytes kept of a record that is too long to be read."""


def read_block(file: IO[bytes]) -> bytes:
    """The next block of a file."""
    return file.read(BLOCK)


@dataclass(frozen=True, slots=True)
class Elements:
    """Some records of the file, in its order, as stretches of `data`."""

    data: bytes
    starts: Ints
    ends: Ints
    lines: Ints
    upto: int
    """Bytes of the file read so far."""
    split: Literal["by lines", "by commas", "by values"]
    """What told them apart: line ends, the commas of an array, or only where a value ends."""
    skipped: tuple[SkippedLines, ...] = ()
    cut: bool = False
    """The file ends where the last of these records ends."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A stretch of the file that can't be told apart into records, or is too long to be one."""

    line: int
    code: Code
    message: str
    raw: bytes
    size: int
    upto: int
