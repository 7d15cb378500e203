"""What others change between preview and commit is not overwritten, nor created or left out silently (X4, K26)."""

from itertools import product
from typing import Any

import pytest

from rowcall import Fail, Importer, Integer, Lookup, Skip, Text, Update, Version
from rowcall.engine import moves
from rowcall.model import State
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.grid import Wanted

from .importing import Result, declared, sql
from .previewing import carry_on, plan, preview, submit

TABLE = """
    CREATE TABLE city (id int PRIMARY KEY, name text UNIQUE NOT NULL);
    INSERT INTO city VALUES (1, 'Rome'), (2, 'Oslo');
    CREATE TABLE t (id int, code text, name text, city_id int REFERENCES city, version int NOT NULL DEFAULT 1,
        PRIMARY KEY (id {version}));
    INSERT INTO t VALUES (1, 'a', 'A', 1), (2, 'b', 'B', 1), (3, 'c', 'C', NULL)
"""
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "code": Text(max_length=9),
    "name_": Text(),
    "city": Lookup("city", by="name", column="city_id"),
}
KINDS: dict[str, type[Importer]] = {
    "skip": declared("t", key="id", on_match=Skip(), **FIELDS),
    "fail": declared("t", key="id", on_match=Fail(), **FIELDS),
    "update": declared("t", key="id", on_match=Update(), **FIELDS),
    "version": declared("t", key="id", on_match=Version(), **FIELDS),
    "once": declared("t", key="id", once=True, **FIELDS),
}
# Row 1 says what is there, row 2 something else, row 3 is new, row 4 wants a city that isn't there.
FILE = "id,code,name,city\n1,a,A,Rome\n2,b,new,Rome\n9,n,N,Oslo\n8,x,X,Paris\n"
PLANNED = {
    "skip": ["skipped ALREADY_EXISTS", "skipped ALREADY_EXISTS", "created", "failed NOT_FOUND"],
    "fail": ["failed ALREADY_EXISTS", "failed ALREADY_EXISTS", "created", "failed NOT_FOUND"],
    "update": ["unchanged", "updated", "created", "failed NOT_FOUND"],
    "version": ["unchanged", "updated", "created", "failed NOT_FOUND"],
    "once": ["skipped ALREADY_EXISTS", "skipped ALREADY_EXISTS", "created", "failed NOT_FOUND"],
}
DRIFTS: dict[str, tuple[str, dict[str, dict[int, str]]]] = {
    "updated": (
        "UPDATE t SET name = 'theirs' WHERE id IN (1, 2)",
        {"update": {0: "DRIFTED", 1: "DRIFTED"}, "version": {0: "DRIFTED", 1: "DRIFTED"}},
    ),
    "updated to what the file says": (
        "UPDATE t SET name = 'new' WHERE id = 2",
        {"update": {1: "DRIFTED"}, "version": {1: "DRIFTED"}},
    ),
    "updated elsewhere": (
        "UPDATE t SET version = 1, code = 'theirs' WHERE id = 2",
        {"update": {1: "DRIFTED"}, "version": {1: "DRIFTED"}},
    ),
    "deleted": (
        "DELETE FROM t WHERE id IN (1, 2)",
        {kind: {0: "DRIFTED", 1: "DRIFTED"} for kind in ("skip", "update", "version", "once", "fail")},
    ),
    "created": (
        "INSERT INTO t VALUES (9, 'theirs')",
        {
            **{kind: {2: "DRIFTED"} for kind in ("update", "version")},
            **{kind: {2: "DRIFTED ALREADY_EXISTS"} for kind in ("skip", "fail", "once")},
        },
    ),
    "what a look-up found": (
        "UPDATE city SET name = 'gone' WHERE id = 2",
        {kind: {2: "DRIFTED NOT_FOUND"} for kind in KINDS},
    ),
    "which one a look-up finds": (
        "UPDATE city SET name = 'tmp' WHERE id = 2; INSERT INTO city VALUES (7, 'Oslo')",
        {kind: {2: "DRIFTED"} for kind in KINDS},
    ),
    "what a look-up lacked": (
        "INSERT INTO city VALUES (5, 'Paris')",
        {kind: {3: "DRIFTED"} for kind in KINDS},
    ),
    "nothing that matters": (
        "INSERT INTO t VALUES (77, 'z'); UPDATE t SET name = 'theirs' WHERE id = 3; UPDATE t SET name = name",
        {},
    ),
}


def _table(database: Database, kind: str) -> None:
    with database.connect() as connection:
        connection.execute(TABLE.format(version=", version" if kind == "version" else "").encode())


@pytest.mark.parametrize(
    ("kind", "drift", "batch_rows"),
    [(*case, (1, 100)[place % 2]) for place, case in enumerate(product(KINDS, DRIFTS))],
)
def test_drifted_rows_are_reported_and_left_alone(database: Database, kind: str, drift: str, batch_rows: int) -> None:
    """K26, for each kind of change and each way to treat a match."""
    _table(database, kind)
    statement, expected = DRIFTS[drift]
    planned = preview(database, KINDS[kind], FILE, batch_rows=batch_rows)
    assert planned.told == PLANNED[kind]
    with database.connect() as connection:
        connection.execute(statement.encode())
    theirs = sql(database, "SELECT * FROM t ORDER BY id, version")
    done = submit(database, KINDS[kind], planned.job)
    changed = {place: f"failed {codes}" for place, codes in expected.get(kind, {}).items()}
    assert done.told == [changed.get(place, told) for place, told in enumerate(PLANNED[kind])]
    rows = sql(database, "SELECT * FROM t ORDER BY id, version")
    assert set(theirs) - set(rows) <= {row for row in theirs if row[0] == 2 and 1 not in changed}, "overwritten"
    assert {row[0] for row in rows} == {row[0] for row in theirs} | ({9} if 2 not in changed else set())


