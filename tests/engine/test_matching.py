"""What happens to rows that are in the target already, and to those that are not."""

import uuid

import pytest

from rowcall import Decimal, Email, Fail, Final, Importer, Integer, Skip, Text, Update, Uuid, Version
from rowcall.model import Code, Mode, State, Status
from rowcall.store.db import Database

from .importing import declared, run_import, sql

PEOPLE = """
    CREATE TABLE people (
        id int PRIMARY KEY, email text UNIQUE NOT NULL, name text, note text, visits int NOT NULL DEFAULT 7)
"""
TWO = "INSERT INTO people VALUES (1, 'a@x.org', 'Ann', 'keep', 3), (2, 'b@x.org', 'Bob', 'keep', 4)"
FIELDS = {"id": Integer(), "email": Email(required=True), "name_": Text(), "visits": Integer()}
FILE = "id,email,name\n1,a@x.org,Anna\n2,b@x.org,Bob\n3,c@x.org,Cy\n"


class People(Importer):
    """People by id, or by e-mail address when they have none."""

    target = "people"
    key = "id"
    natural_key = "email"
    on_match = Update()

    id = Integer()
    email = Email(required=True)
    name_ = Text()
    visits = Integer()


def test_new_rows_are_created_with_their_key_and_the_columns_defaults(database: Database) -> None:
    sql(database, PEOPLE)
    result = run_import(database, People, "id,email,name,visits\n1,a@x.org,Ann,\n2,B@X.org,,9\n")
    assert result.job.state is State.COMPLETED
    assert (result.counts.created, result.counts.done) == (2, 2)
    assert result.told == ["created", "created"]
    assert [outcome.key for outcome in result.outcomes.values()] == [["1"], ["2"]]
    assert result.values("id", "email", "name", "visits") == [(1, "a@x.org", "Ann", 7), (2, "b@x.org", None, 9)]


def test_update_changes_what_the_file_says_and_keeps_the_row_as_it_was(database: Database) -> None:
    sql(database, PEOPLE + ";" + TWO)
    stamps = dict(sql(database, "SELECT id, xmin::text FROM people"))
    result = run_import(database, People, FILE)
    assert result.told == ["updated", "unchanged", "created"]
    assert result.outcomes[1].before == {"id": 1, "email": "a@x.org", "name": "Ann", "note": "keep", "visits": 3}
    assert result.outcomes[2].before is None
    assert result.outcomes[3].before is None
    assert [outcome.key for outcome in result.outcomes.values()] == [["1"], ["2"], ["3"]]
    assert result.values("name", "note", "visits") == [("Anna", "keep", 3), ("Bob", "keep", 4), ("Cy", None, 7)]
    after = dict(sql(database, "SELECT id, xmin::text FROM people"))
    assert after[2] == stamps[2]
    assert after[1] != stamps[1]


def test_blank_cell_empties_a_column_that_may_be_empty_and_keeps_one_that_may_not(database: Database) -> None:
    sql(database, PEOPLE + ";" + TWO)
    result = run_import(database, People, "id,email,name,visits\n1,a@x.org,,\n2,b@x.org,Bob,\n")
    assert result.told == ["updated", "unchanged"]
    assert result.values("name", "visits") == [(None, 3), ("Bob", 4)]


def test_skip_leaves_what_is_there(database: Database) -> None:
    sql(database, PEOPLE + ";" + TWO)
    result = run_import(database, declared("people", key="id", on_match=Skip(), **FIELDS), FILE)
    assert result.told == ["skipped ALREADY_EXISTS", "skipped ALREADY_EXISTS", "created"]
    assert result.job.state is State.COMPLETED
    assert (result.issue(1).field, result.issue(1).value) == ("id", "1")
    assert result.outcomes[1].key == ["1"]
    assert result.values("name") == ["Ann", "Bob", "Cy"]


@pytest.mark.parametrize("mode", [None, Mode.INSERT])
def test_fail_reports_what_is_there(database: Database, mode: Mode | None) -> None:
    sql(database, PEOPLE + ";" + TWO)
    how = Update() if mode else Fail()
    result = run_import(database, declared("people", key="id", on_match=how, **FIELDS), FILE, mode=mode)
    assert result.told == ["failed ALREADY_EXISTS", "failed ALREADY_EXISTS", "created"]
    assert result.job.state is State.COMPLETED_WITH_ERRORS
    assert result.values("name") == ["Ann", "Bob", "Cy"]


