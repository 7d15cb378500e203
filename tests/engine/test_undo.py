"""An import can be taken back: the target is as it was, but for what others have changed since (X2)."""

from typing import Any

import pytest

from rowcall import Final, Importer, Integer, Text, Update, Version
from rowcall.engine import moves
from rowcall.engine.preview.documents import preview_of
from rowcall.errors import WrongState
from rowcall.model import Code, State
from rowcall.store.db import Database
from rowcall.store.jobs import counts_of

from .importing import declared, run_import, sql
from .undoing import begun, previewed, undone, work_on

TABLE = """
    CREATE TABLE t (
        id int PRIMARY KEY, name text, size numeric(8, 2), parent int REFERENCES t, note text DEFAULT 'none');
    INSERT INTO t (id, name, size) VALUES (1, 'one', 1.50), (2, 'two', 2)
"""
FIELDS: dict[str, Any] = {"id": Integer(required=True), "name_": Text(), "size": Text(), "parent": Integer()}
UPSERT = declared("t", key="id", on_match=Update(), **FIELDS)
FILE = "id,name,size\n1,uno,1.5\n2,two,2\n3,tres,3\n"


@pytest.fixture
def table(database: Database) -> Database:
    """A database with the table."""
    sql(database, TABLE)
    return database


def rows(database: Database) -> list[tuple[Any, ...]]:
    return sql(database, "SELECT id, name, size::text, parent, note FROM t ORDER BY id")


def test_an_undo_brings_back_the_target(table: Database) -> None:
    before = rows(table)
    job = run_import(table, UPSERT, FILE).job
    seen = previewed(table, UPSERT, job)
    assert (seen.to_delete, seen.to_restore, seen.fields) == (1, 1, {"name": 1})
    assert (seen.changed, seen.blocked, seen.gone, seen.refusal) == (0, 0, 0, None)
    now, done = undone(table, UPSERT, job)
    assert now.state is State.REVERTED
    assert (done.deleted, done.restored, done.kept) == (1, 1, 0)
    assert rows(table) == before


def test_undo_twice_is_refused(table: Database) -> None:
    job = run_import(table, UPSERT, FILE).job
    begun(table, UPSERT, job)
    with pytest.raises(Final) as refused, table.connect() as connection, connection.transaction():
        moves.undo(connection, job, UPSERT, moves.Wanted(), account="bob")
    assert refused.value.code == Code.WRONG_STATE
    now = work_on(table, UPSERT, job)
    with pytest.raises(WrongState) as over:
        begun(table, UPSERT, now)
    assert over.value.allowed == []


def test_rows_that_were_changed_since_are_kept(table: Database) -> None:
    job = run_import(table, UPSERT, FILE + "4,cuatro,4\n").job
    sql(table, "UPDATE t SET note = 'mine' WHERE id IN (1, 3)")
    seen = previewed(table, UPSERT, job)
    assert (seen.reversible, seen.changed) == (1, 2)
    assert [(sample["row"], sample["before"] and sample["before"]["name"]) for sample in seen.samples] == [
        (1, "one"),
        (3, None),
    ]
    now, done = undone(table, UPSERT, job)
    assert now.state is State.COMPLETED
    assert (done.deleted, done.restored, done.changed) == (1, 0, 2)
    assert [row[:2] for row in rows(table)] == [(1, "uno"), (2, "two"), (3, "tres")]


def test_rows_that_others_refer_to_are_kept(table: Database) -> None:
    sql(table, "CREATE TABLE c (id int, t int CONSTRAINT c_t REFERENCES t ON DELETE CASCADE)")
    job = run_import(table, UPSERT, FILE + "4,cuatro,4\n").job
    sql(table, "INSERT INTO c VALUES (1, 3), (2, 3), (3, 1)")
    seen = previewed(table, UPSERT, job)
    assert seen.blocked_by == [{"table": "public.c", "constraint": "c_t", "job": None, "blocked": 1, "dependents": 2}]
    assert (seen.to_delete, seen.to_restore, seen.blocked) == (1, 1, 1)
    now, done = undone(table, UPSERT, job)
    assert (done.deleted, done.restored, done.blocked, done.blocked_by) == (1, 1, 1, seen.blocked_by)
    assert sql(table, "SELECT count(*) FROM c") == [(3,)]
    sql(table, "DELETE FROM c")
    now, done = undone(table, UPSERT, now)
    assert (now.state, done.deleted, done.undo.number) == (State.REVERTED, 1, 2)


