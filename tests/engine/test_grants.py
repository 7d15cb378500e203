"""Roles that may do little: what Rowcall needs of them, and what it says where they may not."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any, LiteralString, cast

import psycopg
import pytest

from rowcall import Final, Importer, Integer, Text, Update
from rowcall.store.db import Database

from .importing import Result, declared, run_import, sql

BATCHES = pytest.mark.parametrize("batch_rows", [1, 100])
ID: dict[str, Any] = {"id": Integer(required=True)}


@pytest.fixture
def clerk(database: Database) -> Generator[Database]:
    """The database for a role that owns nothing: Rowcall's tables are for it to use, all others want a grant."""
    sql(
        database,
        """
        CREATE ROLE clerk LOGIN;
        GRANT USAGE ON SCHEMA rowcall, public TO clerk;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rowcall TO clerk;
        """,
    )
    yield replace(database, url=database.url.replace("postgres@", "clerk@", 1), keep=None)
    sql(database, "DROP OWNED BY clerk; DROP ROLE clerk")


def imported(clerk: Database, importer: type[Importer], text: str, batch_rows: int) -> Result:
    """What a dry run says and the import then does."""
    plan = run_import(clerk, importer, text, batch_rows=batch_rows, dry_run=True)
    done = run_import(clerk, importer, text, batch_rows=batch_rows)
    assert plan.told == done.told
    return done


@BATCHES
def test_row_level_security_fails_its_rows_alone(database: Database, clerk: Database, batch_rows: int) -> None:
    sql(
        database,
        """
        CREATE TABLE t (id int PRIMARY KEY, owner text, name text);
        ALTER TABLE t ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON t USING (owner = current_user);
        GRANT SELECT, INSERT, UPDATE ON t TO clerk;
        """,
    )
    importer = declared("t", key="id", **ID, owner=Text(), name_=Text())
    text = "id,owner,name\n1,clerk,a\n2,boss,b\n3,clerk,c\n4,boss,d\n5,clerk,e\n"
    result = imported(clerk, importer, text, batch_rows)
    assert result.told == ["created", "failed ROW_REFUSED", "created", "failed ROW_REFUSED", "created"]
    assert "row-level security policy" in result.issue(2).message
    assert result.values("id") == [1, 3, 5]


@BATCHES
def test_row_level_security_hides_a_row_that_has_the_key(database: Database, clerk: Database, batch_rows: int) -> None:
    sql(
        database,
        """
        CREATE TABLE t (id int PRIMARY KEY, owner text, name text);
        INSERT INTO t VALUES (1, 'clerk', 'a'), (2, 'boss', 'b'), (3, 'clerk', 'c');
        ALTER TABLE t ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON t USING (owner = current_user);
        GRANT SELECT, INSERT, UPDATE ON t TO clerk;
        """,
    )
    importer = declared("t", key="id", on_match=Update(), **ID, owner=Text(), name_=Text())
    text = "id,owner,name\n1,clerk,new\n2,clerk,mine\n3,boss,given\n4,clerk,d\n"
    result = imported(clerk, importer, text, batch_rows)
    assert result.told == ["updated", "failed UNIQUE_VIOLATION", "failed ROW_REFUSED", "created"]
    everything = sql(database, "SELECT * FROM t ORDER BY id")
    assert everything == [(1, "clerk", "new"), (2, "boss", "b"), (3, "clerk", "c"), (4, "clerk", "d")]


