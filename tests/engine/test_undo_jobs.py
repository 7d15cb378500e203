"""Undo of jobs that went odd ways, of odd tables, and by several at once (X2)."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from rowcall import Final, Integer, Text, Update
from rowcall.engine import moves
from rowcall.model import Code, State
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job

from .importing import declared, run_import, sql
from .undoing import begun, previewed, undone, work_on

FIELDS: dict[str, Any] = {"id": Integer(required=True), "name_": Text(), "parent": Integer()}
UPSERT = declared("t", key="id", on_match=Update(), **FIELDS)
TABLE = "CREATE TABLE t (id int PRIMARY KEY, name text, parent int); INSERT INTO t VALUES (1, 'one')"
FILE = "id,name\n1,uno\n2,dos\n3,tres\n"


def rows(database: Database) -> list[tuple[Any, ...]]:
    return sql(database, "SELECT id, name, parent FROM t ORDER BY id")


def test_rows_of_several_attempts_are_taken_back(database: Database) -> None:
    sql(database, TABLE)
    sql(database, "CREATE TABLE p (id int PRIMARY KEY); ALTER TABLE t ADD FOREIGN KEY (parent) REFERENCES p")
    before = rows(database)
    job = run_import(database, UPSERT, "id,name,parent\n1,uno,7\n2,dos,\n3,tres,7\n", batch_rows=2).job
    assert job.state is State.COMPLETED_WITH_ERRORS
    sql(database, "INSERT INTO p VALUES (7)")
    with database.connect() as connection, connection.transaction():
        job, _ = moves.reprocess(connection, job, UPSERT, Wanted(statuses=("failed",)))
    job = work_on(database, UPSERT, job)
    assert job.state is State.COMPLETED
    assert previewed(database, UPSERT, job).reversible == 3
    job, done = undone(database, UPSERT, job)
    assert (job.state, done.deleted, done.restored) == (State.REVERTED, 2, 1)
    assert rows(database) == before


def test_what_was_taken_back_is_not_tried_again(database: Database) -> None:
    sql(database, TABLE)
    job = run_import(database, UPSERT, FILE + "x,bad\n").job
    job, _ = undone(database, UPSERT, job, rows=(2,))
    assert job.state is State.COMPLETED_WITH_ERRORS
    with database.connect() as connection, connection.transaction():
        job, count = moves.reprocess(connection, job, UPSERT, Wanted(statuses=("failed",)))
    assert count == 1
    job = work_on(database, UPSERT, job)
    assert rows(database) == [(1, "uno", None), (3, "tres", None)]
    job, done = undone(database, UPSERT, job)
    assert (job.state, done.deleted, done.restored) == (State.REVERTED, 1, 1)
    assert rows(database) == [(1, "one", None)]


def test_rows_of_a_partitioned_table_come_back_to_their_partition(database: Database) -> None:
    sql(
        database,
        """
        CREATE TABLE t (id int, name text, parent int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (3);
        CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (3) TO (10);
        CREATE TABLE c (t int REFERENCES t ON DELETE SET NULL);
        INSERT INTO t VALUES (1, 'one'), (5, 'five')
        """,
    )
    own = "SELECT tableoid::regclass::text, id, name FROM t ORDER BY 2"
    before = sql(database, own)
    job = run_import(database, UPSERT, FILE + "4,cuatro\n5,cinco\n", batch_rows=2).job
    sql(database, "INSERT INTO c VALUES (4)")
    seen = previewed(database, UPSERT, job)
    assert (seen.to_delete, seen.to_restore, seen.blocked) == (2, 2, 1)
    job, done = undone(database, UPSERT, job)
    assert (done.deleted, done.restored, done.blocked) == (2, 2, 1)
    sql(database, "DELETE FROM c")
    assert undone(database, UPSERT, job)[0].state is State.REVERTED
    assert sql(database, own) == before


@pytest.mark.parametrize(("action", "kept"), [("CASCADE", "blocked"), ("NO ACTION", "refused")])
def test_what_may_be_referred_to_by_what_can_t_be_seen_is_kept(database: Database, action: str, kept: str) -> None:
    sql(database, TABLE)
    with database.connect() as connection:
        connection.execute(
            f"""
            CREATE TABLE c (t int CONSTRAINT c_t REFERENCES t ON DELETE {action});
            CREATE ROLE undoer LOGIN;
            GRANT USAGE ON SCHEMA rowcall, public TO undoer;
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rowcall TO undoer;
            GRANT SELECT, INSERT, UPDATE, DELETE ON t TO undoer
            """.encode()
        )
    undoer = replace(database, url=database.url.replace("postgres@", "undoer@", 1), keep=None)
    try:
        job = run_import(undoer, UPSERT, FILE).job
        sql(database, "INSERT INTO c VALUES (3)")
        job, done = undone(undoer, UPSERT, job)
        assert (job.state, done.restored) == (State.COMPLETED, 1)
        assert (done.deleted, getattr(done, kept)) == ((0, 2) if kept == "blocked" else (1, 1))
        assert sql(database, "SELECT t FROM c") == [(3,)]
        assert sql(database, "SELECT count(*) FROM t WHERE id = 3") == [(1,)]
    finally:
        sql(database, "DROP OWNED BY undoer; DROP ROLE undoer")


def test_of_several_who_ask_at_once_one_has_it_done(database: Database) -> None:
    sql(database, TABLE)
    job = run_import(database, UPSERT, FILE).job
    told: list[str] = []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait(30)
        try:
            told.append(begun(database, UPSERT, job).state)
        except Final as error:
            told.append(error.code)

    together(ask, 8)
    assert sorted(told) == ["REVERTING", *[Code.WRONG_STATE] * 7]
    ends: list[State] = []
    together(lambda: ends.append(work_on(database, UPSERT, job, at_once=1).state), 3)
    assert ends == [State.REVERTED] * 3
    assert rows(database) == [(1, "one", None)]
    assert sql(database, "SELECT count(*) FROM rowcall.undo") == [(1,)]


def together(what: Any, many: int) -> None:
    threads = [threading.Thread(target=what) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("at_once", "workers"), [(1_000, 1), (7, 1), (3, 4)])
def test_what_stays_depends_on_neither_slices_nor_workers(database: Database, at_once: int, workers: int) -> None:
    sql(
        database,
        """
        CREATE TABLE t (id int PRIMARY KEY, name text, parent int) PARTITION BY HASH (id);
        CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
        CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1);
        CREATE TABLE c (t int CONSTRAINT c_t REFERENCES t);
        INSERT INTO t VALUES (1, 'one'), (2, 'two')
        """,
    )
    text = "id,name\n" + "".join(f"{n},n{n}\n" for n in range(1, 61))
    job = run_import(database, UPSERT, text, batch_rows=20).job
    sql(database, "INSERT INTO c VALUES (11), (30), (30); UPDATE t SET name = 'mine' WHERE id IN (2, 40)")
    sql(database, "DELETE FROM t WHERE id = 50")
    job, done = undone(database, UPSERT, job, at_once=at_once, workers=workers)
    assert (done.deleted, done.restored, done.changed, done.blocked, done.gone) == (54, 1, 2, 2, 1)
    assert rows(database) == [
        (1, "one", None),
        (2, "mine", None),
        (11, "n11", None),
        (30, "n30", None),
        (40, "mine", None),
    ]
    sql(database, "DELETE FROM c; UPDATE t SET name = 'n40' WHERE id = 40")
    job, done = undone(database, UPSERT, job, at_once=at_once, workers=workers)
    assert (job.state, done.deleted, done.changed) == (State.COMPLETED, 2, 2)


def test_rows_that_somebody_writes_during_the_undo_are_kept(database: Database) -> None:
    sql(database, TABLE)
    job = run_import(database, UPSERT, FILE).job
    begun(database, UPSERT, job)
    with database.connect() as other:
        with other.transaction():
            other.execute("UPDATE t SET name = 'mine' WHERE id = 2")
            working = threading.Thread(target=work_on, args=(database, UPSERT, job))
            working.start()
            waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'"
            while not sql(database, f"SELECT EXISTS ({waits})")[0][0]:  # pyright: ignore[reportArgumentType] (of our own words)
                assert working.is_alive()
        working.join()
    assert rows(database) == [(1, "one", None), (2, "mine", None)]


def test_a_running_undo_pauses_between_slices_and_goes_on(database: Database) -> None:
    sql(database, TABLE)
    job = begun(database, UPSERT, run_import(database, UPSERT, FILE).job)
    with database.connect() as worker:
        assert jobs.lock(worker, job.id)
        assert asked(database, job, "pause").state is State.REVERTING
    job = work_on(database, UPSERT, job)
    assert (job.state, job.paused_from) == (State.PAUSED, State.REVERTING)
    assert len(rows(database)) == 3
    assert asked(database, job, "resume").state is State.REVERTING
    assert work_on(database, UPSERT, job).state is State.REVERTED


def asked(database: Database, job: Job, name: str) -> Job:
    with database.connect() as connection, connection.transaction():
        return getattr(moves, name)(connection, jobs.get_job(connection, str(job.id)))
