"""Finds out how a delimited file is written: delimiter, quote, escape, line ends, preamble, header, width."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from rowcall.errors import FileRefused
from rowcall.formats.csv.blocks import Layout
from rowcall.formats.csv.records import Dialect, Record, read_record
from rowcall.formats.formulas import restore
from rowcall.formats.header import find_header, is_known_header
from rowcall.formats.reading import Fact, Note, ReadOptions, expected_names
from rowcall.model import Code

_USUAL = (b",", b";", b"\t", b"|")
_RARE = (b":", b"^", b"~", b"\x1f", b"\x01", "¦".encode(), "§".encode(), b"||", b"::", b"\\t")
_QUOTES = (b'"', b"'")
_JUDGED = 200  # records of the sample that decide
_SEP_LINE = re.compile(rb'"?sep=([^\r\n"]{1,2})"?\r?\n?', re.IGNORECASE)
_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What the sample tells about a delimited file. Offsets are into the sample."""

    layout: Layout
    header: tuple[str, ...]
    """The header's cells at the table's width; empty texts where there is none."""
    header_line: int | None
    header_start: int
    body_start: int
    delimiter: Fact
    quote: Fact
    escape: Fact
    newline: Fact
    header_fact: Fact
    notes: tuple[Note, ...]


def sniff(sample: bytes, options: ReadOptions, *, whole: bool) -> Sniffed:
    """Find out the dialect and the table's place in a sample of the file's start, cut at a line end."""
    sep = _SEP_LINE.match(sample)
    newline, bare_cr = _newline(sample)
    body = sep.end() if sep else 0
    dialect, delimiter, quote, escape = _dialect(sample, body, options, sep, bare_cr=bare_cr)
    spans = _spans(sample, body, dialect, options, whole=whole)
    return _lay_out(spans, dialect, options, (delimiter, quote, escape, newline))


# ------------------------------------------------------------------------------------------------ line ends, dialect


def _newline(sample: bytes) -> tuple[Fact, bool]:
    crlf = sample.count(b"\r\n")
    lf, cr = sample.count(b"\n") - crlf, sample.count(b"\r") - crlf
    kinds = {"CRLF": crlf, "LF": lf, "CR": cr}
    used = [f"{count:,} {name}" for name, count in kinds.items() if count]
    value = max(kinds, key=lambda name: kinds[name]) if used else "LF"
    why = (", ".join(used) or "none") + " in the sample"
    # a CR here and there among LFs may well be text: the reader decides by the width of the record it stands in
    return Fact(value, why), cr > (crlf + lf) // 10


def _dialect(
    sample: bytes, body: int, options: ReadOptions, sep: re.Match[bytes] | None, *, bare_cr: bool
) -> tuple[Dialect, Fact, Fact, Fact]:
    quote, quote_why = _quote(sample[body:], options)
    base = Dialect(quote=quote, bare_cr=bare_cr)
    if options.delimiter is not None:
        delimiter, why = delimiter_bytes(options.delimiter), "given"
    elif sep:
        delimiter, why = sep[1], "the file's first line says so"
    else:
        delimiter, why = _delimiter(sample, body, base)
    dialect = replace(base, delimiter=delimiter)
    dialect = replace(dialect, spaced=_spaced(sample, dialect))
    backslash, escape_why = _backslash(sample, body, dialect, options)
    return (
        replace(dialect, backslash=backslash),
        Fact(delimiter.decode("utf-8", "replace"), why),
        Fact(quote.decode(), quote_why),
        Fact("backslash" if backslash else "doubled", escape_why),
    )


def delimiter_bytes(given: str) -> bytes:
    """A delimiter as asked for: a character or two, or a word such as `tab`."""
    delimiter = _NAMES.get(given.lower(), given)
    if not delimiter or len(delimiter) > 2 or any(c in delimiter for c in '\r\n"'):
        raise FileRefused(
            Code.BAD_OPTION,
            f"{given!r} can't be a delimiter.",
            hint='Use one or two characters without quotes or line ends, or "tab".',
        )
    return delimiter.encode()


def _quote(sample: bytes, options: ReadOptions) -> tuple[bytes, str]:
    if options.quote is not None:
        if len(options.quote.encode()) > 1:
            raise FileRefused(Code.BAD_OPTION, f"{options.quote!r} can't be a quote.", hint="Use one ASCII character.")
        return options.quote.encode(), "given"
    double, single = (_quoted_fields(sample, quote) for quote in _QUOTES)
    if single > 1 and single > 4 * double:
        return b"'", f"{single:,} fields of the sample stand in single quotes"
    return b'"', f"{double:,} quoted fields in the sample" if double else "the usual one; none in the sample"


def _quoted_fields(sample: bytes, quote: bytes) -> int:
    """How many fields without a delimiter stand in these quotes."""
    q = re.escape(quote)
    return len(
        re.findall(rb"(?:^|[,;|\t])" + q + rb"[^" + q + rb",;|\t\r\n]+" + q + rb"(?=[,;|\t\r\n]|$)", sample, re.M)
    )


