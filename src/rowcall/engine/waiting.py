"""Rows that look for others in their own target, by what the same file changes: they wait until it is changed.

A boss is looked up by name, and the file renames people. What such a look-up finds would depend on which of the rows is
committed first. So before anything is committed, everything that rows of the file are found by, before and after, is
gathered; a row whose text fits some of it is left out at first. When all others are in, those are let go whose texts
fit nothing that is still to come, again and again: they find what is there at the end. Rows that wait for each other
are let go together.

A text that fits nothing yet and one row of the file only needs no such care: it is found or not found, and rows that
find nothing are tried again (second_look).
"""

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.judge import numbered, rows_of
from rowcall.engine.resolve import asking, compared_as_stored, may_find, resolve, with_scopes
from rowcall.engine.typed import needed_for, texts_of, values_of
from rowcall.engine.work import Work
from rowcall.importer import ItemImporter, WholeFileImporter
from rowcall.model import Code
from rowcall.store import changing, matching, staging
from rowcall.store.queries import query
from rowcall.store.rows import RowBatch, Sources, all_batches

_AT_ONCE = 5_000
Piece = Callable[[Sources], pl.DataFrame]
"""Reads some rows of the file: the texts from these sources, under their names."""


def decide_waiting(connection: Connection[Any], work: Work) -> None:
    """Find the rows that have to wait, and keep them. Doing it again gives the same."""
    connection.execute(query("forget_waiting"), {"id": work.job.id})
    if not _may_wait(work):
        return
    staging.prepare(connection, work.layout)
    if _gather(connection, work, _all_rows(connection, work)) or _unforeseeable(work, _made_of(work)):
        for piece in _all_rows(connection, work):
            numbers = _unsettled(connection, work, piece).to_list()
            connection.execute(query("have_wait"), {"id": work.job.id, "numbers": numbers})
    changing.drop(connection)


def let_go(connection: Connection[Any], work: Work, failed: Iterable[list[int]]) -> bool:
    """Let go of rows that nobody who is not in yet can matter to, and say whether there were any that waited.

    `failed` are those that don't wait and may still come in. If all would have to wait for them, they don't count; nor
    do others that wait, in the end.
    """
    if not some_wait(connection, work):
        return False
    for failed_too in (failed, ()):
        numbers = chain(failed_too, _those_who_wait(connection, work))
        _gather(connection, work, (_numbered(connection, work, some) for some in numbers))
        if _let_go(connection, work):
            return True
    connection.execute(query("forget_waiting"), {"id": work.job.id})
    return True


def some_wait(connection: Connection[Any], work: Work) -> bool:
    """Whether any row waits."""
    return any(_those_who_wait(connection, work))


def _let_go(connection: Connection[Any], work: Work) -> int:
    """How many rows need not wait any more."""
    gone = 0
    with connection.transaction():
        for numbers in _those_who_wait(connection, work):
            unsettled = _unsettled(connection, work, _numbered(connection, work, numbers))
            free = pl.Series(numbers).filter(~pl.Series(numbers).is_in(unsettled.implode())).to_list()
            gone += connection.execute(query("let_go"), {"id": work.job.id, "numbers": free}).rowcount
    return gone


def _those_who_wait(connection: Connection[Any], work: Work) -> Iterator[list[int]]:
    given = {"id": work.job.id, "after": 0, "most": _AT_ONCE}
    while numbers := [number for (number,) in connection.execute(query("rows_that_wait"), given)]:
        yield numbers
        given["after"] = numbers[-1]


def _numbered(connection: Connection[Any], work: Work, numbers: list[int]) -> Piece:
    def read(sources: Sources) -> pl.DataFrame:
        return numbered(connection, work, numbers, sources)

    return read


def _all_rows(connection: Connection[Any], work: Work) -> Iterator[Piece]:
    """All rows of the file, batch by batch, small ones together."""
    together: list[RowBatch] = []
    batches = all_batches(connection, work.job.id)
    for batch in batches:
        together.append(batch)
        if sum(map(len, together)) >= _AT_ONCE or batch is batches[-1]:
            yield partial(_brought_in, connection, work, together)
            together = []


def _brought_in(connection: Connection[Any], work: Work, batches: list[RowBatch], sources: Sources) -> pl.DataFrame:
    return pl.concat(rows_of(connection, work, batch, sources) for batch in batches)


# ---------------------------------------------------------------------------------------- what rows are found by


def _found_by(work: Work) -> list[str]:
    """The columns by which look-ups find rows of their own target."""
    lookups = [work.lookups[name] for name in work.own_lookups]
    return sorted({column for lookup in lookups for column in (*lookup.by, lookup.within) if column})


