"""What can't be taken back, and says why before and after it is tried (X2)."""

import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from rowcall import Final, Importer, Integer, Text, Update
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.errors import WrongState
from rowcall.model import Code, State
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig

from .importing import declared, run_import, settings_for, sql
from .test_processors import Barcodes, RaceResults
from .test_scopes import Desk
from .undoing import begun, previewed, undone, work_on

FIELDS: dict[str, Any] = {"id": Integer(required=True), "name_": Text()}
TABLE = "CREATE TABLE t (id int PRIMARY KEY, name text); INSERT INTO t VALUES (1, 'one')"
UPSERT = declared("t", key="id", on_match=Update(), **FIELDS)
WHOLE = declared("t", key="id", on_match=Update(), atomic=True, **FIELDS)
FILE = "id,name\n1,uno\n2,dos\n3,tres\n"


def names(database: Database) -> list[tuple[Any, ...]]:
    return sql(database, "SELECT id, name FROM t ORDER BY id")


def refused(database: Database, importer: type[Importer], job: Job) -> str:
    """Why it is refused, both to who looks and to who asks for it."""
    why = previewed(database, importer, job).refusal
    with pytest.raises(Final) as error:
        begun(database, importer, job)
    assert (error.value.code, error.value.message) == (Code.UNDO_NOT_POSSIBLE, why)
    return error.value.message


@pytest.mark.parametrize(("importer", "text"), [(RaceResults, "runner,seconds\nA,1\n"), (Barcodes, "barcode\n1\n")])
def test_what_an_importer_does_by_its_own_code(database: Database, importer: type[Importer], text: str) -> None:
    job = work_on_file(database, importer, text)
    assert "processes rows by its own code" in refused(database, importer, job)


def work_on_file(database: Database, importer: type[Importer], text: str) -> Job:
    with tempfile.TemporaryDirectory() as folder:
        own = settings_for(database, Path(folder))
        with database.connect() as connection:
            file = BytesIO(text.encode())
            job = start_job(connection, own, importer, file, file_name="rows.csv", config=JobConfig())
        return run_job(Run(database, importer, own), job)


def test_a_table_without_primary_key(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int, name text)")
    importer = declared("t", **FIELDS)
    job = run_import(database, importer, FILE).job
    assert "no primary key" in refused(database, importer, job)
    assert len(names(database)) == 3


def test_a_table_that_has_lost_its_primary_key_since(database: Database) -> None:
    sql(database, TABLE)
    job = run_import(database, UPSERT, FILE).job
    sql(database, "ALTER TABLE t DROP CONSTRAINT t_pkey")
    now = work_on(database, UPSERT, begun(database, UPSERT, job))
    assert (now.state, (now.last_error or {})["code"]) == (State.COMPLETED, "UNDO_NOT_POSSIBLE")
    assert (now.last_error or {})["hint"]
    assert len(names(database)) == 3


def test_a_job_whose_database_was_restored_from_a_dump(database: Database) -> None:
    sql(database, TABLE)
    job = run_import(database, UPSERT, FILE).job
    sql(database, "UPDATE rowcall.outcome SET at = at; UPDATE t SET id = id")  # other transactions write all of it
    assert "restored from a dump" in refused(database, UPSERT, job)


def test_a_job_from_before_it_was_kept_who_wrote_last(database: Database) -> None:
    sql(database, TABLE)
    job = run_import(database, UPSERT, FILE).job
    sql(database, "UPDATE rowcall.batch SET stamp = NULL")
    assert "was imported before Rowcall kept" in refused(database, UPSERT, job)


def test_all_or_nothing_is_taken_back_as_a_whole_or_in_part_if_that_is_said(database: Database) -> None:
    sql(database, TABLE)
    before = names(database)
    job = run_import(database, WHOLE, FILE).job
    sql(database, "UPDATE t SET name = 'mine' WHERE id = 2")
    now = names(database)
    assert "1 row would have to stay" in (previewed(database, WHOLE, job).refusal or "")
    job = work_on(database, WHOLE, begun(database, WHOLE, job), at_once=1)
    assert (job.state, (job.last_error or {})["code"]) == (State.COMPLETED, "UNDO_INCOMPLETE")
    assert names(database) == now
    job, done = undone(database, WHOLE, job, partial=True)
    assert (job.state, job.last_error, done.deleted, done.restored, done.changed) == (State.COMPLETED, None, 1, 1, 1)
    assert names(database) == [*before, (2, "mine")]
    sql(database, "DELETE FROM t WHERE id = 2")
    assert undone(database, WHOLE, job)[0].state is State.REVERTED


def test_all_or_nothing_is_taken_back_in_one_transaction(database: Database) -> None:
    sql(database, TABLE)
    before = names(database)
    job = run_import(database, WHOLE, FILE, batch_rows=1).job
    assert previewed(database, WHOLE, job).refusal is None
    assert undone(database, WHOLE, job, at_once=1)[0].state is State.REVERTED
    assert names(database) == before


def test_another_job_of_the_scope_is_in_the_way(database: Database, tmp_path: Path) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, note text, registration text)")
    desk = Desk(database, tmp_path)
    done = desk.runs(desk.submits(desk.runs(desk.brings("id\n1\n"))))
    waiting = desk.runs(desk.brings("id\n2\n"))
    with pytest.raises(WrongState) as busy:
        begun(database, desk.importer, done)
    assert (busy.value.code, busy.value.job) == (
        Code.SCOPE_BUSY,
        {"id": str(waiting.id), "number": waiting.number},
    )
    assert desk.sees(done).state is State.COMPLETED
    assert sql(database, "SELECT count(*) FROM rowcall.undo") == [(0,)]


def test_nothing_new_comes_into_a_scope_while_a_job_of_it_is_taken_back(database: Database, tmp_path: Path) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, note text, registration text)")
    desk = Desk(database, tmp_path)
    done = desk.runs(desk.submits(desk.runs(desk.brings("id\n1\n"))))
    begun(database, desk.importer, done)
    with pytest.raises(WrongState, match=done.number) as busy:
        desk.brings("id\n2\n")
    assert busy.value.code == Code.SCOPE_BUSY
    assert desk.runs(done).state is State.REVERTED
    assert desk.runs(desk.brings("id\n2\n")).state is State.VALIDATED
