"""Whatever is asked of jobs, in whatever order: each is where a model says, and the target has what the model has.

The model knows the rules that people are told, and nothing of how they are kept.
"""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from rowcall import Flow, Importer, Integer, Lookup, Text, Update
from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.config import Settings
from rowcall.importer.registry import Pack, Registry
from rowcall.store.db import Database
from rowcall.store.tenancy import open_to_api
from rowcall.worker.queue import migrate_queue
from rowcall.worker.worker import Worker

from .town import served

TABLES = """
    CREATE TABLE colour (id int PRIMARY KEY, name text NOT NULL UNIQUE);
    INSERT INTO colour VALUES (1, 'red'), (2, 'blue');
    CREATE TABLE thing (id int PRIMARY KEY, label text NOT NULL, colour_id int);
"""
LONG = "too long"


class Things(Importer):
    """Things of a shop; the colours are asked about."""

    target = "thing"
    key = "id"
    on_match = Update()
    flow = Flow(columns="unsure", preview=True)
    context = ("shop",)
    scope = ("shop",)

    id = Integer(required=True)
    label = Text(required=True, max_length=5)
    colour_id = Lookup("colour", by="name", aliases=["colour"], on_missing="ask")


# ---------------------------------------------------------------------------------------------------------- the model


@dataclass
class Thing:
    """A row of the target. Whoever writes it leaves a mark of their own."""

    label: str
    colour: int | None
    mark: int


@dataclass
class Row:
    """A row of a file, and what became of it."""

    id: int
    label: str
    colour: str
    status: str = "pending"
    planned_on: int | None = None
    """The mark of the thing that the plan was made for."""
    wrote: int | None = None
    before: Thing | None = None


@dataclass
class Job:
    """A job, as the rules have it."""

    key: str
    shop: str
    rows: dict[int, Row]
    unsure: bool
    unknown: set[str]
    state: str = "UPLOADED"
    held: bool = False
    paused_from: str = ""
    undone_from: str = ""
    written: bool = False
    means: dict[str, int | None] = field(default_factory=lambda: {"red": 1, "blue": 2, "": None})


ENDED = {"CANCELLED", "SUPERSEDED", "COMPLETED", "COMPLETED_WITH_ERRORS", "REVERTED"}
WORKING = {"UPLOADED", "COLUMN_MAPPING", "CELL_MAPPING", "PROCESSING", "REVERTING"}
UNWRITTEN = {"UPLOADED", "COLUMN_MAPPING", "CELL_MAPPING", "VALIDATED"}
MOVES = ("start", "pause", "resume", "cancel", "submit", "reprocess", "undo")


def may(job: Job, move: str) -> bool:
    """Whether a move is possible, by the rules."""
    state = job.state
    match move:
        case "start":
            return state == "UPLOADED" and job.held
        case "pause":
            return state in WORKING
        case "resume":
            return state == "PAUSED"
        case "cancel":
            return state in WORKING | {"VALIDATED", "PAUSED"}
        case "submit":
            return state == "VALIDATED"
        case "reprocess":
            return state in ("COMPLETED", "COMPLETED_WITH_ERRORS")
        case _:
            written = any(row.status in ("created", "updated") for row in job.rows.values())
            return state in ("COMPLETED", "COMPLETED_WITH_ERRORS", "CANCELLED") and written


# -------------------------------------------------------------------------------------------------------- the machine


@dataclass
class World:
    """A service, and a worker to call by hand."""

    client: httpx.Client
    worker: Worker
    database: Database

    def sql(self, statement: str, *given: Any) -> list[tuple[Any, ...]]:
        with self.database.connect() as connection:
            cursor = connection.execute(statement.encode(), given)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def a_world(database: Database, folder: Path) -> Generator[World]:
    registry = Registry((Pack("things", "things", (Things,)),))
    options = Settings(database_url=database.url, data_dir=folder, batch_rows_min=2, batch_rows_max=2, workers=2)
    with database.connect() as connection:
        migrate_queue(connection)
        connection.execute(TABLES.encode())
        open_to_api(connection)
    app = create_app(Service(options, registry, database.pool("serve", 4)))
    with served(app) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield World(client, Worker(database, registry, options), database)


_LABELS = st.sampled_from(["a", "b", LONG])
_COLOURS = st.sampled_from(["", "red", "blue", "new"])
_ROWS = st.dictionaries(st.integers(1, 6), st.tuples(_LABELS, _COLOURS), min_size=1, max_size=5)
_SHOPS = st.sampled_from(["north", "south"])
_SELDOM = st.sampled_from([False, False, False, True])
_MOST = 4
_WHICHEVER = {"If-Match": "*"}


