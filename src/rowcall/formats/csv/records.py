"""The exact tier of the CSV reader: one record at a time, every rule spelled out.

The fast tier (`reader.py`) hands over what it isn't sure of: stray, broken or unclosed quotes, escapes, odd line
ends, ragged records. Everything is bytes of UTF-8; positions index into the block.
"""

from dataclasses import dataclass

from rowcall.model import Code

LF, CR = 0x0A, 0x0D


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the fields and records of a delimited file are told apart."""

    delimiter: bytes = b","
    quote: bytes = b'"'
    """One byte, or empty for a file without quoting."""
    backslash: bool = False
    """A backslash takes the special meaning from the byte after it."""
    bare_cr: bool = False
    """A CR that no LF follows ends a record (old Mac files, mixed line ends)."""
    spaced: bool = False
    """Spaces may stand between a delimiter and an opening quote."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record: its end (past the line end), its fields, and what is wrong with it, if anything."""

    end: int
    cells: tuple[bytes, ...]
    code: Code | None = None


def line_end(data: bytes, start: int, dialect: Dialect) -> tuple[int, int]:
    """Where the physical line from `start` ends: (end of its content, start of the next line)."""
    lf = data.find(b"\n", start)
    if dialect.bare_cr:
        cr = data.find(b"\r", start, lf if lf >= 0 else len(data))
        if cr >= 0 and cr + 1 != lf:
            return cr, cr + 1
    if lf < 0:
        return len(data), len(data)
    return (lf - 1 if lf > start and data[lf - 1] == CR else lf), lf + 1


def read_record(data: bytes, start: int, dialect: Dialect, *, final: bool) -> Record | None:
    """Read the record at `start` by the book; None when the data ends inside it and more is to come.

    A record whose quotes are wrong ends with its first physical line, so that the next one starts on the next line.
    """
    cells: list[bytes] = []
    pos = start
    content, following = line_end(data, pos, dialect)
    first_line = content
    while True:
        opening = _opening(data, pos, content, dialect)
        if opening < 0:
            end = _field_end(data, pos, content, dialect)
            cells.append(_plain(data[pos:end], dialect))
        else:
            closing = _closing(data, opening + 1, dialect)
            if closing < 0:
                return broken(data, start, dialect, Code.UNCLOSED_QUOTE) if final else None
            if closing >= content:
                content, following = line_end(data, closing + 1, dialect)
            end = closing + 1
            while end < content and data[end] == 0x20 and dialect.delimiter != b" ":
                end += 1
            if content == following and not final:  # the line goes on beyond the data
                return None
            if end < content and not data.startswith(dialect.delimiter, end):
                code = Code.UNCLOSED_QUOTE if closing >= first_line else Code.BROKEN_QUOTE
                return broken(data, start, dialect, code)
            cells.append(_quoted(data[opening + 1 : closing], dialect))
        if end >= content:
            return Record(following, tuple(cells)) if final or following > content else None
        pos = end + len(dialect.delimiter)


def broken(data: bytes, start: int, dialect: Dialect, code: Code) -> Record:
    """The physical line at `start` as a bad record, its fields told apart as well as can be."""
    content, following = line_end(data, start, dialect)
    return Record(following, split_loosely(data[start:content], dialect), code)


def split_loosely(line: bytes, dialect: Dialect) -> tuple[bytes, ...]:
    """Split one line as a person would: a quote closes only before a delimiter or the end, others are text."""
    cells: list[bytes] = []
    pos = 0
    while True:
        opening = _opening(line, pos, len(line), dialect)
        end = -1
        if opening >= 0:
            closing = line.find(dialect.quote + dialect.delimiter, opening + 1)
            if closing < 0 and line.endswith(dialect.quote) and len(line) - 1 > opening:
                closing = len(line) - 1
            if closing >= 0:
                end = closing + 1
                cells.append(_quoted(line[opening + 1 : closing], dialect))
        if end < 0:
            end = _field_end(line, pos, len(line), dialect)
            cells.append(line[pos:end])
        if end >= len(line):
            return tuple(cells)
        pos = end + len(dialect.delimiter)


def encode_record(cells: tuple[bytes, ...], dialect: Dialect) -> bytes:
    """Write cells as a record that the fast tier's parser reads back to the same cells."""
    quote = dialect.quote
    return dialect.delimiter.join(quote + cell.replace(quote, quote * 2) + quote for cell in cells) + b"\n"


def _opening(data: bytes, pos: int, content: int, dialect: Dialect) -> int:
    """The position of the quote that opens the field at `pos`, or -1."""
    if not dialect.quote:
        return -1
    if dialect.spaced:
        while pos < content and data[pos] == 0x20:
            pos += 1
    return pos if pos < content and data.startswith(dialect.quote, pos) else -1


def _closing(data: bytes, pos: int, dialect: Dialect) -> int:
    """The position of the quote that closes a field whose text starts at `pos`, or -1."""
    quote = dialect.quote
    while True:
        pos = data.find(quote, pos)
        if pos < 0:
            return -1
        if dialect.backslash and _escaped(data, pos):
            pos += 1
        elif data.startswith(quote, pos + 1):
            pos += 2
        else:
            return pos


def _escaped(data: bytes, pos: int) -> bool:
    first = pos
    while first > 0 and data[first - 1] == 0x5C:
        first -= 1
    return (pos - first) % 2 == 1


def _field_end(data: bytes, pos: int, content: int, dialect: Dialect) -> int:
    """Where the unquoted field at `pos` ends: at the next delimiter of the line, or with the line."""
    end = data.find(dialect.delimiter, pos, content)
    while dialect.backslash and end > 0 and _escaped(data, end):
        end = data.find(dialect.delimiter, end + 1, content)
    return content if end < 0 else end


def _plain(field: bytes, dialect: Dialect) -> bytes:
    return _unescape(field, dialect) if dialect.backslash else field


def _quoted(field: bytes, dialect: Dialect) -> bytes:
    field = field.replace(dialect.quote * 2, dialect.quote)
    return _unescape(field, dialect) if dialect.backslash else field


def _unescape(field: bytes, dialect: Dialect) -> bytes:
    r"""Take the backslash from escaped quotes, delimiters, line ends and backslashes; `C:\new` keeps its own."""
    if b"\\" not in field:
        return field
    special = (dialect.quote, dialect.delimiter[:1], b"\\", b"\r", b"\n")
    parts: list[bytes] = []
    pos = 0
    while (slash := field.find(b"\\", pos)) >= 0:
        following = field[slash + 1 : slash + 2]
        parts += (field[pos:slash], following if following in special else b"\\" + following)
        pos = slash + 2
    return b"".join((*parts, field[pos:]))
