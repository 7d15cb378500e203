"""Opens JSON that a test has written, in blocks as small as it likes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rowcall.errors import FileRefused
from rowcall.formats.json import elements
from rowcall.formats.reading import BadRecord, Detected, Fact, Limits, LocalFile, Reading, ReadOptions
from rowcall.model import Code

from .reading import Rows, collect

Opener = Callable[[LocalFile, ReadOptions, Detected], Reading]


def opened(place: Path, data: bytes | str, opener: Opener, options: ReadOptions | None = None) -> Reading:
    place.write_bytes(data if isinstance(data, bytes) else data.encode())
    return opener(LocalFile(place, "file"), options or ReadOptions(), Detected(Fact("json", "test")))


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that came out of a file, with the rows by key."""

    got: Rows

    @property
    def rows(self) -> list[dict[str, str | None]]:
        keys = [column.header for column in self.got.reading.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.got.values]

    @property
    def values(self) -> list[dict[str, str]]:
        """The rows without their nulls."""
        return [{key: value for key, value in row.items() if value is not None} for row in self.rows]

    @property
    def raw(self) -> list[bytes]:
        good = set(self.got.numbers)
        return [raw for _, number, raw in self.got.pieces if number in good]

    @property
    def bad(self) -> list[BadRecord]:
        return self.got.bad

    @property
    def codes(self) -> list[Code]:
        return [bad.code for bad in self.got.bad]

    @property
    def lines(self) -> list[int]:
        return self.got.lines


def read(
    place: Path, data: bytes | str, opener: Opener, options: ReadOptions | None = None, *, block: int | None = None
) -> Outcome:
    """Read all of a file, and check that its rows are numbered without a gap."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elements, "BLOCK", block or elements.BLOCK)
        with opened(place, data, opener, options) as reading:
            got = collect(reading)
    numbers = sorted([*got.numbers, *(bad.number for bad in got.bad)])
    assert numbers == list(range(1, got.counts.rows + 1))
    return Outcome(got)


def refused(place: Path, data: bytes | str, opener: Opener, options: ReadOptions | None = None) -> FileRefused:
    with pytest.raises(FileRefused) as caught:
        read(place, data, opener, options)
    assert caught.value.message
    assert caught.value.hint
    return caught.value


def limited(**limits: int) -> ReadOptions:
    return ReadOptions(limits=Limits(**limits))
