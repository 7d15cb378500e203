"""Makes the benchmark's files: one table of people in every format, and a dirty copy of it.

Run as a program with the number of rows, so that its memory is given back before anything is measured.
"""

import gzip
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

import files
from files import SEED, Defects, Files

_FIRST = [
    "Anna", "Ben", "Chloé", "Dmitri", "Élodie", "Fatima", "George", "Hiroshi",
    "Inês", "Jürgen", "Kofi", "Lena", "Mateo", "Nadia", "Óscar", "Priya",
]  # fmt: skip
_LAST = [
    "Adams", "Björk", "Castro", "Dvořák", "Evans", "Fischer", "García", "Haddad",
    "Ito", "Jones", "Kim", "Larsen", "Müller", "Nguyễn", "Okafor", "Silva",
]  # fmt: skip
_ROLES = ["viewer", "member", "editor", "admin"]
_FIRST_DAY = np.datetime64("2015-01-01T00:00:00", "us")
_TEN_YEARS, _ONE_YEAR = 10 * 365 * 86_400, 365 * 86_400
_DASHES = [8, 13, 18, 23]
_SECOND = np.timedelta64(1_000_000, "us")


def main() -> None:
    wanted = Files(int(sys.argv[1]))
    wanted.folder.mkdir(parents=True, exist_ok=True)
    typed, clean = wanted.path(files.PARQUET), wanted.path(files.CLEAN)
    makers: dict[str, Callable[[Path], None]] = {
        files.PARQUET: lambda path: people(wanted.rows).write_parquet(path),
        files.CLEAN: lambda path: _texts(typed).write_csv(path),
        files.DIRTY: lambda path: _write_dirty(clean, path, Defects(wanted.rows)),
        files.GZIP: lambda path: _write_gzip(clean, path),
        files.NDJSON: lambda path: _dated(typed).write_ndjson(path, check_extension=False),
        files.JSON: lambda path: _dated(typed).write_json(path),
        files.XLSX: lambda path: _write_xlsx(typed, wanted.xlsx_rows, path),
        files.SMALL_XLSX: lambda path: _write_xlsx(typed, wanted.openpyxl_rows, path),
        files.TEXTS: lambda path: _texts(typed).write_parquet(path),
        files.FEW_TEXTS: lambda path: _texts(typed).head(wanted.written_xlsx_rows).write_parquet(path),
    }
    for name, make in makers.items():
        path = wanted.path(name)
        if not path.exists():
            part = path.with_name(f"{name}.part")
            make(part)
            part.rename(path)


def people(rows: int) -> pl.DataFrame:
    """The table: 7 columns, one name in ten as `Last, First`, some of them beyond ASCII."""
    rng = np.random.default_rng(SEED)
    first, last = rng.integers(len(_FIRST), size=rows), rng.integers(len(_LAST), size=rows)
    created = _FIRST_DAY + rng.integers(_TEN_YEARS, size=rows) * _SECOND
    drawn = pl.DataFrame(
        {
            "id": _uuids(rng, rows),
            "first": _picked(_FIRST, first),
            "last": _picked(_LAST, last),
            "user": _picked(_ascii(_FIRST), first) + "." + _picked(_ascii(_LAST), last),
            "reversed": rng.random(rows) < 0.1,
            "role": _picked(_ROLES, rng.integers(len(_ROLES), size=rows)),
            "active": rng.random(rows) < 0.8,
            "created_at": created,
            "updated_at": created + rng.integers(_ONE_YEAR, size=rows) * _SECOND,
        }
    )
    name = (
        pl.when("reversed")
        .then(pl.format("{}, {}", "last", "first"))
        .otherwise(pl.format("{} {}", "first", "last"))
        .alias("name")
    )
    email = pl.format("{}.{}@example.org", "user", pl.int_range(pl.len())).alias("email")
    return drawn.select("id", email, name, "role", "active", "created_at", "updated_at")


def _uuids(rng: np.random.Generator, rows: int) -> pl.Series:
    text = np.full((rows, 36), ord("-"), dtype=np.uint8)
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    places = np.delete(np.arange(36), _DASHES)
    text[:, places] = digits[rng.integers(16, size=(rows, 32))]
    text[:, 14] = ord("4")
    return pl.Series(text.view("S36").ravel()).cast(pl.String)


def _picked(values: list[str], which: npt.NDArray[np.int64]) -> pl.Series:
    return pl.Series(values).gather(which)


def _ascii(names: list[str]) -> list[str]:
    return [unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower() for name in names]


def _dated(typed: Path) -> pl.DataFrame:
    """The table as JSON holds it: with true booleans, but moments as text."""
    return pl.read_parquet(typed).with_columns(
        pl.col("created_at", "updated_at").dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _texts(typed: Path) -> pl.DataFrame:
    return _dated(typed).cast(pl.String)


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