def test_rows_that_had_columns_which_are_gone_are_kept_and_it_is_said(table: Database) -> None:
    job = run_import(table, UPSERT, FILE).job
    sql(table, "ALTER TABLE t DROP note")
    (kept,) = previewed(table, UPSERT, job).samples
    assert (kept["row"], "no longer all columns" in kept["issue"]["message"]) == (1, True)
    _, done = undone(table, UPSERT, job)
    assert (done.deleted, done.changed) == (1, 1)


def test_undos_in_turn_lead_all_the_way_back(table: Database) -> None:
    before = rows(table)
    first = run_import(table, UPSERT, "id,name\n1,uno\n3,tres\n").job
    between = rows(table)
    second = run_import(table, UPSERT, "id,name\n1,eins\n3,drei\n").job
    third = run_import(table, UPSERT, "id,name\n3,three\n").job
    assert previewed(table, UPSERT, first).changed == 2
    for job in (third, second):
        now, done = undone(table, UPSERT, job)
        assert (now.state, done.kept) == (State.REVERTED, 0)
    assert rows(table) == between
    now, done = undone(table, UPSERT, first)
    assert (now.state, done.deleted, done.restored) == (State.REVERTED, 1, 1)
    assert rows(table) == before


def test_versions_are_removed(database: Database) -> None:
    sql(database, "CREATE TABLE v (id int, version int, name text, PRIMARY KEY (id, version))")
    importer = declared("v", key="id", on_match=Version(), id=Integer(), name_=Text())
    first = run_import(database, importer, "id,name\n1,a\n2,b\n").job
    second = run_import(database, importer, "id,name\n1,c\n2,b\n3,d\n").job
    seen = previewed(database, importer, second)
    assert (seen.to_delete, seen.to_restore) == (2, 0)
    assert undone(database, importer, second)[0].state is State.REVERTED
    assert sql(database, "SELECT id, version, name FROM v ORDER BY 1, 2") == [(1, 1, "a"), (2, 1, "b")]
    assert undone(database, importer, first)[0].state is State.REVERTED


def test_the_preview_of_an_import_tells_that_versions_would_be_removed(database: Database) -> None:
    sql(database, "CREATE TABLE v (id int, version int, name text, PRIMARY KEY (id, version))")
    importer = declared("v", key="id", on_match=Version(), id=Integer(), name_=Text())
    run_import(database, importer, "id,name\n1,a\n")
    job = run_import(database, importer, "id,name\n1,b\n2,c\n", preview=True).job
    with database.connect() as connection:
        assert preview_of(connection, job, importer)["undo"] == {"deletes": 2, "restores": 0}


def test_an_earlier_version_waits_for_the_later_ones(database: Database) -> None:
    sql(database, "CREATE TABLE v (id int, version int, name text, PRIMARY KEY (id, version))")
    importer = declared("v", key="id", on_match=Version(), id=Integer(), name_=Text())
    first = run_import(database, importer, "id,name\n1,a\n2,b\n3,c\n").job
    second = run_import(database, importer, "id,name\n1,d\n").job
    sql(database, "INSERT INTO v VALUES (3, 7, 'by hand')")
    seen = previewed(database, importer, first)
    assert (seen.to_delete, seen.blocked) == (1, 2)
    about = {"table": "public.v", "constraint": None, "blocked": 1, "dependents": 1}
    assert seen.blocked_by == [{**about, "job": second.number}, {**about, "job": None}]
    assert [(kept["row"], kept["issue"]["code"], kept["issue"]["message"]) for kept in seen.samples] == [
        (1, "LATER_VERSION", f"A later version of it is there, written by job {second.number}; it was kept."),
        (3, "LATER_VERSION", "A later version of it is there; it was kept."),
    ]
    now, done = undone(database, importer, first)
    assert (now.state, done.deleted, done.blocked, done.blocked_by) == (State.COMPLETED, 1, 2, seen.blocked_by)
    assert undone(database, importer, second)[0].state is State.REVERTED
    sql(database, "DELETE FROM v WHERE version = 7")
    assert undone(database, importer, first)[0].state is State.REVERTED
    assert sql(database, "SELECT * FROM v") == []


