"""Reads a whole file into plain lists, for assertions."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rowcall.formats import BadRecord, CellIssue, Counts, Reading, ReadOptions, open_rows


@dataclass
class Rows:
    """Everything that a reading gave."""

    reading: Reading
    columns: list[str] = field(default_factory=list[str])
    values: list[tuple[str | None, ...]] = field(default_factory=list[tuple[str | None, ...]])
    numbers: list[int] = field(default_factory=list[int])
    lines: list[int] = field(default_factory=list[int])
    bad: list[BadRecord] = field(default_factory=list[BadRecord])
    issues: list[CellIssue] = field(default_factory=list[CellIssue])
    pieces: list[tuple[int, int, bytes]] = field(default_factory=list[tuple[int, int, bytes]])

    @property
    def counts(self) -> Counts:
        return self.reading.counts

    @property
    def notes(self) -> list[str]:
        return [note.code for note in self.reading.detected.notes]

    @property
    def rebuilt(self) -> bytes:
        """The raw texts of good, bad and skipped records, put together in the file's order."""
        return b"".join(raw for _, _, raw in sorted(self.pieces, key=lambda piece: piece[:2]))

    def detected(self, name: str) -> str | None:
        fact = getattr(self.reading.detected, name)
        return fact.value if fact else None


def read(file: str | Path | BinaryIO, options: ReadOptions | None = None, *, name: str | None = None) -> Rows:
    with open_rows(file, options, name=name) as reading:
        return collect(reading)


def collect(reading: Reading) -> Rows:
    got = Rows(reading)
    for batch in reading:
        width = len(reading.columns)
        got.values += [row + (None,) * (width - len(row)) for row in batch.frame.rows()]
        got.numbers.extend(batch.numbers)
        got.lines.extend(batch.lines)
        got.bad += batch.bad
        got.issues += batch.issues
        got.pieces += zip(batch.lines, batch.numbers, batch.raw, strict=False)
        got.pieces += [(b.line, b.number, b.raw) for b in batch.bad]
        got.pieces += [(s.line, 0, s.raw) for s in batch.skipped]
    got.columns = [column.name for column in reading.columns]
    width = len(got.columns)
    got.values = [row + (None,) * (width - len(row)) for row in got.values]
    return got
