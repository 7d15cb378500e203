"""Numbers that some rows bring and others are given by a sequence: the sequence stays ahead of them.

PostgreSQL doesn't move a sequence when a row brings its own number. Later rows without one would then be given numbers
that are taken. So before rows are written, sequences are moved behind the largest number of the file.
"""

from contextlib import suppress
from typing import Any

import polars as pl
import psycopg
from psycopg import Connection

from rowcall.engine.judge import rows_of
from rowcall.engine.work import Work
from rowcall.importer import Integer
from rowcall.store import sequences
from rowcall.store.rows import all_batches


def keep_ahead(connection: Connection[Any], work: Work) -> None:
    """Move the target's sequences behind the numbers of the file, and of the target where drawing would meet them.

    A dry run moves only those that rows draw from.
    """
    fields = {field.column: name for name, field in work.importer.fields.items() if name in work.fields}
    for column in work.target.columns.values():
        if column.sequence is None or not any(index.columns[0] == column.name for index in work.target.unique):
            continue
        with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():  # who may not, leaves it
            _keep_ahead(connection, work, column.sequence, column.name, fields.get(column.name))


def _keep_ahead(connection: Connection[Any], work: Work, sequence: str, column: str, field: str | None) -> None:
    # a typo may not use up what numbers there are, nor hide the others
    largest, blank = _numbers(connection, work, field, most=sequences.standing_of(connection, sequence).reach)
    if largest is not None and (blank or not work.dry):
        sequences.catch_up(connection, sequence, largest)
    if blank and (taken := sequences.collides(connection, work.target, column, sequence, blank)):
        sequences.catch_up(connection, sequence, taken)


def _numbers(connection: Connection[Any], work: Work, name: str | None, *, most: int) -> tuple[int | None, int]:
    """The largest number up to `most` that the file gives in a field, and how many rows give none."""
    if name is None:
        return None, work.job.row_count or 0
    field = work.importer.fields[name]
    if name not in work.sources or name in work.job.config.constants or not isinstance(field, Integer):
        return None, 0
    field = field.read_as(work.readings[name], work.limits[name]) if name in work.readings else field
    largest: list[int] = []
    blank = 0
    for batch in all_batches(connection, work.job.id):
        texts = rows_of(connection, work, batch, {name: work.sources[name]}).select(field.clean()).to_series()
        numbers = field.read(texts).drop_nulls()
        largest += numbers.filter(numbers <= most).sort().tail(1).cast(pl.Int64).to_list()
        blank += texts.null_count()
    return max(largest, default=None), blank if field.default is None else 0
