"""Rows are verified as a whole: typed values, all issues, nothing lost."""

from collections.abc import Mapping

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from rowcall import Choice, Date, DateTime, Decimal, Email, Importer, Integer, Lookup, Text, rule
from rowcall.engine.verify import Verified, verify


class People(Importer):
    target = "people"

    email = Email(required=True)
    age = Integer(min=0, max=150)
    role = Choice("admin", "reader", default="reader")
    born = Date()
    boss = Lookup("people", by="email", required=True)
    note = Text(max_length=5)

    @rule(field="age", code="ADMIN_TOO_YOUNG")
    def admins_are_grown_up(self) -> pl.Expr:
        return (pl.col("role") != "admin") | (pl.col("age") >= 18)

    @rule(code="HAS_BOSS")
    def bosses_differ(self) -> pl.Expr:
        return pl.col("boss").is_not_null()


class Visits(Importer):
    target = "visits"

    at = DateTime()
    size = Decimal()


def rows(*cells: Mapping[str, str | None]) -> pl.DataFrame:
    names = list(dict.fromkeys(name for row in cells for name in row))
    columns = {name: pl.Series([row.get(name) for row in cells], dtype=pl.String) for name in names}
    return pl.DataFrame({"number": pl.Series(range(10, 10 + len(cells)), dtype=pl.Int64), **columns})


def codes(verified: Verified) -> list[tuple[int, str, str | None]]:
    return verified.issues.select("number", "code", "field").rows()


GOOD = {"email": "A@b.org", "age": "30", "role": "ADMIN", "born": "1990-01-01", "boss": "1", "note": "x"}


def test_good_rows_come_out_typed_and_in_order() -> None:
    verified = verify(People, rows(GOOD, {**GOOD, "age": "", "born": None, "role": " "}))
    assert verified.issues.is_empty()
    assert verified.frame.schema == pl.Schema(
        {
            "number": pl.Int64,
            "email": pl.String,
            "age": pl.Int64,
            "role": pl.String,
            "born": pl.Date,
            "boss": pl.String,
            "note": pl.String,
        }
    )
    assert verified.frame["number"].to_list() == [10, 11]
    assert verified.frame["email"].to_list() == ["a@b.org"] * 2
    assert verified.frame["role"].to_list() == ["admin", "reader"]


def test_all_issues_of_a_row_are_found_in_the_order_of_its_fields() -> None:
    bad = {**GOOD, "email": "", "age": "7", "born": "x", "note": "too long"}
    verified = verify(People, rows(GOOD, bad, GOOD))
    assert verified.frame["number"].to_list() == [10, 12]
    assert codes(verified) == [
        (11, "REQUIRED", "email"),
        (11, "ADMIN_TOO_YOUNG", "age"),
        (11, "INVALID_DATE", "born"),
        (11, "TOO_LONG", "note"),
    ]


def test_issues_of_several_rows_are_in_the_order_of_the_rows() -> None:
    verified = verify(People, rows({**GOOD, "note": "too long"}, {**GOOD, "email": "x"}, {**GOOD, "age": "-1"}))
    assert codes(verified) == [
        (10, "TOO_LONG", "note"),
        (11, "INVALID_EMAIL", "email"),
        (12, "TOO_SMALL", "age"),
        (12, "ADMIN_TOO_YOUNG", "age"),
    ]


def test_rows_in_pieces_are_verified_like_those_in_one() -> None:
    """Joined rows are in pieces, and Polars panicked over those of the rarer forms."""
    texts = [None, "x", "2024-03-14T12:00:00Z", "31.12.2024 1:00 pm", "2024-03-14 13:00:00+01:00", "2024-02-30 10:00"]
    whole = rows(*({"at": text, "size": "1,5" if text else "x"} for text in texts))
    for at in range(1, len(texts)):
        pieces = pl.concat([whole[:at], whole[at:]], rechunk=False)
        expected, found = verify(Visits, whole), verify(Visits, pieces)
        assert_frame_equal(found.frame, expected.frame)
        assert_frame_equal(found.issues, expected.issues)
        field = Visits.fields["at"]
        assert field.read(pieces["at"]).equals(field.read(whole["at"]))


def test_a_value_that_cannot_be_read_silences_its_checks_and_rules_only() -> None:
    verified = verify(People, rows({**GOOD, "age": "old", "note": "too long"}))
    assert codes(verified) == [(10, "INVALID_INTEGER", "age"), (10, "TOO_LONG", "note")]


def test_a_lookup_that_found_nothing_is_neither_missing_nor_judged_by_rules() -> None:
    lost = {
        "number": [11],
        "code": ["NOT_FOUND"],
        "field": ["boss"],
        "value": ["x@y.org"],
        "message": ["No such person."],
    }
    batch = rows(GOOD, {**GOOD, "boss": None, "note": "too long"}, {**GOOD, "boss": None})
    verified = verify(People, batch, unresolved=pl.DataFrame(lost))
    assert codes(verified) == [
        (11, "NOT_FOUND", "boss"),
        (11, "TOO_LONG", "note"),
        (12, "REQUIRED", "boss"),
        (12, "HAS_BOSS", None),
    ]
    assert verified.frame["number"].to_list() == [10]


def test_a_field_that_the_file_lacks_takes_its_default_or_stays_away() -> None:
    verified = verify(People, rows(GOOD).drop("role", "note", "age"))
    assert verified.frame.columns == ["number", "email", "role", "born", "boss"]
    assert verified.frame["role"].to_list() == ["reader"]


def test_a_required_field_that_the_file_lacks_is_an_issue_of_every_row() -> None:
    verified = verify(People, rows(GOOD, GOOD).drop("email"))
    assert codes(verified) == [(10, "REQUIRED", "email"), (11, "REQUIRED", "email")]
    assert verified.issues["value"].to_list() == [None, None]


def test_an_issue_shows_the_original_text_cut_at_200_characters() -> None:
    verified = verify(People, rows({**GOOD, "age": " 1x "}, {**GOOD, "age": "y" * 300}))
    assert verified.issues["value"].to_list() == [" 1x ", "y" * 200]
    assert verified.issues["message"].to_list()[1] == f"'{'y' * 60}…' is not a whole number."


def test_no_rows_give_no_rows() -> None:
    verified = verify(People, rows(GOOD).clear())
    assert verified.frame.is_empty()
    assert verified.issues.is_empty()


class Anything(Importer):
    target = "anything"

    text = Text(max_length=3)
    whole = Integer(max=10)
    day = Date(required=True)
    at = DateTime()


TEXTS = st.none() | st.text(alphabet="0123456789-/.: TZabcMar+,é ", max_size=12) | st.dates().map(str)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), max_size=8))
def test_every_row_is_either_good_or_has_issues_whatever_it_holds(cells: list[tuple[str | None, ...]]) -> None:
    batch = rows(*(dict(zip(Anything.fields, row, strict=True)) for row in cells))
    verified = verify(Anything, batch)
    good, bad = set(verified.frame["number"]), set(verified.issues["number"])
    assert good.isdisjoint(bad)
    assert good | bad == set(batch["number"])
    alone = [verify(Anything, batch.slice(index, 1)) for index in range(batch.height)]
    assert codes(verified) == [issue for each in alone for issue in codes(each)]
