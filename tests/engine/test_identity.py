"""Columns that PostgreSQL numbers or makes: what is written to them, what is left to it."""

from typing import Any

import pytest

from rowcall import Final, Integer, Text, Update
from rowcall.store.db import Database

from .importing import declared, run_import, sql

BATCHES = pytest.mark.parametrize("batch_rows", [1, 2, 100])
ID: dict[str, Any] = {"id": Integer(required=True)}


@BATCHES
def test_update_leaves_an_identity_column_alone(database: Database, batch_rows: int) -> None:
    sql(
        database,
        "CREATE TABLE t (code text PRIMARY KEY, no int GENERATED ALWAYS AS IDENTITY, name text);"
        "INSERT INTO t (code, name) VALUES ('a', 'x'), ('b', 'y')",
    )
    importer = declared("t", key="code", on_match=Update(), code=Text(required=True), no=Integer(), name_=Text())
    result = run_import(database, importer, "code,no,name\na,7,new\nb,8,y\nc,9,z\n", batch_rows=batch_rows)
    assert result.told == ["updated", "unchanged", "created"]
    assert result.values("code", "no", "name") == [("a", 1, "new"), ("b", 2, "y"), ("c", 9, "z")]


@BATCHES
@pytest.mark.parametrize("refused", [True, False])
def test_key_that_is_always_an_identity_takes_the_numbers_of_the_file(
    database: Database, batch_rows: int, *, refused: bool
) -> None:
    sql(database, "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)")
    if refused:
        sql(database, "CREATE UNIQUE INDEX ON t (lower(name))")
        sql(database, "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (9, 'TAKEN')")
    importer = declared("t", key="id", on_match=Update(), **ID, name_=Text())
    result = run_import(database, importer, "id,name\n5,a\n6,taken\n7,c\n", batch_rows=batch_rows)
    expected = ["created", "failed UNIQUE_VIOLATION", "created"] if refused else ["created"] * 3
    assert result.told == expected
    result = run_import(database, importer, "id,name\n5,b\n7,c\n8,d\n", batch_rows=batch_rows)
    assert result.told == ["updated", "unchanged", "created"]


@BATCHES
def test_generated_columns_are_left_to_the_database(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, name text, low text GENERATED ALWAYS AS (lower(name)) STORED)")
    importer = declared("t", key="id", on_match=Update(), **ID, name_=Text())
    assert run_import(database, importer, "id,name,low\n1,A,zz\n", batch_rows=batch_rows).told == ["created"]
    result = run_import(database, importer, "id,name,low\n1,B,zz\n2,C,zz\n", batch_rows=batch_rows)
    assert result.told == ["updated", "created"]
    assert result.values("id", "low") == [(1, "b"), (2, "c")]


def test_primary_key_that_is_generated_is_refused_at_once(database: Database) -> None:
    sql(database, "CREATE TABLE t (code text UNIQUE, low text GENERATED ALWAYS AS (lower(code)) STORED PRIMARY KEY)")
    with pytest.raises(Final, match="low"):
        run_import(database, declared("t", key="code", code=Text()), "code\nA\n")
