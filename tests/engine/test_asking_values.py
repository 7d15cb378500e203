"""A job that doesn't know what values stand for waits for a person, and goes on with what they say (A4, X10)."""

import threading
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from rowcall import Boolean, Choice, Final, Importer, Integer, Lookup, Text, Update
from rowcall.engine import moves
from rowcall.engine.corrections.alone import try_alone
from rowcall.engine.doctor import Verdict, verify_job
from rowcall.engine.run import Run, run_job
from rowcall.engine.scratch import Scratch
from rowcall.engine.start import start_job
from rowcall.engine.values import answering
from rowcall.engine.values import ask as ask_values
from rowcall.engine.values.answering import ValueUpdate
from rowcall.engine.work import prepare_work
from rowcall.errors import NotSettled, WrongState
from rowcall.model import Code, State, Wish
from rowcall.store import jobs, value_answers, value_mappings
from rowcall.store.db import Database
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job, JobConfig
from rowcall.store.value_answers import ValueField, ValueMapping, WantedValues

from .importing import Result, declared, result_of, settings_for, sql, until_somebody_waits

TABLES = """
    CREATE TABLE country (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE, title text);
    CREATE TABLE city (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, country_id int);
    CREATE TABLE shop (id int PRIMARY KEY, country_id int, city_id int, size text);
    INSERT INTO country (name, title) VALUES ('Germany', 'Federal Republic'), ('Åland', NULL), ('São Tomé', NULL),
        ('USA', NULL);
    INSERT INTO city (name, country_id) VALUES ('Berlin', 1), ('Bonn', 1), ('Berlin', 4), ('Paris', 4);
"""
SHOPS = declared(
    "shop", id=Integer(), country_id=Lookup("country", by="name", on_missing="ask", synonyms={"Deutschland": "Germany"})
)


