"""How a column's texts are read, decided by all of its values; and what other formats bring."""

import datetime as dt
from decimal import Decimal as Exact
from io import BytesIO
from typing import Any

import polars as pl
import pytest
import xlsxwriter

from rowcall import Date, DateTime, Decimal, Final, Integer, Text, rule
from rowcall.formats import ReadOptions
from rowcall.model import Code
from rowcall.store.db import Database

from .importing import declared, run_import, sql

DATES = declared("t", id=Integer(), day=Date())
NUMBERS = declared("t", id=Integer(), amount=Decimal())


def with_dates(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, day date)")


def with_numbers(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, amount numeric(12,3), whole bigint, code text)")


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["03/04/2024", "13/04/2024"], [(4, 3), (4, 13)]),
        (["03/04/2024", "04/13/2024"], [(3, 4), (4, 13)]),
        (["3.4.24", "31.12.99"], [(4, 3), (12, 31)]),
        (["2024-04-03", "20240413"], [(4, 3), (4, 13)]),
        (["5/5/2024", "6 May 2024"], [(5, 5), (5, 6)]),
    ],
)
def test_order_of_dates_is_the_columns(database: Database, texts: list[str], days: list[tuple[int, int]]) -> None:
    with_dates(database)
    text = "id,day\n" + "".join(f"{number},{text}\n" for number, text in enumerate(texts))
    result = run_import(database, DATES, text)
    assert [(day.month, day.day) for day in result.values("day")] == days


def test_late_evidence_decides_for_the_rows_before_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowcall.engine.columns.readings._SAMPLE_ROWS", 100)
    with_dates(database)
    text = "id,day\n" + "".join(f"{number},03/04/2024\n" for number in range(150)) + "999,04/30/2024\n"
    result = run_import(database, DATES, text)
    assert result.counts.created == 151
    assert sql(database, "SELECT DISTINCT day FROM t ORDER BY day") == [(dt.date(2024, 3, 4),), (dt.date(2024, 4, 30),)]


def test_dates_against_the_columns_order_fail(database: Database) -> None:
    with_dates(database)
    result = run_import(database, DATES, "id,day\n1,13/04/2024\n2,14/04/2024\n3,04/15/2024\n")
    assert result.told == ["created", "created", "failed DATE_NOT_EXISTING"]


@pytest.mark.parametrize("field", [Date(), DateTime()])
def test_dates_that_nothing_decides_are_asked_about(database: Database, field: Any) -> None:
    with_dates(database)
    importer, text = declared("t", id=Integer(), day=field), "id,day\n1,03/04/2024\n2,05/06/2024\n"
    with pytest.raises(Final) as caught:
        run_import(database, importer, text)
    assert caught.value.code == Code.AMBIGUOUS_DATES
    assert "'03/04/2024'" in caught.value.message
    assert "--date-order" in (caught.value.hint or "")
    assert sql(database, "SELECT state, last_error ->> 'code' FROM rowcall.job") == [("FAILED", "AMBIGUOUS_DATES")]
    result = run_import(database, importer, text, read=ReadOptions(date_order="dmy"))
    assert result.values("day") == [dt.date(2024, 4, 3), dt.date(2024, 6, 5)]


@pytest.mark.parametrize(
    ("texts", "amounts"),
    [
        (["1.234,5", "1.234"], ["1234.5", "1234"]),
        (["1,234.5", "1,234"], ["1234.5", "1234"]),
        (["1.5", "1.234"], ["1.5", "1.234"]),
        (["0,5", "-1.000", "7"], ["0.5", "-1000", "7"]),
        (["1 234,5", "1'000,25"], ["1234.5", "1000.25"]),
    ],
)
def test_decimal_mark_is_the_columns(database: Database, texts: list[str], amounts: list[str]) -> None:
    with_numbers(database)
    text = "id;amount\n" + "".join(f"{number};{text}\n" for number, text in enumerate(texts))
    assert run_import(database, NUMBERS, text).values("amount") == list(map(Exact, amounts))