def _delimiter(sample: bytes, body: int, base: Dialect) -> tuple[bytes, str]:
    """The delimiter under which the records agree most on their width and their cells look least cut up."""
    scores = {d: _score(sample, body, replace(base, delimiter=d)) for d in _USUAL}
    best = max(_USUAL, key=lambda d: scores[d].value)
    if not scores[best].value:
        rare = {d: _score(sample, body, replace(base, delimiter=d)) for d in (*_RARE, b" ")}
        scores = {d: s for d, s in rare.items() if _is_sure(d, s, sample)} or {b",": _ONE_COLUMN}
        best = max(scores, key=lambda d: scores[d].value)
    score = scores[best]
    twice = _score(sample, body, replace(base, delimiter=best * 2))
    if score.width > 1 and twice.width * 2 - 1 == score.width and twice.share >= score.share:
        best, score = best * 2, twice  # each second column would be empty, down to its header
    if score.width == 1:
        return best, "one column: no delimiter divides the records"
    others = [f"{_shown(d)} {s.share:.0%} on {s.width}" for d, s in scores.items() if d != best and s.width > 1]
    against = f" (against {', '.join(others)})" if others else ""
    return best, f"{score.share:.0%} of the sampled records have {score.width} fields{against}"


@dataclass(frozen=True, slots=True)
class Score:
    """How well a delimiter divides the sample."""

    value: float
    width: int
    share: float
    first: tuple[bytes, ...]


_ONE_COLUMN = Score(0.0, 1, 1.0, ())


def _score(sample: bytes, body: int, dialect: Dialect) -> Score:
    if dialect.delimiter not in sample:
        return _ONE_COLUMN
    records = [r for r in _records(sample, body, replace(dialect, spaced=_spaced(sample, dialect)))[:_JUDGED] if any(r)]
    widths = Counter(len(cells) for cells in records)
    if not widths:
        return _ONE_COLUMN
    width = max(widths, key=lambda w: (widths[w] * (w > 1), w))
    if width == 1 or (widths[width] == 1 and len(records) > 1):
        return _ONE_COLUMN  # one record alone may well hold a delimiter as text
    share = widths[width] / len(records)
    rivals = b"".join(d for d in _USUAL[1:] if d != dialect.delimiter) + dialect.quote
    cells = [cell for record in records if len(record) == width for cell in record]
    cut_up = sum(any(c in rivals for c in cell) for cell in cells) / len(cells)
    return Score(share**2 * (1 - 1 / width) * (1 - cut_up / 2), width, share, records[0])


def _is_sure(delimiter: bytes, score: Score, sample: bytes) -> bool:
    """A rare delimiter must divide every record alike, from a first one that reads like a header."""
    if score.share < 1 or score.width < 2 or any(not c.strip() or c.strip()[:1].isdigit() for c in score.first):
        return False
    return delimiter != b" " or b'" "' in sample


def _shown(delimiter: bytes) -> str:
    return {b"\t": "tab", b" ": "space"}.get(delimiter, delimiter.decode("utf-8", "replace"))


def _spaced(sample: bytes, dialect: Dialect) -> bool:
    if not dialect.quote or dialect.delimiter == b" ":
        return False
    spaced = sample.count(dialect.delimiter + b" " + dialect.quote)
    return spaced > 0 and spaced >= sample.count(dialect.delimiter + dialect.quote)


def _backslash(sample: bytes, body: int, dialect: Dialect, options: ReadOptions) -> tuple[bool, str]:
    if options.escape is not None:
        return options.escape == "backslash", "given"
    if not dialect.quote or b"\\" + dialect.quote not in sample:
        return False, "the usual one"
    doubled = _broken_count(sample, body, dialect)
    backslash = _broken_count(sample, body, replace(dialect, backslash=True))
    if backslash < doubled:
        return True, f"{backslash:,} broken records in the sample with backslashes, {doubled:,} without"
    return False, "backslashes before quotes are text: no record breaks without them"


def _broken_count(sample: bytes, body: int, dialect: Dialect) -> int:
    return sum(span.record.code is not None for span in _walk(sample, body, dialect))


# ----------------------------------------------------------------------------------------------------- preamble, header


@dataclass(frozen=True, slots=True)
class Span:
    """A record of the sample and where it stands."""

    start: int
    line: int
    record: Record


def _walk(sample: bytes, body: int, dialect: Dialect, *, limit: int = _JUDGED) -> list[Span]:
    spans: list[Span] = []
    pos, line = body, 1 + _line_count(sample[:body], dialect)
    while pos < len(sample) and len(spans) < limit:
        record = read_record(sample, pos, dialect, final=True)
        if record is None:
            break
        spans.append(Span(pos, line, record))
        line += _line_count(sample[pos : record.end], dialect)
        pos = record.end
    return spans


def _line_count(data: bytes, dialect: Dialect) -> int:
    lines = data.count(b"\n")
    if dialect.bare_cr:
        lines += data.count(b"\r") - data.count(b"\r\n")
    return lines


def _records(sample: bytes, body: int, dialect: Dialect) -> list[tuple[bytes, ...]]:
    return [span.record.cells for span in _walk(sample, body, dialect)]


