"""How texts become values, kind by kind; what can't be read says why."""

import datetime as dt
from decimal import Decimal as Exact
from typing import Any

import polars as pl
import pytest

from rowcall import Boolean, Choice, Date, DateTime, Decimal, Email, Field, Importer, Integer, Json, List, Text, Uuid
from rowcall.engine.verify import verify
from rowcall.importer import ColumnLimits, ColumnReading
from rowcall.importer.texts import pattern_mistake, whole

UUID = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
USUAL, NO_LIMITS = ColumnReading(), ColumnLimits()
COMMA, DMY, MDY = ColumnReading(decimal=","), ColumnReading(date_order="dmy"), ColumnReading(date_order="mdy")


def read(field: Field, text: str | None, reading: ColumnReading = USUAL, limits: ColumnLimits = NO_LIMITS) -> Any:
    """The value of one text, or the code and message of its issue."""
    importer = type(
        "One", (Importer,), {"__module__": __name__, "target": "t", "timezone": "Europe/Berlin", "v": field}
    )
    rows = pl.DataFrame({"number": [1], "v": [text]}, schema={"number": pl.Int64, "v": pl.String})
    verified = verify(importer, rows, readings={"v": reading}, limits={"v": limits})
    if verified.issues.height:
        code, message = verified.issues.select("code", "message").row(0)
        return f"{code}: {message}"
    value = verified.frame["v"][0]
    return value.to_list() if isinstance(value, pl.Series) else value


def moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # pyright: ignore[reportArgumentType] (year to second)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (Text(), "  a b \t", "a b"),
        (Text(strip=False), " a ", " a "),
        (Text(strip=False), "   ", None),
        (Text(exact=True), " a\n", " a\n"),
        (Text(exact=True), "", ""),
        (Text(exact=True, blank=["N/A"]), " n/a", None),
        (Text(blank=["N/A"]), " n/a", None),
        (Email(), " Ann.B+x@Example.ORG ", "ann.b+x@example.org"),
        (Email(), "jürgen@bücher.example", "jürgen@bücher.example"),
        (Uuid(), UUID, UUID),
        (Uuid(), "{" + UUID.upper() + "}", UUID),
        (Uuid(), UUID.replace("-", ""), UUID),
        (Choice("Admin", "author"), "ADMIN", "Admin"),
        (Choice("admin", synonyms={"Administrator": "admin"}), "administrator", "admin"),
        (List(separator="|"), "a | b||c", ["a", "b", "c"]),
        (List(), '["a, b", "\\u00e9", 7]', ["a, b", "é", "7"]),
        (List(), "[]", []),
        (List(), '[1.50, null, true, "x"]', ["1.50", None, "true", "x"]),
        (Json(), '{"a": 1.50}', '{"a": 1.50}'),
        (Json(), "null", "null"),
        (Boolean(), "true", True),
        (Boolean(), "NO", False),
        (Boolean(), "Ja", True),
        *[(Boolean(), word, True) for word in ("sì", "SÌ", "waar", "tak", "vero")],
        *[(Boolean(), word, False) for word in ("nee", "Nee", "nej", "nie", "onwaar", "falso")],
        (Integer(), "0042", 42),
        (Integer(), "-9223372036854775808", -(2**63)),
        (Integer(), "1,234,567", 1234567),
        (Integer(), "12 345", 12345),
        (Integer(), "5.0", 5),
        (Decimal(), "1234.5", Exact("1234.5")),
        (Decimal(), ".5", Exact("0.5")),
        (Decimal(), "1,234.50", Exact("1234.5")),
        (Decimal(), "1.5e-3", Exact("0.0015")),
        (Decimal(), "12345678901234567890123456.123456789012", Exact("12345678901234567890123456.123456789012")),
        (Decimal(places=2), "1.5000", Exact("1.50")),
        (Decimal(min=-(10**400), max=10**400), "1.5", Exact("1.5")),
        (Decimal(exact=True, max=10**400), "1e300", "1e300"),
        (Decimal(exact=True), "1,234.50", "1234.50"),
        (Decimal(exact=True), "5e-324", "5e-324"),
        (Decimal(exact=True), "9" * 50, "9" * 50),
        (Decimal(exact=True), "-Infinity", "-Infinity"),
        (Decimal(exact=True, places=2), "NaN", "NaN"),
        (Date(), "2024-02-29", dt.date(2024, 2, 29)),
        (Date(), "2024/3/1", dt.date(2024, 3, 1)),
        (Date(), "20240301", dt.date(2024, 3, 1)),
        (Date(), "1 March 2024", dt.date(2024, 3, 1)),
        (Date(), "Sept. 3rd, 2024", dt.date(2024, 9, 3)),
        (Date(), "03-MAR-69", dt.date(1969, 3, 3)),
        (Date(), "2024-03-01T00:00:00Z", dt.date(2024, 3, 1)),
        (Date(), "March 1, 2024 12:00 AM", dt.date(2024, 3, 1)),
        (DateTime(), "2024-07-01T10:00:00Z", moment(2024, 7, 1, 10)),
        (DateTime(), "2024-07-01T10:00:00.25+02:00", moment(2024, 7, 1, 8, 0, 0, 250_000)),
        (DateTime(), "2024-07-01T10:00:00.123456000Z", moment(2024, 7, 1, 10, 0, 0, 123_456)),
        (DateTime(), "2024-07-01 10:00 -0330", moment(2024, 7, 1, 13, 30)),
        (DateTime(), "2024-07-01 10:00:00", moment(2024, 7, 1, 8)),
        (DateTime(), "2024-01-01", moment(2023, 12, 31, 23)),
        (DateTime(), "1 July 2024, 1:05 pm", moment(2024, 7, 1, 11, 5)),
        (DateTime(), "2024-10-27 02:30:00", moment(2024, 10, 27, 0, 30)),
    ],
)
def test_a_text_becomes_the_value_it_stands_for(field: Field, text: str, value: object) -> None:
    assert read(field, text) == value


