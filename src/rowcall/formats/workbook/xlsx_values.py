"""From cells as stored to cells as text, in portions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from rowcall.formats.reading import Ints
from rowcall.formats.workbook.cell_text import moment_texts, number_texts, truth_texts, unescaped
from rowcall.formats.workbook.sheet_cells import PORTION, Cells, portions, ranges_of
from rowcall.formats.workbook.xlsx_cells import StoredCells
from rowcall.formats.workbook.xlsx_parts import Kind
from rowcall.formats.workbook.xlsx_strings import SharedTexts
from rowcall.model import Code

_RECOGNISABLE = 256  # bytes: of a row too long to keep, texts up to this are kept

_FAULTS = {
    Kind.DATE: Code.DATE_OUT_OF_RANGE,
    Kind.DATETIME: Code.DATE_OUT_OF_RANGE,
    Kind.TIME: Code.DATE_OUT_OF_RANGE,
    Kind.DURATION: Code.DATE_OUT_OF_RANGE,
    Kind.ERROR: Code.CELL_ERROR,
    Kind.FORMULA: Code.NOT_CALCULATED,
}


@dataclass(frozen=True, slots=True)
class Values:
    """Knows what the stored texts of a workbook stand for."""

    shared: SharedTexts
    from_1904: bool
    longest_row: int
    point: str = "."

    def cells(self, stored: StoredCells) -> Iterator[Cells]:
        """The cells as text. A shared text can be long and used often, so sizes are known before texts are fetched."""
        stored = _filled(stored)
        sizes = self._sizes(stored)
        starts, ends = ranges_of(stored.rows)
        if not len(starts):
            yield Cells(stored.rows, stored.cols, stored.texts, sizes, stored.last)
            return
        row_sizes = np.add.reduceat(sizes, starts)
        for first, last in portions(row_sizes, PORTION):
            part = _slice(stored, int(starts[first]), int(ends[last - 1]), is_last=last == len(starts))
            part_sizes = sizes[starts[first] : ends[last - 1]]
            if row_sizes[first] > self.longest_row:
                part = _cut(part, part_sizes)
            yield self._portion(part, part_sizes)

    def _sizes(self, stored: StoredCells) -> Ints:
        sizes = stored.texts.str.len_bytes().to_numpy().astype(np.int64)
        at = np.flatnonzero(stored.kinds == Kind.SHARED)
        indices = self._indices(stored.texts.gather(at))
        known = indices >= 0
        sizes[at[known]] = self.shared.sizes(indices[known])
        return sizes

    def _indices(self, stored: pl.Series) -> Ints:
        """Places in the table of shared texts; -1 for what is none."""
        indices = stored.cast(pl.Int64, strict=False).fill_null(-1).to_numpy()
        return np.where((indices >= 0) & (indices < len(self.shared)), indices, -1)

    def _portion(self, stored: StoredCells, sizes: Ints) -> Cells:
        kinds = [Kind(kind) for kind in np.unique(stored.kinds)]
        places = [np.flatnonzero(stored.kinds == kind) for kind in kinds]
        parts = [self._texts(stored.texts.gather(at), kind) for at, kind in zip(places, kinds, strict=True)]
        back = np.empty(len(stored.kinds), np.int64)
        back[np.concatenate(places)] = np.arange(len(back))
        texts = pl.concat(parts).gather(back)
        unusable = texts.is_null()
        faults = {at: _FAULTS.get(Kind(stored.kinds[at]), Code.CELL_BROKEN) for at in unusable.arg_true()}
        texts = texts.zip_with(~unusable, stored.texts) if faults else texts
        return Cells(stored.rows, stored.cols, texts, sizes, stored.last, faults)

    def _texts(self, stored: pl.Series, kind: Kind) -> pl.Series:
        if kind is Kind.SHARED:
            return self._shared(stored)
        if kind in (Kind.ERROR, Kind.UNKNOWN, Kind.FORMULA):
            return pl.Series([None], dtype=pl.String).new_from_index(0, len(stored))
        if kind in (Kind.DATE, Kind.DATETIME, Kind.TIME, Kind.DURATION):
            return moment_texts(stored, kind, from_1904=self.from_1904)
        if kind is Kind.NUMBER:
            texts = number_texts(stored)
            return texts if self.point == "." else texts.str.replace(".", self.point, literal=True)
        return _TEXTS[kind](stored)

    def _shared(self, stored: pl.Series) -> pl.Series:
        indices = self._indices(stored)
        known = indices >= 0
        texts = self.shared.gather(indices[known])
        if known.all():
            return texts
        places = np.where(known, np.cumsum(known) - 1, len(texts))
        return texts.extend_constant(None, 1).gather(places)


_TEXTS: dict[Kind, Callable[[pl.Series], pl.Series]] = {
    Kind.TEXT: unescaped,
    Kind.TRUTH: truth_texts,
}


def _filled(stored: StoredCells) -> StoredCells:
    """Without cells that hold nothing; an empty text is something."""
    empty = (stored.texts == "").to_numpy() & (stored.kinds != Kind.TEXT)
    if not empty.any():
        return stored
    at = np.flatnonzero(~empty)
    return replace(
        stored, rows=stored.rows[at], cols=stored.cols[at], kinds=stored.kinds[at], texts=stored.texts.gather(at)
    )


def _slice(stored: StoredCells, start: int, end: int, *, is_last: bool) -> StoredCells:
    rows = stored.rows[start:end]
    last = stored.last if is_last else int(rows[-1])
    return StoredCells(rows, stored.cols[start:end], stored.kinds[start:end], stored.texts[start:end], last)


def _cut(row: StoredCells, sizes: Ints) -> StoredCells:
    """A row without its long texts, which can't be kept; the short ones tell which row it is."""
    short = sizes <= _RECOGNISABLE
    texts = row.texts.zip_with(pl.Series(short), pl.Series(["…"]).new_from_index(0, len(short)))
    return replace(row, kinds=np.where(short, row.kinds, Kind.TEXT), texts=texts)
