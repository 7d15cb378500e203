"""What the words of a header mean, and how alike two headers are.

Headers come in several languages, abbreviated, misspelt and in any order. Their words are put into plain English by
`words.ini`; then bags of words are compared.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set
from configparser import ConfigParser
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice, product

from rapidfuzz import fuzz, process

from rowcall.formats.columns import fold

_LANGUAGES = ("en", "de", "fr", "es", "nl", "it", "pt", "pl", "sv", "da", "cs")
_LONGEST_HEADER = 200
_LONGEST_WORD = 40
_LONGEST_PHRASE = 4
_MEANINGS = 16  # of a header, at most: each of its words may have several
_SECOND_MEANING = 0.88
_OTHER_LANGUAGE = 0.93
_FALSE_FRIEND = 0.5
"""A word that English has too, in another language: where English is spoken, `fine` is hardly the Italian end."""
_IN_BRACKETS = 0.9
_MISSPELT = 88.0  # of 100, in rapidfuzz's measure
_SHORTEST_MISSPELT = 5
_ALIKE = 82.0
_SHORTEST_PREFIX = 3
_PREFIX = 0.85
_SWAPPED = 0.9
_LIGHT = 0.4
_WHOM = 0.15
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_]{2})(?=\d)")
_BRACKETS = re.compile(r"[(\[{]([^)\]}]*)[)\]}]")
_SIGNS = (("#", " no "), ("№", " no "), ("%", " percent "))
_DEGREE = re.compile(r"(?i)\bn\s*[°º]")
_WORD = re.compile(r"[^\W_]+|[€$£¥₹]")
_WHOLE_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe"})
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_LINKS = ("", "s", "n", "en", "es", "e")
_SHORT_PARTS = frozenset({"nr", "no", "id"})


@dataclass(frozen=True, slots=True)
class Meaning:
    """The English words of a header, and how sure it is that these are meant."""

    words: tuple[str, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class _Dictionary:
    meanings: Mapping[str, Mapping[tuple[str, ...], tuple[str, ...]]]
    """By language: words as they are written, to what they mean."""
    known: Mapping[str, None]
    """Every word, in the order of the file."""
    parts: Set[str]
    """The words that others may be made of: not those of phrases."""
    same: Mapping[tuple[str, ...], tuple[tuple[str, ...], ...]]
    drop: Set[str]
    light: Set[str]
    whom: Set[str]
    units: Set[str]
    before_unit: Set[str]
    when: Set[str]


@cache
def _dictionary() -> _Dictionary:
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.read_string(files("rowcall.engine.columns").joinpath("words.ini").read_text("utf-8"))
    listed = {name: frozenset(_plain_words(parser[name]["words"])) for name in _LISTS}
    meanings = {language: dict(_entries(parser[language], listed["drop"])) for language in _LANGUAGES}
    keys = [key for entries in meanings.values() for key in entries]
    meant = [
        word for entries in meanings.values() for told in entries.values() for text in told for word in text.split()
    ]
    own = {(word,): (word,) for word in (*listed["english"], *meant)}
    return _Dictionary(
        meanings={**meanings, "en": own | meanings["en"]},
        known=dict.fromkeys([*(word for key in keys for word in key), *meant]),
        parts=frozenset([*(key[0] for key in keys if len(key) == 1), *meant]),
        same={_key(word): tuple(_key(text) for text in _split(told)) for word, told in parser["same"].items()},
        drop=listed["drop"],
        light=listed["light"],
        whom=listed["whom"],
        units=listed["units"],
        before_unit=listed["in"],
        when=listed["when"],
    )


_LISTS = ("english", "drop", "light", "whom", "units", "in", "when")


def _entries(section: Mapping[str, str], drop: Set[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """A word in each of its spellings: `straße` is `strasse`, `währung` is `wahrung` and `waehrung`."""
    for word, told in section.items():
        spellings = (word,) if word.isascii() else dict.fromkeys((word, word.translate(_UMLAUTS)))
        for spelling in spellings:
            words = _plain_words(spelling)
            yield tuple(each for each in words if each not in drop) or tuple(words), _split(told)


def _split(told: str) -> tuple[str, ...]:
    return tuple(text.strip() for text in told.split("|"))


def _key(text: str) -> tuple[str, ...]:
    return tuple(_singular(word) for word in text.split())


# ------------------------------------------------------------------------------------------------- a header's words


def _header_words(header: str) -> list[str]:
    """The words of a header, split at case, digits and punctuation; `MwSt`, which the dictionary knows, is one."""
    known = _dictionary().known
    return [
        word
        for run in _WORD.findall(_spelt_out(header))
        for word in (_plain_words(run) if _plain(run) in known else _plain_words(_CASE.sub(" ", run)))
    ]


def _spelt_out(text: str) -> str:
    """The text with words for signs."""
    text = _DEGREE.sub(" no ", text)
    for sign, word in _SIGNS:
        text = text.replace(sign, word)
    return unicodedata.normalize("NFKC", text)


def _plain_words(text: str) -> list[str]:
    return _WORD.findall(_plain(text))


def _plain(text: str) -> str:
    """The text in small letters, without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", fold(text).translate(_WHOLE_LETTERS))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def meanings(header: str, languages: tuple[str, ...] = _LANGUAGES) -> tuple[Meaning, ...]:
    """What a header can mean, the likeliest first. `languages` come in order."""
    return _meanings(header[:_LONGEST_HEADER], languages)


