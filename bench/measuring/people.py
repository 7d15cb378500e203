"""The people in the benchmarks' files."""

import unicodedata

import numpy as np
import numpy.typing as npt
import polars as pl

from measuring.files import SEED

_FIRST = [
    "Anna", "Ben", "Chloé", "Dmitri", "Élodie", "Fatima", "George", "Hiroshi",
    "Inês", "Jürgen", "Kofi", "Lena", "Mateo", "Nadia", "Óscar", "Priya",
]  # fmt: skip
_LAST = [
    "Adams", "Björk", "Castro", "Dvořák", "Evans", "Fischer", "García", "Haddad",
    "Ito", "Jones", "Kim", "Larsen", "Müller", "Nguyễn", "Okafor", "Silva",
]  # fmt: skip
_ROLES = ["admin", "author", "editor", "reader"]
_FIRST_DAY = np.datetime64("2015-01-01T00:00:00", "us")
_TEN_YEARS, _ONE_YEAR = 10 * 365 * 86_400, 365 * 86_400
_DASHES = [8, 13, 18, 23]
_SECOND = np.timedelta64(1_000_000, "us")


def people(rows: int, *, part: int = 0) -> pl.DataFrame:
    """The table: 7 columns, one name in ten as `Last, First`, some of them beyond ASCII.

    Another `part` of the same number of rows has other people, so that a large table can be made piece by piece.
    """
    rng = np.random.default_rng((SEED, part))
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
    email = pl.format("{}.{}@example.org", "user", pl.int_range(pl.len()) + part * rows).alias("email")
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


def dated(typed: pl.DataFrame) -> pl.DataFrame:
    """The table as JSON holds it: with true booleans, but moments as text."""
    return typed.with_columns(
        pl.col("created_at", "updated_at").dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def texts(typed: pl.DataFrame) -> pl.DataFrame:
    """The table as CSV holds it."""
    return dated(typed).cast(pl.String)