@pytest.mark.parametrize(
    ("field", "reading", "text", "value"),
    [
        (Integer(), COMMA, "1.234.567", 1234567),
        (Integer(), COMMA, "5,0", 5),
        (Decimal(), COMMA, "1.234,5", Exact("1234.5")),
        (Decimal(), COMMA, "1.234", Exact(1234)),
        (Decimal(default=Exact("1.234")), COMMA, "", Exact("1.234")),
        (Date(), DMY, "03/04/2024", dt.date(2024, 4, 3)),
        (Date(), MDY, "03/04/2024", dt.date(2024, 3, 4)),
        (Date(), DMY, "31.12.68", dt.date(2068, 12, 31)),
        (Date(), MDY, "2024-03-04", dt.date(2024, 3, 4)),
        (DateTime(), DMY, "31.12.2024 23:30", moment(2024, 12, 31, 22, 30)),
        (DateTime(), MDY, "7/4/2024 12:15:00 AM", moment(2024, 7, 3, 22, 15)),
    ],
)
def test_numbers_and_dates_are_read_as_their_column_writes_them(
    field: Field, reading: ColumnReading, text: str, value: object
) -> None:
    assert read(field, text, reading) == value


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        (Email(), "ann@", "INVALID_EMAIL: 'ann@' is not an e-mail address."),
        (Email(), "a..b@example.org", "INVALID_EMAIL: 'a..b@example.org' is not an e-mail address."),
        (Email(), "a" * 250 + "@b.org", f"TOO_LONG: '{'a' * 60}…' has 256 characters; at most 254 are allowed."),
        (Uuid(), UUID[:-1], f"INVALID_UUID: '{UUID[:-1]}' is not a UUID."),
        (
            Choice("admin", "author"),
            "autor",
            "NOT_A_CHOICE: 'autor' is none of admin, author. Did you mean author?",
        ),
        (Choice("admin", "author"), "xyz", "NOT_A_CHOICE: 'xyz' is none of admin, author."),
        (
            List(),
            "[1, {}]",
            "INVALID_LIST: '[1, {}]' is neither a JSON array of texts nor a list with ',' between its items.",
        ),
        (List(max_items=1), "a,b", "TOO_LONG: 'a,b' has more than 1 items."),
        (List(item_pattern="[a-z]"), "a,B", "PATTERN_MISMATCH: 'a,B' has an item that does not match [a-z]."),
        (Json(), "{'a': 1}", "INVALID_JSON: '{'a': 1}' is not JSON."),
        (Boolean(), "maybe", "INVALID_BOOLEAN: 'maybe' is neither true nor false, yes nor no, 1 nor 0."),
        (Integer(), "abc", "INVALID_INTEGER: 'abc' is not a whole number."),
        (Integer(), "1.5", "INVALID_INTEGER: '1.5' is not a whole number."),
        (Integer(), "1e3", "INVALID_INTEGER: '1e3' is not a whole number."),
        (Integer(), "1,23", "INVALID_INTEGER: '1,23' is not a whole number."),
        (Integer(), "٣", "INVALID_INTEGER: '٣' is not a whole number."),
        (
            Integer(),
            "9223372036854775808",
            "TOO_LARGE: 9223372036854775808 is above the maximum of 9223372036854775807.",
        ),
        (Integer(max=100), "120", "TOO_LARGE: 120 is above the maximum of 100."),
        (Integer(min=1), "0", "TOO_SMALL: 0 is below the minimum of 1."),
        (Decimal(), "NaN", "INVALID_DECIMAL: 'NaN' is not a number."),
        (Decimal(), "1,5", "INVALID_DECIMAL: '1,5' is not a number."),
        (Decimal(), "$5", "INVALID_DECIMAL: '$5' is not a number."),
        (Decimal(places=2), "1.005", "TOO_PRECISE: 1.005 has more than 2 decimal places."),
        (Decimal(places=2), "1e-3", "TOO_PRECISE: 1e-3 has more than 2 decimal places."),
        (
            DateTime(),
            "2024-01-01T00:00:00.123456789Z",
            "TOO_PRECISE: 2024-01-01T00:00:00.123456789Z has more than 6 decimal places of a second.",
        ),
        (Decimal(exact=True), "$5", "INVALID_DECIMAL: '$5' is not a number."),
        (Decimal(exact=True, places=2), "1.005", "TOO_PRECISE: 1.005 has more than 2 decimal places."),
        (Decimal(exact=True, max=5), "NaN", "TOO_LARGE: NaN is above the maximum of 5."),
        (Decimal(min=10**38), "5", f"TOO_SMALL: 5 is below the minimum of {10**38}."),
        (Decimal(), "1e30", "TOO_LARGE: 1e30 has more than 26 digits before the decimal mark."),
        (Decimal(max=Exact("99.5")), "99.51", "TOO_LARGE: 99.51 is above the maximum of 99.5."),
        (Text(pattern=r"\d{6}"), "12345x", r"PATTERN_MISMATCH: '12345x' does not match \d{6}."),
        (Text(min_length=2), "é", "TOO_SHORT: 'é' has 1 characters; at least 2 are needed."),
        (Date(), "soon", "INVALID_DATE: 'soon' is not a date such as 2024-12-31."),
        (Date(), "03/04/2024", "INVALID_DATE: '03/04/2024' is not a date such as 2024-12-31."),
        (Date(), "2024-03-01 10:00", "INVALID_DATE: '2024-03-01 10:00' is not a date such as 2024-12-31."),
        (Date(), "24-03-01", "INVALID_DATE: '24-03-01' is not a date such as 2024-12-31."),
        (Date(), "+2024-3-01", "INVALID_DATE: '+2024-3-01' is not a date such as 2024-12-31."),
        (Date(), "0000-01-01", "INVALID_DATE: '0000-01-01' is not a date such as 2024-12-31."),
        (
            Date(),
            "2024-13-01",
            "DATE_NOT_EXISTING: 2024-13-01 does not exist: there is no month 13, reading it as year, month, day.",
        ),
        (
            Date(min=dt.date(2020, 1, 1)),
            "2019-12-31",
            "TOO_SMALL: 2019-12-31 is before the earliest possible, 2020-01-01.",
        ),
        (
            DateTime(),
            "2024-01-01 25:00",
            "INVALID_DATETIME: '2024-01-01 25:00' is not a date and time such as 2024-12-31 14:05:00.",
        ),
        (
            DateTime(),
            "2023-02-29T10:00:00Z",
            "DATE_NOT_EXISTING: 2023-02-29T10:00:00Z does not exist: February 2023 has 28 days.",
        ),
        (
            DateTime(),
            "2024-03-31 02:30:00",
            "DATE_NOT_EXISTING: 2024-03-31 02:30:00 does not exist in Europe/Berlin: the clock is put forward over it.",
        ),
    ],
)
def test_a_text_that_does_not_fit_says_what_was_expected_and_found(field: Field, text: str, told: str) -> None:
    assert read(field, text) == told


