"""What several people ask of a job at once, or while a worker leaves it: nothing of it is lost, nobody is stuck."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from rowcall import Flow, Integer, Text
from rowcall.engine import moves, observe
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.errors import WrongState
from rowcall.model import State, Wish
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig

from .importing import declared, settings_for, sql, until_somebody_waits

TABLE = "CREATE TABLE t (id int PRIMARY KEY, place text)"
FIELDS: dict[str, Any] = {"id": Integer(required=True), "place": Text()}
SCOPED = declared("t", context=("place",), scope=("place",), flow=Flow(preview=True), **FIELDS)
_Asked = Callable[[Connection[Any], Job], Job]


class Desk:
    """A job in the middle of something, and people who ask for things."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.settings = database, settings_for(database, folder, batch_rows=2)
        sql(database, TABLE)
        self.job = self.brings()

    def brings(self) -> Job:
        with self.database.connect() as connection:
            rows, config = BytesIO(b"id\n1\n2\n3\n"), JobConfig(context={"place": "here"})
            return start_job(connection, self.settings, SCOPED, rows, file_name="rows.csv", config=config)

    def runs(self) -> Job:
        return run_job(Run(self.database, SCOPED, self.settings), self.job)

    def sees(self) -> Job:
        with self.database.connect() as connection:
            return jobs.get_job(connection, str(self.job.id))

    def asks(self, move: _Asked, seen: Job | None = None) -> Job:
        with self.database.connect() as connection, connection.transaction():
            return move(connection, seen or self.sees())

    @contextmanager
    def worked_on(self) -> Generator[Connection[Any]]:
        with self.database.connect() as connection:
            assert jobs.lock(connection, self.job.id)
            yield connection


class Meanwhile(observe.Listener):
    """Something that happens when a job has come to a state, before whoever works on it leaves."""

    def __init__(self, state: State, deed: Callable[[], Any]) -> None:
        self.state, self.deed = state, deed

    def moved(self, connection: Connection[Any], before: Job, after: Job, seconds: float) -> None:
        del connection, before, seconds
        if after.state is self.state:
            self.deed()


def test_who_pauses_doesn_t_take_away_that_somebody_has_cancelled(database: Database, tmp_path: Path) -> None:
    desk = Desk(database, tmp_path)
    seen = desk.sees()
    with desk.worked_on():
        desk.asks(moves.cancel)
        with pytest.raises(WrongState):
            desk.asks(moves.pause, seen)
    assert desk.sees().wish is Wish.CANCEL
    assert desk.runs().state is State.CANCELLED


def test_who_starts_a_second_time_doesn_t_take_away_that_somebody_has_cancelled(
    database: Database, tmp_path: Path
) -> None:
    desk = Desk(database, tmp_path)
    sql(database, "UPDATE rowcall.job SET wish = 'hold'")
    seen = desk.sees()
    desk.asks(moves.start)
    with desk.worked_on():
        desk.asks(moves.cancel)
        with pytest.raises(WrongState):
            desk.asks(moves.start, seen)
    assert desk.sees().wish is Wish.CANCEL


def test_what_is_asked_while_a_worker_leaves_a_job_that_waits_happens(database: Database, tmp_path: Path) -> None:
    """Nobody comes by a job that is VALIDATED: whoever leaves it sees to it."""
    desk = Desk(database, tmp_path)
    asked: list[Wish | None] = []
    cancel = Meanwhile(State.VALIDATED, lambda: asked.append(desk.asks(moves.cancel).wish))
    with observe.listening(cancel):
        assert desk.runs().state is State.CANCELLED
    assert asked == [Wish.CANCEL]


def test_who_cancels_while_a_worker_pauses_is_heard(database: Database, tmp_path: Path) -> None:
    desk = Desk(database, tmp_path)
    with desk.worked_on() as worker:
        desk.asks(moves.pause)
        seen = desk.sees()
        desk.asks(moves.cancel)
        moved = moves.granted(worker, seen)
    assert moved
    assert moved.state is State.CANCELLED


def test_a_job_is_cancelled_and_superseded_at_once(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both take what is planned, and the job: in the same order, or they would wait for each other."""
    desk = Desk(database, tmp_path)
    desk.runs()
    newer = threading.Thread(target=desk.brings)
    move = jobs.move

    def and_meanwhile(connection: Connection[Any], job: Job, state: State, **more: Any) -> Job:
        if state is State.CANCELLED:
            newer.start()
            until_somebody_waits(database)
        return move(connection, job, state, **more)

    sql(database, "UPDATE rowcall.job SET wish = 'cancel'")
    with desk.worked_on() as worker:
        monkeypatch.setattr(jobs, "move", and_meanwhile)
        moved = moves.granted(worker, desk.sees())
    newer.join()
    assert moved
    assert moved.state is State.CANCELLED
    assert sql(database, "SELECT state FROM rowcall.job ORDER BY created_at") == [("CANCELLED",), ("UPLOADED",)]
