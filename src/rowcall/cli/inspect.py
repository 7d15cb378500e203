"""`rowcall inspect`: what a file is, what its columns hold, and what is wrong with it."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape as literal
from rich.table import Table
from rich.text import Text

from rowcall.cli import options
from rowcall.cli.options import read_options
from rowcall.cli.progress import batches_with_progress
from rowcall.formats import BadRecord, CellIssue, ColumnProfile, Fact, Profile, Reading, open_rows

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


def inspect(
    file: Annotated[str, typer.Argument(help="The file; - for standard input.")],
    sheet: options.Sheet = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    quote: options.Quote = None,
    escape: options.Escape = None,
    comment: options.Comment = None,
    header: options.Header = None,
    records: options.Records = None,
    format: options.FileFormat = None,  # noqa: A002 (the product's word)
    ragged: options.Ragged = "reject",
    decimal: options.Decimal = None,
    date_order: options.DateOrder = None,
    rows: Annotated[int, typer.Option(min=0, help="How many of the first rows to show.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
) -> None:
    """Tell what a file is and why, what its columns hold, how many rows are good and which are not."""
    wanted = read_options(
        sheet=sheet,
        encoding=encoding,
        delimiter=delimiter,
        quote=quote,
        escape=escape,
        comment=comment,
        header=header,
        records=records,
        format=format,
        ragged=ragged,
        decimal=decimal,
        date_order=date_order,
    )
    source = sys.stdin.buffer if file == "-" else file
    with open_rows(source, wanted) as reading:
        seen = look_through(reading, Profile(wanted), rows)
        if as_json:
            print(json.dumps(_document(reading, seen), ensure_ascii=False, indent=2))  # noqa: T201 (the command's output)
        else:
            show(_console(), reading, seen)


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


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def show(console: Console, reading: Reading, seen: Seen) -> None:
    """Tell a person what was found."""
    counts = reading.counts
    console.print(f"[bold]{literal(reading.file.name)}[/]  {reading.file.size:,} bytes")
    facts = Table.grid(padding=(0, 2))
    for name, fact in _facts(reading):
        facts.add_row(f"[dim]{name}[/]", f"[bold]{literal(_visible(fact.value))}[/]", f"[dim]{literal(fact.why)}[/]")
    console.print(facts)
    for sheet in reading.detected.sheets:
        hidden = "" if sheet.visible else " (hidden)"
        console.print(f"  sheet {literal(repr(sheet.name))}: {sheet.rows:,} rows{hidden}", style="dim")
    for line in reading.detected.preamble[:5]:
        console.print(f"  before the header: {literal(line[:_RAW_SHOWN])}", style="dim")
    for note in reading.detected.notes:
        console.print(f"[yellow]note[/] {literal(note.message)} [dim]{note.code}[/]")
    balance = f"{counts.rows:,} rows = {counts.good:,} good + {counts.bad:,} bad"
    others = (f"{getattr(counts, kind):,} {kind}" for kind in ("blank", "header", "preamble", "comment"))
    console.print(f"\n[bold]{balance}[/]  [dim]beside them {', '.join(others)}[/]")
    console.print(_columns_table(seen.profile.columns(), console.width))
    if seen.rows:
        console.print(_rows_table(reading, seen, console.width))
    _show_bad(console, reading, seen)


def _columns_table(profiles: tuple[ColumnProfile, ...], width: int) -> Table:
    rows = [
        (
            literal(p.column.name),
            f"{100 * p.filled / p.rows:.1f} %" if p.rows else "-",
            f"{p.distinct:,}" if p.distinct_exact else f"~{p.distinct:,}",
            _kind(p),
            literal(" · ".join(_visible(sample)[:40] for sample in p.samples)),
        )
        for p in profiles[:200]
    ]
    return _table(("column", "filled", "distinct", "looks like", "samples"), rows, whole=4, width=width)


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, whole: int, width: int) -> Table:
    """A table of single lines; what the first `whole` columns leave of the width is divided among the others."""
    cells = [[Text.from_markup(cell) for cell in row] for row in rows]
    widths = [max([len(header), *(row[i].cell_len for row in cells)]) for i, header in enumerate(headers)]
    left = width - sum(widths[:whole]) - 3 * len(headers)
    most = max(8, left // max(1, len(headers) - whole))
    table = Table(box=SIMPLE_HEAD, header_style="dim", pad_edge=False)
    for i, header in enumerate(headers):
        table.add_column(header, no_wrap=True, overflow="ellipsis")
        for row in cells if i >= whole else ():
            row[i].truncate(most, overflow="ellipsis")
    for row in cells:
        table.add_row(*row)
    return table


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
            *("[dim]null[/]" if c is None else literal(_visible(c)[:40]) for c in cells[: len(shown)]),
        )
        for number, line, cells in seen.rows
    ]
    return _table(("row", "line", *(literal(c.name) for c in shown)), rows, whole=2, width=width)


def _show_bad(console: Console, reading: Reading, seen: Seen) -> None:
    for bad in seen.bad:
        console.print(f"[red]line {bad.line:,}[/] row {bad.number:,} [dim]{bad.code}[/] {literal(bad.message)}")
        console.print(f"  {literal(_visible(bad.text[:_RAW_SHOWN]))}", style="dim", soft_wrap=True)
    for issue in seen.issues:
        where = f"[red]line {issue.line:,}[/] row {issue.number:,}"
        console.print(f"{where} [dim]{issue.code}[/] {literal(issue.message)}")
    more = reading.counts.bad - len(seen.bad) + reading.counts.issues - len(seen.issues)
    if more:
        console.print(f"[dim]and {more:,} more[/]")


def _visible(text: str) -> str:
    """Text on one line, with control characters spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
