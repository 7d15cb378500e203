"""Columns that are joined into one field, and values that are the same for all rows (A2)."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rowcall import DateTime, Final, Flow, Importer, Integer, Text
from rowcall.engine.columns.answering import ColumnUpdate, Join
from rowcall.model import State
from rowcall.store.db import Database
from rowcall.store.rows import BLANKS

from .asked import Asked
from .importing import declared, run_import, sql

TABLE = "CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, city text, at timestamptz)"
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "name_": Text(required=True, max_length=20),
    "city": Text(),
    "at": DateTime(),
}
NEVER = declared("t", **FIELDS)
ALWAYS = declared("t", flow=Flow(columns="always"), **FIELDS)
FILE = "id,First,Last,city\n1, Ann ,Lee,Oslo\n2,Bob,,Bonn\n3,,Moe,\n4,,,Rom\n"


@pytest.fixture
def table(database: Database) -> Database:
    """A database with the table."""
    sql(database, TABLE)
    return database


def test_columns_are_joined_as_the_command_line_says(table: Database) -> None:
    result = run_import(table, NEVER, FILE, mapping={"First+Last": "name"})
    assert result.told == ["created", "created", "created", "failed REQUIRED"]
    assert result.values("id", "name") == [(1, "Ann Lee"), (2, "Bob"), (3, "Moe")]


def test_joined_in_the_order_that_is_said_with_what_is_said_between(table: Database) -> None:
    mapping, separators = {"Last + First": "name"}, {"name": ", "}
    result = run_import(table, NEVER, FILE, mapping=mapping, separators=separators, batch_rows=2)
    assert result.values("name") == ["Lee, Ann", "Bob", "Moe"]


def test_a_header_with_a_plus_is_that_column(table: Database) -> None:
    result = run_import(table, NEVER, "id,A+B,A,B\n1,both,a,b\n", mapping={"A+B": "name"})
    assert result.values("name") == ["both"]


@pytest.mark.parametrize(
    ("mapping", "told"),
    [
        ({"First+Lsat": "name"}, "no column 'Lsat'"),
        ({"First+First": "name"}, "names a column twice"),
        ({"First+Last": "nmae"}, "no field 'nmae'"),
        ({"First+Last": "name", "city": "name"}, "would all go to field 'name'"),
    ],
)
def test_joins_that_make_no_sense_are_refused(table: Database, mapping: dict[str, str], told: str) -> None:
    with pytest.raises(Final, match=told):
        run_import(table, NEVER, FILE, mapping=mapping)


def test_a_date_and_a_time_are_joined_and_read_by_the_date_s_order(table: Database) -> None:
    file = "id,name,day,clock\n1,Ann,31/12/2024,10:30\n2,Bob,01/02/2025,23:59\n"
    result = run_import(table, NEVER, file, mapping={"day+clock": "at"})
    assert [f"{at:%Y-%m-%d %H:%M}" for at in result.values("at")] == ["2024-12-31 10:30", "2025-02-01 23:59"]


def test_issues_of_a_joined_field_tell_its_text(table: Database) -> None:
    result = run_import(table, NEVER, "id,a,b\n1,aaaaaaaaaaaa,bbbbbbbbbbbb\n", mapping={"a+b": "name"})
    assert (result.told, result.issue(1).value) == (["failed TOO_LONG"], "aaaaaaaaaaaa bbbbbbbbbbbb")


def test_a_person_joins_columns_and_takes_one_out_again(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, FILE)
    asked.says(joins=[Join(target_field="name", positions=(2, 1), separator=" - ")])
    assert [(c.header, c.target_field, c.place) for c in asked.columns()][1:3] == [
        ("First", "name", 1),
        ("Last", "name", 0),
    ]
    asked.says(joins=[Join(target_field="name", positions=(1, 2, 3))])
    asked.says(ColumnUpdate(position=1, ignore=True))
    assert [(c.target_field, c.place) for c in asked.columns()] == [("id", 0), (None, 0), ("name", 0), ("name", 1)]
    assert [c.reason for c in asked.columns()[2:]] == ["joined by hand: Last + city"] * 2
    asked.says(ColumnUpdate(position=3, target_field="city"))
    assert asked.columns()[2].reason == "the one that is left of a join"
    asked.says(ColumnUpdate(position=2, confirm=True))
    assert [(c.target_field, c.place) for c in asked.columns()] == [("id", 0), (None, 0), ("name", 0), ("city", 0)]
    assert asked.confirms().values("id", "name") == [(1, "Lee"), (3, "Moe")]


def test_a_field_that_is_taken_from_a_join_frees_all_of_its_columns(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, FILE)
    asked.says(joins=[Join(target_field="name", positions=(1, 2))])
    asked.says(ColumnUpdate(position=3, target_field="name"))
    assert [status for _, _, status in asked.told()[1:]] == ["UNRESOLVED", "UNRESOLVED", "USER_OVERRIDDEN"]


@pytest.mark.parametrize(
    ("join", "told"),
    [
        (Join(target_field="name", positions=(1,)), "2 to 20"),
        (Join(target_field="name", positions=(1, 1)), "twice of the column at position 1"),
        (Join(target_field="name", positions=(1, 9)), "no column at position 9"),
        (Join(target_field="nmae", positions=(1, 2)), "no field 'nmae'"),
        (Join(target_field="name", positions=(1, 2), separator="-" * 21), "at most 20 characters"),
    ],
)
def test_answers_that_join_what_can_t_be_are_refused(table: Database, tmp_path: Path, join: Join, told: str) -> None:
    asked = Asked(table, tmp_path, ALWAYS, FILE)
    before = asked.columns()
    with pytest.raises(Final, match=told):
        asked.says(joins=[join])
    assert asked.columns() == before


def test_a_value_for_all_rows_is_said_when_columns_are_mapped(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, "id,city\n1,Oslo\n2,Rom\n")
    asked.says(constants={"name": "nobody"})
    asked.says(constants={"city": "Bonn"})
    assert asked.told()[1] == ("city", None, "UNRESOLVED")
    asked.says(constants={"city": None})
    assert asked.confirms().values("name", "city") == [("nobody", None), ("nobody", None)]


def test_a_column_for_a_field_takes_its_constant_away(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, FILE, constants={"name": "nobody"})
    asked.says(ColumnUpdate(position=1, target_field="name"))
    with pytest.raises(Final, match="both a column and a value"):
        asked.says(ColumnUpdate(position=2, target_field="name"), constants={"name": "x"})
    assert asked.confirms().values("name") == ["Ann", "Bob"]


def test_the_same_command_finds_the_job_again_that_was_told_more(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, FILE)
    asked.says(constants={"name": "nobody"})
    again = Asked(table, tmp_path, ALWAYS, FILE)
    assert (again.job.id, again.job.state, again.job.config.constants) == (
        asked.job.id,
        State.COLUMN_MAPPING,
        {"name": "nobody"},
    )


def test_rows_with_a_value_are_counted_per_column(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, 'id,First,Last,city\n1,Ann," \t",\n2,,\u3000,Bonn\n')
    assert [column.filled for column in asked.columns()] == [2, 1, 0, 1]


def test_what_is_blank_is_the_same_here_and_in_the_database(database: Database) -> None:
    every = [chr(n) for n in range(1, 0x110000) if not 0xD800 <= n <= 0xDFFF]
    assert set(BLANKS) == {c for c, s in zip(every, pl.Series(every).str.strip_chars(), strict=True) if not s}


def test_joined_columns_give_the_same_whoever_reads_them(table: Database, tmp_path: Path) -> None:
    class Once(Importer):
        """Taken once, by content."""

        target = "t"
        once = True
        id = Integer(required=True)
        name_ = Text(required=True)

    result = run_import(table, Once, FILE, mapping={"First+Last": "name"}, workers=2, batch_rows=1)
    assert result.values("name") == ["Ann Lee", "Bob", "Moe"]
