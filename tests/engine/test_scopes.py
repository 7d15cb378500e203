"""Uploads say what their file is about; of each scope one job is active, and newer ones take its place (A6, E2, E7)."""

import importlib
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from rowcall import Boolean, Choice, Date, Final, Flow, Importer, Integer, ItemImporter, ItemResult, Status, Text
from rowcall.engine import moves
from rowcall.engine.columns.answering import ColumnUpdate
from rowcall.engine.columns.templates import apply_template, save_from
from rowcall.engine.context import scope_of, with_context
from rowcall.engine.corrections.edit import edit_row
from rowcall.engine.preview.documents import preview_of
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.errors import RowcallError, WrongState
from rowcall.model import Code, State
from rowcall.store import jobs, scopes
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig, TemplateKey

from .asked import Asked
from .importing import declared, run_import, settings_for, sql

TABLE = "CREATE TABLE t (id int PRIMARY KEY, note text, registration text)"
FIELDS: dict[str, Any] = {"id": Integer(required=True), "note": Text()}
SCOPED = declared(
    "t",
    context=("registration",),
    scope=("registration",),
    flow=Flow(preview=True),
    registration=Text(max_length=10),
    **FIELDS,
)


class Desk:
    """Somebody who brings files for a scope."""

    def __init__(self, database: Database, folder: Path, importer: type[Importer] = SCOPED) -> None:
        self.database, self.importer = database, importer
        self.settings = settings_for(database, folder, batch_rows=2)

    def brings(self, text: str, registration: str = "R1", **config: Any) -> Job:
        config = {"context": {"registration": registration}, **config}
        with self.database.connect() as connection:
            return start_job(
                connection,
                self.settings,
                self.importer,
                BytesIO(text.encode()),
                file_name="rows.csv",
                config=JobConfig(**config),
            )

    def runs(self, job: Job) -> Job:
        return run_job(Run(self.database, self.importer, self.settings), job)

    def submits(self, job: Job) -> Job:
        with self.database.connect() as connection, connection.transaction():
            return moves.submit(connection, jobs.get_job(connection, str(job.id)), {moves.ANY_PLAN})[0]

    def sees(self, job: Job) -> Job:
        with self.database.connect() as connection:
            return jobs.get_job(connection, str(job.id))


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> Desk:
    sql(database, TABLE)
    return Desk(database, tmp_path)


# -------------------------------------------------------------------------------------------------------------- context


def test_a6_the_context_is_kept_with_the_job_and_fills_the_field_of_its_name(desk: Desk) -> None:
    job = desk.runs(desk.brings("id,note\n1,a\n", " Re\u0301 "))
    assert (job.context, job.scope_key) == ({"registration": "R\u00e9"}, "R\u00e9")
    desk.runs(desk.submits(job))
    assert sql(desk.database, "SELECT id, note, registration FROM t") == [(1, "a", "R\u00e9")]


def test_neither_a_template_nor_a_person_says_otherwise(desk: Desk, tmp_path: Path) -> None:
    """Rows go where the scope of their job is."""
    key, database = TemplateKey("crm", "usual"), desk.database
    first = desk.runs(desk.brings("id,note\n1,a\n", "R1"))
    waits = Asked(database, tmp_path, SCOPED, "id,note,r\n2,b,R9\n", context={"registration": "R2"}, ask="always")
    with database.connect() as connection, connection.transaction():
        assert save_from(connection, first, key, "ann").constants == {}
        connection.execute(
            'UPDATE rowcall.mapping_template SET constants = \'{"registration": "R1"}\''
        )  # as it was saved
        apply_template(connection, waits.job, SCOPED, key, "ann")
    waits.says(constants={"registration": "R2"})
    for other in ("R7", None):
        with pytest.raises(Final, match="the context of this job says so"):
            waits.says(constants={"registration": other})
    with pytest.raises(Final, match="the context of this job says so"):
        waits.says(ColumnUpdate(position=2, target_field="registration"))
    desk.runs(desk.submits(waits.goes_on()))
    assert sql(database, "SELECT id, registration FROM t") == [(2, "R2")]


