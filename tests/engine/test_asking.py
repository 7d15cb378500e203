"""A job that isn't sure which column is which waits for a person, and goes on with what they say (A2, A3)."""

from pathlib import Path
from typing import Any

import pytest

from rowcall import Date, Decimal, Email, Final, Flow, Integer, Text
from rowcall.engine import moves
from rowcall.engine.columns.answering import ColumnUpdate
from rowcall.errors import NotSettled, WrongState
from rowcall.model import Code, State, Wish
from rowcall.store.db import Database

from .asked import Asked
from .importing import declared, sql

TABLE = "CREATE TABLE t (id int PRIMARY KEY, first_name text NOT NULL, email text, born date)"
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "first_name": Text(required=True, aliases=["given name"]),
    "email": Email(),
    "born": Date(),
}
UNSURE = declared("t", flow=Flow(columns="unsure"), **FIELDS)
ALWAYS = declared("t", flow=Flow(columns="always"), **FIELDS)


@pytest.fixture
def table(database: Database) -> Database:
    """A database with the table."""
    sql(database, TABLE)
    return database


def test_a_sure_file_is_not_asked_about(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, UNSURE, "ID;Given Name;E-Mail;shoe size\n1;Ann;a@x.org;44\n")
    assert asked.job.state is State.COMPLETED
    assert asked.told()[3] == ("shoe size", None, "IGNORED")


def test_what_is_missing_is_a_question_and_the_answer_is_taken(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, UNSURE, "id,who,email\n1,Ann,a@x.org\n2,Bob,b@x.org\n")
    assert (asked.job.state, asked.job.wish, moves.allowed(asked.job)) == (
        State.COLUMN_MAPPING,
        Wish.HOLD,
        ["map", "confirm", "pause", "cancel"],
    )
    assert asked.columns()[1].samples == ["Ann", "Bob"]
    with pytest.raises(NotSettled) as caught:
        asked.confirms()
    assert caught.value.code == Code.MISSING_COLUMNS
    assert caught.value.missing[0]["field"] == "first_name"
    asked.says(ColumnUpdate(position=1, target_field="first_name"))
    result = asked.confirms()
    assert (result.job.state, result.values("first_name")) == (State.COMPLETED, ["Ann", "Bob"])
    assert asked.told() == [
        ("id", "id", "USER_CONFIRMED"),
        ("who", "first_name", "USER_OVERRIDDEN"),
        ("email", "email", "USER_CONFIRMED"),
    ]
    assert {column.decided_by for column in asked.columns()} == {"ann"}


def test_it_can_be_asked_always(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, "id,first_name\n1,Ann\n")
    assert asked.job.wish is Wish.HOLD
    assert asked.run().state is State.COLUMN_MAPPING  # whoever works on it in between changes nothing
    assert asked.confirms().told == ["created"]


def test_a_field_can_go_to_another_column_and_a_column_be_left_out(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, "id,first_name,email,alias\n1,Ann,a@x.org,Nan\n")
    asked.says(ColumnUpdate(position=3, target_field="first_name"), ColumnUpdate(position=2, ignore=True))
    assert asked.told()[1:] == [
        ("first_name", None, "UNRESOLVED"),
        ("email", None, "IGNORED"),
        ("alias", "first_name", "USER_OVERRIDDEN"),
    ]
    assert asked.confirms().values("first_name", "email") == [("Nan", None)]


def test_fields_can_change_places(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, "id,first_name,email\n1,a@x.org,Ann\n")
    asked.says(ColumnUpdate(position=1, target_field="email"), ColumnUpdate(position=2, target_field="first_name"))
    assert asked.confirms().values("first_name", "email") == [("Ann", "a@x.org")]


def test_the_order_of_dates_is_a_question(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, UNSURE, "id,first_name,born\n1,Ann,03/04/1990\n")
    assert (asked.job.state, asked.told()[2]) == (State.COLUMN_MAPPING, ("born", "born", "UNRESOLVED"))
    assert "day or the month first" in asked.columns()[2].reason
    with pytest.raises(NotSettled, match="'born' has dates such as '03/04/1990'") as caught:
        asked.goes_on()  # that doesn't say which
    assert (caught.value.code, caught.value.hint) == (Code.AMBIGUOUS_DATES, "Say --dates 'born=dmy', or mdy.")
    assert (asked.job.state, asked.told()[2]) == (State.COLUMN_MAPPING, ("born", "born", "UNRESOLVED"))
    asked.says(ColumnUpdate(position=2, confirm=True, date_order="mdy"))
    assert [str(day) for day in asked.confirms().values("born")] == ["1990-03-04"]


def test_a_column_chosen_by_hand_whose_numbers_are_ambiguous_is_not_confirmed(
    database: Database, tmp_path: Path
) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, weight numeric)")
    weights = declared("t", flow=Flow(columns="unsure"), id=Integer(required=True), weight=Decimal())
    asked = Asked(database, tmp_path, weights, 'id,weight,weight \n1,x,"1,234"\n')
    asked.says(ColumnUpdate(position=2, target_field="weight"), ColumnUpdate(position=1, ignore=True))
    with pytest.raises(NotSettled, match="numbers such as '1,234'") as caught:
        asked.goes_on()
    assert caught.value.code == Code.AMBIGUOUS_NUMBERS
    assert '"decimalMark": ","' in caught.value.over_http
    asked.says(ColumnUpdate(position=2, confirm=True, decimal_mark="."))
    assert [str(weight) for weight in asked.confirms().values("weight")] == ["1234"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ColumnUpdate(position=9, ignore=True), "no column at position 9"),
        (ColumnUpdate(position=1, target_field="frist_name"), "no field 'frist_name'"),
        (ColumnUpdate(position=1), "one of confirm, targetField and ignore"),
        (ColumnUpdate(position=1, ignore=True, confirm=True), "one of confirm, targetField and ignore"),
        (ColumnUpdate(position=3, confirm=True), "Nothing is proposed for column 'shoe'.* --set 'shoe=field'"),
    ],
)
def test_answers_that_make_no_sense_are_refused(table: Database, tmp_path: Path, said: ColumnUpdate, told: str) -> None:
    asked = Asked(table, tmp_path, ALWAYS, "id,first_name,email,shoe\n1,Ann,a@x.org,44\n")
    before = asked.told()
    with pytest.raises(Final, match=told):
        asked.says(said)
    with pytest.raises(Final, match="can't both go to 'email'"):
        asked.says(ColumnUpdate(position=1, target_field="email"), ColumnUpdate(position=3, target_field="email"))
    assert asked.told() == before