def test_upsert_can_be_asked_of_an_importer_that_skips(database: Database) -> None:
    sql(database, PEOPLE + ";" + TWO)
    result = run_import(database, declared("people", key="id", **FIELDS), FILE, mode=Mode.UPSERT)
    assert result.told == ["updated", "unchanged", "created"]


def test_version_adds_a_row_with_the_next_number(database: Database) -> None:
    sql(database, "CREATE TABLE price (sku text, price numeric(9,2), version int, PRIMARY KEY (sku, version))")
    importer = declared("price", key="sku", on_match=Version(), sku=Text(required=True), price=Decimal())
    assert run_import(database, importer, "sku,price\na,1.5\nb,2\n").told == ["created", "created"]
    result = run_import(database, importer, "sku,price\na,1.50\nb,2.5\nc,3\n")
    assert result.told == ["unchanged", "updated", "created"]
    assert [outcome.key for outcome in result.outcomes.values()] == [["a", "1"], ["b", "2"], ["c", "1"]]
    assert result.outcomes[2].before == {"sku": "b", "price": 2.00, "version": 1}
    assert [(row["sku"], float(row["price"]), row["version"]) for row in result.rows] == [
        ("a", 1.5, 1),
        ("b", 2.0, 1),
        ("b", 2.5, 2),
        ("c", 3.0, 1),
    ]


def test_insert_into_versions_writes_the_first_and_fails_what_is_there(database: Database) -> None:
    sql(database, "CREATE TABLE price (sku text, price int, version int NOT NULL, PRIMARY KEY (sku, version))")
    sql(database, "INSERT INTO price VALUES ('b', 1, 1), ('b', 2, 2)")
    importer = declared("price", key="sku", on_match=Version(), sku=Text(required=True), price=Integer())
    result = run_import(database, importer, "sku,price\na,1\nb,3\nc,4\n", mode=Mode.INSERT)
    assert result.told == ["created", "failed ALREADY_EXISTS", "created"]
    assert result.values("sku", "price", "version") == [("a", 1, 1), ("b", 1, 1), ("b", 2, 2), ("c", 4, 1)]


def test_rows_without_id_are_known_by_their_natural_key(database: Database) -> None:
    sql(database, PEOPLE + ";" + TWO)
    sql(database, "CREATE SEQUENCE numbers START 10; ALTER TABLE people ALTER id SET DEFAULT nextval('numbers')")
    result = run_import(database, People, "id,email,name\n,A@x.org,Anna\n2,new@x.org,Bob\n,c@x.org,Cy\n")
    assert result.told == ["updated", "updated", "created"]
    assert [outcome.key for outcome in result.outcomes.values()] == [["1"], ["2"], ["10"]]
    assert result.values("id", "email", "name") == [
        (1, "a@x.org", "Anna"),
        (2, "new@x.org", "Bob"),
        (10, "c@x.org", "Cy"),
    ]


@pytest.mark.parametrize(
    "id_",
    [
        "uuid DEFAULT gen_random_uuid()",
        "int GENERATED ALWAYS AS IDENTITY",
        "bigserial",
        "text DEFAULT '100%' || random()",
    ],
)
@pytest.mark.parametrize("text", ["name\nA\nB\n", "name\nA\nB\nBAD\n"], ids=["straight", "staged"])
def test_generated_keys_are_told(database: Database, id_: str, text: str) -> None:
    ddl = f"CREATE TABLE things (id {id_} PRIMARY KEY, name text UNIQUE CHECK (name <> 'BAD'))"
    with database.connect() as connection:
        connection.execute(ddl.encode())
    result = run_import(database, declared("things", name_=Text()), text)
    assert result.told[:2] == ["created", "created"]
    keys = [outcome.key for outcome in result.outcomes.values() if outcome.status is Status.CREATED]
    assert sorted(map(str, result.values("id"))) == sorted(key[0] for key in keys if key)


def test_id_is_taken_from_the_file_where_it_is_given_and_made_where_not(database: Database) -> None:
    sql(database, "CREATE TABLE things (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text)")
    given = uuid.uuid4()
    importer = declared("things", key="id", id=Uuid(), name_=Text())
    result = run_import(database, importer, f"id,name\n{str(given).upper()},A\n,B\n")
    assert result.told == ["created", "created"]
    by_name = {row["name"]: row["id"] for row in result.rows}
    assert by_name["A"] == given
    assert result.outcomes[2].key == [str(by_name["B"])]