def _spans(sample: bytes, body: int, dialect: Dialect, options: ReadOptions, *, whole: bool) -> list[Span]:
    """The records of the sample that count: not blank, not comments."""
    comment = (options.comment or "").encode()
    spans = _walk(sample, body, dialect, limit=2 * _JUDGED)
    if not whole and len(spans) > 1 and spans[-1].record.end == len(sample):
        spans.pop()  # the sample may end inside it
    return [
        span
        for span in spans
        if any(cell.strip() for cell in span.record.cells) and not (comment and sample.startswith(comment, span.start))
    ]


def _lay_out(
    spans: list[Span], dialect: Dialect, options: ReadOptions, facts: tuple[Fact, Fact, Fact, Fact]
) -> Sniffed:
    texts = [[cell.decode("utf-8", "replace") for cell in span.record.cells] for span in spans]
    at, header_fact = _header(spans, texts, options)
    header = _unprotected(texts[at]) if at is not None else []
    below = [row for row, span in zip(texts, spans, strict=True) if at is None or span.start > spans[at].start]
    layout, columns, notes = _layout(header, below, dialect, options)
    start = spans[at].start if at is not None else spans[0].start if spans else 0
    return Sniffed(
        replace(layout, header=tuple(columns) if header else ()),
        tuple(columns),
        spans[at].line if at is not None else None,
        start,
        spans[at].record.end if at is not None else start,
        *facts,
        header_fact,
        tuple(notes),
    )


def _header(spans: Sequence[Span], texts: Sequence[Sequence[str]], options: ReadOptions) -> tuple[int | None, Fact]:
    """The position of the header among the records of the sample."""
    if options.header == 0:
        return None, Fact("none", "given")
    if options.header is not None:
        at = next((i for i, span in enumerate(spans) if span.line == options.header), None)
        if at is None:
            raise FileRefused(
                Code.BAD_OPTION,
                f"No record starts on line {options.header}, where the header was said to be.",
                hint="Name the line, counted from 1, on which the header starts; 0 when there is none.",
            )
        return at, Fact(str(options.header), "given")
    if texts and is_known_header(texts[0], expected_names(options)):
        return 0, Fact(str(spans[0].line), "names that are expected")
    at = find_header(texts)
    if at is None and _heads_if_wider(texts):
        at = 0
    if at and max(map(len, texts)) == 1:
        at = 0  # in a file of one column, everything is data but the first line
    if at is None:
        return None, Fact("none", "the first records look like the others")
    above = f", under {at} line{'s' * (at != 1)} of preamble" if at else ""
    return at, Fact(str(spans[at].line), f"words above what is not{above}" if len(texts) > at + 1 else "the only line")


def _unprotected(header: Sequence[str]) -> list[str]:
    """The header's cells without the apostrophes that keep formulas from running."""
    return restore(pl.DataFrame({"header": header})).to_series().to_list()


def _heads_if_wider(texts: Sequence[Sequence[str]]) -> bool:
    """Whether the first record would be the header, had it not a name too few."""
    width = max((len(row) for row in texts[1:]), default=0)
    missing = width - len(texts[0]) if texts else 0
    if not 0 < missing <= width // 2:
        return False
    return find_header([[*texts[0], *(f"column {i}" for i in range(missing))], *texts[1:]]) == 0


def _layout(
    header: Sequence[str], below: Sequence[Sequence[str]], dialect: Dialect, options: ReadOptions
) -> tuple[Layout, list[str], list[Note]]:
    """The table's width, which is the usual one of its records, and the header's cells fitted to it."""
    notes: list[Note] = []
    widths = Counter(len(row) for row in below)
    usual = max(widths, key=lambda w: (widths[w], w == len(header), w)) if widths else len(header)
    columns = list(header)
    while len(columns) > usual and not columns[-1].strip():
        columns.pop()
    trailing = _is_trailing(columns, [row for row in below if len(row) == usual], usual)
    if trailing:
        columns = columns[: usual - 1]
        notes.append(Note(Code.TRAILING_DELIMITER, "Each record ends with a delimiter; nothing stands behind it."))
    elif header and len(columns) < usual:
        notes.append(Note(Code.BLANK_HEADER, f"The header has {len(columns)} cells, the records have {usual}."))
    width = max(usual, len(columns))
    shorter = usual if width > usual else None
    columns += [""] * (width - trailing - len(columns))
    comment = (options.comment or "").encode()
    layout = Layout(dialect, width, trailing=trailing, shorter=shorter, pad=options.ragged == "pad", comment=comment)
    return layout, columns, notes


def _is_trailing(columns: Sequence[str], rows: Sequence[Sequence[str]], usual: int) -> bool:
    """Whether the last field is only what stands behind a trailing delimiter: nothing, always, under no header."""
    if usual < 2 or not columns or len(rows) < 1 or len(columns) > usual:
        return False
    return (
        not (len(columns) == usual and columns[-1].strip())
        and len(columns) >= usual - 1
        and not any(row[-1].strip() for row in rows)
    )
