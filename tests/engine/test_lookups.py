"""Look-ups: a text of the file becomes the key of a row of another table."""

from typing import Any

import pytest

from rowcall import Final, Integer, Lookup, Text, Update
from rowcall.engine.surroundings import check_importers
from rowcall.importer.registry import Pack, Registry
from rowcall.store.db import Database

from .importing import Result, declared, run_import, sql

TABLES = """
    CREATE TABLE users (id uuid PRIMARY KEY, email text UNIQUE, name text, code smallint UNIQUE, big bigint);
    INSERT INTO users VALUES
        ('00000000-0000-0000-0000-00000000000a', 'ann@x.org', 'Ann', 31000, 9000000000000000001),
        ('00000000-0000-0000-0000-00000000000b', 'Bob@X.org', 'Bob', 7, 7),
        ('00000000-0000-0000-0000-00000000000c', 'c@x.org', 'Bob', 8, 8);
    CREATE TABLE posts (id int PRIMARY KEY, user_id uuid REFERENCES users);
"""
ANN, BOB = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"


def import_posts(database: Database, users: list[str], **lookup: Any) -> Result:
    """Posts of these users."""
    sql(database, TABLES)
    options: dict[str, Any] = {"by": ("id", "email"), **lookup}
    field = Lookup("users", **options)
    text = "".join(f"{number};{user}\n" for number, user in enumerate(users, 1))
    return run_import(database, declared("posts", id=Integer(), user_id=field), "id;user_id\n" + text)


def test_rows_are_found_by_any_of_the_columns(database: Database) -> None:
    result = import_posts(
        database, [ANN, ANN.upper(), ANN.replace("-", ""), "{" + ANN + "}", "ann@x.org", " ANN@x.org ", ""]
    )
    assert result.told == ["created"] * 7
    assert [str(user) for user in result.values("user_id")] == [ANN] * 6 + ["None"]


def test_texts_that_are_nearly_keys_are_not_found_and_stop_nothing(database: Database) -> None:
    near = ["{" + ANN, ANN + "}", ANN[:-1], ANN[:-1] + "g", "\\N", "%s", "null"]
    result = import_posts(database, [*near, ANN])
    assert result.told == ["failed NOT_FOUND"] * 7 + ["created"]
    assert (result.issue(1).field, result.issue(1).value) == ("user_id", "{" + ANN)
    assert "users (by id or email)" in result.issue(1).message


def test_address_as_stored_is_found_and_in_small_letters(database: Database) -> None:
    assert import_posts(database, ["Bob@X.org", "ANN@X.ORG", "bob@x.org"]).told == [
        "created",
        "created",
        "failed NOT_FOUND",
    ]


@pytest.mark.parametrize(
    ("by", "texts", "told"),
    [
        ("code", ["31000", "+7", "07", "32768", "99999", "٣", "7.0", "1e1", "-8"], "ccc ffffff"),
        ("big", ["9000000000000000001", "7", "9223372036854775808", "99999999999999999999"], "cc ff"),
    ],
)
def test_numbers_are_found_up_to_the_ends_of_their_type(
    database: Database, by: str, texts: list[str], told: str
) -> None:
    result = import_posts(database, texts, by=by)
    words = {"c": "created", "f": "failed NOT_FOUND"}
    assert result.told == [words[letter] for letter in told.replace(" ", "")]


def test_two_matches_are_none(database: Database) -> None:
    result = import_posts(database, ["Ann", "Bob"], by="name")
    assert result.told == ["created", "failed NOT_UNIQUE"]
    assert "fits 2 rows of users" in result.issue(2).message


def test_text_as_it_stands_is_preferred_to_its_small_letters(database: Database) -> None:
    sql(database, "CREATE TABLE units (id int, sign text); INSERT INTO units VALUES (1, 'M'), (2, 'm')")
    sql(database, "CREATE TABLE sizes (id int, unit int)")
    importer = declared("sizes", id=Integer(), unit=Lookup("units", by="sign"))
    result = run_import(database, importer, "id,unit\n1,M\n2,m\n")
    assert result.told == ["created", "created"]
    assert result.values("unit") == [1, 2]


CITIES = """
    CREATE TABLE countries (id int PRIMARY KEY, name text UNIQUE);
    INSERT INTO countries VALUES (1, 'Germany'), (2, 'USA');
    CREATE TABLE cities (id int PRIMARY KEY, name text, country_id int);
    INSERT INTO cities VALUES (1, 'Berlin', 1), (2, 'Berlin', 2), (3, 'Bonn', 1);
    CREATE TABLE shops (id int, country_id int, city_id int UNIQUE);
"""


@pytest.mark.parametrize("order", [("country_id", "city_id"), ("city_id", "country_id")])
def test_within_narrows_it_down(database: Database, order: tuple[str, str]) -> None:
    sql(database, CITIES)
    fields = {
        "country_id": Lookup("countries", by="name", aliases=["country"]),
        "city_id": Lookup("cities", by="name", within="country_id", aliases=["city"]),
    }
    importer = declared("shops", id=Integer(), **{name: fields[name] for name in order})
    text = "id,country,city\n1,Germany,Berlin\n2,USA,Berlin\n3,USA,Bonn\n4,,Berlin\n5,Germany,Berlin\n"
    result = run_import(database, importer, text)
    assert result.told == ["created", "created", "failed NOT_FOUND", "failed NOT_FOUND", "failed DUPLICATE_IN_FILE"]
    assert result.values("city_id") == [1, 2]


