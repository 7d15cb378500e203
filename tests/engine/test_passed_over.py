"""Of rows with equal keys, the next best one counts where the one that counted is refused."""

from typing import Any

import pytest

from rowcall import Fail, Importer, Integer, Skip, Text, Update
from rowcall.store.db import Database

from .importing import declared, run_import, sql
from .previewing import preview, submit

TABLES = """
    CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1), (2);
    CREATE TABLE t (id int PRIMARY KEY, p int REFERENCES p, name text UNIQUE CHECK (name <> 'BAD'))
"""
FIELDS: dict[str, Any] = {"id": Integer(required=True), "p": Integer(), "name_": Text()}
IMPORTERS: dict[str, type[Importer]] = {
    "skip": declared("t", key="id", on_match=Skip(), **FIELDS),
    "fail": declared("t", key="id", on_match=Fail(), **FIELDS),
    "update": declared("t", key="id", on_match=Update(), **FIELDS),
    "once": declared("t", key="id", once=True, **FIELDS),
}
FILE = "id,p,name\n1,99,a\n1,1,b\n1,2,c\n2,1,BAD\n2,99,d\n3,1,e\n3,99,f\n4,99,g\n5,1,g\n6,1,h\n6,2,i\n"
FIRST = ["99", "created", "lost", "BAD", "99", "created", "lost", "99", "unique", "created", "lost"]
LAST = ["99", "lost", "created", "BAD", "99", "created", "99", "99", "unique", "lost", "created"]
TOLD = {
    "99": "failed FOREIGN_KEY_VIOLATION",
    "BAD": "failed CHECK_VIOLATION",
    "created": "created",
    "unique": "failed DUPLICATE_IN_FILE",
}


def expected(kind: str) -> list[str]:
    lost = "failed DUPLICATE_IN_FILE" if kind == "fail" else "skipped DUPLICATE_IN_FILE"
    told = [{**TOLD, "lost": lost}[word] for word in (LAST if kind == "update" else FIRST)]
    if kind == "update":  # the last one, which is refused, leaves the first of its equals to be written
        told[0] = "skipped DUPLICATE_IN_FILE"
    return told


@pytest.mark.parametrize("kind", IMPORTERS)
@pytest.mark.parametrize(("batch_rows", "workers"), [(1, 3), (1_000, 1)])
def test_the_next_best_row_counts(database: Database, kind: str, batch_rows: int, workers: int) -> None:
    sql(database, TABLES)
    result = run_import(database, IMPORTERS[kind], FILE, batch_rows=batch_rows, workers=workers)
    assert result.told == expected(kind)
    names = [("c",), ("e",), ("i",)] if kind == "update" else [("b",), ("e",), ("h",)]
    assert sql(database, "SELECT name FROM t ORDER BY id") == names
    lost = {number: found.issues[0].metadata or {} for number, found in result.outcomes.items() if _lost(found)}
    winners = {number: about.get("row") for number, about in lost.items()}
    assert winners == ({1: 3, 2: 3, 9: 8, 10: 11} if kind == "update" else {3: 2, 7: 6, 9: 8, 11: 10})


def _lost(found: Any) -> bool:
    return any(issue.code == "DUPLICATE_IN_FILE" for issue in found.issues)


@pytest.mark.parametrize("kind", IMPORTERS)
@pytest.mark.parametrize("batch_rows", [2, 1_000])
def test_a_preview_tells_it_and_the_commit_does_it(database: Database, kind: str, batch_rows: int) -> None:
    sql(database, TABLES)
    planned = preview(database, IMPORTERS[kind], FILE, batch_rows=batch_rows)
    assert planned.told == expected(kind)
    assert submit(database, IMPORTERS[kind], planned.job).told == planned.told


def test_a_row_that_is_there_already_makes_no_room(database: Database) -> None:
    sql(database, TABLES)
    sql(database, "INSERT INTO t VALUES (1, 1, 'z')")
    result = run_import(database, IMPORTERS["fail"], "id,p,name\n1,1,a\n1,1,b\n")
    assert result.told == ["failed ALREADY_EXISTS", "failed DUPLICATE_IN_FILE"]


@pytest.mark.parametrize(
    ("text", "told", "there"),
    [
        (  # 13, which the table would give it, is taken
            "id,r\n4,130\n4,\n5,7\n",
            ["created", "failed UNIQUE_VIOLATION", "updated"],
            [(1, 13), (4, 130), (5, 7)],
        ),
        (
            "id,r\n4,130\n4,6\n5,7\n5,13\n",
            ["created", "failed UNIQUE_VIOLATION", "updated", "failed UNIQUE_VIOLATION"],
            [(1, 13), (4, 130), (5, 7)],
        ),
    ],
)
@pytest.mark.parametrize(("batch_rows", "workers"), [(1, 3), (2, 1), (1_000, 1)])
def test_a_row_that_was_passed_over_does_not_come_back(
    database: Database, text: str, told: list[str], there: list[tuple[int, int]], batch_rows: int, workers: int
) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, r int NOT NULL DEFAULT 13 UNIQUE)")
    sql(database, "INSERT INTO t VALUES (1, 13), (5, 6)")
    importer = declared("t", key="id", on_match=Update(), id=Integer(required=True), r=Integer())
    planned = preview(database, importer, text, batch_rows=batch_rows)
    assert planned.told == told
    assert run_import(database, importer, text, dry_run=True, batch_rows=batch_rows, workers=workers).told == told
    assert submit(database, importer, planned.job).told == told
    assert sql(database, "SELECT * FROM t ORDER BY id") == there
