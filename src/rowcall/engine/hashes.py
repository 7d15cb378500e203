"""Hashes of what rows are known by, kept on disk and divided, so that memory doesn't grow with the file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

_TOGETHER = 500_000
"""The most rows whose hashes are looked at together."""
_ENOUGH = 10_000
"""Rows that are worth the while of looking at."""
_ENTRY = np.dtype([("hash", np.uint64), ("number", np.int64)])


@dataclass(frozen=True, slots=True)
class Hashes:
    """The hashes of a file's rows, of several kinds, in a folder."""

    folder: Path
    parts: int

    @classmethod
    def of(cls, folder: Path, rows: int) -> Self:
        """For a file of so many rows."""
        return cls(folder, -(-rows // _TOGETHER) or 1)

    def add(self, kind: int, thread: int, hashes: pl.Series, numbers: pl.Series) -> None:
        """Keep the hashes of some rows. No two threads of the same number do so at once."""
        entries: npt.NDArray[Any] = np.empty(len(numbers), _ENTRY)
        entries["hash"], entries["number"] = hashes.to_numpy(), numbers.to_numpy()
        part_of = entries["hash"] % np.uint64(self.parts)  # at most 65,536: 32 billion rows
        order = np.argsort(part_of.astype(np.uint16), kind="stable")  # small numbers are sorted in no time
        bounds = np.searchsorted(part_of[order], np.arange(self.parts + 1))
        for part in range(self.parts):
            with (self.folder / f"{kind}-{part}-{thread}").open("ab") as file:
                file.write(entries[order[bounds[part] : bounds[part + 1]]].tobytes())

    def repeated(self, kind: int) -> Iterator[pl.DataFrame]:
        """The `number` of rows whose hash is not the only one, all that may be equal together; in pieces."""
        waiting: list[npt.NDArray[np.int64]] = []
        for part in range(self.parts):
            waiting.append(_repeated(sorted(self.folder.glob(f"{kind}-{part}-*"))))
            if part == self.parts - 1 or sum(map(len, waiting)) >= _ENOUGH:
                yield pl.DataFrame({"number": np.concatenate(waiting)})
                waiting.clear()


def _repeated(files: list[Path]) -> npt.NDArray[np.int64]:
    """The numbers of rows whose hash is not the only one of its kind, equal ones together."""
    if not files:
        return np.empty(0, np.int64)
    entries = np.concatenate([np.fromfile(file, _ENTRY) for file in files])
    hashes = np.sort(entries["hash"])
    several = hashes[1:][hashes[1:] == hashes[:-1]]
    if not len(several):
        return np.empty(0, np.int64)
    entries = entries[np.isin(entries["hash"], several)]
    return entries["number"][np.lexsort((entries["number"], entries["hash"]))]