def test_within_may_be_the_same_for_every_row(database: Database) -> None:
    sql(database, CITIES)
    city = Lookup("cities", by="name", within="country_id", aliases=["city"])
    importer = declared("shops", key="city_id", on_match=Update(), id=Integer(), country_id=Integer(), city_id=city)
    text = "id,city\n1,Berlin\n2,Bonn\n3,Berlin\n"
    result = run_import(database, importer, text, constants={"country_id": "1"})
    assert result.told == ["skipped DUPLICATE_IN_FILE", "created", "created"]
    assert result.values("id", "city_id") == [(2, 3), (3, 1)]


def test_required_look_up_is_missed_once(database: Database) -> None:
    result = import_posts(database, ["", "nobody"], required=True)
    assert result.told == ["failed REQUIRED", "failed NOT_FOUND"]


def test_texts_of_look_ups_take_their_blanks(database: Database) -> None:
    sql(database, 'CREATE TABLE "of 100%" (id int, "a%" text); INSERT INTO "of 100%" VALUES (1, \'x%\')')
    sql(database, "CREATE TABLE t (id int, other int, note text)")
    importer = declared("t", id=Integer(), other=Lookup("of 100%", by="a%", blank=["n/a"]), note=Text())
    result = run_import(database, importer, "id,other,note\n1,x%,\n2,N/A,%s\n")
    assert result.values("other", "note") == [(1, None), (None, "%s")]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"by": "emial"},
            "Table users, in which things.user_id looks, has no column 'emial' (by). Did you mean 'email'?",
        ),
        ({"by": "email", "to": "idd"}, "has no column 'idd' (to). Did you mean 'id'?"),
        ({"by": "email", "label": "nick"}, "has no column 'nick' (label). It has id, email, name, code, big."),
        ({"by": "email", "within": "age"}, "has no column 'age' (within)."),
    ],
)
def test_a_column_that_is_not_there_is_told_before_anything_is_read(
    database: Database, options: dict[str, Any], told: str
) -> None:
    sql(database, TABLES + "ALTER TABLE posts ADD age int")
    importer = declared("posts", id=Integer(), age=Integer(), user_id=Lookup("users", **options))
    with pytest.raises(Final) as raised:
        run_import(database, importer, "id,user_id\n1,x\n")
    assert raised.value.code == "BAD_TARGET"
    assert told in str(raised.value)
    assert sql(database, "SELECT state, row_count FROM rowcall.job") == [("FAILED", None)]
    with database.connect() as connection:
        found = list(check_importers(connection, Registry((Pack("p", "p", (importer,)),))))
    assert found[0].verdict.bad
    assert found[0].said in raised.value.message


def test_a_look_up_within_itself_is_refused() -> None:
    with pytest.raises(Final, match="a: it is looked up within itself: a within a"):
        declared("t", a=Lookup("t", by="x", within="a"))
    with pytest.raises(Final, match="a: it is looked up within itself: a within b within a"):
        declared("t", a=Lookup("t", by="x", within="b"), b=Lookup("t", by="x", within="a"))


@pytest.mark.parametrize(("text", "found"), [("id,country\n1,USA\n2,\n", [(2, 2), (1, 1)]), ("id\n1\n", [(1, 1)])])
def test_a_default_is_looked_up_like_a_cell(database: Database, text: str, found: list[tuple[int, int]]) -> None:
    sql(database, CITIES)
    country = Lookup("countries", by="name", aliases=["country"], default="Germany")
    city = Lookup("cities", by="name", within="country_id", default="Berlin")
    result = run_import(database, declared("shops", id=Integer(), country_id=country, city_id=city), text)
    assert result.values("country_id", "city_id") == found


def test_a_default_that_is_not_found_is_an_issue(database: Database) -> None:
    sql(database, CITIES)
    country = Lookup("countries", by="name", aliases=["country"], default="Gondor")
    result = run_import(database, declared("shops", id=Integer(), country_id=country), "id,country\n1,USA\n2,\n")
    assert result.told == ["created", "failed NOT_FOUND"]
    assert (result.issue(2).value, result.issue(2).field) == ("Gondor", "country_id")


def test_what_is_looked_up_within_is_told_and_at_fault_by_itself(database: Database) -> None:
    sql(database, CITIES)
    country = Lookup("countries", by="name", aliases=["country"])
    city = Lookup("cities", by="name", within="country_id", aliases=["city"], required=True)
    importer = declared("shops", id=Integer(), country_id=country, city_id=city)
    result = run_import(database, importer, "id,country,city\n1,USA,Bonn\n2,Gondor,Bonn\n3,,Bonn\n")
    assert result.told == ["failed NOT_FOUND"] * 3
    assert result.issue(1).message == "'Bonn' is not found in cities (by name) within country_id = 2."
    assert result.issue(2).message == "'Gondor' is not found in countries (by name)."
    assert result.issue(3).message == "'Bonn' is not found in cities (by name) as country_id has no value."