@lru_cache(maxsize=8192)
def _meanings(header: str, languages: tuple[str, ...]) -> tuple[Meaning, ...]:
    found: dict[tuple[str, ...], float] = {}
    for text, weight in _variants(header):
        for meaning in islice(_translations(_without_units(_header_words(text)), languages), _MEANINGS):
            if meaning.words and found.get(meaning.words, 0.0) < weight * meaning.weight:
                found[meaning.words] = weight * meaning.weight
    return tuple(Meaning(words, weight) for words, weight in sorted(found.items(), key=lambda item: -item[1]))


def _variants(header: str) -> Iterator[tuple[str, float]]:
    """The header without what stands in brackets, with it, and that alone."""
    inside = " ".join(_BRACKETS.findall(header))
    if not inside.strip():
        yield header, 1.0
        return
    yield _BRACKETS.sub(" ", header), 1.0
    if not set(_header_words(inside)) <= _dictionary().units:
        yield header, 1.0
        yield inside, _IN_BRACKETS


def _without_units(words: list[str]) -> list[str]:
    told = _dictionary()
    while len(words) > 1 and words[-1] in told.units:
        words = words[: -2 if len(words) > 2 and words[-2] in told.before_unit else -1]
    return words


def _translations(words: Sequence[str], languages: Sequence[str]) -> Iterator[Meaning]:
    options = [_options(piece, languages) for piece in _pieces(words, languages)]
    for chosen in product(*options):
        weight = 1.0
        for _, how_sure in chosen:
            weight *= how_sure
        told = (word for text, _ in chosen for word in text.split())
        yield Meaning(tuple(dict.fromkeys(_singular(word) for word in told)), weight)


def _pieces(words: Sequence[str], languages: Sequence[str]) -> list[tuple[str, ...]]:
    """The words in phrases that the dictionary knows, the longest first, and one by one."""
    told, place = _dictionary(), 0
    words = [part for word in _telling(words) for part in _parts(word)]
    pieces: list[tuple[str, ...]] = []
    while place < len(words):
        longest = min(_LONGEST_PHRASE, len(words) - place)
        phrases = (tuple(words[place : place + length]) for length in range(longest, 1, -1))
        known = (phrase for phrase in phrases if any(phrase in told.meanings[each] for each in languages))
        pieces.append(next(known, (words[place],)))
        place += len(pieces[-1])
    return pieces


def _telling(words: Sequence[str]) -> list[str]:
    """The words without those that say nothing; a last one such as `on` says that it is a day."""
    told = _dictionary()
    last = ["date"] if len(words) > 1 and words[-1] in told.when else list(words[-1:])
    return [word for word in (*words[:-1], *last) if word not in told.drop]


def _options(piece: tuple[str, ...], languages: Sequence[str]) -> list[tuple[str, float]]:
    """The meanings of a phrase, with how likely each is; a word that nobody knows means itself."""
    told, found, first = _dictionary().meanings, dict[str, float](), languages[0]
    for language in languages:
        is_false_friend = piece in told[first] and "en" in (language, first)
        in_language = (_FALSE_FRIEND if is_false_friend else _OTHER_LANGUAGE) if found else 1.0
        for nth, text in enumerate(told[language].get(piece, ())):
            found.setdefault(text, in_language * _SECOND_MEANING**nth)
    return list(found.items()) or [(" ".join(piece), 1.0)]