def _made_of(work: Work) -> set[str]:
    """The same, and the columns of which they keep the value."""
    return {*_found_by(work), *(work.lookups[name].to for name in work.own_lookups)}


def _may_wait(work: Work) -> bool:
    """Whether the file brings what its own look-ups go by."""
    if issubclass(work.importer, ItemImporter | WholeFileImporter):  # they write for themselves
        return False
    return _unforeseeable(work, _made_of(work)) or not _made_of(work).isdisjoint(work.layout.columns)


def _unforeseeable(work: Work, columns: Set[str]) -> bool:
    """Whether the target makes a value of one of these columns out of others."""
    return any(column.generated for name, column in work.target.columns.items() if name in columns)


def _gather(connection: Connection[Any], work: Work, pieces: Iterable[Piece]) -> bool:
    """Gather what rows change, of what others are found by; whether there is any.

    A row counts although it may fail: then others wait for nothing.
    """
    columns = _found_by(work)
    needed = _made_of(work).union(*work.layout.keys)
    layout = replace(work.layout, columns=tuple(name for name in work.layout.columns if name in needed))
    fields = {name: work.importer.fields[name].column for name in work.fields}
    names = {name for name, column in fields.items() if column in needed}
    changing.prepare(connection, work.target, columns)
    for piece in pieces:
        values = values_of(connection, work, names, piece(needed_for(work, names)))
        values = values.filter(~pl.col("number").is_in(_lost(connection, work, values)))
        with connection.transaction():
            rows = values.rename({"number": "rowcall_number", **{name: fields[name] for name in names}})
            staging.load(connection, layout, rows)
            matching.match(connection, layout)
            changing.add(connection, layout, columns)
    by = {column for name in work.own_lookups for column in work.lookups[name].by}
    return changing.index(connection, [name for name in by if compared_as_stored(work.target.columns[name].base)])


def _lost(connection: Connection[Any], work: Work, rows: pl.DataFrame) -> list[int]:
    """Those of the rows that lose against another row of the file, and are never written."""
    given = {"id": work.job.id, "first": rows["number"].min(), "last": rows["number"].max()}
    return [number for number, *_ in connection.execute(query("batch_duplicates"), given)]


# -------------------------------------------------------------------------------------- who is concerned by that


def _unsettled(connection: Connection[Any], work: Work, piece: Piece) -> pl.Series:
    """The numbers of rows whose look-ups depend on when they are made, if what was gathered comes in meanwhile."""
    names = set(work.own_lookups)
    texts = texts_of(work, names, piece(needed_for(work, names)))
    return pl.concat(_unsettled_by(connection, work, name, texts) for name in work.own_lookups).unique()


def _unsettled_by(connection: Connection[Any], work: Work, name: str, texts: pl.DataFrame) -> pl.Series:
    lookup = work.lookups[name]
    if _unforeseeable(work, {*lookup.by, lookup.to}):  # whatever is looked for may come or go
        return asking(name, lookup, texts).filter(pl.col(name).is_not_null())["number"]
    scoped, _ = _looked_up(connection, work, {lookup.within} if lookup.within else set(), texts)
    found = may_find(connection, changing.changing(work.target), name, lookup, scoped)
    several = found.filter(pl.col("_keys") > 1)["number"]
    one = found.filter(pl.col("_keys") == 1, pl.col("_key") != pl.col("number"))["number"]  # its own change comes later
    if one.len() and not _must_be_known(work, name):
        _, issues = _looked_up(connection, work, {name}, texts.filter(pl.col("number").is_in(one.implode())))
        missed = issues.filter(pl.col("field") == name, pl.col("code") == Code.NOT_FOUND.value)["number"]
        one = one.filter(~one.is_in(missed.implode()))
    return pl.concat([several, one])


def _looked_up(
    connection: Connection[Any], work: Work, names: set[str], texts: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    needed = with_scopes(work.lookups, names)
    lookups = {name: lookup for name, lookup in work.lookups.items() if name in needed}
    found = resolve(connection, lookups, texts, work.answers)
    return found.rows, found.issues


def _must_be_known(work: Work, name: str) -> bool:
    """Whether what a row changes can't be told until this look-up is made: it counts for which row it is.

    Nor which of two rows gets a value that only one can have: that would be the one whose batch comes later.
    """
    column = work.importer.fields[name].column
    unique = (one.columns for one in (*work.target.unique, *work.target.odd_unique))
    return bool(work.layout.version) or column in _made_of(work).union(*work.layout.keys, *unique)