def test_a_column_of_the_file_doesn_t_say_otherwise(desk: Desk) -> None:
    job = desk.runs(desk.brings("id,registration\n1,R9\n", "R7"))
    desk.runs(desk.submits(job))
    assert sql(desk.database, "SELECT registration FROM t") == [("R7",)]


@pytest.mark.parametrize(
    ("context", "told"),
    [
        ({}, "registration: A value is required"),
        ({"registration": "  "}, "registration: A value is required"),
        ({"registration": "R1", "season": "2026"}, "has no 'season'"),
        ({"registration": "R" * 11}, "registration:"),
        ({"registration": "R\x001"}, "NUL"),
    ],
)
def test_a_context_that_doesn_t_fit_is_refused_before_there_is_a_job(
    desk: Desk, context: dict[str, str], told: str
) -> None:
    with pytest.raises(Final) as caught:
        desk.brings("id\n1\n", context=context)
    assert caught.value.code == Code.BAD_CONTEXT
    assert told in caught.value.message
    assert sql(desk.database, "SELECT count(*) FROM rowcall.job") == [(0,)]


def test_a_constant_can_t_contradict_the_context(desk: Desk) -> None:
    with pytest.raises(Final, match="a constant says 'R2'"):
        desk.brings("id\n1\n", constants={"registration": "R2"})


def test_an_importer_without_context_takes_none() -> None:
    plain = declared("t", **FIELDS)
    assert with_context(plain, JobConfig()).context == {}
    with pytest.raises(Final, match="has no 'registration'"):
        with_context(plain, JobConfig(context={"registration": "R1"}))


class Gated(Importer):
    """Participants of another system can't bring our keys."""

    target = "t"
    context = {  # noqa: RUF012 (as importers are written)
        "source": Choice("self", "external", required=True),
        "trust_keys": Boolean(default=False),
        "season": Date(),
    }
    scope = ("source", "trust_keys")

    id = Integer(required=True)

    def refuse(self, context: Any) -> str | None:
        if context["source"] == "external" and context["trust_keys"] == "true":
            return "Other systems can't supply our keys."
        return None


def test_a6_typed_contexts_are_read_and_judged_as_a_whole() -> None:
    told = with_context(Gated, JobConfig(context={"source": "SELF", "trust_keys": "Yes", "season": "5 Jan 2026"}))
    assert told.context == {"source": "self", "trust_keys": "true", "season": "2026-01-05"}
    assert scope_of(Gated, told) == '["self","true"]'
    assert with_context(Gated, JobConfig(context={"source": "self"})).context["trust_keys"] == "false"
    with pytest.raises(Final, match="can't supply our keys") as caught:
        with_context(Gated, JobConfig(context={"source": "external", "trust_keys": "1"}))
    assert caught.value.code == Code.BAD_CONTEXT


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"scope": ("registration",)}, ".scope: 'registration' is not of the context"),
        ({"context": ("Registration",)}, ".context: names in small letters"),
        ({"context": {"season": Integer()}, "scope": "season"}, ".scope: 'season' may be missing"),
        ({"context": {"season": 5}}, ".context: season is 5; a field"),
        ({"context": tuple(f"k{n}" for n in range(21))}, "20 are the most"),
        ({"scope": (5,)}, ".scope: names of the context"),
    ],
)
def test_mistakes_in_declarations_are_told(attributes: dict[str, Any], told: str) -> None:
    with pytest.raises(Final) as caught:
        declared("t", **FIELDS, **attributes)
    assert caught.value.code == Code.BAD_DECLARATION
    assert told in caught.value.message


# ---------------------------------------------------------------------------------------------------------------- scope


def test_e2_a_newer_job_takes_the_place_of_one_that_waits(desk: Desk) -> None:
    first = desk.runs(desk.brings("id\n1\n2\n3\n"))
    assert first.state is State.VALIDATED
    second = desk.brings("id\n4\n")
    assert [each["number"] for each in second.supersedes] == [first.number]
    seen = desk.sees(first)
    assert (seen.state, seen.completed_at is not None) == (State.SUPERSEDED, True)
    assert seen.superseded_by == {"id": str(second.id), "number": second.number, "account": second.account}
    with pytest.raises(WrongState) as caught:
        desk.submits(first)
    assert (caught.value.code, caught.value.job) == (
        Code.SUPERSEDED,
        {"id": str(second.id), "number": second.number},
    )
    assert desk.runs(first).state is State.SUPERSEDED
    desk.runs(desk.submits(desk.runs(second)))
    assert sql(desk.database, "SELECT id FROM t") == [(4,)]
    assert sql(desk.database, "SELECT DISTINCT job_id FROM rowcall.outcome") == [(second.id,)]


