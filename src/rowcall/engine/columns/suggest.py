"""Suggests which column of a file is which field, with how sure that is, and why.

A header that is a field's name, alias or column is that field. Else an earlier decision counts. Else header and values
are scored for every field, and the pairs are taken that are best together. What two could be is asked, not guessed.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from rowcall.engine.columns.assign import Matrix, best_pairs
from rowcall.engine.columns.scores import POSSIBLE, Scores, Seen, scored
from rowcall.formats.columns import normal
from rowcall.importer import Field

SURE = 0.8
"""From here on a suggestion is taken without asking."""
LIKELY = 0.6
"""From here on a field is proposed; below, a person is asked with nothing chosen."""
_REMEMBERED = 0.98
_TIE = 0.07
"""Two that are no further apart are a question."""
_CLOSE = 0.15
"""Two that are no further apart are proposed at most."""
_JUST_BELOW = 0.01
_OTHERS = 3
_IS_NAME = "the header is its name"
_NOTHING: Mapping[str, str] = MappingProxyType({})

__all__ = ["LIKELY", "SURE", "Seen", "Suggestion", "named_by_column", "suggest"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The field that a column probably is."""

    field: str | None
    """None where no field is likely, or where several are; then `others` has them."""
    confidence: float
    reason: str
    others: tuple[tuple[str, float], ...] = ()
    """Further fields with their confidence, the likeliest first."""


def suggest(
    fields: Mapping[str, Field],
    columns: Sequence[Seen],
    *,
    remembered: Mapping[str, str] = _NOTHING,
    taken: Set[str] = frozenset(),
) -> list[Suggestion]:
    """A suggestion for each column, in their order.

    `remembered` has earlier decisions by `normal` header; an empty one means that the column is left out. `taken` are
    fields that have got their values otherwise.
    """
    scores = scored(fields, columns)
    settled = _settled(scores, columns, remembered, taken)
    claimed = {name for found in settled.values() for name in (found.field, *_asked(found))} | taken
    columns_left = [place for place in range(len(columns)) if place not in settled]
    fields_left = [place for place, name in enumerate(scores.names) if name not in claimed]
    found = settled | _judged(scores, columns_left, fields_left)
    given = {each.field: f"is column {columns[place].header!r}" for place, each in found.items() if each.field}
    given |= dict.fromkeys(taken, "has its values already")
    found |= {place: _with_reason(found[place], scores.ranked(place), given) for place in columns_left}
    return [found[place] for place in range(len(columns))]


def _asked(found: Suggestion) -> list[str]:
    return [name for name, _ in found.others] if found.field is None else []


def _with_reason(found: Suggestion, ranked: Sequence[tuple[str, float]], given: Mapping[str, str]) -> Suggestion:
    """A column whose field has its values from elsewhere is told so."""
    if found.field or not ranked or ranked[0][1] < LIKELY or ranked[0][0] not in given:
        return found
    return replace(found, reason=f"it is like {ranked[0][0]}, which {given[ranked[0][0]]}")


# -------------------------------------------------------------------------------- by name, alias or earlier decision


@dataclass(frozen=True, slots=True)
class _Claim:
    """Columns that say by their header that they are a field."""

    field: str
    columns: Sequence[int]
    confidence: float
    reason: str


def _settled(
    scores: Scores, columns: Sequence[Seen], remembered: Mapping[str, str], taken: Set[str]
) -> dict[int, Suggestion]:
    """The columns that need no guess; those that claim the same field are asked about."""
    settled: dict[int, Suggestion] = {}
    late: dict[int, Suggestion] = {}
    claimed: dict[str, list[int]] = {}
    for claim in _claims(scores, columns, remembered):
        if claim.field in taken:
            continue
        free = [place for place in claim.columns if place not in settled]
        if before := claimed.get(claim.field):
            late |= {place: _rival(claim, sorted({*before, *free})) for place in free if place not in late}
        elif free:
            claimed[claim.field] = free
            settled |= {place: _claimed(scores, claim, place, free) for place in free}
    left_out = (place for place, column in enumerate(columns) if remembered.get(normal(column.header)) == "")
    return late | {place: Suggestion(None, _REMEMBERED, "you left it out before") for place in left_out} | settled


def _claimed(scores: Scores, claim: _Claim, place: int, rivals: Sequence[int]) -> Suggestion:
    if len(rivals) > 1:
        return _rival(claim, rivals)
    others = (other for other in scores.ranked(place) if other[0] != claim.field)
    return Suggestion(claim.field, claim.confidence, claim.reason, tuple(others)[:_OTHERS])


