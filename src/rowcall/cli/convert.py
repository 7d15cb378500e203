"""`rowcall convert`: a file of any format into one of another, with the bad records in a file beside it."""

import sys
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from rowcall.cli.options import AsJson, takes_read_options, write_format, write_options
from rowcall.cli.progress import batches_with_progress
from rowcall.cli.screen import beside, tell
from rowcall.errors import Final
from rowcall.formats import (
    Batch,
    Reading,
    ReadOptions,
    Refused,
    WriteColumn,
    WriteFormat,
    Writer,
    open_rows,
    open_writer,
)
from rowcall.model import Code
from rowcall.words import counted

_REJECTS = ("row", "line", "column", "code", "message", "raw")


@takes_read_options(without=("decimal", "date_order"))
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="The file to read; - for standard input.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The file to write; - for standard output.")],
    to: Annotated[
        str | None,
        typer.Option(help="csv, ndjson, json, xlsx or parquet; else by the name of OUT; csv for standard output."),
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="Where the bad records go (CSV); else OUT.rejects.csv, if there are any.")
    ] = None,
    *,
    read: ReadOptions,
    out_delimiter: Annotated[str | None, typer.Option(help="Delimiter of a CSV file that is written.")] = None,
    bom: Annotated[bool, typer.Option(help="Begin a CSV file with a byte order mark, for Excel.")] = False,
    formulas: Annotated[
        str, typer.Option(help="Texts that look like formulas in CSV and XLSX: protect, or keep as they are.")
    ] = "protect",
    as_json: AsJson = False,
) -> None:
    """Write the rows of a file in another format; every record ends in OUT or, with its reason, in the rejects file."""
    kind = write_format(target, "--to", to)
    if as_json and target == "-":
        raise Final(Code.BAD_OPTION, "--json tells of a file; standard output has the rows.", hint="Name a file OUT.")
    writing = write_options(target, bom=bom, formulas=formulas, delimiter=out_delimiter)
    aside = _Rejects(rejects or _beside(target))
    with open_rows(sys.stdin.buffer if source == "-" else source, read) as reading:
        reading.settle()
        out = sys.stdout.buffer if target == "-" else Path(target)
        with aside, open_writer(out, kind, reading.columns, writing) as writer:
            for batch in batches_with_progress(reading, "converting"):
                aside.add(batch, writer.write(batch.frame))
    if as_json:
        tell(_counted(reading, writer, aside))
    else:
        _tell(reading, writer, aside)
    if aside.count:
        raise typer.Exit(2)


class _Rejects:
    """The file of what could not be converted, made when the first such record comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._writer: Writer | None = None

    def add(self, batch: Batch, refused: tuple[Refused, ...]) -> None:
        rows = [(b.number, b.line, None, b.code, b.message, b.text) for b in batch.bad]
        names = batch.frame.columns
        rows += [(i.number, i.line, names[i.column], i.code, i.message, i.value) for i in batch.issues]
        rows += [
            (batch.numbers[r.row], batch.lines[r.row], r.column, r.code, r.message, "\t".join(_cells(batch, r.row)))
            for r in refused
        ]
        if rows:
            self._write(sorted(rows))

    def _write(self, rows: list[tuple[object, ...]]) -> None:
        if self._writer is None:
            columns = [WriteColumn(name=name) for name in _REJECTS]
            self._writer = open_writer(self.path, WriteFormat.CSV, columns)
        texts = [[None if value is None else str(value) for value in row] for row in rows]
        self._writer.write(pl.DataFrame(texts, schema=dict.fromkeys(_REJECTS, pl.String), orient="row"))
        self.count += len(rows)

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._writer is None:
            return
        if kind is None:
            self._writer.close()
        else:
            self._writer.abort()


def _cells(batch: Batch, row: int) -> list[str]:
    return [cell or "" for cell in batch.frame.row(row)]


def _beside(target: str) -> Path:
    return Path("rejects.csv" if target == "-" else f"{target}.rejects.csv")


def _counted(reading: Reading, writer: Writer, aside: _Rejects) -> dict[str, object]:
    counts = reading.counts
    told = {"rows": counts.rows, "written": writer.rows, "rejected": counts.rows - writer.rows, "cells": counts.issues}
    return {**told, "rejects": str(aside.path) if aside.count else None}


def _tell(reading: Reading, writer: Writer, aside: _Rejects) -> None:
    console = beside()
    counts = reading.counts
    left = counts.rows - writer.rows
    console.print(f"{counted(counts.rows, 'row')} = {writer.rows:,} written + {left:,} rejected")
    if counts.issues:
        console.print(f"{counted(counts.issues, 'cell')} held no usable value, left empty")
    if aside.count:
        console.print(f"see {aside.path}", markup=False)