def test_a_superseded_job_s_plan_is_gone_and_its_rows_are_cancelled(desk: Desk) -> None:
    first = desk.runs(desk.brings("id\n1\n2\n3\n"))
    desk.brings("id\n4\n")
    with desk.database.connect() as connection:
        counts = jobs.counts_of(connection, first)
        statuses = connection.execute(
            "SELECT status, count(*) FROM rowcall.row_status WHERE job_id = %s GROUP BY 1", [first.id]
        ).fetchall()
        events = connection.execute(
            "SELECT before, after FROM rowcall.job_event WHERE job_id = %s ORDER BY id DESC LIMIT 1", [first.id]
        ).fetchall()
        kept = [
            connection.execute(f"SELECT count(*) FROM rowcall.{table} WHERE job_id = %s", [first.id]).fetchone()
            for table in ("outcome", "plan", "plan_piece")
        ]
        with pytest.raises(WrongState, match="SUPERSEDED and has no preview"):
            preview_of(connection, jobs.get_job(connection, str(first.id)), desk.importer)
    assert (counts.done, statuses, events) == (0, [("cancelled", 3)], [("VALIDATED", "SUPERSEDED")])
    assert kept == [(0,)] * 3


@pytest.mark.parametrize("other", ["another registration", "a dry run", "another importer"])
def test_what_is_of_another_scope_stays(desk: Desk, other: str) -> None:
    first = desk.runs(desk.brings("id\n1\n"))
    if other == "another registration":
        desk.brings("id\n4\n", "r1")
    elif other == "a dry run":
        assert desk.brings("id\n4\n", dry_run=True).scope_key is None
    else:
        importer = declared("t", name="others", context=("registration",), scope=("registration",), **FIELDS)
        Desk(desk.database, desk.settings.data_dir, importer).brings("id\n4\n")
    assert desk.sees(first).state is State.VALIDATED


def test_one_at_a_time_of_an_importer(desk: Desk) -> None:
    alone = Desk(desk.database, desk.settings.data_dir, declared("t", scope=(), flow=Flow(preview=True), **FIELDS))
    first = alone.runs(alone.brings("id\n1\n", context={}))
    assert first.scope_key == ""
    alone.brings("id\n2\n", context={})
    assert alone.sees(first).state is State.SUPERSEDED


def test_paused_jobs_that_have_written_nothing_are_superseded(desk: Desk) -> None:
    first = desk.brings("id\n1\n")
    with desk.database.connect() as connection, connection.transaction():
        moves.pause(connection, first)
    assert desk.sees(first).state is State.PAUSED
    desk.brings("id\n2\n")
    assert desk.sees(first).state is State.SUPERSEDED


def moved(desk: Desk, job: Job, *states: State) -> Job:
    with desk.database.connect() as connection:
        for state in states:
            job = jobs.move(connection, job, state)
    return job


@pytest.mark.parametrize("after", [(), (State.PAUSED,), (State.CELL_MAPPING,), (State.COMPLETED, State.REVERTING)])
def test_e2_an_upload_is_refused_while_a_job_of_its_scope_writes(desk: Desk, after: tuple[State, ...]) -> None:
    first = moved(desk, desk.submits(desk.runs(desk.brings("id\n1\n"))), *after)
    with pytest.raises(WrongState) as caught:
        desk.brings("id\n2\n")
    assert (caught.value.code, caught.value.job) == (Code.SCOPE_BUSY, {"id": str(first.id), "number": first.number})
    assert first.number in caught.value.message
    assert desk.sees(first).state is first.state
    assert sql(desk.database, "SELECT count(*) FROM rowcall.job") == [(1,)]
    assert desk.brings("id\n2\n", "R2").state is State.UPLOADED


