"""Whether all that a target could say to rows can be asked of it beforehand, so that a preview need not write them."""

import re

import polars as pl

from rowcall.engine.work import Work

_MOST_BYTES = 2_000
"""Of a row's texts together: the entry of an index can't be longer than 2,704 bytes."""
_SAFE_DEFAULT = re.compile(
    r"nextval\('[^']+'::regclass\)|now\(\)|CURRENT_(TIMESTAMP|DATE|USER)|gen_random_uuid\(\)|uuidv[47]\(\)"
    r"|true|false|\(?-?\d+(\.\d+)?\)?(::[a-z ]+)?|NULL(::.*)?|'[^']*'(::[a-z ]+(\(\d+\))?(\[\])?)?"
)


def is_foreseeable(work: Work) -> bool:
    """Whether constraints alone decide, and each of them can be asked about the rows."""
    layout, target = work.layout, work.target
    if not target.plain or not layout.columns or layout.version or layout.keyed or work.creating:
        return False
    staged, updates = {*layout.staged}, layout.on_match == "update"
    if updates and not target.referred_to.isdisjoint(layout.compared):
        return False
    others = [column for name, column in target.columns.items() if name not in staged]
    if not all(column.default is None or _SAFE_DEFAULT.fullmatch(column.default) for column in others):
        return False
    return (
        all(key.seen and len(key.columns) == 1 and {*key.columns} <= {*layout.columns} for key in target.foreign)
        and all(index.immediate and _told(work, index.columns) for index in target.unique)
        and all(check.columns and _told(work, check.columns) for check in target.checks)
    )


def _told(work: Work, columns: list[str]) -> bool:
    """Whether the values that these columns will have are all in the staged rows, if they are written."""
    layout = work.layout
    known = (
        {*layout.compared, *(layout.keys[0] if layout.keys else ())} if layout.on_match == "update" else layout.staged
    )
    if layout.on_match == "update" and {*known}.isdisjoint(columns):
        known = layout.staged  # of rows that are there, they stay as they are
    return {*known} >= {*columns}


def are_foreseeable(work: Work, rows: pl.DataFrame) -> bool:
    """Whether that holds for these rows, which have texts that PostgreSQL reads."""
    keeps = [name for name in work.layout.compared if work.target.columns[name].not_null]
    if work.layout.on_match == "update" and any(rows[name].null_count() for name in keeps):
        return False  # a blank leaves the value that is there
    texts = [pl.col(name).str.len_bytes().fill_null(0) for name, dtype in rows.schema.items() if dtype == pl.String]
    longest = rows.select(pl.sum_horizontal(texts).max()).item() if texts else 0
    return (longest or 0) <= _MOST_BYTES
