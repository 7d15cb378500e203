"""Values that nothing matches: the row fails, is skipped or left empty, or what is named is created (A4, A9)."""

import threading
from typing import Any

import pytest

from rowcall import Choice, Final, Importer, Integer, ItemImporter, Lookup, Text, Update, WholeFileImporter
from rowcall.model import State
from rowcall.store.db import Database

from .importing import Result, declared, run_import, sql

TABLES = """
    CREATE TABLE country (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE CHECK (length(name) < 20));
    CREATE TABLE city (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL,
        country_id int REFERENCES country, UNIQUE (name, country_id));
    CREATE TABLE shop (id int PRIMARY KEY, country_id int REFERENCES country, city_id int REFERENCES city, size text);
    INSERT INTO country (name) VALUES ('Germany'), ('Austria'), ('Åland'), ('Twin');
    INSERT INTO city (name, country_id) VALUES ('Berlin', 1), ('Bonn', 1);
"""

MISTAKE: Any = "guess"


@pytest.fixture
def tables(database: Database) -> Database:
    sql(database, TABLES)
    return database


def shops(**lookup: Any) -> type[Importer]:
    options: dict[str, Any] = {"by": "name", **lookup}
    return declared("shop", id=Integer(), country_id=Lookup("country", **options))


def imported(database: Database, countries: list[str], *, batch_rows: int = 1000, **lookup: Any) -> Result:
    text = "".join(f"{number};{country}\n" for number, country in enumerate(countries, 1))
    return run_import(database, shops(**lookup), "id;country_id\n" + text, batch_rows=batch_rows)


def test_a9_failing_tells_which_table_has_no_row_for_what(tables: Database) -> None:
    result = imported(tables, ["Germany", "Gondor"])
    assert result.told == ["created", "failed NOT_FOUND"]
    assert result.issue(2).metadata == {"category": "FK_MISMATCH", "fkType": "country", "fkValue": "Gondor"}


def test_other_issues_have_no_such_metadata(tables: Database) -> None:
    result = run_import(tables, shops(), "id;country_id\nx;Gondor\n")
    assert [issue.metadata and issue.metadata["category"] for issue in result.outcomes[1].issues] == [
        None,
        "FK_MISMATCH",
    ]


def test_a4_empty_leaves_the_field_empty(tables: Database) -> None:
    result = imported(tables, ["Germany", "Gondor", ""], on_missing="empty")
    assert result.told == ["created"] * 3
    assert result.values("country_id") == [1, None, None]


def test_empty_is_no_value_where_one_is_required(tables: Database) -> None:
    assert imported(tables, ["Gondor"], on_missing="empty", required=True).told == ["failed REQUIRED"]


def test_a4_skip_leaves_the_row_out_and_says_why(tables: Database) -> None:
    result = run_import(tables, shops(on_missing="skip"), "id;country_id\n1;Germany\n2;Gondor\nx;Gondor\ny;Germany\n")
    assert result.told == ["created", "skipped NOT_FOUND", "skipped NOT_FOUND", "failed INVALID_INTEGER"]
    assert result.issue(2).metadata == {"category": "FK_MISMATCH", "fkType": "country", "fkValue": "Gondor"}
    assert result.job.state is State.COMPLETED_WITH_ERRORS


def test_synonyms_are_found_whatever_their_case_and_accents(tables: Database) -> None:
    synonyms = {"Deutschland": "Germany", "Österreich": "Austria"}
    result = imported(tables, ["deutschland", "OSTERREICH", "Germany", "Gondor"], synonyms=synonyms)
    assert result.told == ["created", "created", "created", "failed NOT_FOUND"]
    assert result.values("country_id") == [1, 2, 1]


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
def test_a4_create_makes_what_is_named_once(tables: Database, batch_rows: int) -> None:
    countries = ["Gondor", "Germany", "Mordor", "Gondor", "a name that is too long"]
    result = imported(tables, countries, on_missing="create", creates="name", batch_rows=batch_rows)
    assert result.told == ["created"] * 4 + ["failed NOT_FOUND"]
    names = [name for (name,) in sql(tables, "SELECT name FROM country ORDER BY id")]
    assert names == ["Germany", "Austria", "Åland", "Twin", "Gondor", "Mordor"]
    assert "refuses to have it created" in result.issue(5).message


@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_spellings_of_the_same_create_one_row_whatever_the_batches(tables: Database, batch_rows: int) -> None:
    countries = ["mordor", "Mordor", "MÓRDOR", "Mordor", "GERMANY", "aland"]
    result = imported(tables, countries, on_missing="create", creates="name", batch_rows=batch_rows)
    assert result.values("country_id") == [5, 5, 5, 5, 1, 3]
    assert sql(tables, "SELECT name FROM country WHERE id > 4") == [("Mordor",)]  # as most rows have it


def test_a_row_that_fails_has_nothing_created(tables: Database) -> None:
    importer = shops(on_missing="create", creates="name")
    assert run_import(tables, importer, "id;country_id\nx;Gondor\n").told == ["failed INVALID_INTEGER"]
    assert sql(tables, "SELECT count(*) FROM country") == [(4,)]


def test_a_dry_run_creates_nothing(tables: Database) -> None:
    importer = shops(on_missing="create", creates="name")
    result = run_import(tables, importer, "id;country_id\n1;Gondor\n2;Gondor\n", dry_run=True)
    assert (result.told, result.rows) == (["created"] * 2, [])
    assert sql(tables, "SELECT count(*) FROM country") == [(4,)]