def test_a_day_that_does_not_exist_is_told_apart_from_what_is_no_date() -> None:
    told = "DATE_NOT_EXISTING: 31.02.2024 does not exist: February 2024 has 29 days."
    assert read(Date(), "31.02.2024", DMY) == told


@pytest.mark.parametrize(
    ("field", "limits", "text", "code"),
    [
        (Text(), ColumnLimits(max_length=3), "abcd", "TOO_LONG"),
        (Text(max_length=5), ColumnLimits(max_length=9), "abcdef", "TOO_LONG"),
        (Text(), ColumnLimits(labels=("on", "off")), "of", "NOT_A_CHOICE"),
        (Integer(), ColumnLimits(minimum=-(2**31), maximum=2**31 - 1), str(2**31), "TOO_LARGE"),
        (Decimal(), ColumnLimits(precision=5, scale=2), "1.005", "TOO_PRECISE"),
        (Decimal(), ColumnLimits(precision=5, scale=2), "-1000", "TOO_SMALL"),
        *(
            (field, ColumnLimits(precision=5, scale=-2), text, "TOO_PRECISE")
            for field in (Decimal(), Decimal(places=2), Decimal(exact=True), Integer())
            for text in ("12345", "49", "-1,250")
        ),
        (Decimal(), ColumnLimits(precision=5, scale=-2), "12300.5", "TOO_PRECISE"),
        (Integer(), ColumnLimits(precision=2, scale=-20), str(10**18), "TOO_PRECISE"),
        (DateTime(), ColumnLimits(scale=0), "2024-01-01T00:00:00.7Z", "TOO_PRECISE"),
        (DateTime(), ColumnLimits(scale=3), "2024-01-01T00:00:00.1234Z", "TOO_PRECISE"),
        (Text(), ColumnLimits(required=True), " ", "REQUIRED"),
    ],
)
def test_the_column_of_the_target_has_its_say(field: Field, limits: ColumnLimits, text: str, code: str) -> None:
    assert read(field, text, limits=limits).split(":")[0] == code


