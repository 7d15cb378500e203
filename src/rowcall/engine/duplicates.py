"""Rows of one file that are the same thing twice, decided before any of them is committed.

So the outcome doesn't depend on which batch is committed first. Among rows that are good in themselves the first one
counts, or the last one where rows update what is there. Every column set that the target keeps unique is looked at.
"""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from psycopg import Connection
from psycopg.sql import Identifier

from rowcall.engine.judge import NO_OUTCOMES, judge_rows, rows_of
from rowcall.engine.resolve import resolve, with_scopes
from rowcall.engine.work import Work
from rowcall.store.copying import copy_in
from rowcall.store.db import Database
from rowcall.store.rows import RowBatch, all_batches, read_rows

_JUDGED = 10_000
_PARTS = 32
_ENTRY = np.dtype([("hash", np.uint64), ("number", np.int64)])
Entries = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class KeySet:
    """Fields in which no two rows may agree, and what a row is that agrees with another."""

    fields: tuple[str, ...]
    kind: Literal["key", "natural", "unique", "content"]


def key_sets(work: Work) -> list[KeySet]:
    """What has to differ from row to row: the importer's keys, then all else that the target keeps unique."""
    given = {*work.positions, *work.job.config.constants}
    fields = {field.column: name for name, field in work.importer.fields.items() if name in given}
    sets = [
        KeySet(key, "natural" if place else "key") for place, key in enumerate(work.importer.keys) if set(key) <= given
    ]
    known = {frozenset(one.fields) for one in sets}
    for index in work.target.unique:
        names = tuple(fields[column] for column in index.columns if column in fields)
        if len(names) == len(index.columns) and frozenset(names) not in known:
            sets.append(KeySet(names, "unique"))
    if work.importer.once and not any(one.kind == "key" for one in sets):
        sets.append(KeySet(tuple(work.positions), "content"))
    return sets


def decide_duplicates(database: Database, connection: Connection[Any], work: Work, *, workers: int) -> None:
    """Find the rows that lose, and keep them. Doing it again gives the same."""
    sets = key_sets(work)
    connection.execute("DELETE FROM rowcall.duplicate WHERE job_id = %s", [work.job.id])
    if not sets or not work.job.row_count:
        return
    with tempfile.TemporaryDirectory(prefix="rowcall-keys-") as folder:
        _spill_all(database, connection, work, sets, Path(folder), workers)
        for place, one in enumerate(sets):
            for part in range(_PARTS):
                numbers = _repeated(_file(Path(folder), place, part))
                if len(numbers):
                    _settle(connection, work, one, numbers)


# --------------------------------------------------------------------------------- which rows might be equal


def _spill_all(
    database: Database, connection: Connection[Any], work: Work, sets: Sequence[KeySet], folder: Path, workers: int
) -> None:
    """Write the hash of each row's keys to disk, divided by hash, so that memory doesn't grow with the file."""
    batches = all_batches(connection, work.job.id)
    pool = min(workers, len(batches))

    def share(thread: int) -> None:
        with database.reconnect("keys") as connection:
            for batch in batches[thread::pool]:
                for place, entries in enumerate(_hashed(connection, work, sets, batch)):
                    _spill(folder, place, thread, entries)

    with ThreadPoolExecutor(pool) as executor:
        list(executor.map(share, range(pool)))


def _hashed(connection: Connection[Any], work: Work, sets: Sequence[KeySet], batch: RowBatch) -> list[Entries]:
    values = _key_values(connection, work, sets, batch)
    entries: list[Entries] = []
    for one in sets:
        whole = values if one.kind == "content" else values.drop_nulls(list(one.fields))
        hashes = whole.select(pl.struct(one.fields).hash()).to_series().to_numpy()
        found = np.empty(whole.height, _ENTRY)
        found["hash"], found["number"] = hashes, whole["number"].to_numpy()
        entries.append(found)
    return entries


def _key_values(connection: Connection[Any], work: Work, sets: Sequence[KeySet], batch: RowBatch) -> pl.DataFrame:
    """The values of the fields that are keys, as they will be written; null where they can't be read."""
    names = {name for one in sets for name in one.fields}
    needed = with_scopes(work.lookups, names)
    positions = {name: place for name, place in work.positions.items() if name in needed}
    rows = rows_of(connection, work, batch, positions).drop("problems")
    constants = work.job.config.constants
    rows = rows.with_columns(pl.lit(constants[name]).alias(name) for name in needed if name in constants)
    rows, _ = resolve(connection, {name: lookup for name, lookup in work.lookups.items() if name in needed}, rows)
    return rows.select("number", *(_read(work, rows, name) for name in sorted(names)))


