"""`rowcall inspect`: what a file is, what its columns hold, and what is wrong with it."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape as literal
from rich.table import Table

from rowcall.cli.options import AsJson, takes_read_options
from rowcall.cli.progress import batches_with_progress
from rowcall.cli.screen import screen, short, table, visible
from rowcall.formats import BadRecord, CellIssue, ColumnProfile, Fact, Profile, Reading, ReadOptions, open_rows
from rowcall.words import counted

_FACTS = ("format", "compression", "encoding", "delimiter", "quote", "escape", "newline", "sheet", "records", "header")
_BAD_SHOWN = 10
_RAW_SHOWN = 200
_JSON_RAW = 2_000


_Row = tuple[int, int, tuple[str | None, ...]]
"""Row number, line, cells."""


@dataclass(slots=True)
class Seen:
    """What is kept of a file while reading it."""

    profile: Profile
    rows: list[_Row] = field(default_factory=list[_Row])
    bad: list[BadRecord] = field(default_factory=list[BadRecord])
    issues: list[CellIssue] = field(default_factory=list[CellIssue])


@takes_read_options()
def inspect(
    file: Annotated[str, typer.Argument(help="The file; - for standard input.")],
    *,
    read: ReadOptions,
    rows: Annotated[int, typer.Option(min=0, help="How many of the first rows to show.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Tell what a file is and why, what its columns hold, how many rows are good and which are not."""
    source = sys.stdin.buffer if file == "-" else file
    with open_rows(source, read) as reading:
        seen = look_through(reading, Profile(read), rows)
        if as_json:
            print(json.dumps(_document(reading, seen), ensure_ascii=False, indent=2))  # noqa: T201 (the command's output)
        else:
            show(screen(), reading, seen)


def look_through(reading: Reading, profile: Profile, rows: int) -> Seen:
    """Read a file to its end, keeping its first rows and what is wrong with it."""
    seen = Seen(profile)
    for batch in batches_with_progress(reading, "reading"):
        profile.observe(batch, reading.columns)
        wanted = max(0, rows - len(seen.rows))
        firsts = zip(batch.numbers.head(wanted), batch.lines.head(wanted), batch.frame.head(wanted).rows(), strict=True)
        seen.rows += firsts
        seen.bad += batch.bad[: _BAD_SHOWN - len(seen.bad)]
        seen.issues += batch.issues[: _BAD_SHOWN - len(seen.issues)]
    return seen


def _facts(reading: Reading) -> Iterator[tuple[str, Fact]]:
    for name in _FACTS:
        fact = getattr(reading.detected, name)
        if fact is not None:
            yield name, fact


def _document(reading: Reading, seen: Seen) -> dict[str, object]:
    found = reading.detected
    return {
        "file": {"name": reading.file.name, "size": reading.file.size},
        "detected": {name: asdict(fact) for name, fact in _facts(reading)},
        "preamble": found.preamble,
        "sheets": [asdict(sheet) for sheet in found.sheets],
        "notes": [asdict(note) for note in found.notes],
        "counts": asdict(reading.counts),
        "columns": [_column_document(column) for column in seen.profile.columns()],
        "rows": [{"row": number, "line": line, "cells": cells} for number, line, cells in seen.rows],
        "bad": [
            {
                "row": b.number,
                "line": b.line,
                "code": b.code,
                "message": b.message,
                "raw": b.text[:_JSON_RAW],
                "size": b.size,
            }
            for b in seen.bad
        ],
        "issues": [
            {
                "row": i.number,
                "line": i.line,
                "column": i.column,
                "code": i.code,
                "value": i.value,
                "message": i.message,
            }
            for i in seen.issues
        ],
    }


def _column_document(profile: ColumnProfile) -> dict[str, object]:
    return {
        "index": profile.column.index,
        "header": profile.column.header,
        "name": profile.column.name,
        "native": profile.column.native,
        "filled": profile.filled,
        "fillPercent": round(100 * profile.filled / profile.rows, 2) if profile.rows else 0.0,
        "nulls": profile.nulls,
        "missing": profile.missing,
        "distinct": profile.distinct,
        "distinctExact": profile.distinct_exact,
        "longest": profile.longest,
        "samples": profile.samples,
        "kind": profile.kind,
        "ambiguous": profile.ambiguous,
        "decimal": profile.decimal,
        "dateOrder": profile.date_order,
        "evidence": [{"kind": e.kind, "for": e.supporting, "against": e.against} for e in profile.evidence],
    }


