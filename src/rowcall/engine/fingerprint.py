"""Looks whether a file is about the same things as the target, before anything is written.

A sample of its rows is found in the target by key, and the fields that tell who or what a row is about are compared.
The sample follows from the file alone: the same file has the same sample, whoever works on it and in whatever batches.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.failures import own_code
from rowcall.engine.typed import needed_for, values_of
from rowcall.engine.work import Work
from rowcall.errors import Final
from rowcall.importer import Compared, Fingerprint, Importer, Mismatch
from rowcall.importer.declaration import fingerprint_mistakes
from rowcall.model import Code
from rowcall.store import staging
from rowcall.store.copying import text_columns
from rowcall.store.fingerprints import Finding, FingerprintCheck, Verdict, lines_of
from rowcall.store.jobs import Job
from rowcall.store.matching import Pair, pairs_by
from rowcall.store.rows import read_rows
from rowcall.words import counted

_FINDINGS = 100
_SHOWN = 200
_SPARSE = 4
"""From so many times the sample on, rows are drawn; below, all are put in order."""


def fingerprint_of(importer: type[Importer], job: Job) -> Fingerprint | None:
    """What the importer wants looked at for this job, if anything."""
    declared: Any = importer.fingerprint
    if declared is None or isinstance(declared, Fingerprint):
        return declared
    with own_code(importer, "fingerprint"):
        wanted: Fingerprint | None = declared(importer(), job)
    if wanted is not None and (mistakes := list(fingerprint_mistakes(importer, wanted))):
        raise Final(Code.BAD_DECLARATION, "\n".join(f"{importer.__name__}{mistake}" for mistake in mistakes))
    return wanted


def check(connection: Connection[Any], work: Work, wanted: Fingerprint) -> FingerprintCheck:
    """What the sample of a job's rows tells."""
    numbers = sampled(work.job.file_sha256 or "", work.job.row_count or 0, wanted.sample)
    rows = _values(connection, work, wanted, numbers)
    if _compares(work):
        with connection.transaction(force_rollback=True), own_code(work.importer, "compare"):  # it writes nothing
            compared = work.importer().compare(connection, work.job, rows)
    else:
        compared = _compared(connection, work, wanted, rows)
    return _judged(connection, work, wanted, compared, len(numbers))


def sampled(seed: str, count: int, most: int) -> list[int]:
    """Numbers of rows, drawn by the seed alone, in order."""

    def rank(number: int) -> int:
        return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:8])

    if count <= most:
        return list(range(1, count + 1))
    if count <= _SPARSE * most:
        return sorted(sorted(range(1, count + 1), key=rank)[:most])
    drawn: set[int] = set()
    turn = 0
    while len(drawn) < most:
        drawn.add(1 + rank(turn) % count)
        turn += 1
    return sorted(drawn)


def _values(connection: Connection[Any], work: Work, wanted: Fingerprint, numbers: Sequence[int]) -> pl.DataFrame:
    """The sample: `number`, and the values of the fields that are needed, or of all where the importer compares."""
    names = set(work.fields)
    if not _compares(work):
        names &= {*wanted.identity, *_key(work, wanted)}
    first, last = (numbers[0], numbers[-1]) if numbers else (1, 0)
    sources, edited = needed_for(work, names), work.edited
    rows = read_rows(connection, work.job.id, sources, first=first, last=last, numbers=numbers, edited=edited)
    return values_of(connection, work, names, rows)


def _compares(work: Work) -> bool:
    """Whether the importer compares in a way of its own."""
    return work.importer.compare is not Importer.compare


def _key(work: Work, wanted: Fingerprint) -> tuple[str, ...]:
    return wanted.by or work.importer.keys[0]


def _compared(connection: Connection[Any], work: Work, wanted: Fingerprint, rows: pl.DataFrame) -> Compared:
    fields = work.importer.fields
    key = [fields[name].column for name in _key(work, wanted)]
    identity = {fields[name].column: name for name in wanted.identity if name in rows.columns}
    if tuple(key) not in work.layout.keys or not identity or not rows.height:
        return Compared(matched=0)
    staged = text_columns(rows.drop("number").rename({name: fields[name].column for name in rows.columns[1:]}))
    staged = staged.insert_column(0, rows["number"].alias("rowcall_number")).drop_nulls(key)
    staging.prepare(connection, work.layout)
    pairs = pairs_by(connection, work.layout, tuple(key), list(identity), staged)
    compared = {pair.number for pair in pairs}
    differ = [pair for pair, same in zip(pairs, _same(pairs), strict=True) if not same]
    order = list(identity)
    differ.sort(key=lambda pair: (pair.number, order.index(pair.column)))
    return Compared(matched=len(compared), mismatches=[_mismatch(pair, identity) for pair in differ])


def _same(pairs: Sequence[Pair]) -> Iterator[bool]:
    """Whether two values are the same but for case, accents and blanks."""
    texts = pl.DataFrame({"found": [pair.found for pair in pairs], "expected": [pair.expected for pair in pairs]})
    same = texts.cast(pl.String).select(_normal("found") == _normal("expected")).to_series()
    return (pair.equal or alike for pair, alike in zip(pairs, same, strict=True))


def _normal(name: str) -> pl.Expr:
    plain = pl.col(name).str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars()


def _mismatch(pair: Pair, names: dict[str, str]) -> Mismatch:
    field = names[pair.column]
    return Mismatch(row=pair.number, field=field, found=pair.found, expected=pair.expected, key=tuple(pair.key))


def _judged(
    connection: Connection[Any], work: Work, wanted: Fingerprint, compared: Compared, sample: int
) -> FingerprintCheck:
    rows = {mismatch.row for mismatch in compared.mismatches}
    kept = compared.mismatches[:_FINDINGS]
    lines = lines_of(connection, work.job.id, [mismatch.row for mismatch in kept])
    verdict, note = _verdict(wanted, compared.matched, len(rows))
    return FingerprintCheck(
        verdict=verdict,
        note=note,
        sampled=sample,
        matched=compared.matched,
        mismatched=len(rows),
        warn=wanted.warn,
        abort=wanted.abort,
        findings=[
            Finding(
                row=mismatch.row,
                line=lines.get(mismatch.row),
                key=list(mismatch.key),
                field=mismatch.field,
                found=_cut(mismatch.found),
                expected=_cut(mismatch.expected),
            )
            for mismatch in kept
        ],
    )


def _verdict(wanted: Fingerprint, matched: int, mismatched: int) -> tuple[Verdict, str]:
    told = f"{mismatched:,} of {matched:,} rows that are there by their key are about something else"
    if matched < wanted.least:
        few = f"Only {counted(matched, 'row')} of the sample" if matched else "No row of the sample"
        return "pass", f"{few} could be compared with the target; {wanted.least:,} would tell something."
    share = mismatched / matched
    if mismatched and share >= wanted.abort:
        return "abort", f"{told}: {share:.0%}, and {wanted.abort:.0%} are too many."
    if mismatched and share >= wanted.warn:
        return "warn", f"{told}: {share:.0%}, and {wanted.warn:.0%} are worth a question."
    return "pass", f"{told}."


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
