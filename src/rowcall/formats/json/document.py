"""Finds the records of a JSON document: an array at its top, an array under one of its keys, or the document itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rowcall.errors import FileRefused
from rowcall.formats.json.elements import BLOCK, HEAD, Elements, Lost, read_block
from rowcall.formats.json.members import Member, Members
from rowcall.formats.json.parts import SPACE
from rowcall.formats.json.split import Place, Splitter
from rowcall.formats.reading import Fact, Limits, Note, ReadOptions
from rowcall.model import Code

_NAMED = 20


@dataclass(frozen=True, slots=True)
class Document:
    """Where the records of a document lie, and why they are looked for there."""

    path: Path
    place: Place
    records: Fact
    wrapped: bool = False
    """Whether the array of records is under a key of the document's object."""
    others: tuple[str, ...] = ()
    """The other keys, as far as they are known without reading on."""
    all_known: bool = False

    @property
    def notes(self) -> tuple[Note, ...]:
        return (_other_data(self.others),) if self.others else ()

    def elements(self, limits: Limits) -> Iterator[Elements | Lost | Note]:
        """The records, and what stands behind them."""
        splitter = Splitter(self.path, self.place, limits)
        yield from splitter
        if splitter.end is not None:
            yield from self._behind(splitter.end, splitter.line)

    def _behind(self, at: int, line: int) -> Iterator[Lost | Note]:
        end, size = at, self.path.stat().st_size
        if self.wrapped:
            members = Members(self.path, at)
            others = _survey(members).keys
            if others and not self.all_known:
                yield _other_data(others)
            if members.end is None:
                message = (
                    "The file ends before the object around the records is closed by }: it was cut short. Get it whole."
                )
                yield Lost(line + _newlines(self.path, at, size), Code.TRUNCATED, message, b"", 0, size)
                return
            end = members.end
        rest, text = _solid(self.path, end)
        if text:
            line += _newlines(self.path, at, rest)
            yield Lost(
                line, Code.INVALID_JSON, "There is text behind the end of the document.", text, size - rest, size
            )


def find_records(path: Path, start: int, options: ReadOptions) -> Document:
    """Find out where the records of a document lie. Reads no further than it takes to know."""
    at, text = _solid(path, start)
    line = 1 + _newlines(path, start, at)
    if text.startswith(b"{"):
        whole = Place(at, line, in_array=False)
        return _under(path, whole, options.records) if options.records else _inside(path, whole, options)
    if text.startswith(b"[") and not options.records:
        return Document(path, Place(at + 1, line, in_array=True), Fact("top level", "the document is an array"))
    raise _nothing_found(text, options.records)


def _inside(path: Path, whole: Place, options: ReadOptions) -> Document:
    """The records of a document that begins with an object, which may be a record itself."""
    members = Members(path, whole.at + 1, stop=whole.at + options.limits.record_bytes)
    survey = _survey(members)
    if members.end is not None and _solid(path, members.end)[1].startswith(b"{"):
        return Document(path, whole, Fact("top level", "one object follows the other"))
    if members.end is None and survey.objects is None:  # too long for a record, or cut off: look further
        members = Members(path, whole.at + 1)
        survey = _survey(members, until_objects=True)
    chosen = survey.objects or (survey.empty if members.end is not None else None)
    if chosen is None:
        return Document(path, whole, Fact("top level", "the document is one object"))
    why = "the first key with an array of objects" if chosen is survey.objects else "its array is empty"
    return _wrapped(path, whole, chosen, why, survey, all_known=members.end is not None)


def _under(path: Path, whole: Place, key: str) -> Document:
    survey = _survey(Members(path, whole.at + 1), until_key=key)
    if survey.asked is None:
        raise FileRefused(
            Code.NO_RECORDS,
            f"The document has no key {key!r}; it has {_listed(survey.keys)}.",
            hint="Name the key that holds the array of records.",
        )
    if survey.asked.kind == "value":
        raise FileRefused(
            Code.NO_RECORDS,
            f"Under the key {key!r} there is no array.",
            hint="Name the key that holds the array of records, or none to let it be found.",
        )
    return _wrapped(path, whole, survey.asked, "asked for", survey, all_known=False)


def _wrapped(path: Path, whole: Place, chosen: Member, why: str, survey: "_Survey", *, all_known: bool) -> Document:
    line = whole.line + _newlines(path, whole.at, chosen.at)
    others = list(survey.keys)
    if chosen.key in others:
        others.remove(chosen.key)  # once: a second one of that name is other data
    place = Place(chosen.at, line, in_array=True)
    return Document(path, place, Fact(chosen.key, why), wrapped=True, others=tuple(others), all_known=all_known)


@dataclass(slots=True)
class _Survey:
    keys: list[str] = field(default_factory=list[str])
    """The first keys, one more than are ever named."""
    asked: Member | None = None
    objects: Member | None = None
    empty: Member | None = None


def _survey(members: Members, *, until_key: str | None = None, until_objects: bool = False) -> _Survey:
    survey = _Survey()
    for member in members:
        if len(survey.keys) <= _NAMED:
            survey.keys.append(member.key)
        if member.kind == "objects":
            survey.objects = survey.objects or member
        if member.kind == "empty array":
            survey.empty = survey.empty or member
        if member.key == until_key:
            survey.asked = member
        if survey.asked or (until_objects and survey.objects):
            break
    return survey


def _nothing_found(text: bytes, asked: str | None) -> FileRefused:
    if not text:
        return FileRefused(Code.EMPTY_FILE, "The file holds nothing but blanks.", hint="Check that it was sent whole.")
    found = "an array" if text.startswith(b"[") else repr(text[:40].decode("utf-8", "replace"))
    expected = f"an object with the key {asked!r}" if asked else "an array of objects, or an object"
    return FileRefused(
        Code.NO_RECORDS,
        f"The document begins with {found}; expected {expected}.",
        hint="Leave out the name of the key." if asked else "Check that the file is JSON and holds records.",
    )


def _other_data(keys: Sequence[str]) -> Note:
    return Note(Code.OTHER_DATA, f"Besides its records the document also holds: {_listed(keys)}.")


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:_NAMED]) + (" and more" if len(keys) > _NAMED else "") or "none"


def _solid(path: Path, at: int) -> tuple[int, bytes]:
    """The first byte from here on that isn't blank, and some of the text that it begins."""
    with path.open("rb", buffering=0) as file:
        file.seek(at)
        while text := read_block(file):
            solid = text.lstrip(SPACE)
            if solid:
                return at + len(text) - len(solid), solid[:HEAD]
            at += len(text)
    return at, b""


def _newlines(path: Path, start: int, end: int) -> int:
    count = 0
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK, end - start))):
            count += block.count(b"\n")
            start += len(block)
    return count