class Asked:
    """A job, and a person who is asked."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        importer: type[Importer],
        text: str,
        *,
        batch_rows: int = 1000,
        workers: int = 2,
        **config: Any,
    ) -> None:
        self.database, self.importer = database, importer
        self.settings = settings_for(database, folder, batch_rows=batch_rows, workers=workers)
        with database.connect() as connection:
            stream = BytesIO(text.encode())
            self.job = start_job(
                connection, self.settings, importer, stream, file_name="rows.csv", config=JobConfig(**config)
            )
        self.run()

    def run(self) -> Job:
        self.job = run_job(Run(self.database, self.importer, self.settings), self.job)
        return self.job

    def values(self, **wanted: Any) -> list[ValueMapping]:
        with self.database.connect() as connection:
            return value_answers.page_of_values(connection, self.job.id, WantedValues(**wanted))

    def told(self) -> dict[str, tuple[str, str | None]]:
        return {each.value: (each.status, each.target_label) for each in self.values()}

    def fields(self) -> list[ValueField]:
        with self.database.connect() as connection:
            told = value_answers.value_fields(connection, self.job.id)
            for field in told:  # they are kept, and are what counting gives
                value_mappings.count_values(connection, self.job.id, field.field)
            assert told == value_answers.value_fields(connection, self.job.id)
            return told

    def says(self, *updates: ValueUpdate) -> int:
        with self.database.connect() as connection, connection.transaction():
            named = answering.targets_named(connection, self.job, updates)
            targets = answering.find_targets(connection, self.importer, named)
            return answering.update(connection, self.job, self.importer, updates, targets, "ann")

    def confirms(self) -> Result:
        return result_of(self.database, self.importer, self.goes_on())

    def goes_on(self) -> Job:
        with self.database.connect() as connection, connection.transaction():
            self.job = answering.confirm(connection, self.job)
        return self.run()

    def submits(self) -> Job:
        with self.database.connect() as connection, connection.transaction():
            self.job, _ = moves.submit(connection, self.job, {moves.ANY_PLAN})
        return self.run()

    def again(self, rows: list[int]) -> Job:
        with self.database.connect() as connection, connection.transaction():
            wanted = Wanted(rows=tuple(rows))
            moves.reprocess(connection, jobs.get_job(connection, str(self.job.id)), self.importer, wanted)
        return self.run()


def of(value: str, field: str = "country_id", **said: Any) -> ValueUpdate:
    return ValueUpdate(field=field, value=value, **said)


def shops(*countries: str) -> str:
    return "id;country_id\n" + "".join(f"{number};{country}\n" for number, country in enumerate(countries, 1))


@pytest.fixture
def tables(database: Database) -> Database:
    sql(database, TABLES)
    return database


def test_a4_sure_values_are_not_asked_about(tables: Database, tmp_path: Path) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Germany", "GERMANY", "sao tome", "ALAND", "deutschland", ""))
    assert asked.job.state is State.COMPLETED
    assert result_of(tables, SHOPS, asked.job).values("country_id") == [1, 1, 3, 2, 1, None]
    assert {each.value: (each.status, each.basis) for each in asked.values()} == {
        "Germany": ("AUTO_MATCHED", "exact"),
        "GERMANY": ("AUTO_MATCHED", "folded"),
        "sao tome": ("AUTO_MATCHED", "folded"),
        "ALAND": ("AUTO_MATCHED", "folded"),
        "deutschland": ("AUTO_MATCHED", "synonym"),
    }


def test_a4_the_others_are_a_question_and_the_answers_are_taken(tables: Database, tmp_path: Path) -> None:
    text = shops("Germany", "Germny", "Gondor", "Mordor", "Gondor", "Shire", "germny")
    asked = Asked(tables, tmp_path, SHOPS, text, batch_rows=2)
    assert (asked.job.state, asked.job.wish) == (State.CELL_MAPPING, Wish.HOLD)
    assert moves.allowed(asked.job)[:2] == ["decide", "confirm"]
    assert asked.run().state is State.CELL_MAPPING  # whoever works on it in between changes nothing
    (field,) = asked.fields()
    assert (field.values, field.unresolved, field.rows, field.covered) == (6, 5, 7, 1)
    first, *_ = asked.values(status="UNRESOLVED")
    assert (first.value, first.occurrences, first.candidates) == ("Gondor", 2, [])
    like = next(each for each in asked.values() if each.value == "Germny")
    assert (like.target_label, like.basis, like.status) == ("Germany", "similar", "UNRESOLVED")
    assert like.candidates[0]["label"] == "Germany"
    with pytest.raises(NotSettled) as caught:
        asked.confirms()
    assert (caught.value.code, caught.value.missing[0]["unresolved"]) == (Code.VALUES_UNRESOLVED, 5)
    assert caught.value.missing[0]["values"][0] == "Gondor"
    count = asked.says(
        ValueUpdate(ids=[like.id], confirm=True, alike=True),
        of("Gondor", target="4"),
        of("Mordor", ignore=True),
        of("Shire", skip=True),
    )
    assert count == 5
    (field,) = asked.fields()
    assert (field.values, field.unresolved, field.rows, field.covered) == (6, 0, 7, 7)
    first, second = asked.values(most=1), asked.values(most=3, after=(2, asked.values(most=1)[0].id))
    whole = [each.id for each in asked.values()]
    assert [each.id for each in (*first, *second)] == whole[:4]
    assert [each.id for each in asked.values(after=(1, whole[3]))] == whole[4:]
    assert asked.told() == {
        "Gondor": ("USER_OVERRIDDEN", "USA"),
        "Germany": ("AUTO_MATCHED", "Germany"),
        "Germny": ("USER_CONFIRMED", "Germany"),
        "germny": ("USER_CONFIRMED", "Germany"),
        "Mordor": ("IGNORED", None),
        "Shire": ("IGNORED", None),
    }
    result = asked.confirms()
    assert result.told == ["created"] * 5 + ["skipped VALUE_LEFT_OUT", "created"]
    assert result.values("country_id") == [1, 1, 4, None, 4, 1]


def test_x10_decisions_are_remembered_for_the_next_file(tables: Database, tmp_path: Path) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Gondor", "Mordor", "Shire"))
    asked.says(of("Gondor", target="4"), of("Mordor", ignore=True), of("Shire", skip=True))
    number = asked.job.number
    asked.confirms()
    again = Asked(tables, tmp_path, SHOPS, "id;country_id\n11;Gondor\n12;Mordor\n13;Shire\n")
    assert again.job.state is State.COMPLETED
    assert {each.reason for each in again.values()} == {f"last time, by ann in {number}"}
    assert result_of(tables, SHOPS, again.job).told == [
        "created",
        "created",
        "skipped VALUE_LEFT_OUT",
    ]
    sql(tables, "DELETE FROM country WHERE id = 4")
    third = Asked(tables, tmp_path, SHOPS, "id;country_id\n21;Gondor\n")
    assert third.job.state is State.CELL_MAPPING  # what it stood for is gone


def test_remembered_decisions_serve_importers_that_do_not_ask(tables: Database, tmp_path: Path) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Gondor"))
    asked.says(of("Gondor", target="4"))
    asked.confirms()
    failing = declared("shop", id=Integer(), country_id=Lookup("country", by="name"))
    job = Asked(tables, tmp_path, failing, "id;country_id\n11;Gondor\n12;Mordor\n").job
    assert job.state is State.COMPLETED_WITH_ERRORS
    assert result_of(tables, failing, job).told == ["created", "failed NOT_FOUND"]


def test_what_is_there_by_now_but_was_decided_otherwise_is_a_question(tables: Database, tmp_path: Path) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Gondor"))
    asked.says(of("Gondor", target="4"))
    asked.confirms()
    sql(tables, "INSERT INTO country (name) VALUES ('Gondor')")
    again = Asked(tables, tmp_path, SHOPS, "id;country_id\n11;Gondor\n")
    (value,) = again.values()
    assert {each["label"] for each in value.candidates} == {"Gondor", "USA"}
    again.says(of("Gondor", target=value.candidates[0]["key"]))
    assert again.confirms().told[0] == "created"


def test_a_match_can_be_overridden_and_that_is_remembered(tables: Database, tmp_path: Path) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Germany", "Gondor"))
    asked.says(of("Germany", target="4"), of("Gondor", ignore=True))
    assert asked.confirms().values("country_id") == [4, None]
    again = Asked(tables, tmp_path, SHOPS, "id;country_id\n11;Germany\n")
    assert (again.job.state, again.told()) == (State.COMPLETED, {"Germany": ("AUTO_MATCHED", "USA")})


def test_two_equal_matches_are_a_question(tables: Database, tmp_path: Path) -> None:
    sql(tables, "INSERT INTO country (name) VALUES ('Samé'), ('SAME')")
    asked = Asked(tables, tmp_path, SHOPS, shops("same", "Samé"))
    assert asked.told()["Samé"] == ("AUTO_MATCHED", "Samé")
    (value,) = asked.values(status="UNRESOLVED")
    assert (value.value, value.target_key, len(value.candidates)) == ("same", None, 2)
    assert "fits 2 rows of country" in value.reason
    by_title = declared("shop", id=Integer(), country_id=Lookup("country", by="title", label="name", on_missing="ask"))
    sql(tables, "UPDATE country SET title = 'twin' WHERE id IN (2, 3)")
    twins = Asked(tables, tmp_path, by_title, shops("twin"))
    assert {each["label"] for each in twins.values()[0].candidates} == {"Åland", "São Tomé"}


def test_rows_that_have_the_value_in_their_name_are_candidates(tables: Database, tmp_path: Path) -> None:
    more = "('Congo, Democratic Republic'), ('Congo, Republic'), ('Republic of the Moon'), ('Congolia')"
    sql(tables, f"INSERT INTO country (name) VALUES {more}")
    asked = Asked(tables, tmp_path, SHOPS, shops("Congo", "the moon", "Moo", "Republic of"))
    told = {each.value: (each.target_key, each.reason, each.candidates) for each in asked.values()}
    (key, reason, candidates) = told["Congo"]
    assert (key, reason) == (None, "in the name of other ones")
    assert [(each["label"], each["score"]) for each in candidates] == [
        ("Congo, Democratic Republic", 95),
        ("Congo, Republic", 95),
        ("Congolia", 77),
    ]
    assert [each["label"] for each in told["the moon"][2]] == ["Republic of the Moon"]
    assert told["the moon"][0] is None
    assert told["Moo"] == (None, "nothing like it is in country", [])
    assert told["Republic of"][2][0]["label"] == "Republic of the Moon"


def test_small_letters_do_not_decide_between_rows_that_differ_in_case(tables: Database, tmp_path: Path) -> None:
    sql(tables, "INSERT INTO country (name) VALUES ('Red'), ('red'), ('blue')")
    asked = Asked(tables, tmp_path, SHOPS, shops("RED", "Red", "red", "BLUE", "deutschland"))
    assert {each.value: (each.basis, each.target_label) for each in asked.values()} == {
        "RED": (None, None),
        "Red": ("exact", "Red"),
        "red": ("exact", "red"),
        "BLUE": ("exact", "blue"),
        "deutschland": ("synonym", "Germany"),
    }
    (value,) = asked.values(status="UNRESOLVED")
    assert {each["label"] for each in value.candidates} == {"Red", "red"}
    asked.says(of("RED", target="5"))
    assert asked.confirms().values("country_id") == [5, 5, 6, 7, 1]
    again = Asked(tables, tmp_path, SHOPS, "id;country_id\n11;RED\n")  # and isn't asked about next time
    assert (again.job.state, again.told()) == (State.COMPLETED, {"RED": ("AUTO_MATCHED", "Red")})
    sql(tables, "DELETE FROM rowcall.value_decision; ALTER TABLE country ALTER name SET NOT NULL")
    creating = Lookup("country", by="name", on_missing="create", creates="name")
    for number, lookup in enumerate((Lookup("country", by="name"), creating), 21):  # where nobody is asked, they do
        importer = declared("shop", id=Integer(), country_id=lookup)
        job = Asked(tables, tmp_path, importer, f"id;country_id\n{number};RED\n").job
        assert result_of(tables, importer, job).values("country_id")[-1] == 6


def test_the_same_text_in_two_scopes_is_two_questions(tables: Database, tmp_path: Path) -> None:
    importer = declared(
        "shop",
        id=Integer(),
        city_id=Lookup("city", by="name", within="country_id", on_missing="ask"),
        country_id=Lookup("country", by="name", on_missing="ask"),
    )
    text = "id,country_id,city_id\n1,Germany,Berlin\n2,USA,Berlin\n3,Germany,Bärlin\n4,USA,Bärlin\n5,Gondor,Berlin\n"
    asked = Asked(tables, tmp_path, importer, text, batch_rows=2)
    assert [field.field for field in asked.fields()] == ["country_id"]  # which city depends on the country
    asked.says(of("Gondor", target="4"))
    assert asked.goes_on().state is State.CELL_MAPPING
    cities = {(each.value, each.scope_label): each for each in asked.values(field="city_id")}
    assert {what: each.status for what, each in cities.items()} == {
        ("Berlin", "Germany"): "AUTO_MATCHED",
        ("Berlin", "USA"): "AUTO_MATCHED",
        ("Bärlin", "Germany"): "UNRESOLVED",
        ("Bärlin", "USA"): "UNRESOLVED",
    }
    assert cities["Berlin", "USA"].occurrences == 2
    with pytest.raises(Final, match="not in the scope"):
        asked.says(ValueUpdate(ids=[cities["Bärlin", "Germany"].id], target="3"))
    asked.says(
        ValueUpdate(ids=[cities["Bärlin", "Germany"].id], confirm=True), of("Bärlin", "city_id", scope="4", target="4")
    )
    assert asked.confirms().values("city_id") == [1, 3, 1, 4, 3]


CITIES = declared(
    "shop",
    id=Integer(),
    country_id=Lookup("country", by="name", on_missing="ask"),
    city_id=Lookup("city", by="name", within="country_id", on_missing="ask"),
    size=Choice("S", "L", on_missing="ask"),
)


def test_nobody_is_asked_about_rows_that_are_skipped_anyway(tables: Database, tmp_path: Path) -> None:
    rows = "1,Mordor,Barad,S\n2,Germany,Berlin,L\n3,Germany,Bree,XXL\n4,Gondor,Osgiliath,S\n"
    text = "id,country_id,city_id,size\n" + rows
    asked = Asked(tables, tmp_path, CITIES, text, batch_rows=1)
    asked.says(of("Mordor", skip=True), of("XXL", "size", skip=True), of("Gondor", target="4"))
    assert asked.goes_on().state is State.CELL_MAPPING
    assert [(each.field, each.value) for each in asked.values(status="UNRESOLVED")] == [("city_id", "Osgiliath")]
    asked.says(of("Osgiliath", "city_id", ignore=True))
    assert asked.confirms().told == ["skipped VALUE_LEFT_OUT", "created", "skipped VALUE_LEFT_OUT", "created"]


def test_nobody_is_asked_about_look_ups_within_what_fails(tables: Database, tmp_path: Path) -> None:
    strict = declared(
        "shop",
        id=Integer(),
        country_id=Lookup("country", by="name"),
        city_id=Lookup("city", by="name", within="country_id", on_missing="ask"),
    )
    text = "id,country_id,city_id\n1,Mordor,Barad\n2,Germany,Berlin\n3,,Bree\n"
    asked = Asked(tables, tmp_path, strict, text, batch_rows=1)
    assert [each.value for each in asked.values(status="UNRESOLVED")] == ["Bree"]  # it may be left empty
    asked.says(of("Bree", "city_id", ignore=True))
    assert asked.confirms().told == ["failed NOT_FOUND", "created", "created"]


def test_a_scope_that_is_a_question_by_itself_comes_first(tables: Database, tmp_path: Path) -> None:
    """What was planned is looked up anew when it is written: by then, the country is gone."""
    asked = Asked(tables, tmp_path, CITIES, "id,country_id,city_id\n1,Germany,Berlin\n2,USA,Paris\n", preview=True)
    sql(tables, "DELETE FROM country WHERE id = 1")
    assert asked.submits().state is State.CELL_MAPPING
    assert [(each.field, each.value) for each in asked.values(status="UNRESOLVED")] == [("country_id", "Germany")]
    asked.says(of("Germany", target="4"))
    assert asked.confirms().values("country_id", "city_id") == [(4, 3), (4, 4)]


def test_a_row_is_not_skipped_before_it_is_said_what_it_is_looked_up_within(tables: Database, tmp_path: Path) -> None:
    skipping = declared(
        "shop",
        id=Integer(),
        country_id=Lookup("country", by="name", on_missing="ask"),
        city_id=Lookup("city", by="name", within="country_id", on_missing="skip"),
    )
    asked = Asked(tables, tmp_path, skipping, "id,country_id,city_id\n1,Germany,Berlin\n", preview=True)
    sql(tables, "DELETE FROM country WHERE id = 1")
    assert asked.submits().state is State.CELL_MAPPING
    asked.says(of("Germany", target="4"))
    assert asked.confirms().values("country_id", "city_id") == [(4, 3)]


def test_choices_are_asked_about_in_the_same_way(tables: Database, tmp_path: Path) -> None:
    importer = declared("shop", id=Integer(), size=Choice("Small", "Large", synonyms={"XL": "Large"}, on_missing="ask"))
    asked = Asked(tables, tmp_path, importer, "id,size\n1,small\n2,xl\n3,Smal\n4,huge\n5,sMáll\n")
    assert {each.value: (each.status, each.target_key) for each in asked.values()} == {
        "small": ("AUTO_MATCHED", "Small"),
        "xl": ("AUTO_MATCHED", "Large"),
        "Smal": ("UNRESOLVED", "Small"),
        "huge": ("UNRESOLVED", None),
        "sMáll": ("AUTO_MATCHED", "Small"),
    }
    with pytest.raises(Final, match="There are Small, Large"):
        asked.says(of("huge", "size", target="Huge"))
    with pytest.raises(Final, match="doesn't have rows created"):
        asked.says(of("huge", "size", create=True))
    asked.says(of("huge", "size", target="Large"), of("Smal", "size", confirm=True))
    assert asked.confirms().values("size") == ["Small", "Large", "Small", "Large", "Small"]


def test_people_may_have_it_created_where_the_importer_allows_it(tables: Database, tmp_path: Path) -> None:
    creating = declared("shop", id=Integer(), country_id=Lookup("country", by="name", on_missing="ask", creates="name"))
    asked = Asked(tables, tmp_path, creating, shops("Gondor", "Mordor", "Gondor"), batch_rows=1)
    with pytest.raises(NotSettled):
        asked.confirms()
    assert asked.says(ValueUpdate(field="country_id", status="UNRESOLVED", create=True)) == 2
    assert asked.confirms().told == ["created"] * 3
    assert sql(tables, "SELECT count(*) FROM country WHERE name IN ('Gondor', 'Mordor')") == [(2,)]
    refusing = Asked(tables, tmp_path, SHOPS, "id;country_id\n11;Shire\n")
    with pytest.raises(Final, match="doesn't have rows created"):
        refusing.says(of("Shire", create=True))


def test_to_create_is_said_for_one_file(tables: Database, tmp_path: Path) -> None:
    creating = declared("shop", id=Integer(), country_id=Lookup("country", by="name", on_missing="ask", creates="name"))
    asked = Asked(tables, tmp_path, creating, shops("Gondor"))
    asked.says(of("Gondor", create=True))
    asked.confirms()
    assert sql(tables, "SELECT count(*) FROM rowcall.value_decision") == [(0,)]
    again = Asked(tables, tmp_path, creating, "id;country_id\n11;gondor\n")
    assert (again.job.state, again.told()) == (State.COMPLETED, {"gondor": ("AUTO_MATCHED", "Gondor")})
    sql(tables, "DELETE FROM country WHERE name = 'Gondor'")
    assert Asked(tables, tmp_path, creating, "id;country_id\n12;Gondor\n").job.state is State.CELL_MAPPING


def test_all_values_that_fit_can_be_answered_at_once(tables: Database, tmp_path: Path) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Germny", "Gondor", "Gondolin", "Germani", "100%"))
    assert asked.says(ValueUpdate(field="country_id", status="UNRESOLVED", confirm=True)) == 2
    assert asked.says(ValueUpdate(field="country_id", text="gondo", skip=True)) == 2
    assert asked.says(ValueUpdate(field="country_id", text="%", ignore=True)) == 1
    assert asked.confirms().told == ["created", *["skipped VALUE_LEFT_OUT"] * 2, "created", "created"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (of("Gondor"), "one of confirm, targetId, ignore, skip and create"),
        (of("Gondor", confirm=True, skip=True), "one of confirm, targetId, ignore, skip and create"),
        (of("Gondor", target="99"), "'99' is not in country"),
        (of("Gondor", target="x'); DROP TABLE shop; --"), "is not in country"),
        (of("Gondor", confirm=True), "Nothing is proposed for 'Gondor'"),
        (of("Gandor", ignore=True), "is none of the values"),
        (of("Gondor", "size", ignore=True), "is none of the values"),
        (ValueUpdate(ids=[0], ignore=True), "is none of the values"),
        (ValueUpdate(ignore=True), "It isn't said which values"),
    ],
)
def test_answers_that_make_no_sense_are_refused(tables: Database, tmp_path: Path, said: ValueUpdate, told: str) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Gondor"))
    before = asked.told()
    with pytest.raises(Final, match=told):
        asked.says(said)
    assert asked.told() == before


def test_values_of_a_job_that_does_not_wait_are_not_changed(tables: Database, tmp_path: Path) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Germany"))
    with pytest.raises(WrongState):
        asked.says(of("Germany", ignore=True))


def test_a_job_that_waits_can_be_paused_and_cancelled(tables: Database, tmp_path: Path) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Gondor", "Germny"))
    asked.says(of("Gondor", ignore=True))
    with tables.connect() as connection:
        with connection.transaction():
            moves.pause(connection, asked.job)
        assert asked.run().state is State.PAUSED
        moves.resume(connection, asked.job)
        assert (asked.run().state, asked.job.wish) == (State.CELL_MAPPING, Wish.HOLD)
        assert asked.told()["Gondor"] == ("IGNORED", None)  # what was said stays
        with connection.transaction():
            moves.cancel(connection, asked.job)
        assert asked.run().state is State.CANCELLED


@pytest.mark.parametrize("batch_rows", [1, 3, 1000])
def test_a4_what_was_decided_may_be_gone_when_rows_are_written(
    tables: Database, tmp_path: Path, batch_rows: int
) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Germany", "Utopia", "Germany", "Utopia"), batch_rows=batch_rows)
    asked.says(of("Utopia", target="2"))
    sql(tables, "DELETE FROM country WHERE id = 2")
    assert (asked.goes_on().state, asked.job.wish) == (State.CELL_MAPPING, Wish.HOLD)
    asked.says(of("Utopia", target="1"))
    assert asked.confirms().told == ["created"] * 4


def test_a_row_that_is_tried_by_itself_asks_nobody(tables: Database, tmp_path: Path) -> None:
    """As an edited row is: it is told that somebody will be asked."""
    both = declared(
        "shop",
        id=Integer(),
        country_id=Lookup("country", by="name", on_missing="ask"),
        size=Choice("S", on_missing="ask"),
    )
    asked = Asked(tables, tmp_path, both, "id,country_id,size\n1,Gondor,XL\n")
    scratch = Scratch(tmp_path / "scratch")
    with tables.connect() as connection, connection.transaction():
        work = prepare_work(connection, asked.job, both, scratch, dry=True)
        outcome = try_alone(connection, work, [1])
    assert outcome["status"].to_list() == ["failed"]
    assert "Nobody has said yet what 'Gondor' stands for" in outcome["issues"][0]
    assert "NOT_A_CHOICE" in outcome["issues"][0]
    assert asked.run().state is State.CELL_MAPPING


def test_finished_batches_stay_finished_and_nothing_is_doubled(tables: Database, tmp_path: Path) -> None:
    sql(
        tables,
        """
        CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.id = 20 THEN DELETE FROM country WHERE name = 'Åland'; END IF; RETURN NULL; END $$;
        CREATE TRIGGER gone AFTER INSERT ON shop FOR EACH ROW EXECUTE FUNCTION gone();
        """,
    )
    asked = Asked(tables, tmp_path, SHOPS, shops(*["Germany"] * 30, *["Åland"] * 30), batch_rows=5, workers=1)
    assert (asked.job.state, asked.job.wish) == (State.CELL_MAPPING, Wish.HOLD)
    done = sql(tables, "SELECT number FROM rowcall.batch WHERE state = 'done' ORDER BY 1")
    assert 0 < len(done) < 12
    with tables.connect() as connection:
        verified = {each.name: each.verdict for each in verify_job(connection, asked.job, SHOPS, [SHOPS])}
    assert verified == dict.fromkeys(("I1", "I2", "I3", "I4", "I5", "I6", "I8"), Verdict.OK)  # what is written counts
    outcomes = sql(tables, "SELECT row_number, xmin::text FROM rowcall.outcome ORDER BY 1")
    (value,) = asked.values(status="UNRESOLVED")
    assert value.value == "Åland"
    assert next(each for each in asked.values() if each.value == "Germany").fixed
    with pytest.raises(Final, match="was settled when the job began to write"):
        asked.says(of("Germany", target="3"))
    asked.says(of("Åland", target="3"))
    result = asked.confirms()
    assert result.told == ["created"] * 60
    assert result.values("country_id") == [1] * 30 + [3] * 30
    assert outcomes == sql(tables, "SELECT row_number, xmin::text FROM rowcall.outcome ORDER BY 1")[: len(outcomes)]


def test_a_reprocessed_row_may_ask_too(tables: Database, tmp_path: Path) -> None:
    sql(tables, "ALTER TABLE shop ADD CHECK (id <> 2)")
    asked = Asked(tables, tmp_path, SHOPS, shops("Germany", "Åland"))
    assert asked.job.state is State.COMPLETED_WITH_ERRORS
    sql(tables, "ALTER TABLE shop DROP CONSTRAINT shop_id_check; DELETE FROM country WHERE name = 'Åland'")
    assert asked.again([2]).state is State.CELL_MAPPING
    assert asked.told()["Åland"][0] == "UNRESOLVED"
    assert (asked.fields()[0].unresolved, asked.fields()[0].covered) == (1, 1)
    with tables.connect() as connection:
        counts = jobs.counts_of(connection, asked.job)
    assert moves.possible(asked.job, counts, SHOPS) == ["decide", "confirm", "pause", "cancel"]  # its columns stay
    asked.says(of("Åland", target="3"))
    assert asked.confirms().values("id", "country_id") == [(1, 1), (2, 3)]
    assert asked.job.state is State.COMPLETED


def test_a_reprocessed_row_that_asks_can_be_given_up(tables: Database, tmp_path: Path) -> None:
    sql(tables, "ALTER TABLE shop ADD CHECK (id <> 2)")
    asked = Asked(tables, tmp_path, SHOPS, shops("Germany", "Åland"))
    sql(tables, "DELETE FROM country WHERE name = 'Åland'")
    assert asked.again([2]).state is State.CELL_MAPPING
    with tables.connect() as connection, connection.transaction():
        moves.cancel(connection, asked.job)
    result = result_of(tables, SHOPS, asked.run())
    assert (result.job.state, result.told) == (State.COMPLETED_WITH_ERRORS, ["created", "failed CHECK_VIOLATION"])


@pytest.mark.parametrize("atomic", [False, True])
def test_previews_ask_and_plan_with_the_answers(tables: Database, tmp_path: Path, atomic: bool) -> None:
    importer = declared("shop", atomic=atomic, id=Integer(), country_id=Lookup("country", by="name", on_missing="ask"))
    asked = Asked(tables, tmp_path, importer, shops("Germany", "Gondor"), dry_run=True)
    asked.says(of("Gondor", target="2"))
    sql(tables, "DELETE FROM country WHERE id = 2")
    assert asked.goes_on().state is State.CELL_MAPPING
    asked.says(of("Gondor", ignore=True))
    result = asked.confirms()
    assert (result.job.state, result.told, result.rows) == (State.VALIDATED, ["created"] * 2, [])


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
def test_what_is_answered_since_the_preview_is_agreed_to(tables: Database, tmp_path: Path, batch_rows: int) -> None:
    """But for rows that others have changed meanwhile."""
    sql(tables, "INSERT INTO shop (id, country_id) VALUES (1, 1), (5, 1), (6, 1)")
    importer = declared(
        "shop",
        key="id",
        on_match=Update(),
        id=Integer(),
        country_id=Lookup("country", by="name", on_missing="ask"),
    )
    text = shops("Åland", "Åland", "Germany", "São Tomé", "Åland", "USA", "Åland")
    asked = Asked(tables, tmp_path, importer, text, batch_rows=batch_rows, preview=True)
    assert asked.job.state is State.VALIDATED
    sql(tables, "DELETE FROM country WHERE id IN (2, 3); UPDATE shop SET country_id = 4 WHERE id IN (5, 6)")
    assert asked.submits().state is State.CELL_MAPPING
    while questions := asked.values(status="UNRESOLVED"):
        for each in questions:
            assert each.occurrences == {"Åland": 4, "São Tomé": 1}[each.value]  # however the rows were cut
            asked.says(of("Åland", target="1") if each.value == "Åland" else of(each.value, skip=True))
        asked.goes_on()
    result = result_of(tables, importer, asked.job)
    assert result.told == [
        "unchanged",
        "created",
        "created",
        "skipped VALUE_LEFT_OUT",
        "failed DRIFTED",
        "failed DRIFTED",
        "created",
    ]
    assert result.values("id", "country_id") == [(1, 1), (2, 1), (3, 1), (5, 4), (6, 4), (7, 1)]


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
def test_a_late_value_counts_in_all_rows(tables: Database, tmp_path: Path, batch_rows: int) -> None:
    importer = declared(
        "shop",
        id=Integer(),
        country_id=Lookup("country", by="name", on_missing="ask"),
        city_id=Lookup("city", by="name", within="country_id", on_missing="ask"),
    )
    text = "id,country_id,city_id\n" + "".join(f"{n},Germany,Berlin\n" for n in range(1, 6)) + "6,USA,Paris\n"
    asked = Asked(tables, tmp_path, importer, text, batch_rows=batch_rows, preview=True)
    assert asked.job.state is State.VALIDATED
    sql(tables, "DELETE FROM country WHERE id = 1; INSERT INTO country (name) VALUES ('Germany')")
    assert asked.submits().state is State.CELL_MAPPING
    (late,) = asked.values(status="UNRESOLVED")
    assert (late.value, late.scope, late.occurrences) == ("Berlin", "5", 5)
    asked.says(ValueUpdate(ids=[late.id], ignore=True))
    result = asked.confirms()
    assert (result.told, result.values("country_id", "city_id")) == (["created"] * 6, [(5, None)] * 5 + [(4, 4)])


def test_rows_are_the_same_by_what_their_values_stand_for(tables: Database, tmp_path: Path) -> None:
    sql(tables, "CREATE TABLE visit (country_id int PRIMARY KEY, n int)")
    country = Lookup("country", by="name", on_missing="ask")
    importer = declared("visit", key="country_id", on_match=Update(), country_id=country, n=Integer())
    asked = Asked(tables, tmp_path, importer, "country_id,n\nGermany,1\nGondor,2\nGERMANY,3\n", batch_rows=1)
    asked.says(of("Gondor", target="1"))
    result = asked.confirms()
    assert result.told == ["skipped DUPLICATE_IN_FILE"] * 2 + ["created"]
    assert result.values("n") == [3]


def test_cells_that_hold_no_value_are_not_asked_about(tables: Database, tmp_path: Path) -> None:
    importer = declared(
        "shop", id=Integer(), country_id=Lookup("country", by="name", on_missing="ask", blank=["n/a"], required=True)
    )
    job = Asked(tables, tmp_path, importer, shops("Germany", " N/A ", "   ", '"Germany')).job
    assert job.state is State.COMPLETED_WITH_ERRORS


def test_two_persons_and_a_worker_at_once(tables: Database, tmp_path: Path) -> None:
    asked = Asked(tables, tmp_path, SHOPS, shops("Gondor", "Mordor"))
    threads = [
        threading.Thread(target=asked.says, args=[of(value, target="1")]) for value in ("Gondor", "Mordor", "Gondor")
    ]
    for thread in threads:
        thread.start()
    asked.run()
    for thread in threads:
        thread.join()
    assert asked.confirms().values("country_id") == [1, 1]


@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_a_hundred_thousand_values(tables: Database, tmp_path: Path) -> None:
    """A4: what is there is found, the likeliest few are proposed, and pages are small."""
    sql(tables, "INSERT INTO country (name) SELECT 'Place ' || n FROM generate_series(1, 60000) n")
    text = "id;country_id\n" + "".join(f"{n};{'PLACE' if n % 2 else 'Nowhere'} {n}\n" for n in range(1, 100_001))
    asked = Asked(tables, tmp_path, SHOPS, text, batch_rows=20_000)
    (field,) = asked.fields()
    assert (field.values, field.rows, field.unresolved, field.covered) == (100_000, 100_000, 70_000, 30_000)
    page = asked.values(most=10, status="UNRESOLVED")
    assert [each.value for each in page][:2] == sorted(each.value for each in page)[:2]
    assert asked.says(ValueUpdate(field="country_id", status="UNRESOLVED", skip=True)) == 70_000
    result = asked.confirms()
    assert (result.counts.created, result.counts.skipped) == (30_000, 70_000)


@pytest.mark.parametrize("where", ["match_values", "keep_questions"])
def test_a_process_that_ends_in_between_loses_nothing(
    tables: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """What a state names is durable: values are gathered, or the job is where it was."""

    class Ended(BaseException):
        """As a kill would be."""

    def end(*_: Any, **__: Any) -> None:
        raise Ended

    asked = Asked(tables, tmp_path, SHOPS, shops("Germany", "Germany", "Gondor", "Åland"), batch_rows=2)
    asked.says(of("Gondor", target="4"))
    with tables.connect() as connection, connection.transaction():
        asked.job = answering.confirm(connection, asked.job)
    sql(tables, "DELETE FROM country WHERE id = 4")
    with monkeypatch.context() as patched:
        module = ask_values if where == "match_values" else ask_values.value_mappings
        patched.setattr(module, where, end)
        with pytest.raises(Ended):
            asked.run()
    assert sql(tables, "SELECT count(*) FROM rowcall.value_mapping WHERE status = 'UNRESOLVED'") == [(0,)]
    assert (asked.run().state, asked.job.wish) == (State.CELL_MAPPING, Wish.HOLD)
    asked.says(of("Gondor", target="1"))
    result = asked.confirms()
    assert (result.told, result.values("country_id")) == (["created"] * 4, [1, 1, 1, 2])


def test_a_process_that_ends_while_values_are_gathered_gathers_them_anew(
    tables: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    match = ask_values.match_values

    def ending(*given: Any) -> None:
        match(*given)
        calls.append("matched")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ask_values, "match_values", ending)
        with pytest.raises(KeyboardInterrupt):
            Asked(tables, tmp_path, SHOPS, shops("Germany", "Gondor"))
    assert calls == ["matched"]
    assert sql(tables, "SELECT state FROM rowcall.job") == [("CELL_MAPPING",)]
    assert sql(tables, "SELECT count(*) FROM rowcall.value_mapping") == [(0,)]
    asked = Asked(tables, tmp_path, SHOPS, shops("Germany", "Gondor"))  # the same import again goes on with the job
    assert sql(tables, "SELECT count(*) FROM rowcall.job") == [(1,)]
    asked.says(of("Gondor", ignore=True))
    assert asked.confirms().told == ["created"] * 2


def test_two_who_confirm_the_same_values_at_once_wait_for_each_other_only_one_way(
    database: Database, tmp_path: Path
) -> None:
    """What was decided is kept in one order, whichever order the files have the values in."""
    sql(database, TABLES)
    in_order = "SELECT v FROM unnest(ARRAY['p', 'q']) v ORDER BY rowcall.value_digest('country_id', '', v)"
    one, two = (value for (value,) in sql(database, in_order))
    files = (f"1,{one}\n", f"1,{one}\n2,{two}\n", f"1,{two}\n2,{two}\n3,{one}\n")
    first, both, other = (Asked(database, tmp_path, SHOPS, "id,country_id\n" + rows) for rows in files)
    for asked in (first, both, other):
        asked.says(ValueUpdate(field="country_id", ignore=True))
    confirming = threading.Thread(target=other.confirms)
    with database.connect() as connection, connection.transaction():
        answering.confirm(connection, first.job)
        confirming.start()
        until_somebody_waits(database)
        answering.confirm(connection, both.job)
    confirming.join()
    assert sql(database, "SELECT count(*) FROM rowcall.value_decision") == [(2,)]


def test_spellings_that_are_to_be_created_create_one_row(tables: Database, tmp_path: Path) -> None:
    country = Lookup("country", by="name", on_missing="ask", creates="name")
    importer = declared("shop", id=Integer(), country_id=country)
    asked = Asked(tables, tmp_path, importer, shops("NARNIA", "Narnia", "narnia", "Narnia", "Oz"), batch_rows=1)
    asked.says(ValueUpdate(field="country_id", status="UNRESOLVED", create=True))
    result = asked.confirms()
    ids = result.values("country_id")
    assert (len(set(ids[:4])), len(set(ids))) == (1, 2)
    assert sql(tables, "SELECT name FROM country WHERE lower(name) = 'narnia'") == [("Narnia",)]


@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_a_value_that_is_settled_in_one_scope_is_said_of_where_it_is_open(
    tables: Database, tmp_path: Path, batch_rows: int
) -> None:
    importer = declared(
        "shop",
        id=Integer(),
        country_id=Lookup("country", by="name", on_missing="ask"),
        city_id=Lookup("city", by="name", within="country_id", on_missing="ask"),
    )
    sql(tables, "INSERT INTO city (name, country_id) VALUES ('Paris', 1)")
    text = "id,country_id,city_id\n1,Germany,Paris\n2,USA,Paris\n"
    asked = Asked(tables, tmp_path, importer, text, batch_rows=batch_rows, preview=True)
    sql(tables, "DELETE FROM city WHERE name = 'Paris' AND country_id = 1")
    assert asked.submits().state is State.CELL_MAPPING
    assert asked.says(ValueUpdate(field="city_id", value="Paris", ignore=True)) == 1
    with pytest.raises(Final, match="was settled when the job began to write"):
        asked.says(ValueUpdate(field="city_id", value="Paris", scope="4", skip=True))
    assert asked.confirms().values("country_id", "city_id") == [(1, None), (4, 4)]


@pytest.mark.parametrize("policy", ["ask", "empty", "skip"])
def test_fields_may_be_called_as_what_is_said_of_values_is(tables: Database, tmp_path: Path, policy: Any) -> None:
    """There was no column `action` any more, or its own texts were taken for what people had said."""
    sql(tables, "CREATE TABLE shift (id int PRIMARY KEY, size text, action text, target text, late bool)")
    importer = declared(
        "shift",
        key="id",
        on_match=Update(),
        id=Integer(),
        size=Choice("S", "M", on_missing=policy),
        action=Text(required=True),
        target_=Text(),
        late=Boolean(),
    )
    text = "id,size,action,target,late\n1,S,skip,x,true\n2,M,use,,false\n3,,fire,y,\n"
    asked = Asked(tables, tmp_path, importer, text)
    assert asked.job.state is State.COMPLETED
    written = [(1, "S", "skip", "x", True), (2, "M", "use", None, False), (3, None, "fire", "y", None)]
    assert sql(tables, "SELECT * FROM shift ORDER BY id") == written
