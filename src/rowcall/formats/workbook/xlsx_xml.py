"""XML of untrusted workbooks: walked by expat, which fetches nothing and declares nothing, or read as plain text."""

import re
from collections.abc import Callable, Iterable
from typing import NoReturn
from xml.parsers import expat

import numpy as np
import polars as pl

from rowcall.errors import FileRefused
from rowcall.formats.reading import MIB
from rowcall.formats.workbook.xlsx_zip import corrupt, row_too_long
from rowcall.model import Code

Attributes = dict[str, str]

_REFERENCES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&apos;": "'"}
_NUMERIC = re.compile(r"&#(?:([0-9]{1,7})|x([0-9A-Fa-f]{1,6}));|&[a-z]+;")
_LONGEST_TOKEN = 32 * MIB  # expat holds a tag or a comment in memory until its end
_STRAY = re.compile(rb"&(?!(?:lt|gt|amp|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")


class XmlWalk:
    """Feeds bytes to expat, which calls `start(name, attributes)`, `end(name)` and `text(data)` with local names."""

    def __init__(
        self,
        part: str,
        start: Callable[[str, Attributes], None],
        end: Callable[[str], None] = lambda _: None,
        text: Callable[[str], None] | None = None,
    ) -> None:
        self._part = part
        self._fed = 0
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        local = _LocalNames()
        parser.StartElementHandler = lambda name, attributes: start(local[name], attributes)
        parser.EndElementHandler = lambda name: end(local[name])
        if text is not None:
            parser.CharacterDataHandler = text
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.EntityDeclHandler = self._refuse_doctype

    def feed(self, data: bytes, *, final: bool = False) -> None:
        try:
            self._parser.Parse(data, final)
        except expat.ExpatError as error:
            raise corrupt(f"{self._part} is not well-formed XML ({error}).") from error
        self._fed += len(data)
        if self._fed - self._parser.CurrentByteIndex > _LONGEST_TOKEN:
            raise row_too_long(self._part)

    def _refuse_doctype(self, *_: object) -> NoReturn:
        raise forbidden_doctype(self._part)


class _LocalNames(dict[str, str]):
    """`x:row` and `row` are the same to us; each name is cut once."""

    def __missing__(self, name: str) -> str:
        return self.setdefault(name, name.rpartition(":")[2])


def walk(
    part: str,
    data: Iterable[bytes],
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None] = lambda _: None,
) -> None:
    """Walk a whole part."""
    walking = XmlWalk(part, start, end)
    for piece in data:
        walking.feed(piece)
    walking.feed(b"", final=True)


def plain_text(block: bytes) -> str | None:
    """A block as text if expat would take each of its characters and references as they stand, else None."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # as XML wants it
    low = np.frombuffer(block, np.uint8)
    low = low[low < 0x20]
    if np.isin(low, (0x09, 0x0A), invert=True).any() or (b"&" in block and _STRAY.search(block)):
        return None
    try:
        return block.decode()
    except UnicodeDecodeError:
        return None


def dereferenced(texts: pl.Series) -> pl.Series:
    """The texts with `&amp;` and its like replaced, once. `plain_text` has seen that there are only known ones."""
    numeric = texts.str.contains("&#", literal=True).arg_true()
    replaced = texts.str.replace_many(_REFERENCES)
    if numeric.is_empty():
        return replaced
    return replaced.scatter(numeric, [_NUMERIC.sub(_character, text) for text in texts.gather(numeric)])


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal = match.groups()
    if not decimal and not hexadecimal:
        return _REFERENCES[match[0]]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    if (code < 0x20 and code not in (0x09, 0x0A, 0x0D)) or 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
        raise corrupt(f"it refers to the character {match[0]}, which XML doesn't have.")
    return chr(code)


def forbidden_doctype(part: str) -> FileRefused:
    """The refusal of a part with a document type declaration, which no spreadsheet program writes."""
    return FileRefused(
        Code.WORKBOOK_CORRUPT,
        f"{part} declares a document type or entities, which a workbook never does.",
        hint="The file may be made to harm its reader. Ask whoever sent it.",
    )
