"""Opens a delimited file: its encoding, dialect and header from a sample, then its records as batches."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import polars as pl

from rowcall.errors import FileRefused
from rowcall.formats.columns import columns_of
from rowcall.formats.csv.dialect import Sniffed, sniff
from rowcall.formats.csv.reader import DelimitedReader
from rowcall.formats.csv.records import line_end
from rowcall.formats.encoding import Utf8Stream, find_encoding
from rowcall.formats.reading import (
    KIB,
    Batch,
    Detected,
    LocalFile,
    Note,
    Reading,
    ReadOptions,
    Skipped,
    SkippedLines,
)
from rowcall.model import Code

_SAMPLE = 256 * KIB
_PROTECTED = re.compile(rb"(?:^|[,;|\t\"])'+[=+\-@]", re.MULTILINE)


def open_csv(file: LocalFile, options: ReadOptions, base: Detected) -> Reading:
    """Open a file of delimited text."""
    encoding, mark = find_encoding(file.path, options.encoding)
    source = _Source(file, encoding.value, mark)
    with source.open() as raw:
        sample, whole = _sample(Utf8Stream(raw, encoding.value), options)
    found = sniff(sample, options, whole=whole)
    columns, notes = columns_of(found.header, options.limits)
    if "guessed" in encoding.why:
        notes.append(Note(Code.ENCODING_GUESSED, f"The encoding {encoding.value} is a guess: {encoding.why}."))
    if _PROTECTED.search(sample):
        notes.append(Note(Code.FORMULA_GUARD, "Apostrophes that keep texts from running as formulas are taken off."))
    detected = replace(
        base,
        encoding=encoding,
        delimiter=found.delimiter,
        quote=found.quote,
        escape=found.escape,
        newline=found.newline,
        header=found.header_fact,
        preamble=_preamble(sample, found),
        notes=(*base.notes, *found.notes, *notes),
    )

    def batches() -> Iterator[Batch]:
        reader = DelimitedReader(found.layout, columns, options.limits)
        head = list(_head(sample, found))
        none = pl.Series([], dtype=pl.Int64)
        yield Batch(pl.DataFrame(schema={c.name: pl.String for c in columns}), none, none, skipped=tuple(head))
        reader.line += _lines_before(sample, found)
        with source.open() as raw:
            yield from reader.batches(Utf8Stream(raw, encoding.value).read, skip=found.body_start)

    return Reading(file, detected, columns, batches, position=lambda: source.position)


class _Source:
    """The file's bytes behind its byte order mark, and how far they were read."""

    def __init__(self, file: LocalFile, encoding: str, mark: int) -> None:
        self._file, self._encoding, self._mark = file, encoding, mark
        self._latest: BinaryIO | None = None

    def open(self) -> BinaryIO:
        self._latest = self._file.path.open("rb", buffering=0)
        self._latest.seek(self._mark)
        return self._latest

    @property
    def position(self) -> int:
        latest = self._latest
        return 0 if latest is None else self._file.size if latest.closed else latest.tell()


def _sample(stream: Utf8Stream, options: ReadOptions) -> tuple[bytes, bool]:
    """The start of the file up to a line end, and whether that is all of it."""
    limit = options.limits.header_bytes
    sample = b""
    while len(sample) < _SAMPLE or (len(sample) <= limit and not _has_line(sample)):
        more = stream.read(_SAMPLE)
        if not more:
            return _checked(sample), True
        sample += more
    if not _has_line(sample) and options.header != 0:
        raise FileRefused(
            Code.LINE_TOO_LONG,
            f"The first line is longer than {limit:,} bytes, so no header can be read from it.",
            hint="Check that the file is text with line ends; if it has no header, say so (header 0).",
        )
    cut = max(sample.rfind(b"\n"), sample.rfind(b"\r", 0, len(sample) - 1)) + 1
    return _checked(sample[:cut] if cut else sample), False


def _checked(sample: bytes) -> bytes:
    if not sample.strip():
        raise FileRefused(Code.EMPTY_FILE, "The file has no text in it.", hint="Check that the export wrote its rows.")
    return sample


def _has_line(sample: bytes) -> bool:
    return b"\n" in sample or b"\r" in sample[:-1]


def _head(sample: bytes, found: Sniffed) -> Iterator[SkippedLines]:
    """What stands before the first record: preamble, blank and comment lines, the header."""
    dialect, comment = found.layout.dialect, found.layout.comment
    lines: list[tuple[Skipped, int, bytes]] = []
    pos, line = 0, 1
    while pos < found.header_start:
        following = line_end(sample, pos, dialect)[1]
        raw = sample[pos:following]
        is_comment = bool(comment) and raw.startswith(comment)
        kind = Skipped.BLANK if not raw.strip() else Skipped.COMMENT if is_comment else Skipped.PREAMBLE
        lines.append((kind, line, raw))
        pos, line = following, line + 1
    for kind, group in itertools.groupby(lines, key=lambda entry: entry[0]):
        run = list(group)
        yield SkippedLines(kind, run[0][1], len(run), b"".join(raw for _, _, raw in run))
    if found.header_line is not None:
        yield SkippedLines(Skipped.HEADER, found.header_line, 1, sample[found.header_start : found.body_start])


def _preamble(sample: bytes, found: Sniffed) -> tuple[str, ...]:
    runs = (run for run in _head(sample, found) if run.kind is Skipped.PREAMBLE)
    return tuple(text for run in runs for text in run.raw.decode("utf-8", "replace").splitlines())


def _lines_before(sample: bytes, found: Sniffed) -> int:
    head = sample[: found.body_start]
    bare = head.count(b"\r") - head.count(b"\r\n") if found.layout.dialect.bare_cr else 0
    return head.count(b"\n") + bare
