"""Makes the files: people, the same with errors, with changes, in other formats, and ten times as many.

Run as a program with the number of rows, and `tenfold` for the largest file, which isn't kept.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from importing import files
from importing.files import Files
from measuring.files import SEED, make_missing
from measuring.people import dated, people, texts

_NO_EMAIL, _NO_ROLE, _NO_DATE = 0, 1, 2


def main() -> None:
    wanted = Files(int(sys.argv[1]))
    if "tenfold" in sys.argv[2:]:
        _write_tenfold(wanted.rows, wanted.path(files.TENFOLD))
        return
    typed = people(wanted.rows)
    rows = texts(typed)
    makers: dict[str, Callable[[Path], None]] = {
        files.CLEAN: rows.write_csv,
        files.ERRORS: _with_errors(rows, wanted.bad_rows).write_csv,
        files.RIVALS: _rivals(rows, wanted.bad_rows).write_csv,
        files.CHANGED: _changed(rows, wanted.changed_rows).write_csv,
        files.FEWER_CSV: rows.head(wanted.fewer_rows).write_csv,
        files.FEWER_NDJSON: lambda path: dated(typed.head(wanted.fewer_rows)).write_ndjson(path, check_extension=False),
        files.FEWER_XLSX: lambda path: _write_xlsx(typed.head(wanted.fewer_rows), path),
        files.FEW: rows.head(wanted.few_rows).write_csv,
    }
    make_missing({wanted.path(name): make for name, make in makers.items()})


def _with_errors(rows: pl.DataFrame, count: int) -> pl.DataFrame:
    """Half of the errors are e-mails without @, a quarter unknown roles, a quarter days that don't exist."""
    kinds = np.full(rows.height, -1, dtype=np.int8)
    kinds[_drawn(rows.height, count)] = np.resize([_NO_EMAIL, _NO_ROLE, _NO_EMAIL, _NO_DATE], count)
    kind = pl.lit(pl.Series(kinds))
    without_at = pl.col("email").str.replace("@", " at ", literal=True)
    return rows.with_columns(
        email=pl.when(kind == _NO_EMAIL).then(without_at).otherwise("email"),
        role=pl.when(kind == _NO_ROLE).then(pl.lit("superuser")).otherwise("role"),
        created_at=pl.when(kind == _NO_DATE).then(pl.lit("2023-02-30T12:00:00Z")).otherwise("created_at"),
    )


def _rivals(rows: pl.DataFrame, count: int) -> pl.DataFrame:
    """Every other one has the id of a row and another e-mail, the rest the e-mail and another id."""
    spare = people(count, part=1)
    same_id = pl.int_range(pl.len()) % 2 == 0
    return rows[np.sort(_drawn(rows.height, count))].with_columns(
        id=pl.when(same_id).then("id").otherwise(pl.lit(spare["id"])),
        email=pl.when(same_id).then(pl.concat_str(pl.lit("rival."), "email")).otherwise("email"),
    )


def _changed(rows: pl.DataFrame, count: int) -> pl.DataFrame:
    changes = np.zeros(rows.height, dtype=np.bool_)
    changes[_drawn(rows.height, count)] = True
    renamed = pl.concat_str("name", pl.lit(" Jr."))
    return rows.with_columns(name=pl.when(pl.lit(pl.Series(changes))).then(renamed).otherwise("name"))


def _drawn(rows: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.random.default_rng(SEED).choice(rows, count, replace=False)


def _write_xlsx(typed: pl.DataFrame, path: Path) -> None:
    with path.open("wb") as out:
        typed.write_excel(out)


def _write_tenfold(rows: int, path: Path) -> None:
    with path.open("wb") as out:
        for part in range(10):
            texts(people(rows, part=part)).write_csv(out, include_header=part == 0)


if __name__ == "__main__":
    main()
