"""Rules between fields."""

import polars as pl
import pytest

from rowcall import Decimal, Final, Importer, Integer, List, Text, rule
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


ACROSS = [
    pl.col("b").is_unique(),
    pl.len().over("b") == 1,
    pl.col("b") >= pl.col("b").shift(1),
    pl.col("b").cum_sum() < 5,
    pl.col("b").is_first_distinct(),
    pl.col("b") >= pl.col("b").mean(),
    pl.col("a").n_unique().over("b") == 1,
    pl.struct("a", "b").is_unique(),
    (pl.col("a") != "OPEN") | pl.col("b").is_unique(),
    pl.col("a").cast(pl.Int64).is_unique(),
]
BY_ITSELF = [
    pl.col("b").is_between(1, 5),
    pl.col("a").cast(pl.Int64) > 0,
    pl.col("a").replace_strict({"x": 1}) == 1,
    pl.col("a").str.to_date("%Y-%m-%d", strict=False) > pl.date(2020, 1, 1),
    pl.when(pl.col("a") == "x").then(pl.col("b") > 1).otherwise(pl.lit(True)),
    pl.col("b").map_elements(lambda value: divmod(1, value)[0] > 0, return_dtype=pl.Boolean),
    pl.col("d").list.len() == pl.col("d").list.n_unique(),
]


def ruled(expression: pl.Expr) -> None:
    fields = {"a": Text(), "b": Integer(), "d": List()}
    body = {"__module__": __name__, "target": "t", **fields, "fits": rule(code="FITS")(lambda _: expression)}
    type("Ruled", (Importer,), body)


@pytest.mark.parametrize("expression", ACROSS, ids=str)
def test_a_rule_that_looks_across_rows_is_refused(expression: pl.Expr) -> None:
    with pytest.raises(Final, match="A rule sees one row at a time"):
        ruled(expression)


@pytest.mark.parametrize("expression", BY_ITSELF, ids=str)
def test_a_rule_that_looks_at_one_row_is_taken(expression: pl.Expr) -> None:
    ruled(expression)


def test_a_rule_that_raises_is_named() -> None:
    class Strict(Importer):
        target = "strict"
        a = Text()

        @rule
        def positive(self) -> pl.Expr:
            return pl.col("a").cast(pl.Int64) > 0

    with pytest.raises(Final, match="Rule positive of importer strict raised InvalidOperationError") as raised:
        verify(Strict, pl.DataFrame({"number": [1, 2], "a": ["5", "five"]}))
    assert raised.value.code == "IMPORTER_FAILED"
