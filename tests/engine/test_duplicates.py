"""Rows of a file that are the same thing twice, and rows that came before in another file."""

from typing import Any, LiteralString, cast

import pytest

from rowcall import Email, Fail, Integer, List, Skip, Text, Update, Uuid, Version
from rowcall.store.db import Database

from .importing import declared, run_import, sql

PEOPLE = """
    CREATE TABLE people (
        id int PRIMARY KEY, email text UNIQUE, area int, code text, amount int, CHECK (amount < 1000),
        UNIQUE (area, code));
"""
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "email": Email(),
    "area": Integer(),
    "code": Text(),
    "amount": Integer(max=100),
}
SAME = "failed DUPLICATE_IN_FILE"
LESS = "skipped DUPLICATE_IN_FILE"
SEEN = "skipped ALREADY_EXISTS"
BAD = "failed VALUE_REFUSED"


@pytest.mark.parametrize("batch_rows", [1, 1_000])
@pytest.mark.parametrize(
    ("on_match", "told", "amounts"),
    [
        (Skip(), ["created", LESS, LESS, "failed INVALID_INTEGER", "created"], [1, 5]),
        (Fail(), ["created", SAME, SAME, "failed INVALID_INTEGER", "created"], [1, 5]),
        (Update(), [LESS, LESS, "created", "failed INVALID_INTEGER", "created"], [3, 5]),
    ],
    ids=["skip", "fail", "update"],
)
def test_among_equal_keys_one_valid_row_counts(
    database: Database, on_match: Any, told: list[str], amounts: list[int], batch_rows: int
) -> None:
    sql(database, PEOPLE)
    importer = declared("people", key="id", on_match=on_match, **FIELDS)
    result = run_import(database, importer, "id,amount\n1,1\n01,2\n1,3\n1,x\n2,5\n", batch_rows=batch_rows)
    assert result.told == told
    assert result.values("amount") == amounts


def test_loser_is_told_who_won(database: Database) -> None:
    sql(database, PEOPLE)
    issue = run_import(database, declared("people", key="id", **FIELDS), "id\n7\n8\n7\n").issue(3)
    assert (issue.field, issue.value, issue.metadata) == ("id", "7", {"row": 1})
    assert issue.message == "Row 1 has the same id and comes first: the first one is taken."


def test_last_version_counts(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int, name text, version int, PRIMARY KEY (id, version))")
    importer = declared("t", key="id", on_match=Version(), id=Integer(), name_=Text())
    result = run_import(database, importer, "id,name\n1,a\n2,b\n1,c\n", batch_rows=1)
    assert result.told == [LESS, "created", "created"]
    assert result.values("id", "name", "version") == [(1, "c", 1), (2, "b", 1)]


@pytest.mark.parametrize("on_match", [Skip(), Update()], ids=["skip", "update"])
@pytest.mark.parametrize("batch_rows", [1, 1_000])
def test_every_unique_index_is_looked_at_and_the_first_row_counts(
    database: Database, on_match: Any, batch_rows: int
) -> None:
    sql(database, PEOPLE)
    importer = declared("people", key="id", on_match=on_match, **FIELDS)
    text = "id,email,area,code\n1,a@x.org,1,x\n2,A@x.org,2,x\n3,,1,x\n4,,2,y\n5,,,x\n6,,,x\n"
    result = run_import(database, importer, text, batch_rows=batch_rows)
    assert result.told == ["created", SAME, SAME, "created", "created", "created"]
    assert [(result.issue(row).field, result.issue(row).value) for row in (2, 3)] == [
        ("email", "A@x.org"),
        ("area, code", "1, x"),
    ]


def test_row_that_lost_does_not_compete_again(database: Database) -> None:
    sql(database, PEOPLE)
    importer = declared("people", key="id", **FIELDS)
    result = run_import(database, importer, "id,email\n1,a@x.org\n1,b@x.org\n2,b@x.org\n")
    assert result.told == ["created", LESS, "created"]


def test_natural_key_competes_only_where_a_row_has_no_other(database: Database) -> None:
    sql(
        database,
        "CREATE TABLE t (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), email text UNIQUE NOT NULL, name text)",
    )
    fields = {"id": Uuid(), "email": Email(required=True), "name_": Text()}
    importer = declared("t", key="id", natural_key="email", on_match=Update(), **fields)
    one, other = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
    text = f"id,email,name\n,a@x.org,1\n,A@x.org,2\n{one},b@x.org,3\n{other},b@x.org,4\n{one},c@x.org,5\n"
    result = run_import(database, importer, text, batch_rows=2)
    assert result.told == [LESS, "created", LESS, "created", "created"]
    assert sorted(result.values("name")) == ["2", "4", "5"]


