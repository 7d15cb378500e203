"""How likely each column is each field, by what its header means and what its values look like."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rowcall.engine.columns.assign import Matrix
from rowcall.engine.columns.headers import Likeness, Meaning, alike, is_light, languages_of, meanings, other_names
from rowcall.engine.columns.looks import shares, told_by_values
from rowcall.formats.columns import normal
from rowcall.importer import Date, DateTime, Field, Lookup

POSSIBLE = 0.25
"""From here on a field is offered in a picker."""
_MOST = 0.96
"""Nothing but a name, an alias or a decision is surer."""
_OTHER_NAME = 0.95
_CERTAIN = 0.89
"""Meanings that are less sure are second ones, such as German `Name` for a last name."""
_DOUBTFUL = 0.79
"""They are proposed at most, unless values speak for them too."""
_OF_WHOM = 0.92
_GOOD = 0.9
"""The share of values that has to be read for the field to be likelier by it."""
_FROM_VALUES = 0.35
"""How much of the doubt that a header leaves values can take away."""
_VALUES_ALONE = 0.7
_NOT_ALONE = 0.6
"""What is left of that when other columns look the same."""
_OTHER_HEADER = 0.65
"""What is left of it when there is a header that says something else."""
_SAME = 0.93
"""From here on a header says what a field's name says."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A column as it stands in the file: its header, which may be blank, and some of its values."""

    header: str
    values: Sequence[str | None] = ()


@dataclass(frozen=True, slots=True)
class _Name:
    """One of the ways to call a field."""

    field: int
    text: str
    meaning: Meaning
    alone: bool = False
    """Whether a header has to say just that, and no word more."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Columns by fields: how likely each pair is, and why."""

    fields: Mapping[str, Field]
    score: Matrix
    read: Matrix
    """The share of the column's values that the field reads; NaN where there are none."""
    like: Mapping[tuple[int, int], tuple[str, float]]
    """The name of the field that the header is most like, and how much."""

    @property
    def names(self) -> list[str]:
        return list(self.fields)

    def ranked(self, column: int) -> list[tuple[str, float]]:
        """The fields that the column may be, the likeliest first."""
        row = self.score[column]
        order = np.argsort(-row, kind="stable")
        return [(self.names[place], round(float(row[place]), 2)) for place in order if row[place] >= POSSIBLE]

    def reason(self, column: int, field: int) -> str:
        """Why the column may be the field, for a person."""
        text, likeness = self.like.get((column, field), ("", 0.0))
        if likeness >= _SAME:
            return f"the header means {text!r}"
        if likeness >= POSSIBLE:
            return f"the header is like {text!r} ({likeness:.2f})"
        return f"the values look like {told_by_values(self.fields[self.names[field]])[0]}"


def scored(fields: Mapping[str, Field], columns: Sequence[Seen]) -> Scores:
    """Score every column for every field."""
    read = shares(fields, [column.values for column in columns])
    like = _header_scores(fields, [column.header for column in columns])
    header = np.zeros(read.shape)
    for pair, (_, likeness) in like.items():
        header[pair] = likeness
    return Scores(fields, _combined(list(fields.values()), columns, header, read), read, like)


def _combined(fields: Sequence[Field], columns: Sequence[Seen], header: Matrix, read: Matrix) -> Matrix:
    """The header's score, raised or lowered by the values. What no value fits is no candidate."""
    fits = read >= _GOOD
    fitting = fits.sum(axis=0)
    telling = np.array([told_by_values(field)[1] for field in fields])
    rare = 1 - np.maximum(fitting - 1, 0) / max(1, len(columns) - 1)
    raised = header + (1 - header) * _FROM_VALUES * telling * rare * (header >= POSSIBLE)
    alone = _VALUES_ALONE * telling * np.where(fitting == 1, 1.0, _NOT_ALONE)
    blank = np.array([not normal(column.header) for column in columns], dtype=np.bool_)[:, None]
    by_values = alone * np.where(blank, 1.0, _OTHER_HEADER)
    readable = np.where(fits, np.maximum(raised, by_values), header * (0.5 + 0.5 * np.nan_to_num(read)))
    score = np.where(np.isnan(read), header, np.where(read == 0, 0.0, readable))
    return np.minimum(score, _MOST)


# ----------------------------------------------------------------------------------------------------- by header


def _header_scores(fields: Mapping[str, Field], headers: Sequence[str]) -> dict[tuple[int, int], tuple[str, float]]:
    """For pairs of column and field with anything in common: the field's name that is most like the header."""
    by_word: dict[str, list[_Name]] = {}
    for name in _names(fields):
        for word in name.meaning.words:
            by_word.setdefault(word, []).append(name)
    likeness, languages = Likeness(_own_words(fields)), languages_of(headers)
    best: dict[tuple[int, int], tuple[str, float]] = {}
    for place, header in enumerate(headers):
        for meaning in meanings(header, languages):
            for name in dict.fromkeys(_sharing(meaning, by_word)):
                if name.alone and name.meaning.words != meaning.words:
                    continue
                weight = meaning.weight * name.meaning.weight
                most = 1.0 if weight >= _CERTAIN else _DOUBTFUL
                score = min(most, weight * likeness.between(meaning.words, name.meaning.words))
                if score > best.get((place, name.field), ("", 0.0))[1]:
                    best[place, name.field] = name.text, score
    return best


def _own_words(fields: Mapping[str, Field]) -> frozenset[str]:
    languages = languages_of(list(fields))
    return frozenset(word for name in fields for meaning in meanings(name, languages) for word in meaning.words)


def _sharing(meaning: Meaning, by_word: Mapping[str, Sequence[_Name]]) -> Iterator[_Name]:
    """The names that have a word in common with the header."""
    for word in meaning.words:
        for other, names in by_word.items():
            if alike(word, other):
                yield from names


def _names(fields: Mapping[str, Field]) -> Iterator[_Name]:
    """All the ways to call each field, put into plain English from the language that their names are in."""
    languages = languages_of(list(fields))
    for place, (name, field) in enumerate(fields.items()):
        for text in (name, *field.aliases, *_looked_up(name, field)):
            shown = text.replace("_", " ")
            yield from (_Name(place, shown, meaning) for meaning in _called(meanings(text, languages), field))
            yield from (_Name(place, shown, meaning, alone=True) for meaning in _whose_name(meanings(text, languages)))


def _called(meant: Sequence[Meaning], field: Field) -> Iterator[Meaning]:
    usual, *others = meant or [Meaning(())]
    for meaning in (usual, *(() if is_light(usual.words) else others)):  # an `id` is no number, an order's id may be
        yield meaning
        if isinstance(field, Date | DateTime) and "date" not in meaning.words:
            yield Meaning((*meaning.words, "date"), meaning.weight)
        for other in other_names(meaning.words):
            yield Meaning(other, meaning.weight * _OTHER_NAME)


def _whose_name(meant: Sequence[Meaning]) -> Iterator[Meaning]:
    """`Customer` is the name of a customer, rather than anything else of them."""
    for meaning in meant[:1]:
        if len(meaning.words) > 1 and meaning.words[-1] == "name":
            yield Meaning(meaning.words[:-1], _OF_WHOM)


def _looked_up(name: str, field: Field) -> Iterator[str]:
    """A look-up `author_id` by e-mail address may stand under `author` or `author email`."""
    if isinstance(field, Lookup):
        bare = name.removesuffix("_id")
        yield from (bare, *(f"{bare} {by}" for by in field.by))