def _rival(claim: _Claim, rivals: Sequence[int]) -> Suggestion:
    """A column that says that it is a field, as others do: by its name, or one by name and one by alias."""
    listed = " and ".join(str(rival + 1) for rival in rivals)
    share = round(claim.confidence / len(rivals), 2)
    return Suggestion(None, 0.0, f"columns {listed} could each be {claim.field}", ((claim.field, share),))


def _claims(scores: Scores, columns: Sequence[Seen], remembered: Mapping[str, str]) -> Iterator[_Claim]:
    """By a field's very name, by its name however written, by alias, by its column, by decision: in this order."""
    headers = [normal(column.header) for column in columns]
    for name in scores.names:
        yield _Claim(name, [place for place, column in enumerate(columns) if column.header == name], 1.0, _IS_NAME)
    for name in scores.names:
        yield _Claim(name, _places(headers, {normal(name)}), 1.0, _IS_NAME)
    for name, field in scores.fields.items():
        aliases = {normal(alias): alias for alias in field.aliases}
        places = _places(headers, aliases.keys())
        told = f"the header is its alias {aliases[headers[places[0]]]!r}" if places else ""
        yield _Claim(name, places, 1.0, told)
    for column, name in named_by_column(scores.fields).items():
        yield _Claim(name, _places(headers, {column}), 1.0, "the header is the name of its column")
    for nth, name in enumerate(scores.names):
        decided = _places(headers, {header for header, field in remembered.items() if field == name})
        readable = [place for place in decided if scores.read[place, nth] != 0]
        yield _Claim(name, readable, _REMEMBERED, "you mapped it so before")


def named_by_column(fields: Mapping[str, Field]) -> dict[str, str]:
    """The columns of the target, as headers are compared, with their fields, unless another field is called so."""
    called = {normal(text) for name, field in fields.items() for text in (name, *field.aliases)}
    columns = {normal(field.column): name for name, field in fields.items()}
    return {column: name for column, name in columns.items() if column not in called}


def _places(headers: Sequence[str], wanted: Set[str]) -> list[int]:
    return [place for place, header in enumerate(headers) if header and header in wanted]


# ------------------------------------------------------------------------------------------------------- by score


def _judged(scores: Scores, columns: Sequence[int], fields: Sequence[int]) -> dict[int, Suggestion]:
    """The pairs that are best together; those that aren't clear are questions."""
    score = np.zeros_like(scores.score)
    score[np.ix_(columns, fields)] = scores.score[np.ix_(columns, fields)]
    score[score < POSSIBLE] = 0.0
    gains = np.where(score >= LIKELY, score**2, 0.0)  # squared: one good pair before two poor ones
    pairs = dict(best_pairs(gains))
    return {place: _suggestion(scores, score, pairs, place) for place in columns}


def _suggestion(scores: Scores, score: Matrix, pairs: Mapping[int, int], column: int) -> Suggestion:
    field = pairs.get(column)
    if field is None:
        return _question(scores, score, column)
    lead = _lead(score, pairs, column)
    if lead <= _TIE:
        return _question(scores, score, column)
    confidence = score[column, field] if lead > _CLOSE else min(score[column, field], SURE - _JUST_BELOW)
    name = scores.names[field]
    others = tuple(other for other in scores.ranked(column) if other[0] != name)
    return Suggestion(name, round(float(confidence), 2), scores.reason(column, field), others[:_OTHERS])


def _question(scores: Scores, score: Matrix, column: int) -> Suggestion:
    """Nothing is proposed; what is possible is offered, none of it as likely."""
    open_ = [(name, min(found, LIKELY - _JUST_BELOW)) for name, found in scores.ranked(column)]
    possible = {scores.names[place] for place in np.flatnonzero(score[column])}
    others = tuple((name, round(found, 2)) for name, found in open_ if name in possible)[:_OTHERS]
    told = f"could be {' or '.join(name for name, _ in others)}" if others else "no field is like it"
    return Suggestion(None, 0.0, told, others)


def _lead(score: Matrix, pairs: Mapping[int, int], column: int) -> float:
    """How much is lost when the column gets another field, or its field another column.

    A field that another column has got counts as if it were free, unless that column is clearly more like it.
    """
    field, own = pairs[column], score[column]
    others = {other: theirs for other, theirs in pairs.items() if other != column}
    rows, fields = list(others), list(others.values())
    swapped = score[rows, fields] - score[rows, field] - own[fields]
    open_fields, free_columns = own.copy(), np.delete(score[:, field], [column, *rows])
    open_fields[[field, *(theirs for other, theirs in others.items() if score[other, theirs] > own[theirs] + _TIE)]] = 0
    lost = np.concatenate([swapped, -open_fields, -free_columns])
    return float(own[field] + lost.min(initial=0.0))
