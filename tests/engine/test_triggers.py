"""Triggers that look at other rows: what they say doesn't depend on batches and workers, and previews tell it."""

from typing import Any, LiteralString

import pytest

from rowcall import Importer, Integer, Text, Update
from rowcall.store.db import Database
from rowcall.store.targets import describe

from .importing import declared, run_import, sql
from .previewing import preview, submit

TABLE = "CREATE TABLE t (id int PRIMARY KEY, b int)"
FIELDS: dict[str, Any] = {"id": Integer(), "b": Integer()}
INSERTS: type[Importer] = declared("t", key="id", **FIELDS)
UPSERTS: type[Importer] = declared("t", key="id", on_match=Update(), **FIELDS)
AT_MOST_TWO = """
    CREATE FUNCTION at_most_two() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM t WHERE b = new.b AND id <> new.id) >= 2 THEN
            RAISE EXCEPTION 'too many of %', new.b;
        END IF;
        RETURN new;
    END $$;
    CREATE TRIGGER at_most_two BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION at_most_two()
"""
FILE = "id,b\n" + "".join(f"{number},{number % 5}\n" for number in range(20))
TOLD = ["created"] * 10 + ["failed ROW_REFUSED"] * 10


@pytest.mark.parametrize("importer", [INSERTS, UPSERTS])
@pytest.mark.parametrize(("batch_rows", "workers"), [(1, 3), (7, 2), (1_000, 1)])
def test_the_first_rows_of_the_file_count(
    database: Database, importer: type[Importer], batch_rows: int, workers: int
) -> None:
    sql(database, TABLE)
    sql(database, AT_MOST_TWO)
    dry = run_import(database, importer, FILE, dry_run=True, batch_rows=batch_rows, workers=workers)
    assert dry.told == TOLD
    assert run_import(database, importer, FILE, batch_rows=batch_rows, workers=workers).told == TOLD


def test_a_commit_does_what_the_preview_said(database: Database) -> None:
    sql(database, TABLE)
    sql(database, AT_MOST_TWO)
    planned = preview(database, INSERTS, FILE, batch_rows=3)
    assert planned.told == TOLD
    assert submit(database, INSERTS, planned.job).told == TOLD


@pytest.mark.parametrize(
    ("body", "looks"),
    [
        ("new.b := coalesce(new.b, 0) + abs(-1); RETURN new;", False),
        ("IF tg_op = 'UPDATE' AND new.b IS DISTINCT FROM old.b THEN new.b := 1; END IF; RETURN new;", False),
        (
            "-- select from\n IF new.b IN (1, 2) THEN RAISE EXCEPTION 'select % from t', new.b; END IF; RETURN new;",
            False,
        ),
        ("PERFORM pg_sleep(0); RETURN new;", True),
        ("/* select * */ new.b := 1; /***/ RETURN new;", False),
        ("/* one */ PERFORM 1 FROM t; /* two */ RETURN new;", True),
        ("INSERT INTO t VALUES (new.id + 1); RETURN NULL;", True),
        ("INSERT INTO noted (what) VALUES (new.b); RETURN new;", False),
        ("INSERT INTO noted VALUES (1, upper('x')); INSERT INTO noted (what) SELECT 1; RETURN new;", True),
        ("INSERT INTO once VALUES (new.b); RETURN new;", True),
        ("INSERT INTO nowhere VALUES (new.b); RETURN new;", True),
        ("new.b := other(new.b); RETURN new;", True),
        ("IF EXISTS (TABLE t) THEN RETURN NULL; END IF; RETURN new;", True),
    ],
)
def test_what_looks_at_other_rows(database: Database, body: str, looks: bool) -> None:
    sql(database, TABLE)
    sql(database, "CREATE TABLE noted (id serial PRIMARY KEY, what int); CREATE TABLE once (what int UNIQUE)")
    with database.connect() as connection:
        function = f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
        connection.execute(function.encode())
    sql(database, "CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()")
    assert _looks(database) is looks


@pytest.mark.parametrize(
    ("trigger", "looks"),
    [
        (
            "CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            False,
        ),
        ("CREATE TRIGGER x BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION at_most_two()", False),
        ("CREATE TRIGGER x AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION at_most_two()", True),
        ("ALTER TABLE t DISABLE TRIGGER at_most_two", False),
    ],
)
def test_which_triggers_count(database: Database, trigger: LiteralString, looks: bool) -> None:
    sql(database, TABLE)
    sql(database, AT_MOST_TWO)
    if not trigger.startswith("ALTER"):
        sql(database, "DROP TRIGGER at_most_two ON t")
    sql(database, trigger)
    assert _looks(database) is looks


def _looks(database: Database) -> bool:
    with database.connect() as connection:
        return describe(connection, "t").looks_around


LOWERS = """
    CREATE TABLE t (id text PRIMARY KEY, b text CHECK (b = lower(b)), c text UNIQUE CHECK (c <> 'no'));
    INSERT INTO t VALUES ('there', 'x', 'taken');
    CREATE FUNCTION lowers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.b := lower(new.b); RETURN new; END $$;
    CREATE TRIGGER lowers BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION lowers()
"""
TEXTS: dict[str, Any] = {"id": Text(), "b": Text(), "c": Text()}


