"""Rows of one file that are the same thing twice, decided before any of them is committed.

So the outcome doesn't depend on which batch is committed first. Among rows that are good in themselves the first one
counts, or the last one where rows update what is there. Every column set that the target keeps unique is looked at.
Rows are compared by their values as we read them; where PostgreSQL may see it otherwise, it is asked.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import psycopg
from psycopg import Connection
from psycopg.sql import Identifier

from rowcall.engine.hashes import Hashes
from rowcall.engine.judge import NO_OUTCOMES, judge_rows, numbered, rows_of
from rowcall.engine.resolve import TO_CREATE
from rowcall.engine.typed import as_written, needed_for, values_of
from rowcall.engine.work import WRITTEN_ALIKE, Work
from rowcall.importer import Boolean, Choice, Date, DateTime, Decimal, Field, Integer
from rowcall.store import matching, sameness, staging
from rowcall.store.copying import copy_in
from rowcall.store.db import Database
from rowcall.store.queries import query
from rowcall.store.rows import RowBatch, Sources, all_batches
from rowcall.store.targets import Sameness, TargetColumn

_JUDGED = 10_000
_EQUAL_ALIKE: dict[str, tuple[type[Field], ...]] = {
    **WRITTEN_ALIKE,
    "numeric": (Integer, Decimal),
    "bool": (Boolean,),
    "date": (Date,),
    "timestamp": (DateTime, Date),
    "timestamptz": (DateTime, Date),
}
"""Types of columns, with the fields whose values are equal just when PostgreSQL says so."""


@dataclass(frozen=True, slots=True)
class KeySet:
    """Fields in which no two rows may agree, and what a row is that agrees with another."""

    fields: tuple[str, ...]
    kind: Literal["key", "natural", "unique", "content"]
    told: Sameness | None = None
    """What to ask PostgreSQL; None where equal values are enough."""


def key_sets(work: Work) -> list[KeySet]:
    """What has to differ from row to row: the importer's keys, then all else that the target keeps unique.

    Last, where a row is taken once, the content of rows without a key.
    """
    given = {*work.sources, *work.job.config.constants}
    fields = {field.column: name for name, field in work.importer.fields.items() if name in given}
    sets = [
        KeySet(key, "natural" if place else "key", _asked(work, key))
        for place, key in enumerate(work.importer.keys)
        if set(key) <= set(work.fields)
    ]
    known = {frozenset(one.fields) for one in sets}
    for index in work.target.unique:
        names = tuple(fields[column] for column in index.columns if column in fields)
        if len(names) == len(index.columns) and frozenset(names) not in known:
            sets.append(KeySet(names, "unique", _asked(work, names)))
    sets += [
        KeySet(tuple(fields[column] for column in index.columns), "unique", index)
        for index in work.target.odd_unique
        if set(index.columns) <= set(fields)
    ]
    if work.importer.once:
        sets.append(KeySet(tuple(work.sources), "content"))
    return sets


def _asked(work: Work, names: tuple[str, ...]) -> Sameness | None:
    """What to ask PostgreSQL about fields whose columns may be equal where our values are not."""
    fields = [work.importer.fields[name] for name in names]
    if all(_equal_alike(field, work.target.columns[field.column]) for field in fields):
        return None
    columns = [field.column for field in fields]
    return Sameness(name="", columns=columns, parts=[Identifier(column).as_string() for column in columns])


def _equal_alike(field: Field, column: TargetColumn) -> bool:
    exact = isinstance(field, _EQUAL_ALIKE.get(column.base, Choice if column.labels else ()))
    if isinstance(field, Decimal) and field.exact:  # a text: 1.5 and 1.50 are two
        return False
    rounded = column.base.startswith("timestamp") and column.scale is not None
    return exact and column.bitwise and not rounded


def decide_duplicates(database: Database, connection: Connection[Any], work: Work, *, workers: int) -> None:
    """Find the rows that lose, and keep them. Doing it again gives the same."""
    sets = key_sets(work)
    connection.execute("DELETE FROM rowcall.duplicate WHERE job_id = %s", [work.job.id])
    if not sets or not work.job.row_count:
        return
    hashed = [one for one in sets if one.told is None]
    if _borrows_keys(work):
        staging.prepare(connection, work.layout)
    with tempfile.TemporaryDirectory(prefix="rowcall-keys-") as folder:
        hashes = Hashes.of(Path(folder), work.job.row_count)
        if hashed:
            _hash_all(database, connection, work, hashed, hashes, workers)
        for one in sets:
            found = _told_alike(connection, work, one, one.told) if one.told else hashes.repeated(hashed.index(one))
            for alike in found:
                if alike.height:
                    _settle(connection, work, one, alike)


def decide_again(
    connection: Connection[Any], work: Work, numbers: Sequence[int], fresh: Sequence[int], *, asking: bool = True
) -> None:
    """Decide which of some rows, given in order, lose against others of them.

    Of the `fresh` ones what was decided before is forgotten: they were corrected, or the one that they lost against
    was. Not `asking`, rows with values that somebody has to be asked about are not good.
    """
    with connection.transaction():
        connection.execute(query("forget_duplicates"), {"id": work.job.id, "numbers": list(fresh)})
        for one in key_sets(work) if len(numbers) > 1 else ():
            values = _values(connection, work, [one], partial(numbered, connection, work, numbers))
            alike_keys = [_whole_keys(work, one, values).select("number")]
            found = _told(connection, work, one, one.told, [values]) if one.told else alike_keys
            for alike in found:
                if alike.height:
                    _settle(connection, work, one, alike, asking=asking)


def same_as(connection: Connection[Any], work: Work, numbers: Sequence[int]) -> set[int]:
    """These rows, given in order, and all of the file that share a key with any of them, good or not."""
    sets, found = key_sets(work), {*numbers}
    hashed = [one for one in sets if one.told is None]
    if _borrows_keys(work):
        staging.prepare(connection, work.layout)
    if hashed:
        wanted = _values(connection, work, hashed, partial(numbered, connection, work, numbers))
        for batch in all_batches(connection, work.job.id):
            values = _key_values(connection, work, hashed, batch)
            for one in hashed:
                whole, keys = (_whole_keys(work, one, some) for some in (values, wanted))
                found.update(whole.join(keys, on=one.fields, how="semi", nulls_equal=True)["number"])
    for one in sets:
        for alike in _told_alike(connection, work, one, one.told) if one.told else ():
            meant = alike.filter(pl.col("number").is_in(numbers))
            found.update(alike.join(meant, on="alike", how="semi")["number"])
    return found


# --------------------------------------------------------------------------------- which rows might be equal


def _hash_all(
    database: Database,
    connection: Connection[Any],
    work: Work,
    sets: Sequence[KeySet],
    hashes: Hashes,
    workers: int,
) -> None:
    """Keep the hash of each row's keys."""
    batches = all_batches(connection, work.job.id)
    pool = min(workers, len(batches))

    def share(connection: Connection[Any], thread: int) -> None:
        for batch in batches[thread::pool]:
            values = _key_values(connection, work, sets, batch)
            for kind, one in enumerate(sets):
                whole = _whole_keys(work, one, values)
                hashes.add(kind, thread, whole.select(pl.struct(one.fields).hash()).to_series(), whole["number"])

    def share_apart(thread: int) -> None:
        with database.reconnect("keys") as own:
            if _borrows_keys(work):
                staging.prepare(own, work.layout)
            share(own, thread)

    if pool == 1:
        share(connection, 0)
        return
    with ThreadPoolExecutor(pool) as executor:
        list(executor.map(share_apart, range(pool)))


