"""Finds the row that names the columns, among the first rows of a table given as texts.

A header is a row as wide as the table whose cells are words, above columns that hold something else (numbers, dates,
codes). Where everything is text, the first row of the table is taken, unless its values recur below it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from rowcall.formats.columns import normal

_CANDIDATES = 50  # rows from the top that may be the header
_JUDGED_COLUMNS = 256  # the first ones tell enough, and a sheet may have 16,384
_MAJORITY = 0.8  # of a column's filled cells are of its kind
_KNOWN = 2  # words that a reader expects make a header; one may be a value
_TITLE = 3  # words that make a title: fewer above a text and numbers are a name above values, one of which is a text
_LONG = 64  # characters; a heading in a table of texts is rarely longer than that and than everything below it

_NOTHING = frozenset(
    {
        *(
            "",
            "-",
            "--",
            "n/a",
            "na",
            "#n/a",
            "null",
            "none",
            "nan",
            "?",
            "none yet",
            "not yet",
            "unknown",
            "not known",
        ),
        *("missing", "tbd", "tba", "unbekannt", "k.a.", "keine", "fehlt", "inconnu", "desconocido", "sconosciuto"),
        *("desconhecido", "onbekend", "nieznany", "brak"),
    }
)
_NUMBER = re.compile(
    r"[+\-−(]?\s*[$€£¥]?\s*[+\-−]?(\d[\d.,' \u00a0\u202f_]*|\.\d+)([eE][+\-]?\d+)?\s*[%€£$)]?\s*([A-Z]{3})?"
)
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ].*)?"  # 2024-03-01, with or without a time
    r"|\d{1,2}[-/. ](\d{1,2}|[A-Za-z]{3,9})\.?[-/. ,]+\d{2,4}([T ,].*)?"  # 1.3.2024, 1 March 2024
    r"|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}([T ,].*)?"  # March 1, 2024
    r"|\d{1,3}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?"  # 13:45
)
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+|(https?|ftp)://\S+|www\.\S+")
_TRUTH = re.compile(r"true|false", re.IGNORECASE)
_CODE = re.compile(r"(?=\S*\d)\S+")  # one word with a digit in it: AB-123, a UUID
_YEAR = re.compile(r"(19|20)\d\d")


class _Kind(Enum):
    NOTHING = 0
    NUMBER = 1
    DATE = 2
    ADDRESS = 3
    TRUTH = 4
    CODE = 5
    WORDS = 6


_VALUES = frozenset({_Kind.NUMBER, _Kind.DATE, _Kind.ADDRESS, _Kind.TRUTH})


def is_known_header(row: Sequence[str], known: Set[str]) -> bool:
    """Whether a row is the header by its words alone: of two or more, all different, nearly all are known names."""
    words = [normal(cell) for cell in row if cell.strip()]
    told = sum(word in known for word in words)
    return told >= _KNOWN and told >= len(words) * _MAJORITY and len(set(words)) == len(words)


def find_header(rows: Sequence[Sequence[str]], known: Set[str] = frozenset()) -> int | None:
    """The index of the header among the first non-blank rows of a file; None when the first rows are data already.

    `known` are names that columns may have, as `normal` has them.
    """
    table = _table(rows)
    for index in range(min(len(rows), _CANDIDATES)):
        if not table.spans(index) or table.falls_short(index):
            continue
        if table.heads(index):
            return table.last_title(index, known)
        if table.is_data(index):
            break
    # nothing better below: the first row may name all but the last columns
    return 0 if rows and table.falls_short(0) and table.spans(0) and table.heads(0) else None


def _table(rows: Sequence[Sequence[str]]) -> "_Table":
    texts = [[cell.strip() for cell in row[:_JUDGED_COLUMNS]] for row in rows]
    return _Table(texts, [[_kind(cell) for cell in row] for row in texts], *_region(texts))


def _region(texts: Sequence[Sequence[str]]) -> tuple[int, int]:
    """From which column to which most cells lie: ten lines of title weigh less than five rows of a table."""
    reaches = Counter(_reach(row) for row in texts)
    usual = {reach: count for reach, count in reaches.items() if count > 1} or reaches
    return max(usual, key=lambda reach: (usual[reach] * (reach[1] - reach[0]), reach[1]), default=(0, 0))


def _reach(row: Sequence[str]) -> tuple[int, int]:
    filled = [i for i, cell in enumerate(row) if cell]
    return (filled[0], filled[-1] + 1) if filled else (0, 0)


def _kind(cell: str) -> _Kind:
    if len(cell) > _LONG:
        return _Kind.WORDS  # and no pattern ever runs over a long text
    if cell.lower() in _NOTHING:
        return _Kind.NOTHING
    if _NUMBER.fullmatch(cell):
        return _Kind.NUMBER
    if _DATE.fullmatch(cell):
        return _Kind.DATE
    if _ADDRESS.fullmatch(cell):
        return _Kind.ADDRESS
    if _TRUTH.fullmatch(cell):
        return _Kind.TRUTH
    return _Kind.CODE if _CODE.fullmatch(cell) else _Kind.WORDS


@dataclass(frozen=True, slots=True)
class _Table:
    texts: Sequence[Sequence[str]]
    kinds: Sequence[Sequence[_Kind]]
    first: int
    end: int
    """The columns that the table lies in."""

    @property
    def width(self) -> int:
        return self.end - self.first

    def spans(self, index: int) -> bool:
        """Whether this row fills most of the table's width."""
        return sum(map(bool, self.texts[index][self.first : self.end])) >= self.width * 0.6

    def falls_short(self, index: int) -> bool:
        """Whether this row ends before a narrow table does, as a line of key and value above it would."""
        return self.width <= 3 and _reach(self.texts[index])[1] < self.end

    def heads(self, index: int) -> bool:
        """Whether this row names what stands below it."""
        votes = self._votes(index)
        names = sum(kind in (_Kind.WORDS, _Kind.CODE) for kind in self.kinds[index])
        return names > 0 and sum(votes) >= 0

    def is_data(self, index: int) -> bool:
        """Whether this row is like those below it: of the columns that hold values, most hold one here too."""
        pairs = [(kind, self._usual(index, column)) for column, kind in enumerate(self.kinds[index])]
        valued = [kind is usual for kind, usual in pairs if usual in _VALUES]
        return sum(valued) * 2 >= len(valued)

    def last_title(self, index: int, known: Set[str]) -> int:
        """Where titles stack up: the second, below group titles or facts; in a single column, right above values."""
        following = index + 1
        if following >= len(self.texts) or not self.spans(following) or not self.heads(following):
            return index
        if self.width == 1:
            return following if self._is_title(index, known) else index
        names = [cell for cell in self.texts[index] if cell]
        doubled = len(set(names)) * 2 <= len(names)
        doubtful = min(self._votes(index)) < 0 <= min(self._votes(following))
        return following if doubled or doubtful else index

    def _is_title(self, index: int, known: Set[str]) -> bool:
        """Whether the text above a text and values is a title: the text below it is a name then, and no value."""
        rest = {row[0] for row in self.kinds[index + 2 :] if row}
        if len(rest) != 1 or not rest <= _VALUES or len(self.texts) <= index + 3:
            return False
        above, below = self.texts[index][0], self.texts[index + 1][0]
        names = {normal(above) in known, normal(below) in known}
        return normal(below) in known if len(names) > 1 else len(above.split()) >= _TITLE

    def _votes(self, index: int) -> list[int]:
        return [self._vote(index, column) for column in range(len(self.texts[index]))]

    def _vote(self, index: int, column: int) -> int:
        """1 when this cell is a heading of its column, -2 when it is one of the column's values, 0 when unclear.

        -1 when the same text stands below just once: somebody may be called as the column is.
        """
        text, kind = self.texts[index][column], self.kinds[index][column]
        usual = self._usual(index, column)
        if kind is _Kind.NOTHING or usual is _Kind.NOTHING:
            return -2 if kind in _VALUES else 0
        if kind in _VALUES:
            return self._vote_of_value(index, column, usual)
        if usual in _VALUES or (usual is _Kind.CODE and kind is _Kind.WORDS):
            return 1
        below = self._below(index, column)
        return -2 if len(text) > max(_LONG, *map(len, below)) else -min(2, below.count(text))

    def _vote_of_value(self, index: int, column: int, usual: _Kind) -> int:
        """Months and years head columns too: 2023, 2024, 2025 beside each other, above other numbers."""
        kind = self.kinds[index][column]
        if kind is _Kind.DATE and usual is _Kind.NUMBER:
            return 1
        years = [int(cell) for cell in self.texts[index] if _YEAR.fullmatch(cell)]
        in_a_row = len(years) > 1 and all(abs(b - a) == 1 for a, b in pairwise(years))
        is_year = _YEAR.fullmatch(self.texts[index][column]) is not None
        below_too = any(_YEAR.fullmatch(cell) for cell in self._below(index, column))
        return 1 if in_a_row and is_year and not below_too else -2

    def _usual(self, index: int, column: int) -> _Kind:
        """The kind of the cells below; WORDS where they are mixed, NOTHING where there are none."""
        counts = Counter(
            self.kinds[row][column]
            for row in self._rows_below(index, column)
            if self.kinds[row][column] is not _Kind.NOTHING
        )
        if not counts:
            return _Kind.NOTHING
        kind, count = counts.most_common(1)[0]
        return kind if count >= counts.total() * _MAJORITY else _Kind.WORDS

    def _below(self, index: int, column: int) -> list[str]:
        return [self.texts[row][column] for row in self._rows_below(index, column)]

    def _rows_below(self, index: int, column: int) -> Iterator[int]:
        """Rows that reach this column; the header once more (joined files) is not one of them."""
        header = self.texts[index]
        for row in range(index + 1, len(self.texts)):
            texts = self.texts[row]
            if len(texts) > column and (texts != header or self.width == 1):
                yield row
