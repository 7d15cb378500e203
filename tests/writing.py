"""What the tests of writing share: nasty texts, small frames, and a file written in one call."""

import io
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from hypothesis import strategies as st

from rowcall.formats.reading import Column
from rowcall.formats.writing import WriteColumn, WriteFormat, WriteOptions, open_writer

CSV, NDJSON, JSON, XLSX, PARQUET = WriteFormat

_PUNCTUATION = ['"', '""', ",", ";", "\n", "\r", "\r\n", "'", "=1+1", "+x", "\t", " ", "{}", "[1,", "\\."]
_VALUES = ["-5", "00042", "1e5", "0.10", "TRUE", "true", "null", "\\N", "NaN"]
_UNUSUAL = ["😀", "\u202e\u200f", "\ufeff", "\u2028", "\x85", "\x01", "\x1f", "\x7f", "é", "e\u0301"]
nasty = st.sampled_from(_PUNCTUATION + _VALUES + _UNUSUAL)
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(characters, max_size=20) | st.lists(nasty, max_size=4).map("".join)
Rows = list[tuple[str | None, ...]]


def tables(width: int = 3) -> st.SearchStrategy[Rows]:
    return st.lists(st.tuples(*[texts | st.none()] * width), max_size=12)


def columns(*names: str) -> list[WriteColumn]:
    return [WriteColumn(name=name) for name in names]


def text_frame(rows: Rows, names: Sequence[str] = ("a", "b", "c")) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def written(
    frames: Sequence[pl.DataFrame],
    kind: WriteFormat,
    wanted: Sequence[WriteColumn | Column] = (),
    options: WriteOptions | None = None,
) -> bytes:
    stream = io.BytesIO()
    with open_writer(stream, kind, wanted or columns(*frames[0].columns), options or WriteOptions()) as writer:
        for frame in frames:
            assert writer.write(frame) == ()
    assert writer.rows == sum(frame.height for frame in frames)
    return stream.getvalue()


def write_to(
    target: Path, kind: WriteFormat, frames: Sequence[pl.DataFrame], error: BaseException | None = None
) -> None:
    with open_writer(target, kind, columns(*frames[0].columns)) as writer:
        for frame in frames:
            writer.write(frame)
        if error:
            raise error
