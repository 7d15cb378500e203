"""Pages of rows: whatever is asked for, they have what looking through all rows would find (C8, A15)."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from rowcall import Flow, Integer, Text, Update
from rowcall.engine import moves
from rowcall.model import State
from rowcall.store.db import Database
from rowcall.store.grid import Page, RowResult, Wanted, Whose, page_of

from .editing import Desk
from .importing import declared, sql

TABLE = """
    CREATE TABLE t (id int PRIMARY KEY, name text, size int CHECK (size < 100));
    INSERT INTO t SELECT n, 'Ann ' || n, n FROM generate_series(1, 30) n
"""
IMPORTER = declared(
    "t",
    key="id",
    on_match=Update(),
    flow=Flow(preview=True),
    id=Integer(required=True),
    name_=Text(max_length=8),
    size=Integer(max=90),
)


def line(number: int) -> str:
    """Rows that are updated, stay as they are, are created, and fail for one thing, another or two."""
    name = {0: f"Ann {number}", 1: f"BEN {number}", 2: "much too long"}[number % 3]
    return f"{number},{name},{number + 50 if number % 5 == 0 else number}"


FILE = "id,name,size\n" + "\n".join(line(number) for number in (*range(1, 61), 7)) + "\n"


def all_pages(database: Database, job: Any, wanted: Wanted, most: int) -> Iterator[RowResult]:
    page = Page([], None)
    while True:
        with database.connect() as connection:
            page = page_of(connection, Whose(job=job.id), replace(wanted, most=most, after=page.next))
        assert len(page.rows) <= most
        yield from (row for _, row in page.rows)
        if page.next is None:
            return


def is_wanted(row: RowResult, wanted: Wanted) -> bool:
    issues = row.issues or []
    text = (wanted.text or "").lower()
    told = [
        issue
        for issue in issues
        if wanted.code in (None, issue["code"])
        and (wanted.field is None or wanted.field in (issue.get("field") or "").split(", "))
    ]
    return (
        (not wanted.statuses or row.status in wanted.statuses)
        and (bool(told) or not (wanted.code or wanted.field))
        and any(text in (cell or "").lower() for cell in row.cells)
        and (row.original is not None or not wanted.edited)
    )


STATUSES = [(), ("failed",), ("created",), ("unchanged", "updated"), ("reverted",), ("failed", "pending")]
ISSUES = [(None, None), ("TOO_LONG", None), (None, "size"), ("TOO_LARGE", "size")]


def shown_alike(database: Database, job: Any) -> set[str]:
    """Hold each filter against all rows; returns the statuses that there are."""
    every = list(all_pages(database, job, Wanted(), 1_000))
    assert [row.row for row in every] == list(range(1, 62))
    for statuses, (code, field), text, edited in product(STATUSES, ISSUES, (None, "ben"), (False, True)):
        wanted = Wanted(statuses=statuses, code=code, field=field, text=text, edited=edited)
        expected = [row for row in every if is_wanted(row, wanted)]
        for sort, most in (("row", 4), ("-row", 1_000)):
            found = list(all_pages(database, job, replace(wanted, sort=sort), most))
            assert found == (expected if sort == "row" else expected[::-1]), (wanted, sort)
    return {row.status for row in every}


def test_every_filter_finds_what_looking_through_all_rows_finds(database: Database, tmp_path: Path) -> None:
    sql(database, TABLE)
    desk = Desk(database, tmp_path, IMPORTER, FILE, batch=25)
    assert desk.job.state is State.VALIDATED
    assert shown_alike(database, desk.job) == {"created", "updated", "unchanged", "failed", "skipped"}
    desk.edit(2, name="Ben two")
    desk.edit(45, name="nobody")
    assert "created" in shown_alike(database, desk.job)
    desk.submit()
    desk.edit(5, name="Ben five")
    assert "failed" in shown_alike(database, desk.job)
    with database.connect() as connection, connection.transaction():
        wanted = Wanted(statuses=("created",))
        desk.job = moves.undo(connection, desk.job, IMPORTER, wanted, partial=True, account="ann")
    desk.run()
    assert shown_alike(database, desk.job) >= {"reverted", "failed", "updated"}