# ------------------------------------------------------------------------------------------------------- for a person


def show(console: Console, reading: Reading, seen: Seen) -> None:
    """Tell a person what was found."""
    counts = reading.counts
    console.print(f"[bold]{literal(visible(reading.file.name))}[/]  {reading.file.size:,} bytes")
    facts = Table.grid(padding=(0, 2))
    for name, fact in _facts(reading):
        facts.add_row(f"[dim]{name}[/]", f"[bold]{literal(visible(fact.value))}[/]", f"[dim]{literal(fact.why)}[/]")
    console.print(facts)
    for sheet in reading.detected.sheets:
        hidden = "" if sheet.visible else " (hidden)"
        console.print(f"  sheet {literal(repr(sheet.name))}: {counted(sheet.rows, 'row')}{hidden}", style="dim")
    for line in reading.detected.preamble[:5]:
        console.print(f"  before the header: {literal(short(line, _RAW_SHOWN))}", style="dim")
    for note in reading.detected.notes:
        console.print(f"[yellow]note[/] {literal(note.message)} [dim]{note.code}[/]")
    balance = f"{counted(counts.rows, 'row')} = {counts.good:,} good + {counts.bad:,} bad"
    others = (f"{getattr(counts, kind):,} {kind}" for kind in ("blank", "header", "preamble", "comment"))
    console.print(f"\n[bold]{balance}[/]  [dim]beside them {', '.join(others)}[/]")
    console.print(_columns_table(seen.profile.columns(), console.width))
    if seen.rows:
        console.print(_rows_table(reading, seen, console.width))
    _show_bad(console, reading, seen)


def _columns_table(profiles: tuple[ColumnProfile, ...], width: int) -> Table:
    rows = [
        (
            literal(visible(p.column.name)),
            f"{100 * p.filled / p.rows:.1f} %" if p.rows else "-",
            f"{p.distinct:,}" if p.distinct_exact else f"~{p.distinct:,}",
            _kind(p),
            literal(" · ".join(short(sample, 40) for sample in p.samples)),
        )
        for p in profiles[:200]
    ]
    return table(("column", "filled", "distinct", "looks like", "samples"), rows, whole=4, width=width)


def _kind(profile: ColumnProfile) -> str:
    if not profile.filled:
        return "[dim]empty[/]"
    if profile.ambiguous:
        one, other = profile.ambiguous
        shared = one.split()[0] + " "
        return f"[yellow]{one} or {other.removeprefix(shared)}?[/]"
    against = next((e.against for e in profile.evidence if e.kind is profile.kind), 0)
    return profile.kind.value + (f" [yellow](but {against:,} not)[/]" if against else "")


def _rows_table(reading: Reading, seen: Seen, width: int) -> Table:
    shown = reading.columns[: max(1, (width - 20) // 12)]
    rows = [
        (
            f"{number:,}",
            f"{line:,}",
            *("[dim]null[/]" if c is None else literal(short(c, 40)) for c in cells[: len(shown)]),
        )
        for number, line, cells in seen.rows
    ]
    return table(("row", "line", *(literal(visible(c.name)) for c in shown)), rows, whole=2, width=width)


def _show_bad(console: Console, reading: Reading, seen: Seen) -> None:
    for bad in seen.bad:
        console.print(f"[red]line {bad.line:,}[/] row {bad.number:,} [dim]{bad.code}[/] {literal(bad.message)}")
        console.print(f"  {literal(short(bad.text, _RAW_SHOWN))}", style="dim", soft_wrap=True)
    for issue in seen.issues:
        where = f"[red]line {issue.line:,}[/] row {issue.number:,}"
        console.print(f"{where} [dim]{issue.code}[/] {literal(issue.message)}")
    more = reading.counts.bad - len(seen.bad) + reading.counts.issues - len(seen.issues)
    if more:
        console.print(f"[dim]and {more:,} more[/]")
