"""Importers that take all rows of a file or none."""

from typing import Any

import pytest

from rowcall import Fail, Integer, Text, Update
from rowcall.model import State
from rowcall.store.db import Database

from .importing import declared, run_import, sql

TABLE = """
    CREATE TABLE t (id int PRIMARY KEY, code text UNIQUE CHECK (code <> 'BAD'));
    INSERT INTO t VALUES (1, 'a')
"""
FIELDS: dict[str, Any] = {"id": Integer(required=True), "code": Text()}
ATOMIC = declared("t", key="id", on_match=Update(), atomic=True, **FIELDS)
OTHERS = "skipped NOT_APPLIED"


@pytest.mark.parametrize("batch_rows", [1, 2, 1_000])
def test_failures_are_all_told_and_nothing_is_applied(database: Database, batch_rows: int) -> None:
    sql(database, TABLE)
    text = "id,code\n1,b\n2,BAD\n3,c\nx,d\n5,e\n5,f\n"
    result = run_import(database, ATOMIC, text, batch_rows=batch_rows)
    assert result.job.state is State.INVALID
    assert result.told == [
        OTHERS,
        "failed CHECK_VIOLATION",
        OTHERS,
        "failed INVALID_INTEGER",
        "skipped DUPLICATE_IN_FILE",
        OTHERS,
    ]
    assert (result.counts.failed, result.counts.skipped) == (2, 4)
    assert result.values("id", "code") == [(1, "a")]
    assert all(outcome.before is None and outcome.key is None for outcome in result.outcomes.values())


@pytest.mark.parametrize("batch_rows", [1, 1_000])
def test_good_file_is_applied_whole(database: Database, batch_rows: int) -> None:
    sql(database, TABLE)
    result = run_import(database, ATOMIC, "id,code\n1,b\n2,c\n3,d\n", batch_rows=batch_rows, workers=3)
    assert result.job.state is State.COMPLETED
    assert result.told == ["updated", "created", "created"]
    assert result.values("id", "code") == [(1, "b"), (2, "c"), (3, "d")]


def test_corrected_file_goes_through(database: Database) -> None:
    sql(database, TABLE)
    assert run_import(database, ATOMIC, "id,code\n2,b\n3,BAD\n").job.state is State.INVALID
    assert run_import(database, ATOMIC, "id,code\n2,b\n3,c\n").job.state is State.COMPLETED
    assert sql(database, "SELECT count(*) FROM t") == [(3,)]


def test_rows_that_exist_fail_the_whole_file_where_they_may_not(database: Database) -> None:
    sql(database, TABLE)
    importer = declared("t", key="id", on_match=Fail(), atomic=True, **FIELDS)
    result = run_import(database, importer, "id,code\n1,b\n2,c\n")
    assert (result.job.state, result.told) == (State.INVALID, ["failed ALREADY_EXISTS", OTHERS])


@pytest.mark.parametrize("batch_rows", [1, 1_000])
def test_rows_that_only_the_database_knows_to_collide_make_it_invalid(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE u (id int PRIMARY KEY, code text); ALTER TABLE u ADD EXCLUDE (lower(code) WITH =)")
    importer = declared("u", key="id", on_match=Update(), atomic=True, **FIELDS)
    result = run_import(database, importer, "id,code\n1,a\n2,b\n3,A\n", batch_rows=batch_rows)
    assert (result.job.state, result.told) == (State.INVALID, [OTHERS, OTHERS, "failed UNIQUE_VIOLATION"])
    assert result.rows == []
