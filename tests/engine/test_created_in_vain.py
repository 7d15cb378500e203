"""Rows of other tables are created for rows that are written, and for no others (A4)."""

from pathlib import Path
from typing import Any

import pytest

from rowcall import Fail, Importer, Integer, Lookup, Skip, Text, Update
from rowcall.engine.values.answering import ValueUpdate
from rowcall.model import State
from rowcall.store.db import Database

from .importing import declared, result_of, run_import, sql
from .previewing import preview, submit
from .test_asking_values import Asked
from .undoing import undone

TABLES = """
    CREATE TABLE country (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE);
    CREATE TABLE city (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL CHECK (length(name) < 10),
        country_id int REFERENCES country, UNIQUE (name, country_id));
    CREATE TABLE town (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE);
    CREATE TABLE shop (id int PRIMARY KEY, v text, town_id int REFERENCES town ON DELETE CASCADE,
        other_id int REFERENCES town, country_id int REFERENCES country, city_id int REFERENCES city);
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.v = 'bad' THEN RAISE 'not this one'; END IF; RETURN NEW; END $$;
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON shop FOR EACH ROW EXECUTE FUNCTION refuse();
    INSERT INTO town (name) VALUES ('There');
    INSERT INTO shop (id, v, town_id) VALUES (1, 'old', 1);
"""


@pytest.fixture
def tables(database: Database) -> Database:
    sql(database, TABLES)
    return database


def town() -> Lookup:
    return Lookup("town", by="name", on_missing="create", creates="name")


def shops(**options: Any) -> type[Importer]:
    return declared(
        "shop", **{"key": "id", "on_match": Fail(), "id": Integer(), "v": Text(), "town_id": town(), **options}
    )


def towns(database: Database) -> list[str]:
    return [name for (name,) in sql(database, "SELECT name FROM town WHERE id > 1 ORDER BY name")]


FILE = "id,v,town_id\n1,new,Stray\n2,bad,Strange\n3,bad,Shared\n4,good,Shared\n5,good,Own\n"


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
@pytest.mark.parametrize(
    ("on_match", "first", "made"),
    [
        (Skip(), "skipped ALREADY_EXISTS", ["Own", "Shared"]),
        (Fail(), "failed ALREADY_EXISTS", ["Own", "Shared"]),
        (Update(), "updated", ["Own", "Shared", "Stray"]),
    ],
)
def test_a_row_that_is_not_written_has_nothing_created(
    tables: Database, on_match: Any, first: str, made: list[str], batch_rows: int
) -> None:
    importer = shops(on_match=on_match)
    told = [first, *["failed ROW_REFUSED"] * 2, *["created"] * 2]
    assert run_import(tables, importer, FILE, batch_rows=batch_rows, dry_run=True).told == told
    assert towns(tables) == []
    result = run_import(tables, importer, FILE, batch_rows=batch_rows)
    assert (result.told, towns(tables)) == (told, made)
    named = "SELECT s.id, t.name FROM shop s JOIN town t ON t.id = s.town_id WHERE s.id > 1 ORDER BY 1"
    assert sql(tables, named) == [(4, "Shared"), (5, "Own")]


def test_a_row_that_an_earlier_import_took_has_nothing_created(tables: Database) -> None:
    importer = shops(once=True, on_match=Skip())
    assert run_import(tables, importer, "id,v,town_id\n7,a,There\n").told == ["created"]
    sql(tables, "DELETE FROM shop WHERE id = 7")
    again = run_import(tables, importer, "id,v,town_id\n7,b,Stray\n8,b,New\n9,bad,Strange\n")
    assert again.told == ["skipped ALREADY_IMPORTED", "created", "failed ROW_REFUSED"]
    assert towns(tables) == ["New"]
    assert sql(tables, "SELECT row_number FROM rowcall.row_key ORDER BY 1") == [(1,), (2,)]


def test_a_preview_comes_to_the_same(tables: Database) -> None:
    importer = shops(on_match=Skip())
    text = "id,v,town_id\n1,new,Stray\n2,bad,Strange\n3,good,New\n4,good,Late\n5,bad,Late\n"
    seen = preview(tables, importer, text)
    told = ["skipped ALREADY_EXISTS", "failed ROW_REFUSED", "created", "created", "failed ROW_REFUSED"]
    assert (seen.told, towns(tables)) == (told, [])
    sql(tables, "INSERT INTO shop (id, v) VALUES (4, 'meanwhile')")
    done = submit(tables, importer, seen.job)
    told[3] = "failed DRIFTED ALREADY_EXISTS"
    assert (done.told, towns(tables)) == (told, ["New"])
    assert done.outcomes[1].issues == seen.outcomes[1].issues


@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_all_or_nothing_creates_nothing_for_rows_that_are_skipped(tables: Database, batch_rows: int) -> None:
    importer = shops(on_match=Skip(), atomic=True)
    result = run_import(tables, importer, "id,v,town_id\n1,new,Stray\n2,good,New\n", batch_rows=batch_rows)
    assert (result.job.state, result.told) == (State.COMPLETED, ["skipped ALREADY_EXISTS", "created"])
    assert towns(tables) == ["New"]


