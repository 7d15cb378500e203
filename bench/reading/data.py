"""Makes the files: one table of people in every format, and a dirty copy of it.

Run as a program with the number of rows.
"""

import gzip
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from measuring.files import SEED, make_missing
from measuring.people import dated, people, texts
from reading import files
from reading.files import Defects, Files


def main() -> None:
    wanted = Files(int(sys.argv[1]))
    typed, clean, few = wanted.path(files.PARQUET), wanted.path(files.CLEAN), wanted.written_xlsx_rows
    makers: dict[str, Callable[[Path], None]] = {
        files.PARQUET: lambda path: people(wanted.rows).write_parquet(path),
        files.CLEAN: lambda path: texts(pl.read_parquet(typed)).write_csv(path),
        files.DIRTY: lambda path: _write_dirty(clean, path, Defects(wanted.rows)),
        files.GZIP: lambda path: _write_gzip(clean, path),
        files.NDJSON: lambda path: dated(pl.read_parquet(typed)).write_ndjson(path, check_extension=False),
        files.JSON: lambda path: dated(pl.read_parquet(typed)).write_json(path),
        files.XLSX: lambda path: _write_xlsx(typed, wanted.xlsx_rows, path),
        files.SMALL_XLSX: lambda path: _write_xlsx(typed, wanted.openpyxl_rows, path),
        files.TEXTS: lambda path: texts(pl.read_parquet(typed)).write_parquet(path),
        files.FEW_TEXTS: lambda path: texts(pl.read_parquet(typed, n_rows=few)).write_parquet(path),
    }
    make_missing({wanted.path(name): make for name, make in makers.items()})


def _write_dirty(clean: Path, path: Path, defects: Defects) -> None:
    """The clean file with its defects on rows without a quote, each of which still is one physical line."""
    header, *lines = clean.read_bytes().removesuffix(b"\n").split(b"\n")
    rng = np.random.default_rng(SEED)
    plain = np.array([number for number, line in enumerate(lines) if b'"' not in line])
    spoilt: Iterator[int] = iter(rng.choice(plain, defects.bad + defects.blank, replace=False).tolist())
    kinds: list[tuple[Callable[[bytes], bytes], int]] = [
        (_open_quote, defects.open_quotes),
        (_shorter, defects.short),
        (_longer, defects.long),
        (_blank_after, defects.blank),
    ]
    for spoil, count in kinds:
        for number in islice(spoilt, count):
            lines[number] = spoil(lines[number])
    path.write_bytes(b"\n".join((header, *lines, b"")))


def _open_quote(line: bytes) -> bytes:
    identity, email, rest = line.split(b",", 2)
    return b",".join((identity, email, b'"' + rest))


def _shorter(line: bytes) -> bytes:
    return line.rpartition(b",")[0]


def _longer(line: bytes) -> bytes:
    return line + b",surplus"


def _blank_after(line: bytes) -> bytes:
    return line + b"\n"


def _write_gzip(clean: Path, path: Path) -> None:
    with clean.open("rb") as plain, gzip.open(path, "wb", compresslevel=6) as packed:
        shutil.copyfileobj(plain, packed, 2**20)


def _write_xlsx(typed: Path, rows: int, path: Path) -> None:
    with path.open("wb") as out:
        pl.read_parquet(typed, n_rows=rows).write_excel(out)


if __name__ == "__main__":
    main()
