"""Cuts the XML of a part, as it inflates, into blocks of whole elements: rows of a sheet, items of the shared texts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from rowcall.formats.workbook.xlsx_zip import corrupt, row_too_long

_DECLARATION = re.compile(rb"""(?:\xef\xbb\xbf)?\s*<\?xml(?:\s[^>]*?\sencoding=["']([^"'>]*)["'])?[^>]*\?>""")
_UTF_8 = (b"utf-8", b"utf8", b"us-ascii")


@dataclass(frozen=True, slots=True)
class Shape:
    """A container element, what is around it, and the elements within that must not be cut."""

    element: bytes
    container: bytes
    around: bytes = b""


ROWS = Shape(b"row", b"sheetData", b"worksheet")
ITEMS = Shape(b"si", b"sst")


@dataclass(frozen=True, slots=True)
class Elements:
    """Whole elements, without namespace prefix, and nothing but elements and text."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Document:
    """All that follows, as a document of its own for a parser, since it can't be cut safely."""

    data: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the container."""

    data: Iterator[bytes]


def blocks(part: str, stream: Iterator[bytes], shape: Shape, longest: int) -> Iterator[Elements | Document | Tail]:
    """The elements of a container in blocks, none of them longer than `longest` bytes.

    A comment, CDATA or processing instruction may hold what looks like a tag. From the first one on, nothing is cut.
    """
    head, opening = _head(part, stream, shape, longest)
    declaration = _DECLARATION.match(head)
    if _is_odd(head[declaration.end() if declaration else 0 : opening.end()]):
        yield Document(chain([head], stream))
        return
    rest, prefix = head[opening.end() :], opening[1] or b""
    if opening[0].endswith(b"/>"):
        yield Tail(chain([rest], stream))
        return
    element_end, container_end = (b"</" + prefix + name for name in (shape.element + b">", shape.container))
    for piece in chain([b""], stream):
        rest += piece
        if _is_odd(rest):
            yield Document(chain([_opened(prefix, shape) + rest], stream))
            return
        last = rest.rfind(element_end)
        if last >= 0:
            cut = last + len(element_end)
            yield Elements(_unprefixed(rest[:cut], prefix))
            rest = rest[cut:]
        end = rest.find(container_end)
        if end >= 0:
            yield Elements(_unprefixed(rest[:end], prefix))
            yield Tail(chain([rest[end:]], stream))
            return
        if len(rest) > longest:
            raise row_too_long(part)
    raise corrupt(f"{part} is cut short.")


def _head(part: str, stream: Iterator[bytes], shape: Shape, longest: int) -> tuple[bytes, re.Match[bytes]]:
    """The bytes up to the container's opening tag, and some more."""
    tag = re.compile(rb"<([A-Za-z_][\w.-]*:)?" + shape.container + rb"(?:\s[^<>]*)?/?>")
    head = b""
    for piece in stream:
        head += piece
        opening = tag.search(head)
        if opening:
            _check_encoding(part, head)
            return head, opening
        if len(head) > longest:
            raise row_too_long(part)
    _check_encoding(part, head)
    raise corrupt(f"{part} has no {shape.container.decode()}.")


def _check_encoding(part: str, head: bytes) -> None:
    declaration = _DECLARATION.match(head)
    encoding = (declaration and declaration[1]) or b"utf-8"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or encoding.lower() not in _UTF_8:
        raise corrupt(f"{part} is not in UTF-8.")


def _is_odd(data: bytes) -> bool:
    # first a search for one rare byte, which is ten times faster
    return (b"!" in data and b"<!" in data) or (b"?" in data and b"<?" in data)


def _opened(prefix: bytes, shape: Shape) -> bytes:
    return b"".join(b"<" + prefix + name + b">" for name in (shape.around, shape.container) if name)


def _unprefixed(data: bytes, prefix: bytes) -> bytes:
    return data.replace(b"<" + prefix, b"<").replace(b"</" + prefix, b"</") if prefix else data