def test_columns_of_a_job_that_does_not_wait_are_not_changed(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, UNSURE, "id,first_name\n1,Ann\n")
    with pytest.raises(WrongState):
        asked.says(ColumnUpdate(position=1, ignore=True))


def test_a_job_that_waits_can_be_paused_and_cancelled(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, ALWAYS, "id,first_name\n1,Ann\n")
    with table.connect() as connection:
        with connection.transaction():
            moves.pause(connection, asked.job)
        assert asked.run().state is State.PAUSED
        moves.resume(connection, asked.job)
        assert (asked.run().state, asked.job.wish) == (State.COLUMN_MAPPING, Wish.HOLD)  # it still has to be asked
        with connection.transaction():
            moves.cancel(connection, asked.job)
        assert asked.run().state is State.CANCELLED


def test_a_declaration_says_what_it_can_be() -> None:
    with pytest.raises(Final, match="columns is 'sometimes'; one of never, unsure, always is expected"):
        declared("t", flow=Flow(columns="sometimes"), id=Integer())  # pyright: ignore[reportArgumentType] (the mistake)


def test_a_blank_value_for_all_rows_is_none_for_a_required_field(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, UNSURE, "id,email\n1,a@x.org\n")
    asked.says(constants={"first_name": " "})
    with pytest.raises(NotSettled) as caught:
        asked.confirms()
    assert [each["field"] for each in caught.value.missing] == ["first_name"]
    asked.says(constants={"first_name": "Ann"})
    assert asked.confirms().values("first_name") == ["Ann"]


def test_a_column_that_gave_way_to_a_value_for_all_rows_is_not_left_out_next_time(
    table: Database, tmp_path: Path
) -> None:
    asked = Asked(table, tmp_path, ALWAYS, "id,given name,mail\n1,Ann,a@x.org\n")
    asked.says(constants={"email": "all@x.org"})
    assert asked.confirms().values("email") == ["all@x.org"]
    again = Asked(table, tmp_path, UNSURE, "id,given name,mail\n2,Bob,b@x.org\n")
    assert again.told()[2] == ("mail", "email", "AUTO_MATCHED")


def test_of_columns_headed_alike_the_one_that_was_mapped_is_remembered(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, UNSURE, "id,Wer,wer\n1,Ann,x\n")
    asked.says(ColumnUpdate(position=1, target_field="first_name"), ColumnUpdate(position=2, ignore=True))
    asked.confirms()
    again = Asked(table, tmp_path, UNSURE, "id,Wer\n2,Bob\n")
    assert again.result().values("first_name") == ["Ann", "Bob"]


def test_only_what_a_person_said_of_a_column_is_remembered(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, UNSURE, "id,first_name,Kontakt,shoe,E-Mail-Adresse\n1,Ann,a@x.org,44,\n")
    asked.says(ColumnUpdate(position=3, ignore=True), ColumnUpdate(position=2, target_field="email"))
    assert asked.told()[4] == ("E-Mail-Adresse", None, "UNRESOLVED")  # its field was given away
    asked.goes_on()
    assert remembered(table) == {"id": "id", "firstname": "first_name", "kontakt": "email", "shoe": None}


def test_what_was_open_when_columns_were_confirmed_is_asked_again(table: Database, tmp_path: Path) -> None:
    text = "id,first_name,mail,courriel\n1,Ann,a@x.org,b@x.org\n"
    asked = Asked(table, tmp_path, UNSURE, text)
    open_ = [("mail", None, "UNRESOLVED"), ("courriel", None, "UNRESOLVED")]
    assert asked.told()[2:] == open_
    asked.goes_on()
    assert asked.told()[2:] == [("mail", None, "IGNORED"), ("courriel", None, "IGNORED")]
    again = Asked(table, tmp_path, UNSURE, text)
    assert (again.job.state, again.told()[2:]) == (State.COLUMN_MAPPING, open_)


def test_a_fields_name_and_its_alias_are_a_question(table: Database, tmp_path: Path) -> None:
    asked = Asked(table, tmp_path, UNSURE, "id,given name,first_name\n1,Ann,\n2,Bo,\n")
    assert asked.job.state is State.COLUMN_MAPPING
    assert asked.told()[1:] == [("given name", None, "UNRESOLVED"), ("first_name", "first_name", "AUTO_MATCHED")]
    assert next(warning.kind for warning in asked.warnings()) == "twoColumns"
    asked.says(ColumnUpdate(position=1, target_field="first_name"))
    assert asked.confirms().values("first_name") == ["Ann", "Bo"]


def remembered(database: Database) -> dict[str, str | None]:
    """The columns that are known from earlier jobs."""
    with database.connect() as connection:
        return dict(connection.execute("SELECT header, target_field FROM rowcall.column_decision").fetchall())