def _whole_keys(work: Work, one: KeySet, values: pl.DataFrame) -> pl.DataFrame:
    return values.filter(_without_key(work)) if one.kind == "content" else values.drop_nulls(list(one.fields))


def _key_values(connection: Connection[Any], work: Work, sets: Sequence[KeySet], batch: RowBatch) -> pl.DataFrame:
    return _values(connection, work, sets, partial(rows_of, connection, work, batch))


def _values(
    connection: Connection[Any],
    work: Work,
    sets: Sequence[KeySet],
    read: Callable[[Sources], pl.DataFrame],
) -> pl.DataFrame:
    """The values of the fields that are keys, as they will be written; null where they can't be read."""
    names = {name for one in sets for name in one.fields}
    if any(one.kind in ("key", "content") for one in sets):
        names.update(*_matched_by(work))
    values = values_of(connection, work, names, read(needed_for(work, names)))
    return _known(connection, work, values) if any(one.kind == "key" for one in sets) else values


def _whole(key: Sequence[str]) -> pl.Expr:
    return pl.all_horizontal(pl.col(name).is_not_null() for name in key)


def _without_key(work: Work) -> pl.Expr:
    """Whether a row has none of the importer's keys."""
    return ~pl.any_horizontal(pl.lit(False), *(_whole(key) for key in _matched_by(work)))


def _matched_by(work: Work) -> list[tuple[str, ...]]:
    """The importer's keys that rows bring."""
    return [key for key in work.importer.keys if set(key) <= set(work.fields)]


def _borrows_keys(work: Work) -> bool:
    """Whether rows without a key may mean a row of the target that others name by it."""
    return len(_matched_by(work)) > 1 and work.layout.on_match in ("update", "version")


