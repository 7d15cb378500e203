"""What is written in any format reads back as it was, whatever the text."""

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rowcall.formats import WriteColumn, WriteFormat, WriteOptions, open_writer

from ..reading import read

# what XML 1.0, and so a workbook, can't hold even escaped, and what no text field takes
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufffe\uffff"), max_size=12)
_NASTY = st.sampled_from(
    [
        "",
        "=1+1",
        "+x",
        "-5",
        "@a",
        "'=x",
        "'",
        '"',
        '""',
        ",",
        "\n",
        "\r",
        "\r\n",
        "\t",
        " ",
        "00042",
        "_x000D_",
        "\ufeff",
    ]
)
_CELL = st.one_of(_NASTY, _TEXT, st.none())
_TABLES = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(_CELL, min_size=width, max_size=width), max_size=6))


# Each example of Parquet costs a child process.
@pytest.mark.parametrize("target", ["csv", "tsv", "csv.gz", "csv.zst", "ndjson", "json", "xlsx"])
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=_TABLES)
@example(rows=[["=1+1", "-5"], ["'=x", None], ["", "x"]])
@example(rows=[[""], [None], [" "], ["x"]])
@example(rows=[["=1+1"], ["-5"], ["-5"]])
@example(rows=[["0;"], ["1;"], ["a;b"]])
@example(rows=[["'=1+1", "'=1+1"], ["=2", "'x'"], ["'", "=3"]])
def test_round_trip(target: str, rows: list[list[str | None]]) -> None:
    check(target, rows)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=_TABLES)
def test_round_trip_of_parquet(rows: list[list[str | None]]) -> None:
    check("parquet", rows)


def check(target: str, rows: list[list[str | None]]) -> None:
    width = len(rows[0]) if rows else 2
    names = [f"column {i}" for i in range(width)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{target}"
        kind = WriteFormat("csv" if target == "tsv" else target.split(".")[0])
        options = WriteOptions(delimiter="\t" if target == "tsv" else ",")
        with open_writer(path, kind, [WriteColumn(name=name) for name in names], options) as writer:
            writer.write(pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row"))
        if kind is WriteFormat.NDJSON and not rows:
            assert path.read_bytes() == b""
            return
        got = read(path)
    assert got.bad == []
    assert [list(row) for row in got.values] == _as_read(rows, kind)
    if rows:
        assert got.columns == names


def _as_read(rows: list[list[str | None]], kind: WriteFormat) -> list[list[str | None]]:
    """What the format can tell: CSV has one kind of empty, and a workbook's empty row is blank."""
    if kind is WriteFormat.CSV:
        return [[cell or "" for cell in row] for row in rows]
    if kind is WriteFormat.XLSX:
        return [row for row in rows if any(row)]
    return rows
