"""Which column of a file goes to which field."""

import datetime as dt
from decimal import Decimal as Exact
from pathlib import Path
from typing import Any

import pytest

from rowcall import Date, DateTime, Decimal, Final, Integer, Text
from rowcall.errors import DoesNotFit
from rowcall.formats import ReadOptions
from rowcall.importer.matching import Ask
from rowcall.model import Code, State
from rowcall.store.db import Database

from .asked import Asked
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
    columns = sql(table, "SELECT header, target_field, status, reason FROM rowcall.column_mapping ORDER BY position")
    assert columns[1] == ("city", None, "IGNORED", "town has its values already")
    assert columns[2][:3] == ("town", "town", "AUTO_MATCHED")
    assert columns[4][1:] == (None, "IGNORED", "no field of that name")


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
    with pytest.raises(Final, match=r"no header row .* its columns are called column_1, column_2;") as caught:
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


@pytest.mark.parametrize("ask", ["never", "unsure"])
def test_a_header_that_is_the_column_of_a_field_is_that_field(database: Database, ask: Ask) -> None:
    sql(database, 'CREATE TABLE c (id int PRIMARY KEY, "select" text, code text, "from" text)')
    sel, other = Text(column="select"), Text(column="from", aliases=["code"])
    importer = declared("c", id=Integer(required=True), sel=sel, code_text=Text(column="code"), origin=other)
    result = run_import(database, importer, "id,Select,code\n1,a,b\n", ask=ask)
    assert result.values("select", "code", "from") == [("a", None, "b")]


DATED = declared("d", id=Integer(), born=Date(), seen=DateTime(), amount=Decimal(min=0), code=Text(max_length=3))


@pytest.fixture
def dated(database: Database) -> Database:
    """A database with dates and numbers."""
    sql(database, "CREATE TABLE d (id int PRIMARY KEY, born date, seen timestamptz, amount numeric(12,2), code text)")
    return database


@pytest.mark.parametrize(
    ("read", "born", "amount"),
    [
        (ReadOptions(date_order="dmy", decimal=","), "04.03.2024", "1.234,50"),
        (ReadOptions(date_order="mdy", decimal="."), "3/4/2024", "1,234.50"),
        (ReadOptions(date_order="mdy", decimal=","), "2024-03-04", "1234.50"),
    ],
)
def test_constants_are_read_in_the_notation_of_the_job(
    dated: Database, read: ReadOptions, born: str, amount: str
) -> None:
    result = run_import(dated, DATED, "id\n1\n", read=read, constants={"born": born, "amount": amount})
    assert result.values("born", "amount") == [(dt.date(2024, 3, 4), Exact("1234.50"))]


def test_constants_that_can_be_read_in_one_way_need_no_notation(dated: Database) -> None:
    given = {"born": "31.12.2024", "seen": "31.12.2024 14:05", "amount": "1.234,50"}
    result = run_import(dated, DATED, "id\n1\n", constants=given)
    seen = dt.datetime(2024, 12, 31, 14, 5, tzinfo=dt.UTC)
    assert result.values("born", "seen", "amount") == [(dt.date(2024, 12, 31), seen, Exact("1234.50"))]
    assert result.job.config.constants["born"] == "2024-12-31"


@pytest.mark.parametrize(
    ("text", "amount", "count"),
    [
        ("1,5", "1.5", None),
        ("1.234,5", "1234.5", None),
        ("1.234.567", "1234567", 1234567),
        ("1234", "1234", 1234),
        ("1.2340", "1.234", None),
        ("0,125", "0.125", None),
        (".125", "0.125", None),
        ("0.000", "0", 0),
        ("1.234", None, 1234),
        ("1.000", None, 1000),
        ("1,000", None, 1000),
        ("-1'234.500", None, -1234500),
    ],
)
def test_a_number_for_all_rows_is_read_by_the_rule_for_columns(
    database: Database, text: str, amount: str | None, count: int | None
) -> None:
    sql(database, "CREATE TABLE d (id int PRIMARY KEY, amount numeric, count int)")
    importer = declared("d", id=Integer(), amount=Decimal(), count=Integer())
    for name, value in (("amount", amount), ("count", count)):
        if value is None:
            with pytest.raises(DoesNotFit) as caught:
                run_import(database, importer, "id\n1\n", constants={name: text})
            ways = ("--decimal point", '{"decimal": "."}') if name == "amount" else ("1234", "")
            assert ways[0] in caught.value.hint
            assert ways[1] in caught.value.over_http
            continue
        sql(database, "TRUNCATE d")
        assert run_import(database, importer, "id\n1\n", constants={name: text}).values(name) == [Exact(value)]