@pytest.mark.parametrize(
    "importer", [declared("t", key="id", **TEXTS), declared("t", key="id", on_match=Update(), **TEXTS)]
)
@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_no_constraint_judges_values_that_a_trigger_changes_first(
    database: Database, importer: type[Importer], batch_rows: int
) -> None:
    sql(database, LOWERS)
    text = "id,b,c\n1,AB,p\n2,cd,taken\n3,EF,q\n4,GH,no\n"
    told = ["created", "failed UNIQUE_VIOLATION", "created", "failed CHECK_VIOLATION"]
    assert preview(database, importer, text, batch_rows=batch_rows).told == told
    result = run_import(database, importer, text, batch_rows=batch_rows)
    assert result.told == told
    assert result.values("id", "b") == [("1", "ab"), ("3", "ef"), ("there", "x")]


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_rows_to_which_a_trigger_gives_another_key_fail(database: Database, batch_rows: int) -> None:
    sql(database, LOWERS.replace("new.b := lower(new.b)", "new.id := lower(new.id)"))
    importer = declared("t", key="id", on_match=Update(), **TEXTS)
    result = run_import(database, importer, "id,b,c\na,1,p\nB,2,q\nc,3,r\nthere,y,s\n", batch_rows=batch_rows)
    assert result.told == ["created", "failed ROW_REFUSED", "created", "updated"]
    assert result.issue(2).message == "A trigger or rule of t drops this row, or gives it another key."
    assert result.values("id") == ["a", "c", "there"]


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_a_key_that_another_row_of_the_batch_has_is_another_key(database: Database, batch_rows: int) -> None:
    sql(database, LOWERS.replace("new.b := lower(new.b)", "new.id := lower(new.id)"))
    importer = declared("t", key="id", on_match=Update(), **TEXTS)
    told = ["failed ROW_REFUSED", "created", "created", "failed UNIQUE_VIOLATION"]
    text = "id,b,c\nB,1,p\nb,2,q\nc,3,r\nC,4,s\n"
    assert preview(database, importer, text, batch_rows=batch_rows).told == told
    result = run_import(database, importer, text, batch_rows=batch_rows)
    assert result.told == told
    assert result.values("id", "b") == [("b", "2"), ("c", "3"), ("there", "x")]


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_rows_that_change_keys_with_each_other_fail(database: Database, batch_rows: int) -> None:
    sql(database, TABLE)
    sql(
        database,
        """
        CREATE FUNCTION swaps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.id := 5 - new.id; RETURN new; END $$;
        CREATE TRIGGER swaps BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION swaps()
        """,
    )
    result = run_import(database, UPSERTS, "id,b\n1,1\n4,2\n", batch_rows=batch_rows)
    assert result.told == ["failed ROW_REFUSED"] * 2
    assert not result.rows


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_updated_rows_to_which_a_trigger_gives_another_key_fail(database: Database, batch_rows: int) -> None:
    sql(
        database,
        LOWERS.replace("new.b := lower(new.b)", "new.id := lower(new.id)").replace("INSERT OR UPDATE", "UPDATE"),
    )
    sql(database, "INSERT INTO t VALUES ('A', 'a', 'a')")
    importer = declared("t", key="id", on_match=Update(), **TEXTS)
    text = "id,b,c\nA,1,p\nthere,y,s\nN,3,r\n"
    told = ["failed ROW_REFUSED", "updated", "created"]
    assert preview(database, importer, text, batch_rows=batch_rows).told == told
    result = run_import(database, importer, text, batch_rows=batch_rows)
    assert result.told == told
    assert result.values("id", "b") == [("A", "a"), ("N", "3"), ("there", "y")]


@pytest.mark.parametrize(
    ("body", "meddled"),
    [
        ("IF new.a = 1 THEN RAISE EXCEPTION 'new.a := 1'; END IF; -- new.a := 2\n RETURN new;", set[str]()),
        ("new.a := new.id + 1; RETURN NEW;", {"a"}),
        ("/* one */ new.a := 1; /** two **/ RETURN NEW;", {"a"}),
        ("IF new.a IS NULL THEN new.a = 1; END IF; RETURN new;", {"a"}),
        ('NEW . "Odd ""one""" := 1; RETURN new;', {'Odd "one"'}),
        ("new.list[1] := 1; RETURN new;", {"list"}),
        ("SELECT 1, 2 INTO new.a, new.id; RETURN new;", {"a", "id"}),
        ("INSERT INTO noted VALUES (new.a); RETURN NULL;", set[str]()),
        ("new := old; RETURN new;", {"id", "a", "list", 'Odd "one"'}),
        ("RETURN t FROM t LIMIT 1;", {"id", "a", "list", 'Odd "one"'}),
    ],
)
def test_which_columns_a_trigger_changes(database: Database, body: str, meddled: set[str]) -> None:
    sql(database, 'CREATE TABLE t (id int PRIMARY KEY, a int, list int[], "Odd ""one""" int)')
    with database.connect() as connection:
        function = f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
        connection.execute(function.encode())
    sql(database, "CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()")
    with database.connect() as connection:
        assert describe(connection, "t").meddled == meddled
    sql(database, "DROP TRIGGER f ON t; CREATE TRIGGER f AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()")
    with database.connect() as connection:
        assert not describe(connection, "t").meddled
