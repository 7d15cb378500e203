"""The texts that the cells of an XLSX workbook share: in memory while they are few, else in a file of their own."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from rowcall.formats.reading import KIB, MIB, Ints
from rowcall.formats.workbook.cell_text import unescaped
from rowcall.formats.workbook.xlsx_blocks import ITEMS, Document, Elements, blocks
from rowcall.formats.workbook.xlsx_xml import Attributes, XmlWalk, dereferenced, plain_text
from rowcall.formats.workbook.xlsx_zip import row_too_long, too_large

_HELD = 64 * MIB
_VIEW = 16  # bytes that a text takes in memory beside its own
_MOST = 20_000_000  # texts; 8 bytes each say where they lie in the file
_NEAR = KIB  # texts that lie this close in the file are read in one go

_ITEM = r'^<t(?: xml:space="preserve")?(?: ?/>|>([^<]*)</t>)(?:<phoneticPr[^<>]*/>)?</si>\s*$'


class SharedTexts(Protocol):
    """A table of texts."""

    def __len__(self) -> int: ...

    def sizes(self, indices: Ints) -> Ints:
        """The bytes of each of these texts."""
        ...

    def gather(self, indices: Ints) -> pl.Series:
        """These texts."""
        ...

    def close(self) -> None: ...


def shared_texts(part: str, stream: Iterator[bytes], longest: int) -> SharedTexts:
    """Read the table; nobody asks how many texts it says it has."""
    pages = _pages(part, stream, longest)
    held: list[pl.Series] = []
    size = 0
    for page in pages:
        held.append(page)
        size += int(page.str.len_bytes().sum()) + _VIEW * len(page)
        if size > _HELD:
            return _spill(chain(_emptied(held), pages))
    return _HeldTexts(pl.concat(held, rechunk=True) if held else pl.Series([], dtype=pl.String))


def _emptied(held: list[pl.Series]) -> Iterator[pl.Series]:
    """The pages in their order, each forgotten once it is taken."""
    held.reverse()
    while held:
        yield held.pop()


class _HeldTexts:
    """A table in memory."""

    def __init__(self, texts: pl.Series) -> None:
        self._texts = texts
        self._sizes = texts.str.len_bytes().to_numpy()

    def __len__(self) -> int:
        return len(self._texts)

    def sizes(self, indices: Ints) -> Ints:
        return self._sizes[indices].astype(np.int64)

    def gather(self, indices: Ints) -> pl.Series:
        return self._texts.gather(indices)

    def close(self) -> None:
        """Nothing is open."""


def _spill(pages: Iterable[pl.Series]) -> "_SpilledTexts":
    file = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the table)
    try:
        sizes = list(_written(file, pages))
    except BaseException:
        file.close()
        raise
    places = np.zeros(sum(map(len, sizes)) + 1, np.int64)
    np.concatenate(sizes).cumsum(out=places[1:])
    return _SpilledTexts(file, places)


def _written(file: IO[bytes], pages: Iterable[pl.Series]) -> Iterator[npt.NDArray[np.uint32]]:
    """Write the texts one behind the other, and tell how long they are."""
    count = 0
    for page in pages:
        count += len(page)
        if count > _MOST:
            raise too_large(f"The workbook has more than {_MOST:,} different texts.")
        file.write("".join(page).encode())
        yield page.str.len_bytes().to_numpy()
    file.flush()


class _SpilledTexts:
    def __init__(self, file: IO[bytes], places: Ints) -> None:
        self._file = file
        self._places = places

    def __len__(self) -> int:
        return len(self._places) - 1

    def sizes(self, indices: Ints) -> Ints:
        return self._places[indices + 1] - self._places[indices]

    def gather(self, indices: Ints) -> pl.Series:
        distinct, back = np.unique(indices, return_inverse=True)
        starts, ends = self._places[distinct], self._places[distinct + 1]
        groups = np.flatnonzero(starts[1:] - ends[:-1] > _NEAR) + 1
        texts: list[str] = []
        for first, last in zip([0, *groups], [*groups, len(distinct)], strict=True):
            texts += self._read(starts[first:last].tolist(), ends[first:last].tolist())
        return pl.Series(texts, dtype=pl.String).gather(back)

    def close(self) -> None:
        self._file.close()

    def _read(self, starts: list[int], ends: list[int]) -> Iterator[str]:
        if starts:
            data = os.pread(self._file.fileno(), ends[-1] - starts[0], starts[0])
            for start, end in zip(starts, ends, strict=True):
                yield data[start - starts[0] : end - starts[0]].decode()


def _pages(part: str, stream: Iterator[bytes], longest: int) -> Iterator[pl.Series]:
    for block in blocks(part, stream, ITEMS, longest):
        if isinstance(block, Elements):
            items = _plain_items(block.data)
            walked = _walked(part, [b"<sst>" + block.data + b"</sst>"], longest)
            yield from (map(unescaped, walked) if items is None else [unescaped(items)])
        elif isinstance(block, Document):
            yield from map(unescaped, _walked(part, block.data, longest))


def _plain_items(data: bytes) -> pl.Series | None:
    """The texts of items that hold just that; None when one has runs of its own format or is otherwise special."""
    text = plain_text(data)
    if text is None:
        return None
    pieces = pl.Series([text]).str.split("<si>").explode()
    items = pieces.slice(1)
    if pieces[0].strip() or not items.str.contains(_ITEM).all():
        return None
    texts = items.str.extract(_ITEM).fill_null("")
    return dereferenced(texts) if "&" in text else texts


def _walked(part: str, data: Iterable[bytes], longest: int) -> Iterator[pl.Series]:
    walk = _ItemWalk(part, longest)
    for piece in data:
        yield walk.feed(piece)
    yield walk.feed(b"", final=True)


class _ItemWalk:
    """Joins the runs of each item, leaving out how a text is pronounced (`rPh`)."""

    def __init__(self, part: str, longest: int) -> None:
        self._part, self._longest = part, longest
        self._xml = XmlWalk(part, self._start, self._end, self._data)
        self._items: list[str] = []
        self._text: list[str] = []
        self._held = 0
        self._collecting = self._phonetic = False

    def feed(self, data: bytes, *, final: bool = False) -> pl.Series:
        self._xml.feed(data, final=final)
        items, self._items = self._items, []
        return pl.Series(items, dtype=pl.String)

    def _start(self, name: str, _: Attributes) -> None:
        if name == "t":
            self._collecting = not self._phonetic
        elif name == "rPh":
            self._phonetic = True

    def _end(self, name: str) -> None:
        if name == "t":
            self._collecting = False
        elif name == "rPh":
            self._phonetic = False
        elif name == "si":
            self._items.append("".join(self._text))
            self._text, self._held = [], 0

    def _data(self, text: str) -> None:
        if self._collecting:
            self._text.append(text)
            self._held += len(text)
            if self._held > self._longest:
                raise row_too_long(self._part)
