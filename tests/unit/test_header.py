"""The row that names the columns is found where people put it."""

import pytest

from rowcall.formats.columns import normal
from rowcall.formats.header import find_header, is_known_header

PEOPLE = [["1", "Ada", "1815-12-10"], ["2", "Grace", "1906-12-09"], ["3", "Linus", "1969-12-28"]]
TOWNS = [["Ada", "London", "active"], ["Grace", "New York", "active"], ["Linus", "Portland", "gone"]]


def test_words_above_numbers_and_dates_are_the_header() -> None:
    assert find_header([["id", "name", "born"], *PEOPLE]) == 0


def test_numbers_from_the_first_row_on_mean_no_header() -> None:
    assert find_header([["1", "2"], ["3", "4"], ["5", "6"]]) is None


def test_data_with_names_in_it_from_the_first_row_on_means_no_header() -> None:
    assert find_header(PEOPLE) is None


def test_a_table_of_texts_takes_its_first_row() -> None:
    assert find_header([["name", "town", "state"], *TOWNS]) == 0


def test_a_first_row_whose_values_recur_below_is_data() -> None:
    assert find_header(TOWNS) is None


def test_a_value_that_is_called_as_its_column_leaves_the_header() -> None:
    assert find_header([["id", "name"], ["1", "ann"], ["2", "bob"], ["3", "name"]]) == 0
    assert find_header([["a", "b"], ["1", "b"], ["2", "c"]]) == 0


@pytest.mark.parametrize(
    ("row", "known"),
    [
        (["Id", "first name"], True),
        (["id", "True", "first_name", "town", "other"], True),
        (["id", "other"], False),
        (["id"], False),
        (["id", "ID"], False),
        ([], False),
    ],
)
def test_a_row_of_names_that_are_expected_is_a_header(row: list[str], known: bool) -> None:
    assert is_known_header(row, {"id", "firstname", "true", "town"}) is known


def test_a_first_row_of_long_texts_above_short_ones_is_data() -> None:
    assert find_header([["x" * 200, "b"], ["ok", "c"], ["fine", "d"]]) is None


@pytest.mark.parametrize(
    "preamble",
    [
        [["Sales report"]],
        [["Sales report", "", ""]],
        [["Sales report 2024"], ["all regions"], ["printed 2024-03-01"]],
        [["", "", "Sales report"]],
        [["Author:", "Grace"], ["Printed:", "2024-03-01"]],
        [[f"line {i} of a long preamble"] for i in range(12)],
    ],
)
def test_titles_above_the_table_are_preamble(preamble: list[list[str]]) -> None:
    assert find_header([*preamble, ["id", "name", "born"], *PEOPLE]) == len(preamble)


def test_group_titles_above_the_names_are_preamble() -> None:
    rows = [["", "2023", "", "2024", ""], ["name", "Q1", "Q2", "Q3", "Q4"], ["Ada", "1", "2", "3", "4"]]
    assert find_header(rows) == 1
    rows[0] = ["who", "sales", "sales", "sales", "sales"]
    assert find_header(rows) == 1


def test_a_full_row_of_facts_before_the_header_is_preamble() -> None:
    rows = [["Created", "2024-03-01", "by", "Ada"], ["id", "name", "born", "paid"]]
    assert find_header(rows + [[str(i), "Ada", "1815-12-10", "12.50"] for i in range(5)]) == 1


def test_rows_above_a_header_in_the_middle_stay_data() -> None:
    assert find_header([*PEOPLE, ["id", "name", "born"], *PEOPLE]) is None


def test_a_header_repeated_below_stays_the_header() -> None:
    header = ["name", "town", "state"]
    assert find_header([header, *TOWNS, header, *TOWNS]) == 0


def test_names_may_be_missing_or_doubled() -> None:
    assert find_header([["", "name", "born"], *PEOPLE]) == 0
    assert find_header([["x", "x"], ["1", "2"], ["3", "4"]]) == 0


def test_trailing_columns_may_be_empty_in_the_rows() -> None:
    assert find_header([["id", "name", "born", "died", "notes"], *([*row, "", ""] for row in PEOPLE)]) == 0


def test_the_last_columns_may_have_no_name() -> None:
    assert find_header([["id", "name"], ["1", "", "3"], ["2", "", "4"]]) == 0


def test_a_table_may_start_in_any_column() -> None:
    assert find_header([["Report"], ["", "", "id", "name"], ["", "", "1", "Ada"], ["", "", "2", "Grace"]]) == 1


def test_years_and_months_head_columns_of_numbers() -> None:
    assert find_header([["country", "2022", "2023", "2024"], ["NL", "17", "18", "19"], ["BE", "1", "2", "3"]]) == 0
    assert find_header([["country", "2024-01", "2024-02"], ["NL", "17", "18"], ["BE", "1", "2"]]) == 0


def test_a_number_column_called_no_has_a_header() -> None:
    assert find_header([["No", "Y", "N"], ["1", "2", "3"], ["4", "5", "6"]]) == 0


def test_words_above_codes_are_the_header() -> None:
    assert find_header([["sku", "colour"], ["AB-12", "red"], ["AB-13", "blue"]]) == 0


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["amount", "1.5", "2.5", "3.5"], 0),
        (["name", "Ada", "Grace"], 0),
        (["1.5", "2.5", "3.5"], None),
        (["ada@example.org", "grace@example.org"], None),
        (["e-mail", "ada@example.org", "grace@example.org"], 0),
        (["Report of March", "amount", "1", "2", "3"], 1),
        (["amount", "none yet", "-5", "-5"], 0),
        (["Number of employees", "unknown", "1", "2", "3"], 0),
        (["red", "blue", "red"], None),
        (["true", "false", "true"], None),
        (["name"], 0),
        (["17"], None),
    ],
)
def test_single_columns(cells: list[str], expected: int | None) -> None:
    assert find_header([[cell] for cell in cells]) == expected


@pytest.mark.parametrize("cells", [["Umsatzbericht", "Betrag", "1", "2", "3"], ["Umsatz 2025", "Betrag", "1", "2"]])
def test_a_known_name_below_a_title_heads_a_single_column(cells: list[str]) -> None:
    assert find_header([[cell] for cell in cells], {"betrag"}) == 1
    assert find_header([[cell] for cell in cells], {normal(cells[0])}) == 0


def test_nothing_has_no_header() -> None:
    assert find_header([]) is None
    assert find_header([[]]) is None


def test_a_header_without_rows_is_a_header() -> None:
    assert find_header([["id", "name"]]) == 0
    assert find_header([["Ada", "17", "2024-03-01"]]) is None


def test_sixteen_thousand_columns_are_judged_by_the_first_ones() -> None:
    names = [f"field {i}" for i in range(16_384)]
    assert find_header([names, *([str(i)] * 16_384 for i in range(100))]) == 0