@pytest.mark.parametrize(
    ("on_match", "told", "names"),
    [
        (Skip(), [SEEN, LESS, "created", LESS, BAD], ["old", "c"]),
        (Update(), [LESS, "updated", LESS, "created", BAD], ["b", "d"]),
        (Fail(), ["failed ALREADY_EXISTS", SAME, "created", SAME, BAD], ["old", "c"]),
    ],
    ids=["skip", "update", "fail"],
)
@pytest.mark.parametrize("batch_rows", [1, 3, 1_000])
def test_keys_that_only_postgres_knows_to_be_equal(
    database: Database, on_match: Any, told: list[str], names: list[str], batch_rows: int
) -> None:
    sql(database, "CREATE TABLE t (id numeric PRIMARY KEY, name text); INSERT INTO t VALUES (1, 'old')")
    importer = declared("t", key="id", on_match=on_match, id=Text(), name_=Text())
    result = run_import(database, importer, "id,name\n1,a\n1.0,b\n2,c\n2.00,d\nx,e\n", batch_rows=batch_rows)
    assert result.told == told
    assert result.values("name") == names


ODD_INDEXES = {
    "expression": ("CREATE UNIQUE INDEX u ON t (lower(code))", "a", "A", "b"),
    "condition": ("CREATE UNIQUE INDEX u ON t (code) WHERE code > 'b'", "c", "c", "a"),
    "nulls": ("ALTER TABLE t ADD CONSTRAINT u UNIQUE NULLS NOT DISTINCT (code)", "", "", "a"),
    "collation": ("CREATE UNIQUE INDEX u ON t ((code || 'x') COLLATE \"C\")", "c", "c", "a"),
    "column not in the file": ("CREATE UNIQUE INDEX u ON t (lower(code)) WHERE kept", "a", "A", "b"),
    "exclusion": ("ALTER TABLE t ADD CONSTRAINT u EXCLUDE USING btree (code WITH =)", "a", "a", "b"),
}


@pytest.mark.parametrize("name", ODD_INDEXES)
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(("batch_rows", "workers"), [(1, 3), (2, 3), (1_000, 1)])
def test_first_row_counts_whatever_the_index(
    database: Database, name: str, dry_run: bool, batch_rows: int, workers: int
) -> None:
    index, one, same, other = ODD_INDEXES[name]
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, code text, kept boolean DEFAULT true)")
    sql(database, cast("LiteralString", index))
    importer = declared("t", key="id", id=Integer(), code=Text())
    text = f"id,code\n1,{one}\n2,{other}\n3,{same}\n4,{same}\n5,{one}\n"
    result = run_import(database, importer, text, batch_rows=batch_rows, workers=workers, dry_run=dry_run)
    assert [outcome.split()[0] for outcome in result.told] == ["created", "created", "failed", "failed", "failed"]
    assert {result.issue(row).field for row in (3, 4, 5)} == {"code"}
    assert result.values("id") == ([] if dry_run else [1, 2])


# ------------------------------------------------------------------------------------------------------------- once


def test_once_by_key_takes_a_row_once_for_ever(database: Database) -> None:
    sql(database, PEOPLE)
    importer = declared("people", key="id", once=True, **FIELDS)
    assert run_import(database, importer, "id,amount\n1,1\n2,2\n1,3\n").told == ["created", "created", LESS]
    sql(database, "DELETE FROM people WHERE id = 1")
    result = run_import(database, importer, "id,amount\n3,3\n1,4\n")
    assert result.told == ["created", "skipped ALREADY_IMPORTED"]
    assert (result.issue(2).metadata or {})["row"] == 1
    assert result.values("id") == [2, 3]


def test_once_by_content_takes_equal_rows_once(database: Database) -> None:
    sql(database, "CREATE TABLE log (at text, line text, tags text[])")
    importer = declared("log", once=True, at=Text(), line=Text(), tags=List())
    text = 'at,line,tags\n1,a,\n1,a,\n1,,"x,y"\n1,,"x, y"\n2,a,\n'
    assert run_import(database, importer, text).told == ["created", LESS, "created", LESS, "created"]
    result = run_import(database, importer, text + "3,,\n")
    assert result.told[-1] == "created"
    assert result.counts.skipped == 5
    assert len(result.rows) == 4


def test_row_that_was_refused_may_come_again(database: Database) -> None:
    sql(database, PEOPLE)
    importer = declared("people", key="id", once=True, **{**FIELDS, "amount": Integer()})
    assert run_import(database, importer, "id,amount\n1,1000\n2,2\n").told == ["failed CHECK_VIOLATION", "created"]
    assert run_import(database, importer, "id,amount\n1,1\n2,2\n").told == ["created", "skipped ALREADY_IMPORTED"]
    assert sql(database, "SELECT key FROM rowcall.row_key ORDER BY key") == [("1",), ("2",)]


def test_importers_have_their_own_keys(database: Database) -> None:
    sql(database, PEOPLE)
    sql(database, "CREATE TABLE other (id int PRIMARY KEY)")
    run_import(database, declared("people", key="id", once=True, **FIELDS), "id\n1\n")
    other = declared("other", name="others", key="id", once=True, id=Integer())
    assert run_import(database, other, "id\n1\n").told == ["created"]
