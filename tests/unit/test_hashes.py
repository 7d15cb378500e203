"""Rows that may be equal are found together, however their hashes are divided."""

from pathlib import Path

import polars as pl
import pytest

from rowcall.engine.hashes import Hashes


@pytest.mark.parametrize("rows", [1_000, 10_000_000])
def test_rows_that_may_be_equal_are_found_together(tmp_path: Path, rows: int) -> None:
    hashes = Hashes.of(tmp_path, rows)
    numbers = pl.Series(range(1, 3_001))
    values = (numbers * 7919).hash()
    hashes.add(0, 0, values, numbers)
    assert [number for found in hashes.repeated(0) for number in found["number"]] == []
    hashes.add(0, 1, values.gather([4, 999, 2_500]), pl.Series([5_001, 5_002, 5_003]))
    hashes.add(1, 0, values.head(2), pl.Series([1, 2]))  # of another kind
    found = [number for piece in hashes.repeated(0) for number in piece["number"]]
    assert sorted(zip(found[::2], found[1::2], strict=True)) == [(5, 5_001), (1_000, 5_002), (2_501, 5_003)]
    assert [piece.height for piece in hashes.repeated(1)] == [0]