def test_numbers_that_nothing_decides_are_asked_about(database: Database) -> None:
    with_numbers(database)
    with pytest.raises(Final) as caught:
        run_import(database, NUMBERS, "id;amount\n1;1.234\n")
    assert caught.value.code == Code.AMBIGUOUS_NUMBERS
    result = run_import(database, NUMBERS, "id;amount\n1;1.234\n", read=ReadOptions(decimal=","))
    assert result.values("amount") == [Exact(1234)]


def test_numbers_that_contradict_each_other_are_told(database: Database) -> None:
    with_numbers(database)
    with pytest.raises(Final) as caught:
        run_import(database, NUMBERS, "id;amount\n1;1.234,5\n2;1,234.5\n3;1.234\n")
    told = (
        "Column 'amount' has numbers such as '1,234.5' and '1.234,5', and as many tell the point for the decimal mark"
    )
    assert caught.value.message == f"{told} as the comma."


def test_numbers_of_a_workbook_are_not_taken_for_texts_beside_them(database: Database) -> None:
    with_numbers(database)
    content = BytesIO()
    workbook: Any = xlsxwriter.Workbook  # its types are partly unknown
    with workbook(content) as book:
        sheet = book.add_worksheet()
        for place, row in enumerate([("id", "amount"), (1, "1,50"), (2, 1.234), (3, "2.000"), (4, "7,25"), (5, 2.5)]):
            sheet.write_row(place, 0, row)
    with pytest.raises(Final, match="--decimal comma") as caught:
        run_import(database, NUMBERS, content.getvalue())
    assert caught.value.code == Code.AMBIGUOUS_NUMBERS
    result = run_import(database, NUMBERS, content.getvalue(), read=ReadOptions(decimal=","))
    assert result.values("amount") == list(map(Exact, ("1.5", "1.234", "2000", "7.25", "2.5")))


_NDJSON = b"".join(
    b'{"id": %d, "amount": %b}\n' % (number, amount)
    for number, amount in enumerate([b'"1,50"', b"1.234", b'"2.000"', b"-25e-1", b"1.5E+1", b"null", b"7"], 1)
)


@pytest.mark.parametrize("many", [1, 100], ids=["few", "many"])
def test_numbers_of_json_are_not_read_by_a_mark_that_is_told_for_texts(database: Database, many: int) -> None:
    with_numbers(database)
    records = b"".join(b'{"id": %d, "amount": 0.125}\n' % number for number in range(1_000, 1_000 + many))
    result = run_import(database, NUMBERS, _NDJSON + records, read=ReadOptions(decimal=","))
    amounts = (*map(Exact, ("1.5", "1.234", "2000", "-2.5", "15")), None, Exact(7))
    assert result.values("amount") == [*amounts, *[Exact("0.125")] * many]


def test_numbers_of_a_parquet_file_are_not_read_by_a_mark_that_is_told_for_texts(database: Database) -> None:
    with_numbers(database)
    content = BytesIO()
    pl.DataFrame({"id": [1, 2, 3], "amount": [1.234, -0.5, None]}).write_parquet(content)
    result = run_import(database, NUMBERS, content.getvalue(), read=ReadOptions(decimal=","))
    assert result.values("amount") == [Exact("1.234"), Exact("-0.5"), None]


def test_whole_numbers_and_texts_keep_their_digits(database: Database) -> None:
    with_numbers(database)
    importer = declared("t", id=Integer(), whole=Integer(), code=Text())
    result = run_import(database, importer, "id;whole;code\n1;1.234.567;00123\n2;9223372036854775807; 1.50 \n3;1.5;x\n")
    assert result.told == ["created", "created", "failed INVALID_INTEGER"]
    assert result.values("whole", "code") == [(1_234_567, "00123"), (2**63 - 1, "1.50")]


