"""Files that bring some columns of rows that are there: a new row needs all that the table demands."""

from typing import Any

import pytest

from rowcall import Decimal, Importer, Integer, RowOutcome, Skip, Status, Text, Update, WholeFileImporter
from rowcall.errors import Final
from rowcall.model import Code, Mode
from rowcall.store.db import Database

from .importing import declared, run_import, sql
from .previewing import preview, submit

PRODUCT = """
    CREATE TABLE product (sku text PRIMARY KEY, ean text NOT NULL UNIQUE, name text NOT NULL CHECK (name <> ''),
                          price numeric(9,2) NOT NULL, stock int NOT NULL DEFAULT 0);
    INSERT INTO product VALUES ('a', '1', 'Anvil', 10), ('b', '2', 'Bolt', 2), ('c', '3', 'Chain', 3)
"""
PRICES: type[Importer] = declared("product", key="sku", on_match=Update(), sku=Text(), price=Decimal(places=2))
ALL: type[Importer] = declared(
    "product",
    key="sku",
    natural_key="ean",
    on_match=Update(),
    sku=Text(),
    ean=Text(),
    name_=Text(),
    price=Decimal(places=2),
)
FILE = "sku,price\na,11\nnew,5\nb,2.00\n"
TOLD = ["updated", "failed REQUIRED", "unchanged"]
NEEDS = "product has no such row yet, and a new one needs ean, name."


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_a_column_of_rows_that_are_there_is_updated(database: Database, batch_rows: int) -> None:
    sql(database, PRODUCT)
    dry = run_import(database, PRICES, FILE, dry_run=True, batch_rows=batch_rows)
    assert dry.told == TOLD
    result = run_import(database, PRICES, FILE, batch_rows=batch_rows)
    assert result.told == TOLD
    issue = result.issue(2)
    assert (issue.field, issue.message) == ("ean, name", NEEDS)
    assert result.values("sku", "name", "price") == [("a", "Anvil", 11), ("b", "Bolt", 2), ("c", "Chain", 3)]
    sql(database, "DELETE FROM product")
    assert run_import(database, PRICES, FILE, batch_rows=batch_rows).told == ["failed REQUIRED"] * 3


def test_a_preview_tells_which_rows_are_new(database: Database) -> None:
    sql(database, PRODUCT)
    planned = preview(database, PRICES, FILE)
    assert planned.told == TOLD
    assert planned.issue(2).message == NEEDS
    assert submit(database, PRICES, planned.job).told == TOLD


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_a_blank_leaves_what_is_there(database: Database, batch_rows: int) -> None:
    sql(database, PRODUCT)
    text = "sku,ean,name,price\na,,Ambos,\n,3,Kette,4\nd,4,Dowel,\nd2,5,Drill,6\n,,Egg,7\n"
    told = ["updated", "updated", "failed REQUIRED", "created", "failed REQUIRED"]
    assert preview(database, ALL, text, batch_rows=batch_rows).told == told
    result = run_import(database, ALL, text, batch_rows=batch_rows)
    assert result.told == told
    assert result.values("sku", "ean", "name", "price") == [
        ("a", "1", "Ambos", 10),
        ("b", "2", "Bolt", 2),
        ("c", "3", "Kette", 4),
        ("d2", "5", "Drill", 6),
    ]
    assert result.issue(3).message == "product has no such row yet, and a new one needs price."


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_all_that_a_new_row_needs_is_told_at_once(database: Database, batch_rows: int) -> None:
    sql(database, PRODUCT)
    text = "sku,name,price\na,Ambos,\nd,Dowel,\ne,,\n,Egg,7\n"
    result = run_import(database, ALL, text, batch_rows=batch_rows)
    assert result.told == ["updated", *["failed REQUIRED"] * 3]
    assert [result.issue(row).field for row in (2, 3, 4)] == ["ean, price", "ean, name, price", "sku, ean"]
    assert result.issue(3).message == "product has no such row yet, and a new one needs ean, name, price."


def test_a_row_without_its_only_key_is_told_so(database: Database) -> None:
    sql(database, PRODUCT)
    assert run_import(database, PRICES, "sku,price\n,1\na,2\n").told == ["failed REQUIRED", "updated"]
    with pytest.raises(Final) as refused:
        run_import(database, PRICES, "price\n1\n")
    assert refused.value.code == Code.MISSING_COLUMNS


def test_rows_that_are_only_created_need_all_columns(database: Database) -> None:
    sql(database, PRODUCT)
    importer = declared("product", key="sku", on_match=Skip(), sku=Text(), price=Decimal(places=2))
    with pytest.raises(Final) as refused:
        run_import(database, importer, FILE)
    assert refused.value.code == Code.BAD_TARGET
    with pytest.raises(Final) as missing:
        run_import(database, ALL, FILE, mode=Mode.INSERT)
    assert missing.value.code == Code.MISSING_COLUMNS
    told = ["failed ALREADY_EXISTS", "failed REQUIRED", "failed ALREADY_EXISTS"]
    assert run_import(database, PRICES, FILE, mode=Mode.INSERT).told == told


def test_importers_that_write_for_themselves_get_no_rows_without_what_the_table_demands(database: Database) -> None:
    class Prices(WholeFileImporter):
        target = "product"
        key = "sku"
        on_match = Update()
        sku, ean, name_, price = Text(), Text(), Text(), Decimal(places=2)

        def process(self, rows: Any, connection: Any) -> Any:
            return [RowOutcome(number, Status.UPDATED) for number in rows["number"]]

    sql(database, PRODUCT)
    assert run_import(database, Prices, "sku,ean,name,price\na,1,,3\nb,2,Bolt,3\n").told == [
        "failed REQUIRED",
        "updated",
    ]


def test_what_a_trigger_fills_is_not_missing(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, made text NOT NULL, n int)")
    sql(
        database,
        """
        CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF new.n > 0 THEN new.made := 'n' || new.n; END IF; RETURN new; END $$;
        CREATE TRIGGER fill BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fill()
        """,
    )
    importer = declared("t", key="id", on_match=Update(), id=Integer(), n=Integer())
    result = run_import(database, importer, "id,n\n1,5\n2,-1\n3,7\n")
    assert result.told == ["created", "failed NOT_NULL_VIOLATION", "created"]
    assert result.values("id", "made") == [(1, "n5"), (3, "n7")]