@BATCHES
@pytest.mark.parametrize("hidden", ["REVOKE ALL ON o FROM clerk", "ALTER TABLE o ENABLE ROW LEVEL SECURITY"])
def test_foreign_key_may_lead_to_rows_that_the_role_cannot_see(
    database: Database, clerk: Database, hidden: LiteralString, batch_rows: int
) -> None:
    sql(
        database,
        """
        CREATE TABLE o (id int PRIMARY KEY);
        INSERT INTO o VALUES (1);
        CREATE TABLE t (id int PRIMARY KEY, o_id int REFERENCES o, n int CHECK (n > 0));
        GRANT SELECT ON o TO clerk;
        GRANT SELECT, INSERT ON t TO clerk;
        """,
    )
    sql(database, hidden)
    importer = declared("t", key="id", **ID, o_id=Integer(), n=Integer())
    result = imported(clerk, importer, "id,o_id,n\n1,1,1\n2,1,0\n3,2,1\n4,,1\n", batch_rows)
    assert result.told == ["created", "failed CHECK_VIOLATION", "failed FOREIGN_KEY_VIOLATION", "created"]
    assert result.issue(3).field == "o_id"
    assert result.issue(3).value == "2"


def test_missing_grant_on_the_table_is_told(database: Database, clerk: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, code text); GRANT SELECT ON t TO clerk")
    with pytest.raises(Final, match="permission denied for table t"):
        run_import(clerk, declared("t", key="id", **ID, code=Text()), "id,code\n1,a\n")


@pytest.mark.parametrize("kind", ["serial", "int GENERATED ALWAYS AS IDENTITY"])
def test_missing_grant_on_a_sequence_is_told_only_when_it_is_needed(
    database: Database, clerk: Database, kind: str
) -> None:
    sql(database, cast("LiteralString", f"CREATE TABLE t (id {kind} PRIMARY KEY, code text)"))
    sql(database, "GRANT SELECT, INSERT ON t TO clerk; REVOKE ALL ON SEQUENCE t_id_seq FROM clerk")
    importer = declared("t", key="id", id=Integer(), code=Text())
    assert run_import(clerk, importer, "id,code\n1,a\n").told == ["created"]
    with pytest.raises(Final, match="permission denied for sequence t_id_seq") as caught:
        run_import(clerk, importer, "id,code\n2,b\n,c\n")
    assert "GRANT USAGE ON SEQUENCE t_id_seq" in caught.value.hint


@pytest.mark.parametrize("right", ["USAGE", "USAGE, UPDATE", ""])
def test_numbers_are_written_whatever_the_role_may_do_with_their_sequence(
    database: Database, clerk: Database, right: str
) -> None:
    sql(database, "CREATE TABLE t (id serial PRIMARY KEY, code text); GRANT SELECT, INSERT ON t TO clerk")
    if right:
        sql(database, cast("LiteralString", f"GRANT {right} ON SEQUENCE t_id_seq TO clerk"))
    importer = declared("t", key="id", id=Integer(), code=Text())
    assert run_import(clerk, importer, "id,code\n20000,a\n").told == ["created"]
    moved = sql(database, "SELECT last_value = 20000 FROM t_id_seq")[0][0]
    assert moved is ("UPDATE" in right)


def test_role_that_may_only_write_gets_its_rows_in(database: Database, clerk: Database) -> None:
    sql(database, "CREATE TABLE t (id serial PRIMARY KEY, code text)")
    sql(database, "GRANT INSERT ON t TO clerk; GRANT USAGE ON SEQUENCE t_id_seq TO clerk")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):  # of the look at the table that ends run_import
        run_import(clerk, declared("t", code=Text()), "code\na\nb\n")
    assert sql(database, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]


@BATCHES
def test_sequence_that_a_role_may_not_see_is_left_alone(database: Database, clerk: Database, batch_rows: int) -> None:
    sql(
        database,
        """
        CREATE SCHEMA hidden;
        CREATE SEQUENCE hidden.numbers;
        CREATE TABLE t (id int PRIMARY KEY DEFAULT nextval('hidden.numbers'), n int);
        GRANT SELECT, INSERT, UPDATE ON t TO clerk;
        """,
    )
    importer = declared("t", key="id", **ID, n=Integer())
    assert imported(clerk, importer, "id,n\n1,1\n2,2\n", batch_rows).told == ["created", "created"]