def test_an_ended_job_is_not_begun_again_while_a_newer_one_is_active(desk: Desk) -> None:
    first = desk.runs(desk.submits(desk.runs(desk.brings("id\n1\nx\n"))))
    assert first.state is State.COMPLETED_WITH_ERRORS
    second = desk.brings("id\n2\n")
    with desk.database.connect() as connection, connection.transaction(), pytest.raises(WrongState) as caught:
        jobs.move(connection, first, State.PROCESSING)
    assert (caught.value.code, caught.value.job) == (Code.SCOPE_BUSY, {"id": str(second.id), "number": second.number})
    assert [desk.sees(job).state for job in (first, second)] == [State.COMPLETED_WITH_ERRORS, State.UPLOADED]


def test_the_same_file_again_goes_on_with_the_interrupted_job(desk: Desk) -> None:
    first = desk.brings("id\n1\n")
    assert desk.brings("id\n1\n").id == first.id
    assert desk.brings("id\n1\n", "R2").id != first.id  # another context is another job


def test_a_database_holds_it_whatever_programs_do(desk: Desk) -> None:
    first = desk.brings("id\n1\n")
    with desk.database.connect() as connection, pytest.raises(psycopg.errors.UniqueViolation, match="job_scope"):
        connection.execute(
            "INSERT INTO rowcall.job (id, number, importer, config, file_sha256, file_name, account, state, scope_key) "
            "SELECT gen_random_uuid(), 'BU1', importer, config, file_sha256, file_name, account, 'PAUSED', scope_key "
            "FROM rowcall.job WHERE id = %s",
            [first.id],
        )


# ------------------------------------------------------------------------------------------------ while it is worked on


def interrupted_by(desk: Desk, monkeypatch: pytest.MonkeyPatch, place: str) -> Any:
    """Run a job whose work stands still at a place until a newer one has come; both."""
    reached, go_on = threading.Event(), threading.Event()
    module, _, name = place.rpartition(".")
    home = importlib.import_module(module)
    real: Callable[..., Any] = getattr(home, name)

    def stands(*given: Any, **more: Any) -> Any:
        if not reached.is_set():
            reached.set()
            assert go_on.wait(30)
        return real(*given, **more)

    monkeypatch.setattr(home, name, stands)
    first = desk.brings("id\n1\n2\n3\n4\n5\n")
    ended: list[Job] = []
    thread = threading.Thread(target=lambda: ended.append(desk.runs(first)))
    thread.start()
    assert reached.wait(30)
    second = desk.brings("id\n9\n")
    go_on.set()
    thread.join()
    return ended[0], second


@pytest.mark.parametrize(
    "place",
    [
        "rowcall.engine.ingest.add_batch",
        "rowcall.engine.advance.decide_readings",
        "rowcall.engine.advance.decide_duplicates",
        "rowcall.engine.commit.hold_state",
        "rowcall.engine.advance.finish_job",
    ],
)
def test_a_worker_on_a_superseded_job_notices_and_writes_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    first, second = interrupted_by(desk, monkeypatch, place)
    assert (first.state, first.superseded_by["id"]) == (State.SUPERSEDED, str(second.id))
    for table in ("outcome", "plan", "plan_piece", "batch WHERE state = 'done'"):
        assert sql(desk.database, f"SELECT count(*) FROM rowcall.{table}") == [(0,)]
    assert desk.runs(desk.submits(desk.runs(second))).state is State.COMPLETED
    assert sql(desk.database, "SELECT id FROM t") == [(9,)]


class AskingElsewhere(ItemImporter):
    """Asks somebody else about each row, once its plan is agreed to."""

    context = ("registration",)
    scope = ("registration",)
    flow = Flow(preview=True)
    id = Integer(required=True)

    async def process(self, row: Mapping[str, object]) -> ItemResult:
        return ItemResult(Status.CREATED, (str(row["id"]),))