class Jobs(RuleBasedStateMachine):
    """People who ask for things, and one who changes the target meanwhile."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []
        self.things: dict[int, Thing] = {}
        self.numbers = count(1)
        self.world.sql("TRUNCATE thing, rowcall.job, rowcall.value_decision, rowcall.column_decision CASCADE")

    # -- what people do

    @precondition(lambda self: len(self.jobs) < _MOST)
    @rule(rows=_ROWS, shop=_SHOPS, unsure=_SELDOM, held=_SELDOM)
    def upload(self, rows: dict[int, tuple[str, str]], shop: str, unsure: bool, held: bool) -> None:
        """A file; what is under way in its shop makes way for it, unless it is being written."""
        new = f"shade{next(self.numbers)}"
        told = [Row(n, label, new if colour == "new" else colour) for n, (label, colour) in rows.items()]
        header = f"id,{new},colour" if unsure else "id,label,colour"  # whoever was told once need not ask again
        text = header + "\n" + "".join(f"{row.id},{row.label},{row.colour}\n" for row in told)
        answer = self.world.client.post(
            "/v1/imports",
            data={
                "importer": "things",
                "context": f'{{"shop": "{shop}"}}',
                "config": '{"hold": true}' if held else "{}",
            },
            files={"file": ("things.csv", text)},
        )
        others = [job for job in self.jobs if job.shop == shop and job.state not in ENDED]
        if any((job.paused_from or job.state) in ("PROCESSING", "REVERTING") for job in others):
            assert answer.status_code == 409, answer.text
            return
        assert answer.status_code == 202, answer.text
        for job in others:
            job.state, job.held, job.paused_from = "SUPERSEDED", False, ""
        unknown = {row.colour for row in told if row.colour == new}
        rows_by_number = dict(enumerate(told, start=1))
        self.jobs.append(Job(answer.json()["id"], shop, rows_by_number, unsure, unknown, held=held))

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def work(self, data: st.DataObject) -> None:
        """A worker takes a job as far as it goes."""
        self._work_on(self._some(data))

    def _work_on(self, job: Job) -> None:
        self.world.worker.advance(job.key)
        while self._step(job):
            pass

    def _step(self, job: Job) -> bool:
        """What the job comes to next, if it goes on by itself."""
        if job.held:
            return False
        match job.state:
            case "UPLOADED":
                job.state = "COLUMN_MAPPING"
            case "COLUMN_MAPPING":
                job.held = job.unsure
                job.state = job.state if job.unsure else "CELL_MAPPING"
            case "CELL_MAPPING":
                job.held = bool(job.unknown)
                if not job.unknown:
                    self._plan(job)
            case "PROCESSING":
                self._write(job)
            case "REVERTING":
                self._take_back(job)
            case _:
                return False
        return True

    @precondition(lambda self: any(job.state == "COLUMN_MAPPING" and job.held for job in self.jobs))
    @rule(data=st.data(), answered=st.booleans())
    def map_columns(self, data: st.DataObject, answered: bool) -> None:
        """Say which column is the label, or confirm without saying."""
        asking = [job for job in self.jobs if job.state == "COLUMN_MAPPING" and job.held]
        self._map_columns(data.draw(st.sampled_from(asking)), answered=answered)

    def _map_columns(self, job: Job, *, answered: bool) -> None:
        if answered:
            said = {"updates": [{"position": 1, "targetField": "label"}]}
            assert self._ask(job, "PUT", "column-mappings", json=said).status_code == 200
            job.unsure = False
        confirmed = self._ask(job, "POST", "column-mappings/confirm")
        assert confirmed.status_code == (406 if job.unsure else 202), confirmed.text
        job.held = job.unsure

    @precondition(lambda self: any(job.state == "CELL_MAPPING" and job.held for job in self.jobs))
    @rule(data=st.data(), meaning=st.sampled_from([1, 2, None, "nothing"]))
    def map_values(self, data: st.DataObject, meaning: Any) -> None:
        """Say what a new colour stands for: one that is there, none; or confirm without saying."""
        asking = [job for job in self.jobs if job.state == "CELL_MAPPING" and job.held]
        self._map_values(data.draw(st.sampled_from(asking)), meaning)

    def _map_values(self, job: Job, meaning: Any) -> None:
        if meaning != "nothing":
            (value,) = job.unknown
            said: dict[str, Any] = {"field": "colour_id", "value": value}
            said |= {"ignore": True} if meaning is None else {"targetId": str(meaning)}
            answer = self._ask(job, "PUT", "cell-mappings", json={"updates": [said]})
            assert answer.status_code == 200, answer.text
            job.means[value] = meaning
            job.unknown = set()
        confirmed = self._ask(job, "POST", "cell-mappings/confirm")
        assert confirmed.status_code == (406 if job.unknown else 202), confirmed.text
        job.held = bool(job.unknown)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), stale=_SELDOM)
    def move(self, data: st.DataObject, stale: bool) -> None:
        """Ask for a move that the rules have."""
        job = self._some(data)
        if moves := [move for move in MOVES if may(job, move)]:
            self._ask_for(job, data.draw(st.sampled_from(moves)), stale=stale)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def ask_for_too_much(self, data: st.DataObject) -> None:
        """Ask for all that the rules don't have now."""
        job = self._some(data)
        for move in MOVES:
            if not may(job, move):
                self._ask_for(job, move, stale=True)

    @precondition(lambda self: any(job.state in UNWRITTEN for job in self.jobs))
    @rule(data=st.data(), meaning=st.sampled_from([1, 2, None]), submit=st.booleans())
    def carry_on(self, data: st.DataObject, meaning: int | None, submit: bool) -> None:
        """Answer whatever is asked until it is known what would happen; have that done or not."""
        job = data.draw(st.sampled_from([job for job in self.jobs if job.state in UNWRITTEN]))
        while job.state != "VALIDATED":
            if job.held and job.state == "UPLOADED":
                self._ask_for(job, "start")
            elif job.held and job.state == "COLUMN_MAPPING":
                self._map_columns(job, answered=True)
            elif job.held:
                self._map_values(job, meaning)
            self._work_on(job)
        if submit:
            self._ask_for(job, "submit")
            self._work_on(job)

    @precondition(lambda self: any(job.state == "COMPLETED_WITH_ERRORS" for job in self.jobs))
    @rule(data=st.data())
    def mend(self, data: st.DataObject) -> None:
        """Correct a row that failed, and have the failed ones tried again."""
        job = data.draw(st.sampled_from([job for job in self.jobs if job.state == "COMPLETED_WITH_ERRORS"]))
        number = data.draw(st.sampled_from(sorted(n for n, row in job.rows.items() if row.status == "failed")))
        answer = self._ask(job, "PATCH", f"items/{number}", json={"cells": {"label": "c"}}, headers=_WHICHEVER)
        assert answer.status_code == 200, answer.text
        job.rows[number].label = "c"
        self._ask_for(job, "reprocess")

    def _ask_for(self, job: Job, move: str, *, stale: bool = False) -> None:
        """Ask for a move. What is refused changes nothing."""
        before = self._look(job)
        more: dict[str, Any] = {"json": {}} if move in ("reprocess", "undo") else {}
        if move == "submit":
            more["headers"] = {"If-Match": '"another"' if stale else self._etag(job)}
        answer = self._ask(job, "POST", move, **more)
        expected = self._expected(job, move, stale)
        assert answer.status_code == expected, (move, job, answer.text)
        if expected == 202:
            self._moved(job, move)
        else:
            assert self._look(job) == before

    def _expected(self, job: Job, move: str, stale: bool) -> int:
        if not may(job, move):
            return 409
        if move == "submit":
            return 412 if stale else 202
        if move == "reprocess" and not any(row.status == "failed" for row in job.rows.values()):
            return 400
        busy = any(other is not job and other.shop == job.shop and other.state not in ENDED for other in self.jobs)
        return 409 if busy and move in ("reprocess", "undo") else 202

    def _moved(self, job: Job, move: str) -> None:
        match move:
            case "start":
                job.held = False
            case "pause":
                job.state, job.paused_from, job.held = "PAUSED", job.state, False
            case "resume":
                job.state, job.paused_from = job.paused_from, ""
            case "cancel":
                self._cancelled(job)
            case "submit":
                job.state = "PROCESSING"
                for row in job.rows.values():
                    row.status = "pending"
            case "reprocess":
                job.state = "PROCESSING"
                for row in job.rows.values():
                    row.status = "pending" if row.status == "failed" else row.status
            case _:
                job.state, job.undone_from = "REVERTING", job.state

    def _cancelled(self, job: Job) -> None:
        state, job.paused_from, job.held = job.paused_from or job.state, "", False
        if state == "REVERTING":
            job.state, job.undone_from = job.undone_from, ""
            return
        job.state = "CANCELLED"
        if state == "VALIDATED":
            for row in job.rows.values():
                row.status = "pending"  # it was a plan
        if state == "PROCESSING" and job.written:
            for row in job.rows.values():  # rows that were to be tried again are what they were
                row.status = "failed" if row.status == "pending" else row.status
            self._end(job)

    @precondition(lambda self: any(job.state == "VALIDATED" for job in self.jobs))
    @rule(data=st.data(), label=_LABELS)
    def edit(self, data: st.DataObject, label: str) -> None:
        """Correct a cell of a row that is planned; its plan is made anew."""
        job = data.draw(st.sampled_from([job for job in self.jobs if job.state == "VALIDATED"]))
        number = data.draw(st.sampled_from(sorted(job.rows)))
        answer = self._ask(job, "PATCH", f"items/{number}", json={"cells": {"label": label}}, headers=_WHICHEVER)
        assert answer.status_code == 200, answer.text
        row = job.rows[number]
        row.label = label
        self._plan_row(job, row)
        assert answer.json()["status"] == row.status, answer.text

    @rule(which=st.integers(1, 6), gone=st.booleans())
    def change_the_target(self, which: int, gone: bool) -> None:
        """Somebody else writes to the table."""
        self.world.sql("DELETE FROM thing WHERE id = %s", which)
        self.things.pop(which, None)
        if not gone:
            mark = next(self.numbers)
            self.world.sql("INSERT INTO thing VALUES (%s, %s, %s)", which, f"x{mark}", 1)
            self.things[which] = Thing(f"x{mark}", 1, mark)

    # -- what becomes of rows

    def _plan(self, job: Job) -> None:
        for row in job.rows.values():
            self._plan_row(job, row)
        job.state = "VALIDATED"

    def _plan_row(self, job: Job, row: Row) -> None:
        there = self.things.get(row.id)
        row.planned_on = there.mark if there else 0
        row.status = self._verdict(job, row)

    def _verdict(self, job: Job, row: Row) -> str:
        there = self.things.get(row.id)
        if row.label == LONG:
            return "failed"
        if there is None:
            return "created"
        same = (there.label, there.colour) == (row.label, job.means[row.colour])
        return "unchanged" if same else "updated"

    def _write(self, job: Job) -> None:
        for row in job.rows.values():
            if row.status == "pending":
                self._write_row(job, row)
        job.written = True
        self._end(job)

    def _write_row(self, job: Job, row: Row) -> None:
        there = self.things.get(row.id)
        drifted = row.planned_on is not None and row.planned_on != (there.mark if there else 0)
        row.status = "failed" if drifted and row.label != LONG else self._verdict(job, row)
        row.planned_on = None
        if row.status in ("created", "updated"):
            row.before, row.wrote = there, next(self.numbers)
            self.things[row.id] = Thing(row.label, job.means[row.colour], row.wrote)

    def _end(self, job: Job) -> None:
        failed = any(row.status == "failed" for row in job.rows.values())
        job.state = "COMPLETED_WITH_ERRORS" if failed else "COMPLETED"

    def _take_back(self, job: Job) -> None:
        for row in job.rows.values():
            there = self.things.get(row.id)
            if row.status not in ("created", "updated") or there is None or there.mark != row.wrote:
                continue
            if row.before is None:
                del self.things[row.id]
            else:
                self.things[row.id] = row.before
            row.status = "reverted"
        left = any(row.status in ("created", "updated") for row in job.rows.values())
        job.state, job.undone_from = job.undone_from if left else "REVERTED", ""

    # -- what must hold

    @invariant()
    def every_job_is_where_the_rules_have_it(self) -> None:
        for job in self.jobs:
            now = self._look(job)
            assert (now["state"], now["wish"] == "hold") == (job.state, job.held), job
            for move in MOVES:
                assert (move in now["allowed"]) == may(job, move), (move, job)

    @invariant()
    def the_target_has_what_was_agreed_to(self) -> None:
        found = self.world.sql("SELECT id, label, colour_id FROM thing ORDER BY id")
        assert found == [(n, thing.label, thing.colour) for n, thing in sorted(self.things.items())]

    def teardown(self) -> None:
        """Every job accounts for its rows."""
        for job in self.jobs:
            if job.state in ENDED | {"VALIDATED"} and job.state not in ("CANCELLED", "SUPERSEDED"):
                items = self._ask(job, "GET", "items").json()["items"]
                assert {item["row"]: item["status"] for item in items} == {n: row.status for n, row in job.rows.items()}

    # -- asking

    def _some(self, data: st.DataObject) -> Job:
        return data.draw(st.sampled_from(self.jobs))

    def _ask(self, job: Job, method: str, what: str, **more: Any) -> httpx.Response:
        return self.world.client.request(method, f"/v1/imports/{job.key}/{what}", **more)

    def _look(self, job: Job) -> dict[str, Any]:
        now = self.world.client.get(f"/v1/imports/{job.key}").json()
        now.pop("progress", None)
        return now

    def _etag(self, job: Job) -> str:
        return self._ask(job, "GET", "preview").headers.get("etag", "*")


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_jobs_follow_the_rules_whatever_is_asked_of_them(database: Database) -> None:
    with tempfile.TemporaryDirectory() as folder, a_world(database, Path(folder)) as world:
        machine = type("Machine", (Jobs,), {"world": world})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=12,
                stateful_step_count=30,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            ),
        )