def test_what_two_fields_name_stays_when_one_row_of_them_is_written(tables: Database) -> None:
    importer = shops(other_id=town())
    text = "id,v,town_id,other_id\n2,bad,Both,Stray\n3,good,There,Both\n4,bad,Strange,Both\n"
    assert run_import(tables, importer, text).told == ["failed ROW_REFUSED", "created", "failed ROW_REFUSED"]
    assert towns(tables) == ["Both"]
    assert sql(tables, "SELECT t.name FROM shop s JOIN town t ON t.id = s.other_id") == [("Both",)]


def test_scopes_that_were_created_for_nothing_go_with_what_is_in_them(tables: Database) -> None:
    importer = declared(
        "shop",
        key="id",
        on_match=Fail(),
        id=Integer(),
        v=Text(),
        country_id=Lookup("country", by="name", on_missing="create", creates="name"),
        city_id=Lookup("city", by="name", within="country_id", on_missing="create", creates="name"),
    )
    text = "id,v,country_id,city_id\n2,bad,Gondor,Minas\n3,good,Rohan,Edoras\n4,bad,Rohan,Aldburg\n5,good,Mordor,"
    result = run_import(tables, importer, text + "a name that is too long\n6,good,Shire,Bree\n1,good,Shire,Delving\n")
    assert result.told == [
        *("failed ROW_REFUSED", "created", "failed ROW_REFUSED", "failed NOT_FOUND", "created"),
        "failed ALREADY_EXISTS",
    ]
    found = "SELECT c.name, y.name FROM country c LEFT JOIN city y ON y.country_id = c.id ORDER BY 1, 2"
    assert sql(tables, found) == [("Rohan", "Edoras"), ("Shire", "Bree")]


def test_what_is_created_under_another_name_does_not_stay(tables: Database) -> None:
    sql(
        tables,
        "CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.name := upper(NEW.name); RETURN NEW; END $$;"
        "CREATE TRIGGER shout BEFORE INSERT ON town FOR EACH ROW EXECUTE FUNCTION shout()",
    )
    result = run_import(tables, shops(), "id,v,town_id\n2,good,Bonn\n3,good,BERN\n")
    assert result.told == ["failed NOT_FOUND", "created"]
    assert towns(tables) == ["BERN"]


@pytest.mark.parametrize("scope", ["country_id", "v"])
def test_nothing_is_created_without_the_scope_that_it_would_be_within(tables: Database, scope: str) -> None:
    importer = declared(
        "shop",
        id=Integer(),
        country_id=Lookup("country", by="name", on_missing="create", creates="name"),
        city_id=Lookup("city", by="name", within="country_id", on_missing="create", creates="name"),
        v=Text(),
    )
    result = run_import(tables, importer, f"id,{scope},city_id\n2,,Bonn\n")
    told = "'Bonn' is not found in city, and is not created without country_id, which is blank."
    assert (result.told, result.issue(1).message) == (["failed NOT_FOUND"], told)
    assert sql(tables, "SELECT * FROM city") == []


def test_a_person_who_has_it_created_is_not_taken_at_their_word_for_rows_that_fail(
    tables: Database, tmp_path: Path
) -> None:
    asking = Lookup("town", by="name", on_missing="ask", creates="name")
    asked = Asked(tables, tmp_path, shops(town_id=asking), FILE)
    asked.says(ValueUpdate(field="town_id", status="UNRESOLVED", create=True))
    result = asked.confirms()
    assert result.told == ["failed ALREADY_EXISTS", *["failed ROW_REFUSED"] * 2, *["created"] * 2]
    assert towns(tables) == ["Own", "Shared"]


def test_rows_with_something_created_are_taken_back_and_what_was_created_stays(
    tables: Database, tmp_path: Path
) -> None:
    importer = shops(on_match=Update())
    text = "id,v,town_id\n1,new,New\n2,bad,Stray\n3,good,Own\n"
    asked = Asked(tables, tmp_path, importer, text, batch_rows=2)
    assert (result_of(tables, importer, asked.job).told, towns(tables)) == (
        ["updated", "failed ROW_REFUSED", "created"],
        ["New", "Own"],
    )
    sql(tables, "DROP TRIGGER refuse ON shop")
    result = result_of(tables, importer, asked.again([2]))
    assert (result.told, towns(tables)) == (["updated", "created", "created"], ["New", "Own", "Stray"])
    job, told = undone(tables, importer, result.job)
    assert (job.state, told.deleted, told.restored) == (State.REVERTED, 2, 1)
    assert sql(tables, "SELECT id, v, town_id FROM shop") == [(1, "old", 1)]
    assert towns(tables) == ["New", "Own", "Stray"]  # others may have begun to use them


@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_rows_that_come_in_behind_others_have_theirs_created(tables: Database, batch_rows: int) -> None:
    sql(tables, "CREATE TABLE staff (id int PRIMARY KEY, boss_id int REFERENCES staff, town_id int REFERENCES town)")
    importer = declared("staff", key="id", id=Integer(), boss_id=Integer(), town_id=town())
    text = "id,boss_id,town_id\n2,3,New\n3,,There\n4,99,Stray\n"
    told = ["created", "created", "failed FOREIGN_KEY_VIOLATION"]
    assert run_import(tables, importer, text, batch_rows=batch_rows, dry_run=True).told == told
    assert run_import(tables, importer, text, batch_rows=batch_rows).told == told
    assert towns(tables) == ["New"]