def test_a_worker_whose_items_are_planned_as_their_job_is_superseded_leaves_no_plan(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(database, tmp_path, AskingElsewhere)
    first, _ = interrupted_by(desk, monkeypatch, "rowcall.engine.items.asked_nobody")
    assert first.state is State.SUPERSEDED
    for table in ("outcome", "plan", "plan_piece", "batch WHERE state = 'done'"):
        assert sql(database, f"SELECT count(*) FROM rowcall.{table}") == [(0,)]


def edits(desk: Desk, connection: Connection[Any], job: Job) -> None:
    edit_row(connection, job, desk.importer, 1, {"note": "new"}, who="ann", revision=0)


def submits(_: Desk, connection: Connection[Any], job: Job) -> None:
    moves.submit(connection, job, {moves.ANY_PLAN})


@contextmanager
def waits(desk: Desk, deed: Callable[[], object]) -> Generator[list[BaseException]]:
    """A deed that has to wait for what is under way; how it failed, afterwards."""
    failed: list[BaseException] = []

    def do() -> None:
        try:
            deed()
        except RowcallError as error:
            failed.append(error)

    thread = threading.Thread(target=do)
    thread.start()
    with desk.database.connect() as watcher:
        blocked = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        while watcher.execute(blocked).fetchone() == (0,):
            assert thread.is_alive(), failed
    yield failed
    thread.join()


def test_a_row_that_is_corrected_as_its_job_is_superseded_leaves_no_plan(desk: Desk) -> None:
    first = desk.runs(desk.brings("id,note\n1,old\n2,old\n3,old\n"))
    with desk.database.connect() as connection, ExitStack() as until_committed, connection.transaction():
        edits(desk, connection, first)
        failed = until_committed.enter_context(waits(desk, lambda: desk.brings("id\n9\n")))
    assert (failed, desk.sees(first).state) == ([], State.SUPERSEDED)
    for table in ("outcome", "plan", "plan_piece", "batch WHERE state = 'done'"):
        assert sql(desk.database, f"SELECT count(*) FROM rowcall.{table}") == [(0,)]


def test_a_job_that_is_submitted_as_a_newer_one_comes_counts(desk: Desk) -> None:
    first = desk.runs(desk.brings("id\n1\n2\n3\n"))
    with desk.database.connect() as connection, ExitStack() as until_committed, connection.transaction():
        submits(desk, connection, first)
        failed = until_committed.enter_context(waits(desk, lambda: desk.brings("id\n9\n")))
    assert [error.code for error in failed if isinstance(error, RowcallError)] == [Code.SCOPE_BUSY]
    assert desk.runs(first).state is State.COMPLETED


@pytest.mark.parametrize("deed", [edits, submits])
def test_who_comes_as_a_job_is_superseded_is_told_and_changes_nothing(
    desk: Desk, deed: Callable[[Desk, Connection[Any], Job], None]
) -> None:
    first = desk.runs(desk.brings("id,note\n1,old\n2,old\n3,old\n"))

    def late() -> None:
        with desk.database.connect() as connection, connection.transaction():
            deed(desk, connection, first)

    place = scopes.Place(organisation=first.organisation_id, importer=first.importer, scope=first.scope_key or "")
    newer = {"id": str(jobs.new_id()), "number": "BU1", "account": "ann"}
    with desk.database.connect() as connection, ExitStack() as until_committed, connection.transaction():
        assert [each.job_id for each in scopes.supersede(connection, place, newer)] == [first.id]
        failed = until_committed.enter_context(waits(desk, late))
    assert [error.code for error in failed if isinstance(error, RowcallError)] == [Code.SUPERSEDED]
    for table in ("outcome", "plan", "plan_piece", "cell_edit", "batch WHERE state = 'done'"):
        assert sql(desk.database, f"SELECT count(*) FROM rowcall.{table}") == [(0,)]


def test_a_worker_that_is_about_to_write_at_once_writes_nothing(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql(database, TABLE)
    straight = declared("t", scope=("registration",), context=("registration",), **FIELDS)
    desk = Desk(database, tmp_path, straight)
    first, second = interrupted_by(desk, monkeypatch, "rowcall.engine.advance.start_processing")
    assert first.state is State.SUPERSEDED
    assert desk.runs(second).state is State.COMPLETED
    assert sql(database, "SELECT id FROM t") == [(9,)]


def test_importers_without_a_scope_have_as_many_jobs_as_come(database: Database) -> None:
    sql(database, TABLE)
    plain = declared("t", **FIELDS)
    assert {run_import(database, plain, f"id\n{n}\n").job.scope_key for n in range(3)} == {None}