def test_what_is_created_can_be_a_scope(tables: Database) -> None:
    importer = declared(
        "shop",
        id=Integer(),
        city_id=Lookup("city", by="name", within="country_id", on_missing="create", creates="name"),
        country_id=Lookup("country", by="name", on_missing="create", creates="name"),
    )
    text = "id,country_id,city_id\n1,Gondor,Berlin\n2,Germany,Berlin\n3,Gondor,Berlin\n4,gondor,Minas\n5,Mordor,Minas\n"
    result = run_import(tables, importer, text + "6,GONDOR,minas\n7,Gondor,Minas\n", batch_rows=2)
    assert result.told == ["created"] * 7
    found = sql(
        tables,
        "SELECT s.id, c.name, y.name FROM shop s JOIN country c ON c.id = s.country_id JOIN city y ON y.id = s.city_id "
        "WHERE y.country_id = c.id ORDER BY 1",
    )
    assert found == [
        (1, "Gondor", "Berlin"),
        (2, "Germany", "Berlin"),
        (3, "Gondor", "Berlin"),
        (4, "Gondor", "Minas"),
        (5, "Mordor", "Minas"),
        (6, "Gondor", "Minas"),
        (7, "Gondor", "Minas"),
    ]
    assert sql(tables, "SELECT count(*) FROM city") == [(5,)]


@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_rows_are_the_same_by_what_is_yet_to_be_created(tables: Database, batch_rows: int) -> None:
    sql(tables, "CREATE TABLE visit (country_id int PRIMARY KEY, n int)")
    country = Lookup("country", by="name", on_missing="create", creates="name")
    importer = declared("visit", key="country_id", on_match=Update(), country_id=country, n=Integer())
    text = "country_id,n\nGondor,1\nMordor,2\nGondor,3\n"
    result = run_import(tables, importer, text, batch_rows=batch_rows)
    assert result.told == ["skipped DUPLICATE_IN_FILE", "created", "created"]
    assert result.values("n") in ([2, 3], [3, 2])


def test_imports_at_once_create_it_once(tables: Database) -> None:
    results: list[Result] = []

    def one(first: int) -> None:
        text = "id;country_id\n" + "".join(f"{first + n};Land {n % 7}\n" for n in range(50))
        importer = shops(on_missing="create", creates="name")
        results.append(run_import(tables, importer, text, batch_rows=5, workers=2))

    threads = [threading.Thread(target=one, args=[1000 * n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.counts.created for result in results] == [50] * 4
    assert sql(tables, "SELECT count(*) FROM country WHERE name LIKE 'Land %'") == [(7,)]


@pytest.mark.parametrize(
    ("policy", "told", "sizes"),
    [
        ("fail", ["created", "failed NOT_A_CHOICE"], ["S"]),
        ("empty", ["created", "created"], ["S", None]),
        ("skip", ["created", "skipped NOT_A_CHOICE"], ["S"]),
    ],
)
def test_a4_choices_have_the_same_policies(tables: Database, policy: Any, told: list[str], sizes: list[str]) -> None:
    importer = declared("shop", id=Integer(), size=Choice("S", "M", on_missing=policy))
    result = run_import(tables, importer, "id,size\n1,s\n2,huge\n")
    assert (result.told, result.values("size")) == (told, sizes)


class Whole(WholeFileImporter, abstract=True):
    def process(self, rows: Any, connection: Any) -> Any: ...


class Items(ItemImporter, abstract=True):
    async def process(self, row: Any) -> Any: ...


@pytest.mark.parametrize(
    ("field", "told"),
    [
        (lambda: Lookup("country", by="name", on_missing=MISTAKE), "on_missing is 'guess'; one of fail, ask, empty"),
        (lambda: Lookup("country", by="name", on_missing="create"), 'creates="name"'),
        (lambda: Lookup("country", by="name", creates="title"), "which it doesn't look by"),
        (lambda: Choice("S", on_missing="create"), "Use a Lookup"),
        (lambda: Choice("S", on_missing=MISTAKE), "on_missing is 'guess'"),
        (lambda: Lookup("shop", by="name", on_missing="ask"), "looks in its own target"),
    ],
)
def test_mistakes_fail_with_the_class(field: Any, told: str) -> None:
    with pytest.raises(Final, match=told):
        declared("shop", id=Integer(), thing=field())


def test_whole_files_ask_nobody_and_only_targets_have_rows_created() -> None:
    with pytest.raises(Final, match="waits for nobody"):
        type("W", (Whole,), {"x": Lookup("country", by="name", on_missing="ask")})
    with pytest.raises(Final, match="write to a target"):
        type("I", (Items,), {"x": Lookup("country", by="name", on_missing="create", creates="name")})
    type("J", (Items,), {"x": Lookup("country", by="name", on_missing="ask"), "t": Text()})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("ALTER TABLE country DROP CONSTRAINT country_name_key", "two imports at once could create a row twice"),
        ("ALTER TABLE country ADD iso text NOT NULL", "column 'iso' would have no value"),
    ],
)
def test_tables_that_rows_cannot_be_created_in_are_refused(tables: Database, change: Any, told: str) -> None:
    sql(tables, "DELETE FROM city; DELETE FROM country")
    sql(tables, change)
    with pytest.raises(Final, match=told):
        imported(tables, ["Gondor"], on_missing="create", creates="name")
