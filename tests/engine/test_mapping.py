"""Which column of a file goes to which field."""

import pytest

from rowcall import Final, Integer, Text
from rowcall.model import Code, State
from rowcall.store.db import Database

from .importing import declared, run_import, sql
from .previewing import preview, submit

TABLE = "CREATE TABLE t (id int PRIMARY KEY, first_name text NOT NULL, town text)"
IMPORTER = declared(
    "t",
    id=Integer(required=True),
    first_name=Text(required=True, aliases=["given name", "Vorname"]),
    town=Text(aliases=["city"]),
)


@pytest.fixture
def table(database: Database) -> Database:
    """A database with the table."""
    sql(database, TABLE)
    return database


@pytest.mark.parametrize(
    "headers", ["id,first_name,town", "ID;First Name;CITY", "Id,given-name,Town", '"id ",VORNAME,city']
)
def test_headers_are_known_by_name_and_alias(table: Database, headers: str) -> None:
    row = "1;Ann;Bonn" if ";" in headers else "1,Ann,Bonn"
    assert run_import(table, IMPORTER, f"{headers}\n{row}\n").values("first_name", "town") == [("Ann", "Bonn")]


def test_name_wins_over_alias_and_strange_columns_are_left_out(table: Database) -> None:
    result = run_import(table, IMPORTER, "id,city,town,first_name,shoe size\n1,Ulm,Bonn,Ann,44\n")
    assert result.values("town") == ["Bonn"]
    columns = sql(table, "SELECT header, target_field, status FROM rowcall.column_mapping ORDER BY position")
    assert columns[1] == ("city", None, "IGNORED")
    assert columns[2] == ("town", "town", "AUTO_MATCHED")


def test_missing_columns_are_all_told_with_what_may_be_meant(table: Database) -> None:
    with pytest.raises(Final) as caught:
        run_import(table, IMPORTER, "idd,frist_name,shoe\n1,Ann,44\n")
    assert caught.value.code == Code.MISSING_COLUMNS
    assert "id (is it 'idd'?)" in caught.value.message
    assert "first_name (is it 'frist_name'?)" in caught.value.message
    assert caught.value.hint == "Try --map 'idd=id' --map 'frist_name=first_name'."


def test_rivals_are_refused(table: Database) -> None:
    with pytest.raises(Final, match="Columns 'given name', 'Vorname' would all go to field 'first_name'"):
        run_import(table, IMPORTER, "id,given name,Vorname\n1,Ann,Bob\n")
    with pytest.raises(Final) as caught:
        run_import(table, IMPORTER, "id,a,b\n1,Ann,Bob\n", mapping={"a": "first_name", "b": "first_name"})
    assert caught.value.code == Code.BAD_MAPPING


def test_mapping_chooses_and_leaves_out(table: Database) -> None:
    text = "id,given name,Vorname,town\n1,Ann,Bob,Bonn\n"
    result = run_import(table, IMPORTER, text, mapping={"Vorname": "", "town": ""})
    assert result.values("first_name", "town") == [("Ann", None)]
    result = run_import(table, IMPORTER, text.replace("\n1", "\n2"), mapping={"vorname": "first_name"})
    assert result.values("first_name") == ["Ann", "Bob"]


@pytest.mark.parametrize(
    ("mapping", "told"),
    [({"towm": "town"}, "no column 'towm'"), ({"town": "towm"}, "no field 'towm'")],
)
def test_mapping_of_what_is_not_there_says_what_is(table: Database, mapping: dict[str, str], told: str) -> None:
    with pytest.raises(Final, match=told) as caught:
        run_import(table, IMPORTER, "id,first_name,town\n1,Ann,Bonn\n", mapping=mapping)
    assert caught.value.hint == "Did you mean 'town'?"


def test_constant_stands_in_for_a_column_and_must_be_a_field(table: Database) -> None:
    assert (
        run_import(table, IMPORTER, "id\n1\n2\n", constants={"first_name": "Ann"}).values("first_name") == ["Ann"] * 2
    )
    with pytest.raises(Final) as caught:
        run_import(table, IMPORTER, "id\n1\n", constants={"frist_name": "Ann"})
    assert caught.value.code == Code.BAD_MAPPING


def test_file_that_has_nothing_to_do_with_the_importer(table: Database) -> None:
    importer = declared("t", id=Integer(), first_name=Text(default="?"))
    with pytest.raises(Final, match="Required by things and not in the file: id"):
        run_import(table, importer, "shoe,size\nx,44\n")


def test_a_file_without_records_or_header_has_nothing_to_map(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY)")
    importer = declared("t", key="id", id=Integer(required=True))
    result = run_import(database, importer, "[]", file_name="rows.json")
    assert (result.job.state, result.told) == (State.COMPLETED, [])
    with pytest.raises(Final) as error:
        run_import(database, importer, "[{}]", file_name="rows.json")
    assert error.value.code == Code.MISSING_COLUMNS


def test_file_without_header_says_what_its_columns_are_called(table: Database) -> None:
    with pytest.raises(Final, match="no header row, so that its columns are called column_1, column_2;") as caught:
        run_import(table, IMPORTER, "1,2024-01-05\n2,2024-01-06\n3,2024-01-07\n")
    assert "--map 'column_1=id'" in caught.value.hint
    with pytest.raises(Final, match="Columns not used: Ann, Bonn") as caught:
        run_import(table, IMPORTER, "Ann,Bonn\nBob,Rome\n")
    assert "--header 0" in caught.value.hint


def test_a_field_that_the_importer_has_lost_since_is_told(table: Database) -> None:
    planned = preview(table, IMPORTER, "id,first_name,town\n1,Ann,Rome\n")
    with pytest.raises(Final, match="a column for town, which importer things no longer has") as caught:
        submit(table, declared("t", id=Integer(required=True), first_name=Text(required=True)), planned.job)
    assert f"rowcall cancel {planned.job.number}" in caught.value.hint


def test_file_without_a_record_that_can_be_read_says_so(table: Database) -> None:
    with pytest.raises(Final, match=r"No record of the file can be read.*requires id"):
        run_import(table, IMPORTER, '{"id": 1, "first_name": "A')
