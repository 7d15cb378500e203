"""`rowcall convert` between any two formats, with every record in the output or the rejects."""

import csv
import itertools
from pathlib import Path

import pytest

from ..reading import read
from .command import rowcall

SAMPLES = Path(__file__).parents[2] / "samples"
TARGETS = ["csv", "tsv", "csv.gz", "ndjson", "json", "xlsx", "parquet"]


@pytest.mark.parametrize(("one", "other"), list(itertools.pairwise([*TARGETS, "csv"])))
def test_from_each_format_to_the_next(tmp_path: Path, one: str, other: str) -> None:
    first, second = tmp_path / f"first.{one}", tmp_path / f"second.{other}"
    assert rowcall("convert", SAMPLES / "users.csv", first).status == 0
    done = rowcall("convert", first, second)
    assert (done.status, done.out) == (0, "")
    assert "10 rows = 10 written + 0 rejected" in done.err
    assert read(second).values == read(SAMPLES / "users.csv").values
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_bad_records_go_to_the_rejects_with_line_and_text(tmp_path: Path) -> None:
    done = rowcall("convert", SAMPLES / "kunden.csv", tmp_path / "out.csv")
    assert done.status == 2
    assert "8 rows = 5 written + 3 rejected" in done.err
    with (tmp_path / "out.csv.rejects.csv").open(newline="") as file:
        rejects = list(csv.DictReader(file))
    assert [(r["row"], r["line"], r["code"]) for r in rejects] == [
        ("3", "7", "UNCLOSED_QUOTE"),
        ("5", "9", "TOO_FEW_FIELDS"),
        ("7", "12", "TOO_MANY_FIELDS"),
    ]
    assert rejects[1]["raw"] == "00022;zu kurz;kurz@example.org\r\n"


def test_a_cell_without_a_value_is_told_and_its_row_kept(tmp_path: Path) -> None:
    target, rejects = tmp_path / "out.csv", tmp_path / "r"
    done = rowcall("convert", SAMPLES / "orders.xlsx", target, "--sheet", "Orders", "--rejects", rejects)
    assert done.status == 2
    assert "8 rows = 8 written + 0 rejected" in done.err
    assert "#DIV/0!" in rejects.read_text()


def test_json_keeps_its_types_digit_for_digit(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    source.write_text('{"a": 0.10, "b": true, "c": {"x": [1, 2]}, "d": "7"}\n{"a": 12345678901234567890, "e": null}\n')
    assert rowcall("convert", source, tmp_path / "out.json").status == 0
    text = (tmp_path / "out.json").read_text().replace(" ", "")
    assert '"a":0.10' in text
    assert '"a":12345678901234567890' in text
    assert '"b":true' in text
    assert '"c":{"x":[1,2]}' in text
    assert '"d":"7"' in text


def test_a_row_that_the_format_cannot_hold_is_rejected(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text(f"a,b\n1,{'x' * 40_000}\n2,y\n")
    done = rowcall("convert", source, tmp_path / "out.xlsx")
    assert done.status == 2
    assert "2 rows = 1 written + 1 rejected" in done.err
    assert "CELL_TOO_LONG" in (tmp_path / "out.xlsx.rejects.csv").read_text()


def test_standard_input_to_standard_output() -> None:
    done = rowcall("convert", "-", "-", "--to", "ndjson", stdin=b"a,b\n1,2\n")
    assert (done.status, done.out.replace(" ", "")) == (0, '{"a":"1","b":"2"}\n')


def test_a_failed_conversion_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "in.csv.gz").write_bytes(b"\x1f\x8b\x08\x00broken")
    assert rowcall("convert", tmp_path / "in.csv.gz", tmp_path / "out.csv").status == 1
    assert rowcall("convert", SAMPLES / "users.csv", tmp_path / "nowhere" / "out.csv").status == 1
    assert rowcall("convert", SAMPLES / "users.csv", tmp_path / "out.docx").status == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv.gz"]