@lru_cache(maxsize=8192)
def _parts(word: str) -> tuple[str, ...]:
    """A word that the dictionary knows, the known words that it is made of, or the one that was probably meant."""
    known = _dictionary().known
    if word in known or word.isdigit() or len(word) > _LONGEST_WORD:
        return (word,)
    if compound := _compound(word):
        return compound
    if len(word) < _SHORTEST_MISSPELT:
        return (word,)
    if swapped := [other for other in _swaps(word) if other in known]:
        return (swapped[0],)
    if near := process.extractOne(word, list(known), scorer=fuzz.ratio, score_cutoff=_MISSPELT):
        return (near[0],)
    longer = [other for other in known if other.startswith(word)]
    return (longer[0],) if len({_all_meanings(other) for other in longer}) == 1 else (word,)


def _swaps(word: str) -> Iterator[str]:
    """The word with two letters beside each other exchanged, as fingers do."""
    return (f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}" for at in range(len(word) - 1))


def _all_meanings(word: str) -> tuple[str, ...]:
    told = (entries.get((word,), ()) for entries in _dictionary().meanings.values())
    return tuple(dict.fromkeys(text for texts in told for text in texts)) or (word,)


def _compound(word: str) -> tuple[str, ...]:
    """`rechnungsdatum` is `rechnung` and `datum`."""
    parts_known = _dictionary().parts
    for end in range(len(word), 1, -1):
        part, rest = word[:end], word[end:]
        if part not in parts_known or (len(part) < _SHORTEST_PREFIX and part not in _SHORT_PARTS):
            continue
        if not rest:
            return (part,)
        for link in _LINKS:
            if rest.startswith(link) and (parts := _compound(rest[len(link) :])):
                return (part, *parts)
    return ()


def _singular(word: str) -> str:
    plural = len(word) > _SHORTEST_PREFIX and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


def languages_of(headers: Sequence[str]) -> tuple[str, ...]:
    """The languages in the order in which these headers speak for them, by words that others don't have."""
    told = _dictionary()
    words = {part for header in headers for word in _header_words(header[:_LONGEST_HEADER]) for part in _parts(word)}
    spoken = {each: {word for word in words if (word,) in told.meanings[each]} for each in _LANGUAGES}
    votes = {
        each: sum(1 / sum(word in others for others in spoken.values()) for word in spoken[each]) for each in _LANGUAGES
    }
    return tuple(sorted(_LANGUAGES, key=lambda each: -votes[each]))


def is_light(words: Sequence[str]) -> bool:
    """Whether none of the words says what a column is without others beside it."""
    return all(word in _dictionary().light for word in words)


def other_names(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What something with these words may be called besides. A runner is a name, but not the name of a carrier."""
    for own, others in _dictionary().same.items():
        if set(own) == set(words) or (set(own) < set(words) and not is_light(own)):
            rest = tuple(word for word in words if word not in own)
            yield from ((*rest, *other) for other in others)


# ---------------------------------------------------------------------------------------------------- how alike


@dataclass(frozen=True, slots=True)
class Likeness:
    """Compares bags of words, for the fields of one importer: what tells its fields apart weighs more."""

    told_apart: Set[str]

    def weight(self, word: str) -> float:
        """How much a word says."""
        told = _dictionary()
        if word in told.light or word.isdigit():
            return _LIGHT
        return _WHOM if word in told.whom and word not in self.told_apart else 1.0

    def between(self, header: Sequence[str], name: Sequence[str]) -> float:
        """From 0, nothing in common, to 1, the same words."""
        left, shared = list(name), 0.0
        for word in sorted(header, key=lambda word: word not in name):
            best = max(left, key=lambda other: alike(word, other), default="")
            if best and (likeness := alike(word, best)):
                left.remove(best)
                shared += likeness * (self.weight(word) + self.weight(best))
        whole = sum(map(self.weight, header)) + sum(map(self.weight, name))
        return shared / whole if whole else 0.0


@lru_cache(maxsize=65536)
def alike(word: str, other: str) -> float:
    """1 for the same word, a bit less for a misspelt or shortened one, else 0: weight is no misspelt height."""
    if word == other:
        return 1.0
    if min(len(word), len(other)) < _SHORTEST_PREFIX or word.isdigit() or _are_known(word, other):
        return 0.0
    if other.startswith(word):
        return _PREFIX
    if len(word) >= _SHORTEST_MISSPELT and other in _swaps(word):
        return _SWAPPED
    ratio = fuzz.ratio(word, other, score_cutoff=_ALIKE) if len(word) >= _SHORTEST_MISSPELT else 0.0
    return ratio / 100


def _are_known(*words: str) -> bool:
    return all(word in _dictionary().known for word in words)