def _known(connection: Connection[Any], work: Work, values: pl.DataFrame) -> pl.DataFrame:
    """The rows, those without a key with the one that the target's row has by their natural key."""
    if not _borrows_keys(work):
        return values
    key, natural = _matched_by(work)
    unknown = values.filter(~_whole(key) & _whole(natural))
    if not unknown.height or not staging.has_rows(connection, work.target):
        return values
    columns = {name: work.importer.fields[name].column for name in natural}
    rows = unknown.select(pl.col("number").alias("rowcall_number"), *(pl.col(n).alias(c) for n, c in columns.items()))
    found = matching.keys_by(connection, work.layout, rows)
    typed = [_typed(work, name, found[work.importer.fields[name].column]) for name in key]
    keys = as_written(work, pl.DataFrame([found["rowcall_number"].alias("number"), *typed]))
    return values.update(keys.cast({name: values.schema[name] for name in key}), on="number")


def _typed(work: Work, name: str, texts: pl.Series) -> pl.Series:
    return (texts if name in work.lookups else work.importer.fields[name].read(texts)).alias(name)


def _told_alike(connection: Connection[Any], work: Work, one: KeySet, told: Sameness) -> Iterator[pl.DataFrame]:
    """The rows of the file that PostgreSQL takes for the same."""
    batches = all_batches(connection, work.job.id)
    return _told(connection, work, one, told, (_key_values(connection, work, [one], batch) for batch in batches))


def _told(
    connection: Connection[Any], work: Work, one: KeySet, told: Sameness, pieces: Iterable[pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    columns = {name: work.importer.fields[name].column for name in one.fields}
    sameness.prepare(connection, work.target, list(columns.values()))
    for values in pieces:
        created = [name for name in work.creating if name in one.fields]  # no key yet that PostgreSQL could compare
        values = values.with_columns(
            pl.when(~pl.col(name).str.starts_with(TO_CREATE)).then(pl.col(name)).alias(name) for name in created
        )
        sameness.add(connection, values.select("number", *columns).rename({"number": "rowcall_number", **columns}))
    # where an expression fails on a value, that row will fail by it, and the others stay undecided
    with suppress(psycopg.DataError):
        yield from sameness.repeated(connection, told)
    sameness.drop(connection)


# ---------------------------------------------------------------------------------------------- which one counts


def _settle(connection: Connection[Any], work: Work, one: KeySet, alike: pl.DataFrame, *, asking: bool = True) -> None:
    """Among the good rows with equal keys, one counts; the others are kept with the number of the one that does."""
    good = pl.concat(list(_good(connection, work, one, np.sort(alike["number"].to_numpy()), asking=asking)))
    if not good.height:
        return
    by = "alike" if one.told else "key"
    groups = (
        good.join(alike, on="number", maintain_order="left")
        .group_by(by, maintain_order=True)
        .agg(pl.col("number").alias("numbers"), pl.col("keyed").all().alias("all_keyed"))
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
    if not lost.height:
        return
    names = pl.lit(pl.Series([_named(work, one)], dtype=pl.List(pl.String)))
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


def _named(work: Work, one: KeySet) -> list[str]:
    """What to say that two rows have in common."""
    if one.kind == "content":
        return []
    about = one.told.about if one.told else []
    return [name for name in one.fields if not about or work.importer.fields[name].column in about]


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
    connection: Connection[Any], work: Work, one: KeySet, numbers: npt.NDArray[np.int64], *, asking: bool
) -> Iterator[pl.DataFrame]:
    """The rows that can go to the target and have not lost yet, with their values of the key."""
    for start in range(0, len(numbers), _JUDGED):
        some = numbers[start : start + _JUDGED].tolist()
        rows = numbered(connection, work, some)
        # what is looked for in vain has no value yet: rows can't be compared by it
        hopeful = set(one.fields).isdisjoint(work.own_lookups)
        good = as_written(work, judge_rows(connection, work, rows, NO_OUTCOMES, hopeful=hopeful, asking=asking).good)
        lost = connection.execute(
            "SELECT row_number FROM rowcall.duplicate "
            "WHERE job_id = %s AND row_number = ANY(%s) AND winner <> row_number",
            [work.job.id, some],
        ).fetchall()
        if lost:
            good = good.filter(~pl.col("number").is_in([number for (number,) in lost]))
        key = work.importer.keys[0] if work.importer.keys else ()
        has_key = _whole(key) if key and set(key) <= set(good.columns) else pl.lit(False)
        keyed = pl.col("number").is_in(good.filter(has_key)["number"].implode())
        known = _known(connection, work, good) if one.kind == "key" else good
        yield known.select("number", pl.struct(one.fields).alias("key"), keyed.alias("keyed"))
