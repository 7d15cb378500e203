"""Texts that a spreadsheet program might run: protected, and restored exactly."""

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.formats.formulas import might_be_protected, protect, restore

_STARTS = ["=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠", " =", "  @", "'=", "''=", "'", "''", " "]
_ENDS = ["", "1", "5,00", "1e5", "1e", ".5", "..", "cmd|' /C calc'!A0", "'=", "x\n", "5\n", "5 "]
texts = st.text() | st.builds(str.__add__, st.sampled_from(_STARTS), st.sampled_from(_ENDS) | st.text(max_size=5))


def _frame(cells: Sequence[str | None]) -> pl.DataFrame:
    return pl.DataFrame({"text": cells, "other": ["x"] * len(cells)}, schema={"text": pl.String, "other": pl.String})


def _protected(cell: str) -> str:
    return protect(_frame([cell]))["text"].item()


@settings(deadline=None)
@given(st.lists(texts | st.none(), min_size=1, max_size=30))
def test_restore_undoes_protect_for_every_text(cells: list[str | None]) -> None:
    assert restore(protect(_frame(cells))).equals(_frame(cells))


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=30))
def test_protect_adds_one_apostrophe_or_nothing(cells: list[str]) -> None:
    for before, after in zip(cells, protect(_frame(cells))["text"], strict=True):
        assert after in (before, "'" + before)


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=30))
def test_bytes_with_protected_cells_are_never_overlooked(cells: list[str]) -> None:
    protected = protect(_frame(cells))["text"].to_list()
    if protected != cells:
        assert might_be_protected("\n".join(protected).encode())


_FORMULAS = [
    "=1+1",
    "+1+1",
    "-1-1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "\n=1",
    "\0=1",
    "＝1+1",
    "＋1",
    "－1",
    "＠x",
    "-",
    "- item",
]
_MASKED = ["'=1", "''=1", " =1", "   +x", "-5\n", "-1e", "+49 30 1234", "-2+3", "--5", "-.", "=", "@"]
_NUMBERS = ["-5", "+3.5", "-1e5", "-5,00", "-1.234,56", "-.5", "+49301234", " -5", "−5", "'-5", "00042", "2024-01-31"]
_HARMLESS = [
    "1+1",
    "a=b",
    "",
    " ",
    "'",
    "O'Neil",
    "'quoted'",
    "me@example.com",
    "x\n=1",
    "' x",
    "(=1)",
    "\u00a0x",
    "#N/A",
]


@pytest.mark.parametrize("cell", _FORMULAS + _MASKED)
def test_what_looks_like_a_formula_is_protected(cell: str) -> None:
    assert _protected(cell) == "'" + cell


@pytest.mark.parametrize("cell", _NUMBERS + _HARMLESS)
def test_harmless_texts_and_plain_numbers_stay(cell: str) -> None:
    assert _protected(cell) == cell
    assert restore(_frame([cell])).equals(_frame([cell]))


def test_a_frame_without_such_cells_comes_back_as_it_is() -> None:
    frame = _frame(["a", None, "-5", "'quoted'"])
    assert protect(frame) is frame
    assert restore(frame) is frame


def test_only_text_columns_are_looked_at() -> None:
    frame = pl.DataFrame({"number": [-1, -2], "text": ["=1", "b"]})
    assert protect(frame).rows() == [(-1, "'=1"), (-2, "b")]


@pytest.mark.parametrize("data", [b"O'Neil,x", b"'quoted'", b"=1", b"a'b", "l'été".encode()])
def test_bytes_without_protected_cells_are_mostly_told_apart(data: bytes) -> None:
    assert not might_be_protected(data)
