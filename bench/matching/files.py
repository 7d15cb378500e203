"""The labelled files: the first line has the expected fields, the second the headers, then come values.

An expected `?` is a column that could be several fields: the right answer is to ask.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measuring.files import HERE
from rowcall.engine.columns.suggest import Seen

FOLDER = HERE / "mapping"
TUNED = "tuned"
HELD_OUT = "held-out"
ASK = "?"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A file whose columns are known."""

    name: str
    importer: str
    language: str
    columns: tuple[Seen, ...]
    expected: tuple[str | None, ...]


def labelled(part: str) -> Iterator[Labelled]:
    """The files that the matcher was tuned on, or those that were held out."""
    for path in sorted((FOLDER / part).glob("*.csv")):
        yield _read(path)


def _read(path: Path) -> Labelled:
    with path.open(newline="", encoding="utf-8") as file:
        expected, headers, *rows = list(csv.reader(file, delimiter=";"))
    values = zip(*rows, strict=True)
    columns = tuple(
        Seen(header, [value or None for value in cells]) for header, cells in zip(headers, values, strict=True)
    )
    importer, language, _ = path.stem.split("-")
    return Labelled(path.stem, importer, language, columns, tuple(field or None for field in expected))