def test_decimal_places_of_a_field_don_t_decide_what_a_constant_is(dated: Database) -> None:
    importer = declared("d", id=Integer(), amount=Decimal(places=2))
    with pytest.raises(DoesNotFit, match=r"'1,234' can be read as 1234 or as 1\.234"):
        run_import(dated, importer, "id\n1\n", constants={"amount": "1,234"})


@pytest.mark.parametrize(
    ("constants", "told"),
    [
        ({"born": "soon"}, "'soon' is not a date"),
        ({"born": "30.02.2024"}, "'30.02.2024' is not a date"),
        ({"born": "03/04/2024"}, "with the day or the month first"),
        ({"amount": "1,234"}, "'1,234' can be read as 1234 or as 1.234"),
        ({"amount": "-1.234"}, "'-1.234' can be read as -1.234 or as -1234"),
        ({"amount": "much"}, "'much' is not a number"),
        ({"amount": "-1"}, "-1 is below the minimum of 0"),
        ({"code": "abcd"}, "abcd"),
    ],
)
def test_constants_that_no_row_could_take_are_refused_at_once(
    dated: Database, tmp_path: Path, constants: dict[str, Any], told: str
) -> None:
    with pytest.raises(DoesNotFit, match=told) as caught:
        run_import(dated, DATED, "id\n1\n", constants=constants)
    (name,) = constants
    assert [each["at"] for each in caught.value.errors] == [f"constants/{name}"]
    assert sql(dated, "SELECT count(*) FROM rowcall.job") == [(0,)]
    asked = Asked(dated, tmp_path, DATED, "id\n1\n", ask="always")
    with pytest.raises(DoesNotFit, match=told):
        asked.says(constants=constants)


def test_a_constant_that_is_given_back_as_it_is_told_stays_what_it_is(dated: Database, tmp_path: Path) -> None:
    asked = Asked(dated, tmp_path, DATED, "id\n1\n", ask="always", read=ReadOptions(decimal=","))
    asked.says(constants={"amount": "1,234"})
    asked.says(constants={"amount": "1.234"})
    assert sql(dated, "SELECT config #>> '{constants,amount}' FROM rowcall.job") == [("1.234",)]


@pytest.mark.parametrize("text", ["a,b\n1,b\n2,b\n3,b\n", "a,True\n1,true\n2,false\n", "B,A\nx,y\nB,z\nB,A2\n"])
def test_a_first_record_of_the_fields_names_is_the_header(database: Database, text: str) -> None:
    sql(database, 'CREATE TABLE t (a text, b text, "True" text)')
    importer = declared("t", a=Text(), b=Text(), true=Text(column="True"))
    result = run_import(database, importer, text)
    assert result.told == ["created"] * (text.count("\n") - 1)


def test_a_header_that_was_not_found_is_told(database: Database) -> None:
    sql(database, "CREATE TABLE t (a text, b text)")
    importer = declared("t", a=Text(), b=Text())
    with pytest.raises(Final, match=r"no header row .* none belongs to a field of things") as caught:
        run_import(database, importer, "1,2\n3,4\n")
    assert "--header 1" in caught.value.hint


def test_a_column_and_one_value_for_all_rows_are_not_both_taken(table: Database) -> None:
    with pytest.raises(Final, match="Field 'id' is to have the column 'no' and one value for all rows"):
        run_import(table, IMPORTER, "no,first name\n1,Ann\n", mapping={"no": "id"}, constants={"id": "4"})


def test_a_sheet_of_a_file_that_has_none_is_refused(table: Database) -> None:
    with pytest.raises(Final, match="a file of the format csv has none"):
        run_import(table, IMPORTER, "id,first name\n1,Ann\n", read=ReadOptions(sheet="X"))
