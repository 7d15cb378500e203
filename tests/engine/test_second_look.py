"""Rows that refer to rows of the same file come in, whatever the order and however the file is cut."""

from pathlib import Path

import pytest

from rowcall import Integer, Lookup, Text, Update
from rowcall.model import State
from rowcall.store.db import Database

from .editing import Desk
from .importing import declared, run_import, sql

PEOPLE = """
CREATE TABLE people (id int PRIMARY KEY, name text NOT NULL UNIQUE, boss_id int REFERENCES people)
"""
BY_ID = {"id": Integer(required=True), "name_": Text(), "boss_id": Integer()}
BY_NAME = {"id": Integer(required=True), "name_": Text(), "boss_id": Lookup("people", by="name")}


@pytest.mark.parametrize("batch_rows", [1, 100])
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (BY_ID, "id,name,boss_id\n1,ann,2\n2,bob,3\n3,cy,4\n4,dan,\n5,eve,99\n6,fay,5\n7,gus,7\n"),
        (BY_NAME, "id,name,boss_id\n1,ann,bob\n2,bob,cy\n3,cy,dan\n4,dan,\n5,eve,nobody\n6,fay,eve\n7,gus,ann\n"),
    ],
)
def test_the_order_of_rows_makes_no_difference(
    database: Database, fields: dict[str, object], text: str, dry_run: bool, batch_rows: int
) -> None:
    importer = declared("people", key="id", on_match=Update(), **fields)
    with database.connect() as connection:
        connection.execute(PEOPLE)
    result = run_import(database, importer, text, dry_run=dry_run, batch_rows=batch_rows)
    assert [outcome.split()[0] for outcome in result.told] == [
        *("created", "created", "created", "created", "failed", "failed", "created"),
    ]
    assert result.job.state is (State.VALIDATED if dry_run else State.COMPLETED_WITH_ERRORS)
    assert len(result.rows) == (0 if dry_run else 5)


def test_all_or_nothing_sees_rows_of_the_same_file(database: Database) -> None:
    importer = declared("people", key="id", atomic=True, **BY_ID)
    with database.connect() as connection:
        connection.execute(PEOPLE)
    result = run_import(database, importer, "id,name,boss_id\n1,ann,2\n2,bob,3\n3,cy,\n", batch_rows=1)
    assert result.job.state is State.COMPLETED
    assert result.values("id", "boss_id") == [(1, 2), (2, 3), (3, None)]


MOVES = {
    "to one that gives it up": ("1,c\n2,a\n", ["updated", "updated"], [(1, "c"), (2, "a")]),
    "before it is given up": ("2,a\n1,c\n", ["updated", "updated"], [(1, "c"), (2, "a")]),
    "to a new row": ("3,b\n2,a\n1,c\n", ["created", "updated", "updated"], [(1, "c"), (2, "a"), (3, "b")]),
    "in a circle": ("1,b\n2,a\n", ["failed", "failed"], [(1, "a"), (2, "b")]),
    "from one that fails": ("2,a\n1,\n", ["failed", "failed"], [(1, "a"), (2, "b")]),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(("batch_rows", "workers"), [(1, 3), (100, 1)])
def test_unique_values_move_from_row_to_row(
    database: Database, name: str, dry_run: bool, batch_rows: int, workers: int
) -> None:
    text, told, rows = MOVES[name]
    with database.connect() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL UNIQUE)")
        connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    importer = declared("t", key="id", on_match=Update(), id=Integer(required=True), code=Text(required=True))
    result = run_import(database, importer, "id,code\n" + text, dry_run=dry_run, batch_rows=batch_rows, workers=workers)
    assert [outcome.split()[0] for outcome in result.told] == told
    assert result.values("id", "code") == ([(1, "a"), (2, "b")] if dry_run else rows)


@pytest.mark.parametrize("batch_rows", [1, 100])
@pytest.mark.parametrize("by", ["id", "name"])
def test_row_may_refer_to_itself(database: Database, by: str, batch_rows: int) -> None:
    with database.connect() as connection:
        connection.execute(PEOPLE)
    fields = {"id": Integer(required=True), "name_": Text(), "boss_id": Lookup("people", by=by)}
    importer = declared("people", key="id", on_match=Update(), **fields)
    values = {"id": "1,ann,1\n2,bob,1\n3,cy,9\n", "name": "1,ann,ann\n2,bob,ann\n3,cy,dan\n"}[by]
    result = run_import(database, importer, "id,name,boss_id\n" + values, batch_rows=batch_rows)
    assert result.told == ["created", "created", "failed NOT_FOUND"]
    assert result.values("id", "boss_id") == [(1, 1), (2, 1)]


def test_row_that_is_looked_at_again_in_each_attempt_counts_its_attempts(database: Database, tmp_path: Path) -> None:
    sql(database, PEOPLE)
    importer = declared("people", key="id", on_match=Update(), **BY_ID)
    desk = Desk(database, tmp_path, importer, "id,name,boss_id\n1,ann,7\n2,bob,\n")
    for _ in range(2):
        assert desk.again("failed").told == ["failed FOREIGN_KEY_VIOLATION", "created"]
    sql(database, "INSERT INTO people VALUES (7, 'gus')")
    assert desk.again("failed").job.state is State.COMPLETED
    attempts = "SELECT row_number, attempt FROM rowcall.%s ORDER BY 1, 2"
    assert sql(database, attempts % "attempt") == [(1, 1), (1, 2), (1, 3)]
    assert sql(database, attempts % "outcome") == [(1, 4), (2, 1)]