def _again(database: Database, importer: type[Importer], done: Result) -> Result:
    with database.connect() as connection, connection.transaction():
        job = jobs.get_job(connection, str(done.job.id))
        job, _ = moves.reprocess(connection, job, importer, Wanted(statuses=("failed",), code="DRIFTED"))
    return carry_on(database, importer, job)


def test_a_drifted_row_tells_what_happened_and_is_accepted_by_trying_it_again(database: Database) -> None:
    _table(database, "update")
    job = preview(database, KINDS["update"], FILE).job
    sql(database, "UPDATE t SET code = 'theirs' WHERE id = 2")
    done = submit(database, KINDS["update"], job)
    issue = done.issue(2)
    assert issue.message == "The row that it means was changed by others since the preview."
    assert issue.metadata == {
        "planned": "updated",
        "now": "updated",
        "since": {"code": ["b", "theirs"]},
        "changes": {"code": ["theirs", "b"], "name": ["B", "new"]},
    }
    again = _again(database, KINDS["update"], done)
    assert again.told == PLANNED["update"]
    assert sql(database, "SELECT code, name FROM t WHERE id = 2") == [("b", "new")]


def test_once_gives_back_the_key_of_a_row_that_drifted(database: Database) -> None:
    _table(database, "once")
    job = preview(database, KINDS["once"], FILE).job
    sql(database, "INSERT INTO t VALUES (9, 'theirs')")
    done = submit(database, KINDS["once"], job)
    assert sql(database, "SELECT * FROM rowcall.row_key") == []
    sql(database, "DELETE FROM t WHERE id = 9")
    assert _again(database, KINDS["once"], done).told == PLANNED["once"]


def test_of_all_or_nothing_the_whole_is_planned_again(database: Database) -> None:
    _table(database, "update")
    importer = declared("t", key="id", on_match=Update(), atomic=True, **FIELDS)
    job = preview(database, importer, "id,code,name,city\n1,a,A,Rome\n2,b,new,Rome\n9,n,N,Oslo\n", batch_rows=1).job
    first = plan(database, job).digest
    sql(database, "UPDATE t SET name = 'theirs' WHERE id = 2")
    again = submit(database, importer, job)
    assert (again.job.state, again.told) == (State.VALIDATED, ["unchanged", "updated", "created"])
    second = plan(database, job)
    assert (second.drifted, second.digest == first) == (1, False)
    assert sql(database, "SELECT name FROM t WHERE id IN (2, 9)") == [("theirs",)]
    assert submit(database, importer, job).job.state is State.COMPLETED
    assert sql(database, "SELECT name FROM t WHERE id IN (2, 9) ORDER BY id") == [("new",), ("N",)]


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_rows_that_refer_to_each_other_come_as_planned(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE e (id serial PRIMARY KEY, name text UNIQUE, boss_id int REFERENCES e)")
    importer = declared("e", key="name", on_match=Update(), name_=Text(), boss=Lookup("e", by="name", column="boss_id"))
    planned = preview(database, importer, "name,boss\nann,bob\nbob,cid\ncid,\ndan,zoe\n", batch_rows=batch_rows)
    done = submit(database, importer, planned.job)
    assert done.told == planned.told == ["created", "created", "created", "failed NOT_FOUND"]


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_who_refers_to_a_row_that_is_gone_has_drifted(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE e (id serial PRIMARY KEY, name text UNIQUE, boss_id int REFERENCES e)")
    sql(database, "INSERT INTO e (name) VALUES ('zoe')")
    importer = declared("e", key="name", on_match=Update(), name_=Text(), boss=Lookup("e", by="name", column="boss_id"))
    planned = preview(database, importer, "name,boss\nann,bob\nbob,\ndan,zoe\n", batch_rows=batch_rows)
    assert planned.told == ["created"] * 3
    sql(database, "DELETE FROM e WHERE name = 'zoe'")
    assert submit(database, importer, planned.job).told == ["created", "created", "failed DRIFTED NOT_FOUND"]


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_values_that_change_places_do_so_as_planned(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE s (id int PRIMARY KEY, seat int UNIQUE); INSERT INTO s VALUES (1, 1), (2, 2), (3, 3)")
    importer = declared("s", key="id", on_match=Update(), id=Integer(), seat=Integer())
    planned = preview(database, importer, "id,seat\n1,4\n2,1\n3,9\n", batch_rows=batch_rows)
    assert submit(database, importer, planned.job).told == planned.told == ["updated"] * 3


def test_natural_keys_drift_too(database: Database) -> None:
    sql(database, "CREATE TABLE n (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, mail text UNIQUE, name text)")
    sql(database, "INSERT INTO n (mail, name) VALUES ('a', 'A'), ('b', 'B')")
    importer = declared("n", key="id", natural_key="mail", on_match=Update(), id=Integer(), mail=Text(), name_=Text())
    planned = preview(database, importer, "id,mail,name\n,a,x\n2,b,x\n,c,x\n")
    assert planned.told == ["updated", "updated", "created"]
    sql(database, "UPDATE n SET name = 'theirs' WHERE id = 1; INSERT INTO n (mail) VALUES ('c')")
    assert submit(database, importer, planned.job).told == ["failed DRIFTED", "updated", "failed DRIFTED"]
