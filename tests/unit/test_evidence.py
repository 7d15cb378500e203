"""X5: what a column could be, with counts, and ambiguity where two readings explain it equally."""

from pathlib import Path

import pytest

from rowcall.formats import ColumnProfile, Kind, ReadOptions, open_rows, profile_of


def profile(tmp_path: Path, values: list[str], **options: str) -> ColumnProfile:
    path = tmp_path / "x.tsv"
    path.write_text("".join(["id\tv\n", *(f"{i}\t{value}\n" for i, value in enumerate(values))]))
    chosen = ReadOptions(**options)  # pyright: ignore[reportArgumentType] (literals in the tests below)
    with open_rows(path, chosen) as reading:
        return profile_of(reading, chosen, rows=None).columns()[1]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", "+3"], Kind.INTEGER),
        (["1.5", "2", "1,000.25"], Kind.DECIMAL_POINT),
        (["1,5", "2", "1.000,25"], Kind.DECIMAL_COMMA),
        (["0.567", "12.345"], Kind.DECIMAL_POINT),
        (["1e5", "2.5E-3"], Kind.DECIMAL_POINT),
        (["007", "012", "13"], Kind.CODE),
        (["12345678901234567890123", "5"], Kind.CODE),
        (["2024-03-01", "2024-12-31"], Kind.DATE_YMD),
        (["2024-03-01T10:00:00Z", "2024-12-31 23:59"], Kind.DATE_YMD),
        (["13/02/2024", "01/02/2024"], Kind.DATE_DMY),
        (["02/13/2024", "01/02/2024"], Kind.DATE_MDY),
        (["13.02.24", "1.2.24"], Kind.DATE_DMY),
        (["1 March 2024", "Mar 2, 2024"], Kind.DATE_WORDS),
        (["10:30", "23:59:59"], Kind.TIME),
        (["yes", "no", "YES"], Kind.BOOLEAN),
        (["wahr", "falsch"], Kind.BOOLEAN),
        (["6f9619ff-8b86-d011-b42d-00c04fc964ff"], Kind.UUID),
        (["a@b.org", "x.y+z@example.co.uk"], Kind.EMAIL),
        (["https://example.org/x?y=1"], Kind.URL),
        (["$74.69", "€ 5,00", "10 EUR"], Kind.MONEY),
        (["5 %", "12.5%"], Kind.PERCENT),
        (['{"a": 1}', "[1, 2]"], Kind.JSON),
        (["Ann", "Bob", "12"], Kind.TEXT),
        (["now", "infinity", "1_000", "0x1F"], Kind.TEXT),
    ],
)
def test_x5_the_kind_is_what_the_values_allow(tmp_path: Path, values: list[str], kind: Kind) -> None:
    found = profile(tmp_path, values)
    assert found.kind is kind
    assert found.ambiguous == ()


@pytest.mark.parametrize(
    ("values", "rivals"),
    [
        (["01/02/2024", "03/04/2024"], (Kind.DATE_DMY, Kind.DATE_MDY)),
        (["1,234", "5,678"], (Kind.DECIMAL_POINT, Kind.DECIMAL_COMMA)),
        (["1.234", "5.678"], (Kind.DECIMAL_POINT, Kind.DECIMAL_COMMA)),
        (["20240301", "20241231"], (Kind.DATE_COMPACT, Kind.INTEGER)),
        (["0", "1", "1"], (Kind.BOOLEAN, Kind.INTEGER)),
    ],
)
def test_x5_two_equal_readings_are_a_question(tmp_path: Path, values: list[str], rivals: tuple[Kind, ...]) -> None:
    assert profile(tmp_path, values).ambiguous == rivals


def test_x5_an_answer_settles_it(tmp_path: Path) -> None:
    dates = profile(tmp_path, ["01/02/2024", "03/04/2024"], date_order="mdy")
    assert (dates.kind, dates.ambiguous, dates.date_order) == (Kind.DATE_MDY, (), "mdy")
    numbers = profile(tmp_path, ["1.234", "5.678"], decimal=",")
    assert (numbers.kind, numbers.ambiguous, numbers.decimal) == (Kind.DECIMAL_COMMA, (), ",")


def test_x5_one_value_late_in_the_file_decides(tmp_path: Path) -> None:
    found = profile(tmp_path, ["01/02/2024"] * 30_000 + ["25/12/2024"])
    assert (found.kind, found.ambiguous) == (Kind.DATE_DMY, ())


def test_counts_for_and_against(tmp_path: Path) -> None:
    found = profile(tmp_path, ["7"] * 95 + ["x"] * 3 + ["N/A", ""])
    integer = next(e for e in found.evidence if e.kind is Kind.INTEGER)
    assert (found.kind, integer.supporting, integer.against) == (Kind.INTEGER, 95, 3)
    assert (found.filled, found.missing, found.rows) == (99, 1, 100)


def test_samples_and_distinct_values(tmp_path: Path) -> None:
    found = profile(tmp_path, [f"v{i % 7}" for i in range(500)])
    assert found.samples == ("v0", "v1", "v2")
    assert (found.distinct, found.distinct_exact) == (7, True)
    many = profile(tmp_path, [f"v{i}" for i in range(60_000)])
    assert not many.distinct_exact
    assert abs(many.distinct - 60_000) < 6_000


def test_keys_that_first_turn_up_late_count_as_null_before(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text('{"a": 1}\n' * 3 + '{"a": 2, "b": "x"}\n')
    with open_rows(path) as reading:
        found = profile_of(reading).columns()[1]
    assert (found.rows, found.filled, found.nulls) == (4, 1, 3)
