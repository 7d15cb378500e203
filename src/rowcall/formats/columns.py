"""From the cells of a header to columns with unique names, and what is odd about them."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence

from rowcall.errors import FileRefused
from rowcall.formats.reading import Column, Limits, Note
from rowcall.model import Code

_BETWEEN = re.compile(r"[\W_]+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")


def columns_of(header: Sequence[str], limits: Limits) -> tuple[list[Column], list[Note]]:
    """Name the columns: the header's own words where they are unique, else with a number behind."""
    check_width(len(header), limits)
    taken: dict[str, int] = {}
    columns: list[Column] = []
    for index, text in enumerate(header):
        name = _unique(text.strip() or f"column_{index + 1}", taken)
        columns.append(Column(index, text, name))
    return columns, _notes(header)


def check_width(width: int, limits: Limits) -> None:
    """Refuse a file with more columns than the limit."""
    if width > limits.columns:
        raise FileRefused(
            Code.TOO_MANY_COLUMNS,
            f"The file has {width:,} columns; at most {limits.columns:,} are read.",
            hint="Check the delimiter, or split the file.",
        )


def _unique(name: str, taken: dict[str, int]) -> str:
    """The name, or with the next number behind it that is free. `taken` has the last number tried for each name."""
    count, unique = taken.get(name, 0), name
    while unique in taken:
        count += 1
        unique = f"{name}_{count}"
    taken[name] = max(count, 1)
    taken.setdefault(unique, 1)
    return unique


def fold(text: str) -> str:
    """A header as a person reads it: no case, no invisible characters, no width variants, single spaces."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(text.casefold().split())


def normal(header: str) -> str:
    """A header as compared: `Created At`, `created_at` and `CREATED-AT` are one."""
    return _BETWEEN.sub("", fold(header))


def _notes(header: Sequence[str]) -> list[Note]:
    blank = [i + 1 for i, text in enumerate(header) if not fold(text)]
    alike: dict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(header):
        if fold(text):
            alike[fold(text)].append(index)
    notes: list[Note] = []
    if blank:
        notes.append(Note(Code.BLANK_HEADER, f"No header above column {_listed(blank)}."))
    for group in alike.values():
        texts = {header[i] for i in group}
        places = _listed([i + 1 for i in group])
        if len(texts) < len(group):
            notes.append(Note(Code.DUPLICATE_HEADER, f"Header {header[group[0]]!r} stands above columns {places}."))
        if len(texts) > 1:
            shown = ", ".join(repr(text) for text in sorted(texts))
            notes.append(Note(Code.SIMILAR_HEADERS, f"Headers {shown} (columns {places}) look the same; kept apart."))
    return notes


def _listed(numbers: Sequence[int], most: int = 8) -> str:
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return ", ".join(str(n) for n in numbers[:most]) + more
