"""A text is replaced in a column of many rows: counted first, then done for just the cells that were counted (X3)."""

from pathlib import Path
from typing import Any

import pytest

from rowcall import Choice, Final, Flow, Integer, Text
from rowcall.engine.corrections.replace import Counted, Replaced, Replacing, count_replaced, replace_cells
from rowcall.model import State
from rowcall.store.db import Database
from rowcall.store.grid import Wanted

from .editing import Desk
from .importing import declared, sql

FIELDS: dict[str, Any] = {"id": Integer(required=True), "kind": Choice("new", "old"), "note": Text()}
THINGS = declared("t", key="id", **FIELDS)
PREVIEW = declared("t", key="id", flow=Flow(preview=True), **FIELDS)
FILE = "id,kind,note\n1,new,neu\n2,neu,a\n3,neu,b\n4,,neu\n5,neuer,100%s\n"


@pytest.fixture
def table(database: Database) -> Database:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, kind text, note text)")
    return database


def counted(desk: Desk, asked: Replacing) -> Counted:
    with desk.database.connect() as connection:
        return count_replaced(connection, desk.job, asked)


def replaced(desk: Desk, asked: Replacing, token: str) -> Replaced:
    with desk.database.connect() as connection, connection.transaction():
        done = replace_cells(connection, desk.job, desk.importer, asked, token=token, who="ann")
    desk.job = done.job
    return done


def asking(
    find: str = "neu", instead: str = "new", *, column: str = "kind", part: bool = False, **which: Any
) -> Replacing:
    return Replacing(which=Wanted(**which), column=column, find=find, text=instead, part=part)


def test_what_is_counted_is_replaced_and_those_rows_run_again(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    asked = asking()
    would = counted(desk, asked)
    assert (would.rows, [(each.row, each.before, each.after) for each in would.samples]) == (
        2,
        [(2, "neu", "new"), (3, "neu", "new")],
    )
    assert replaced(desk, asked, would.token).laid.rows == 2
    assert desk.again(edited=True).told == ["created"] * 4 + ["failed NOT_A_CHOICE"]
    assert counted(desk, asked).rows == 0
    assert sql(table, "SELECT row_number, before, after, account FROM rowcall.cell_edit ORDER BY 1") == [
        (2, "neu", "new", "ann"),
        (3, "neu", "new", "ann"),
    ]


def test_parts_filters_and_odd_texts(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    assert counted(desk, asking("eu", "ew", part=True)).rows == 3
    assert counted(desk, asking("eu", "ew", part=True, rows=(3, 5))).rows == 2
    assert counted(desk, asking("eu", "ew", part=True, text="B")).rows == 1
    assert counted(desk, asking("neu", "x", code="NOT_A_CHOICE", field="kind")).rows == 2
    assert counted(desk, asking("neu", "x", statuses=("skipped",))).rows == 0
    assert counted(desk, asking("%s", "{}", column="note", part=True)).samples[0].after == "100{}"
    assert counted(desk, asking("neu", "x", column="note")).rows == 0  # these rows are written
    with pytest.raises(Final, match="Nothing can't be a part"):
        counted(desk, asking("", "x", part=True))
    with pytest.raises(Final, match="no column 'knid'"):
        counted(desk, asking(column="knid"))


def test_empty_cells_are_found_by_nothing(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PREVIEW, FILE)
    asked = asking("", "old")
    would = counted(desk, asked)
    assert [(each.row, each.after) for each in would.samples] == [(4, "old")]
    assert replaced(desk, asked, would.token).job.state is State.VALIDATING
    desk.run()
    assert (desk.job.state, desk.submit().values("kind")) == (State.VALIDATED, ["new", "old"])


def test_something_else_than_was_counted_is_refused(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    would = counted(desk, asking())
    for other in (asking("neu", "old"), asking("neuer"), asking(rows=(2, 3))):
        with pytest.raises(Final, match="not what was counted") as refused:
            replaced(desk, other, would.token)
        assert refused.value.code == "NOT_AS_COUNTED"
    desk.edit(2, kind="old")
    with pytest.raises(Final, match="by now 1 cell "):
        replaced(desk, asking(), would.token)
    assert desk.row(3).revision == 0