def _read(work: Work, rows: pl.DataFrame, name: str) -> pl.Series:
    field = work.importer.fields[name]
    if name in work.lookups:
        return rows[name]
    if name in work.readings:
        field = field.read_as(work.readings[name], work.limits[name])
    return field.read(rows.select(field.clean()).to_series()).alias(name)


def _file(folder: Path, place: int, part: int) -> list[Path]:
    return sorted(folder.glob(f"{place}-{part}-*"))


def _spill(folder: Path, place: int, thread: int, entries: Entries) -> None:
    parts = (entries["hash"] >> np.uint64(59)).astype(np.int64)
    order = np.argsort(parts, kind="stable")
    bounds = np.searchsorted(parts[order], np.arange(_PARTS + 1))
    for part in range(_PARTS):
        with (folder / f"{place}-{part}-{thread}").open("ab") as file:
            file.write(entries[order[bounds[part] : bounds[part + 1]]].tobytes())


def _repeated(files: list[Path]) -> npt.NDArray[np.int64]:
    """The numbers of rows whose hash is not the only one of its kind, equal ones together."""
    if not files:
        return np.empty(0, np.int64)
    entries = np.concatenate([np.fromfile(file, _ENTRY) for file in files])
    entries = entries[np.lexsort((entries["number"], entries["hash"]))]
    same = entries["hash"][1:] == entries["hash"][:-1]
    repeated = np.zeros(len(entries), np.bool_)
    repeated[1:] |= same
    repeated[:-1] |= same
    return entries["number"][repeated]


# ---------------------------------------------------------------------------------------------- which one counts


def _settle(connection: Connection[Any], work: Work, one: KeySet, numbers: npt.NDArray[np.int64]) -> None:
    """Among the good rows with equal keys, one counts; the others are kept with the number of the one that does."""
    good = pl.concat(list(_good(connection, work, one, np.sort(numbers))))
    if not good.height:
        return
    groups = good.group_by(list(one.fields), maintain_order=True).agg(
        pl.col("number").alias("numbers"), pl.col("keyed").all().alias("all_keyed")
    )
    groups = groups.filter(pl.col("numbers").list.len() > 1)
    last = _last_counts(work, one)
    lost = (
        groups.select(
            "numbers",
            pl.when(last).then(pl.col("numbers").list.max()).otherwise(pl.col("numbers").list.min()).alias("winner"),
            (~last & pl.lit(_refuses(work, one))).alias("refused"),
        )
        .explode("numbers")
        .filter(pl.col("numbers") != pl.col("winner"))
    )
    names = pl.lit(pl.Series([[] if one.kind == "content" else list(one.fields)], dtype=pl.List(pl.String)))
    copy_in(
        connection,
        Identifier("rowcall", "duplicate"),
        lost.select(
            pl.lit(str(work.job.id)).alias("job_id"),
            pl.col("numbers").alias("row_number"),
            "winner",
            names.first().alias("fields"),
            "refused",
        ),
    )


def _last_counts(work: Work, one: KeySet) -> pl.Expr:
    """Whether later rows replace earlier ones. By the natural key only where a row has no other."""
    updates = work.layout.on_match in ("update", "version")
    if one.kind == "natural":
        return pl.lit(updates) & ~pl.col("all_keyed")
    return pl.lit(updates and one.kind == "key")


def _refuses(work: Work, one: KeySet) -> bool:
    if one.kind == "content" or (work.importer.once and one.kind == "key"):
        return False
    return one.kind == "unique" or work.layout.on_match != "skip"


def _good(
    connection: Connection[Any], work: Work, one: KeySet, numbers: npt.NDArray[np.int64]
) -> Iterator[pl.DataFrame]:
    """The rows that can go to the target and have not lost yet, with their values of the key."""
    for start in range(0, len(numbers), _JUDGED):
        some = numbers[start : start + _JUDGED].tolist()
        rows = read_rows(connection, work.job.id, dict(work.positions), first=some[0], last=some[-1], numbers=some)
        good = judge_rows(connection, work, rows, NO_OUTCOMES).good
        lost = connection.execute(
            "SELECT row_number FROM rowcall.duplicate WHERE job_id = %s AND row_number = ANY(%s)", [work.job.id, some]
        ).fetchall()
        if lost:
            good = good.filter(~pl.col("number").is_in([number for (number,) in lost]))
        key = work.importer.keys[0] if work.importer.keys else ()
        keyed = (
            pl.all_horizontal(pl.col(name).is_not_null() for name in key)
            if key and set(key) <= set(good.columns)
            else pl.lit(False)
        )
        yield good.select("number", *one.fields, keyed.alias("keyed"))