@pytest.mark.parametrize("text", ["id,parent\n3,\n4,3\n5,4\n6,3\n", "id,parent\n6,3\n5,4\n4,3\n3,\n"])
def test_children_go_before_their_parents(table: Database, text: str) -> None:
    job = run_import(table, UPSERT, text, batch_rows=1).job
    assert previewed(table, UPSERT, job).to_delete == 4
    sql(table, "INSERT INTO t (id, parent) VALUES (9, 4)")
    seen = previewed(table, UPSERT, job)
    assert (seen.to_delete, seen.blocked) == (2, 2)
    now, done = undone(table, UPSERT, job)
    assert (now.state, done.deleted, done.blocked) == (State.COMPLETED, 2, 2)
    sql(table, "DELETE FROM t WHERE id = 9")
    assert undone(table, UPSERT, now)[0].state is State.REVERTED


def test_a_part_can_be_taken_back_and_then_the_rest(table: Database) -> None:
    before = rows(table)
    job = run_import(table, UPSERT, FILE).job
    assert previewed(table, UPSERT, job, statuses=("created",)).reversible == 1
    job, done = undone(table, UPSERT, job, statuses=("created",))
    assert (job.state, done.deleted, done.restored) == (State.COMPLETED, 1, 0)
    assert previewed(table, UPSERT, job).reverted == 1
    job, done = undone(table, UPSERT, job, text="UNO")
    assert (job.state, done.restored) == (State.REVERTED, 1)
    assert rows(table) == before


def test_what_the_database_refuses_stays_alone(table: Database) -> None:
    job = run_import(table, UPSERT, "id,name\n" + "".join(f"{n},n{n}\n" for n in range(3, 40))).job
    sql(
        table,
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF OLD.id = 7 THEN RAISE 'never %', OLD.id; END IF; "
        "IF OLD.id = 9 THEN RETURN NULL; END IF; RETURN OLD; END $$;"
        "CREATE TRIGGER no BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION no()",
    )
    now, done = undone(table, UPSERT, job)
    assert (now.state, done.deleted, done.refused) == (State.COMPLETED, 35, 2)
    told = sql(table, "SELECT issue ->> 'message' FROM rowcall.reversal WHERE issue IS NOT NULL ORDER BY row_number")
    assert [text.split(":")[-1].strip() for (text,) in told] == [
        "never 7.",
        "A trigger or rule of t keeps this row as it is.",
    ]


def test_a_file_can_be_imported_again_after_its_undo(table: Database) -> None:
    importer = declared("t", key="id", once=True, **FIELDS)
    job = run_import(table, importer, "id,name\n3,tres\n").job
    assert undone(table, importer, job)[0].state is State.REVERTED
    assert run_import(table, importer, "id,name\n3,tres\n").told == ["created"]


class Forbidden(Importer):
    """What may not be taken back."""

    target = "t"
    undo = "Bookings are never taken back."
    id = Integer()


def test_an_importer_can_forbid_it(table: Database) -> None:
    job = run_import(table, Forbidden, "id\n5\n").job
    assert previewed(table, Forbidden, job).refusal == "Bookings are never taken back."
    with table.connect() as connection:
        counts = counts_of(connection, job)
    assert "undo" in moves.possible(job, counts, None)
    assert "undo" not in moves.possible(job, counts, Forbidden)
    with pytest.raises(Final, match="never taken back") as refused:
        begun(table, Forbidden, job)
    assert refused.value.code == Code.UNDO_NOT_POSSIBLE
