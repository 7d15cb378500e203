"""Rules between fields."""

import polars as pl
import pytest

from rowcall import Decimal, Final, Importer, Text, rule
from rowcall.engine.verify import verify


class Parcels(Importer):
    target = "parcels"

    value = Decimal()
    cod = Decimal()
    note = Text()

    @rule(field="cod", code="COD_EXCEEDS_VALUE", message="More is collected than it is worth.")
    def cod_within_value(self) -> pl.Expr:
        return pl.col("cod") <= pl.col("value")

    @rule
    def noted_when_free(self) -> pl.Expr:
        """A parcel without a value needs a note."""
        return pl.col("value").is_not_null() | pl.col("note").is_not_null()


def issues(**cells: str | None) -> list[tuple[str, str | None, str | None, str]]:
    rows = pl.DataFrame({"number": [1], **{name: [cell] for name, cell in cells.items()}})
    rows = rows.with_columns(pl.col(cells).cast(pl.String))
    return verify(Parcels, rows).issues.select("code", "field", "value", "message").rows()


def test_a_rule_that_does_not_hold_is_an_issue_of_its_field() -> None:
    found = issues(value="5", cod="7", note="")
    assert found == [("COD_EXCEEDS_VALUE", "cod", "7", "More is collected than it is worth.")]


def test_a_rule_without_a_field_speaks_for_the_row() -> None:
    assert issues(value="", cod="7", note="") == [
        ("NOTED_WHEN_FREE", None, None, "A parcel without a value needs a note.")
    ]


def test_a_rule_holds_where_it_is_null() -> None:
    assert issues(value="", cod="7", note="gift") == []


def test_a_value_that_cannot_be_read_silences_the_rules_that_look_at_it() -> None:
    assert [code for code, *_ in issues(value="five", cod="7", note="")] == ["INVALID_DECIMAL"]


def test_a_column_that_the_file_lacks_is_blank_to_rules() -> None:
    assert [code for code, *_ in issues(cod="7", note="")] == ["NOTED_WHEN_FREE"]


def test_a_rule_is_inherited_and_can_be_replaced() -> None:
    class Gifts(Parcels):
        target = "gifts"

        @rule(field="cod")
        def cod_within_value(self) -> pl.Expr:
            return pl.col("cod") == 0

    assert [each.code for each in Gifts.rules] == ["COD_WITHIN_VALUE", "NOTED_WHEN_FREE"]
    assert Gifts.rules[0].reads == ("cod",)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (pl.col("a") > pl.col("bb"), "there is no field 'bb'. Did you mean 'b'?"),
        (None, "gives None; an expression is expected."),
        (pl.col("a").str.len_chars(), "gives UInt32, not true or false."),
        (pl.col("a").is_null().all(), "gives one answer for all rows; each row needs its own."),
        (pl.lit(True), "reads no field by its name."),
        (pl.col("a").dt.year() > 2000, "doesn't fit its fields"),
        (pl.col("c") > 5, "'c' is an exact Decimal, which is a text here. Leave exact=True off."),
    ],
)
def test_a_rule_that_cannot_work_fails_when_its_class_is_created(expression: pl.Expr, told: str) -> None:
    def fits(_: object) -> pl.Expr:
        return expression

    fields = {"a": Text(), "b": Decimal(), "c": Decimal(exact=True)}
    with pytest.raises(Final, match=r"Broken\.fits") as raised:
        type("Broken", (Importer,), {"__module__": __name__, "target": "t", **fields, "r": rule(fits)})
    assert raised.value.code == "BAD_DECLARATION"
    assert told in str(raised.value)
