"""A dry run says what an import would do, and does nothing."""

from typing import Any

import pytest

from rowcall import Fail, Flow, Importer, Integer, Skip, Text, Update, Version
from rowcall.model import State
from rowcall.store.db import Database

from .importing import declared, run_import, sql

TABLE = """
    CREATE TABLE t (id int, code text UNIQUE CHECK (code <> 'BAD'), name text, version int NOT NULL DEFAULT 1,
        PRIMARY KEY (id, version));
    CREATE UNIQUE INDEX t_id ON t (id) WHERE false;
    INSERT INTO t VALUES (1, 'a', 'A'), (2, 'b', 'B'), (3, 'c', 'C')
"""
SINGLE = TABLE.replace("PRIMARY KEY (id, version)", "PRIMARY KEY (id)")
FIELDS: dict[str, Any] = {"id": Integer(required=True), "code": Text(max_length=9), "name_": Text()}
FILE = "id,code,name\n1,a,A\n2,b,new\n3,a,C\n4,BAD,D\n5,e,E\n5,f,F\nx,g,G\n7,,H\n8,much too long,I\n9,n,N\n"
IMPORTERS: dict[str, type[Importer]] = {
    "skip": declared("t", key="id", on_match=Skip(), **FIELDS),
    "fail": declared("t", key="id", on_match=Fail(), **FIELDS),
    "update": declared("t", key="id", on_match=Update(), **FIELDS),
    "once": declared("t", key="id", once=True, **FIELDS),
    "atomic": declared("t", key="id", on_match=Update(), atomic=True, **FIELDS),
}


@pytest.mark.parametrize("batch_rows", [3, 1_000])
@pytest.mark.parametrize("kind", IMPORTERS)
def test_dry_run_tells_what_the_import_then_does(database: Database, kind: str, batch_rows: int) -> None:
    with database.connect() as connection:
        connection.execute(SINGLE.encode())
    before = sql(database, "SELECT xmin::text, * FROM t ORDER BY id")
    plan = run_import(database, IMPORTERS[kind], FILE, dry_run=True, batch_rows=batch_rows)
    assert plan.job.state is (State.INVALID if kind == "atomic" else State.VALIDATED)
    assert sql(database, "SELECT xmin::text, * FROM t ORDER BY id") == before
    assert sql(database, "SELECT * FROM rowcall.row_key") == []
    done = run_import(database, IMPORTERS[kind], FILE, batch_rows=batch_rows)
    assert plan.told == done.told
    assert plan.counts == done.counts
    assert {n: o.before for n, o in plan.outcomes.items()} == {n: o.before for n, o in done.outcomes.items()}


def test_dry_run_of_versions(database: Database) -> None:
    sql(database, "CREATE TABLE v (id int, name text, version int, PRIMARY KEY (id, version))")
    importer = declared("v", key="id", on_match=Version(), id=Integer(), name_=Text())
    run_import(database, importer, "id,name\n1,a\n2,b\n")
    plan, done = (run_import(database, importer, "id,name\n1,x\n2,b\n3,c\n", dry_run=dry) for dry in (True, False))
    assert plan.told == done.told == ["updated", "unchanged", "created"]


def test_preview_stops_before_anything_is_written(database: Database) -> None:
    sql(database, "CREATE TABLE v (id int PRIMARY KEY)")
    result = run_import(database, declared("v", flow=Flow(preview=True), id=Integer()), "id\n1\n")
    assert (result.job.state, result.told, result.rows) == (State.VALIDATED, ["created"], [])


def test_dry_run_sees_rows_of_other_batches_collide(database: Database) -> None:
    sql(database, "CREATE TABLE v (id int PRIMARY KEY, code text); ALTER TABLE v ADD EXCLUDE (lower(code) WITH =)")
    importer = declared("v", key="id", on_match=Update(), id=Integer(), code=Text())
    plan, done = (
        run_import(database, importer, "id,code\n1,b\n2,B\n", dry_run=dry, batch_rows=1) for dry in (True, False)
    )
    assert plan.told == done.told == ["created", "failed UNIQUE_VIOLATION"]