def test_composite_keys_match_by_all_their_parts(database: Database) -> None:
    sql(database, "CREATE TABLE stock (shop int, sku text, amount int, PRIMARY KEY (shop, sku))")
    sql(database, "INSERT INTO stock VALUES (1, 'a', 5), (2, 'a', 6)")
    fields = {"shop": Integer(required=True), "sku": Text(required=True), "amount": Integer()}
    importer = declared("stock", key=("shop", "sku"), on_match=Update(), **fields)
    result = run_import(database, importer, "shop,sku,amount\n1,a,5\n2,a,7\n2,b,8\n")
    assert result.told == ["unchanged", "updated", "created"]
    assert [outcome.key for outcome in result.outcomes.values()] == [["1", "a"], ["2", "a"], ["2", "b"]]
    assert sorted(result.values("shop", "sku", "amount")) == [(1, "a", 5), (2, "a", 7), (2, "b", 8)]


def test_table_without_primary_key_is_matched_by_a_unique_index(database: Database) -> None:
    sql(database, "CREATE TABLE tags (name text UNIQUE, label text); INSERT INTO tags VALUES ('a', 'A')")
    importer = declared("tags", key="name", on_match=Update(), name_=Text(required=True), label=Text())
    result = run_import(database, importer, "name,label\na,new\nb,B\n")
    assert result.told == ["updated", "created"]
    assert [outcome.key for outcome in result.outcomes.values()] == [None, None]
    assert result.values("name", "label") == [("a", "new"), ("b", "B")]


def test_without_any_key_every_row_is_created_and_only_refused_ones_fail(database: Database) -> None:
    sql(database, "CREATE TABLE log (line text CHECK (line <> 'BAD'))")
    result = run_import(database, declared("log", line=Text()), "line\nx\nx\nBAD\n")
    assert result.told == ["created", "created", "failed CHECK_VIOLATION"]
    assert result.values("line") == ["x", "x"]


def test_upsert_needs_a_key_to_know_a_match_by(database: Database) -> None:
    sql(database, "CREATE TABLE log (line text)")
    with pytest.raises(Final, match="key"):
        run_import(database, declared("log", line=Text()), "line\nx\n", mode=Mode.UPSERT)


def test_key_that_the_target_does_not_keep_unique_is_refused(database: Database) -> None:
    sql(database, "CREATE TABLE log (line text)")
    with pytest.raises(Final) as caught:
        run_import(database, declared("log", key="line", line=Text()), "line\nx\n")
    assert caught.value.code == Code.BAD_TARGET
    assert "CREATE UNIQUE INDEX ON log (line)" in (caught.value.hint or "")
    assert sql(database, "SELECT state FROM rowcall.job") == [("FAILED",)]


def test_constants_go_to_every_row_and_win_over_the_file(database: Database) -> None:
    sql(database, PEOPLE)
    result = run_import(database, People, "id,email,visits\n1,a@x.org,1\n2,b@x.org,\n", constants={"visits": "5"})
    assert result.values("id", "visits") == [(1, 5), (2, 5)]


def test_field_defaults_fill_new_rows_and_leave_old_ones_alone(database: Database) -> None:
    sql(database, PEOPLE + ";" + TWO)
    fields = FIELDS | {"visits": Integer(default=1), "name_": Text(default="nobody")}
    importer = declared("people", key="id", on_match=Update(), **fields)
    result = run_import(database, importer, "id,email,name\n1,a@x.org,Ann\n3,c@x.org,\n")
    assert result.told == ["unchanged", "created"]
    assert result.values("name", "visits") == [("Ann", 3), ("Bob", 4), ("nobody", 1)]


def test_columns_without_equality_are_compared_all_the_same(database: Database) -> None:
    sql(database, "CREATE TABLE docs (id int PRIMARY KEY, body json, place point)")
    importer = declared("docs", key="id", on_match=Update(), id=Integer(), body=Text(), place=Text())
    text = 'id;body;place\n1;{"a": [1]};(1,2)\n'
    assert [run_import(database, importer, text).told for _ in range(2)] == [["created"], ["unchanged"]]