@pytest.mark.parametrize(
    ("field", "limits", "text", "value"),
    [
        (Decimal(), ColumnLimits(precision=5, scale=-2), "12,300.0", 12300),
        (Decimal(), ColumnLimits(precision=5, scale=-2), "-1.2e3", -1200),
        (Decimal(), ColumnLimits(precision=5, scale=-2), "0.00", 0),
        (Decimal(exact=True), ColumnLimits(precision=5, scale=-2), "0", "0"),
        (Integer(), ColumnLimits(precision=5, scale=-2), "-12300", -12300),
        (DateTime(), ColumnLimits(scale=0), "2024-01-01T00:00:00.000Z", moment(2024, 1, 1)),
        (DateTime(), ColumnLimits(scale=3), "2024-01-01T00:00:00.123Z", moment(2024, 1, 1, 0, 0, 0, 123_000)),
    ],
)
def test_what_a_coarse_column_keeps_is_taken(field: Field, limits: ColumnLimits, text: str, value: object) -> None:
    assert read(field, text, limits=limits) == value


def test_patterns_take_time_by_the_length_of_the_text_only() -> None:
    """With an engine that goes back and tries again, this would not end."""
    texts = pl.DataFrame({"x": ["a" * 100_000 + "!"]})
    for pattern in ("(a+)+", "(a|a)*", "(a|aa)+", r"(\w*)*", "(.*a){20}"):
        assert pattern_mistake(pattern) is None
        assert texts.select(pl.col("x").str.contains(whole(pattern))).item() is False
    assert "look" in (pattern_mistake("(?=a)a") or "")
    assert pattern_mistake(r"(a)\1") is not None