def test_json_lines_bring_their_own_numbers_nulls_and_broken_records(database: Database) -> None:
    with_numbers(database)
    importer = declared("t", id=Integer(), amount=Decimal(), code=Text(required=True))
    lines = [
        '{"id": 1, "amount": 1.234, "code": "null"}',
        '{"id": 2, "amount": null, "code": null}',
        '{"id": 3, "amount": "", "code": ""}',
        '{"id": 4, "amount": 1e2',
        '{"id": 5, "code": "a\\tb\\n"}',
    ]
    result = run_import(database, importer, "\n".join(lines), file_name="rows.ndjson")
    assert result.told == ["created", "failed REQUIRED", "failed REQUIRED", "failed INVALID_JSON", "created"]
    assert result.values("id", "amount", "code") == [(1, Exact("1.234"), "null"), (5, None, "a\tb")]


def test_workbooks_bring_dates_numbers_and_cells_with_errors(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, day date, amount numeric, code text)")
    out = BytesIO()
    workbook: Any = xlsxwriter.Workbook  # its types are partly unknown
    with workbook(out) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["ID", "Day", "Amount", "Code", "Unused"])
        for row, code in enumerate(["0012", "x", "y"], 1):
            sheet.write_number(row, 0, row)
            sheet.write_datetime(row, 1, dt.datetime(2024, 3, row), book.add_format({"num_format": "dd/mm/yyyy"}))  # noqa: DTZ001 (cells have no zone)
            sheet.write_number(row, 2, 1.234)
            sheet.write_string(row, 3, code)
        sheet.write_formula(2, 2, "=NA()", value="#N/A")
        sheet.write_formula(3, 4, "=1/0", value="#DIV/0!")
    importer = declared("t", id=Integer(), day=Date(), amount=Decimal(), code=Text())
    result = run_import(database, importer, out.getvalue(), file_name="rows.xlsx")
    assert result.told == ["created", "failed CELL_ERROR", "created"]
    assert (result.issue(2).field, result.issue(2).value) == ("amount", "#N/A")
    assert result.values("id", "day", "amount", "code") == [
        (1, dt.date(2024, 3, 1), Exact("1.234"), "0012"),
        (3, dt.date(2024, 3, 3), Exact("1.234"), "y"),
    ]


def test_a_cell_with_an_error_is_told_once_and_silences_the_rules_that_look_at_it(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, amount int, code text)")
    out = BytesIO()
    workbook: Any = xlsxwriter.Workbook  # its types are partly unknown
    with workbook(out) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["ID", "Name", "Amount", "Code"])
        sheet.write_row(1, 0, [1, "Ann", 7, ""])
        sheet.write_formula(1, 1, "=NA()", value="#N/A")
        sheet.write_formula(1, 2, "=1/0", value="#DIV/0!")
    positive = rule(field="amount", code="NOT_POSITIVE", message="Not positive.")(lambda _: pl.col("amount") > 0)
    importer = declared(
        "t", id=Integer(), name_=Text(), amount=Integer(default=0), code=Text(required=True), positive=positive
    )
    result = run_import(database, importer, out.getvalue(), file_name="rows.xlsx")
    assert result.told == ["failed CELL_ERROR CELL_ERROR REQUIRED"]
    assert [issue.field for issue in result.outcomes[1].issues] == ["name", "amount", "code"]


def test_records_that_cannot_be_read_fail_with_their_line(database: Database) -> None:
    with_numbers(database)
    text = 'id,code\n1,"two\nlines"\n2,"bro"ken\n3,c,too many\n4\n5,e\n'
    result = run_import(database, declared("t", id=Integer(), code=Text()), text)
    assert result.told == [
        "created",
        "failed BROKEN_QUOTE",
        "failed TOO_MANY_FIELDS",
        "failed TOO_FEW_FIELDS",
        "created",
    ]
    assert result.values("id", "code") == [(1, "two\nlines"), (5, "e")]
    assert sql(database, "SELECT number, line FROM rowcall.row ORDER BY number") == [
        (1, 2),
        (2, 4),
        (3, 5),
        (4, 6),
        (5, 7),
    ]
