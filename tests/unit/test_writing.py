"""Writing CSV, NDJSON, JSON and Parquet, and what becomes of the file when something goes wrong."""

import bz2
import csv
import datetime as dt
import errno
import gc
import gzip
import io
import json
import lzma
import os
import stat
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow.parquet as parquet
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.errors import FileRefused
from rowcall.formats.formulas import restore
from rowcall.formats.output import Compression
from rowcall.formats.reading import Column
from rowcall.formats.writing import WriteColumn, WriteFormat, WriteOptions, open_writer
from rowcall.model import Code

CSV, NDJSON, JSON, XLSX, PARQUET = WriteFormat
pq = cast("Any", parquet)  # pyarrow has no annotations

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


def csv_rows(data: bytes, **dialect: Any) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True, **dialect))


# CSV


@settings(max_examples=150)
@given(tables(), st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["minimal", "all"]), st.booleans())
def test_csv_reads_back_as_it_was(rows: Rows, delimiter: str, quote: Any, windows: bool) -> None:
    options = WriteOptions(delimiter=delimiter, quote=quote, newline="\r\n" if windows else "\n")
    data = written([text_frame(rows)], CSV, options=options)
    header, *body = csv_rows(data, delimiter=delimiter)
    assert header == ["a", "b", "c"]
    expected = [tuple(cell or "" for cell in row) for row in rows]
    assert restore(text_frame([tuple(row) for row in body])).rows() == expected


@given(tables(width=1))
def test_csv_of_one_column_reads_back_as_it_was(rows: Rows) -> None:
    body = csv_rows(written([text_frame(rows, ["a"])], CSV))[1:]  # a blank line would be a row without cells
    assert restore(text_frame([tuple(row) for row in body], ["a"])).rows() == [(row[0] or "",) for row in rows]


def test_csv_tells_null_from_empty() -> None:
    frame = text_frame([("", None, "x")])
    assert written([frame], CSV) == b'a,b,c\n"",,x\n'
    assert written([frame], CSV, options=WriteOptions(quote="all")) == b'"a","b","c"\n"",,"x"\n'
    assert written([frame], CSV, options=WriteOptions(null="NULL")) == b'a,b,c\n"",NULL,x\n'


def test_csv_of_one_column_keeps_rows_without_a_value() -> None:
    frame = text_frame([("x",), (None,), ("",), (" ",)], ["a"])
    assert written([frame], CSV) == b'a\n"x"\n""\n""\n" "\n'
    assert written([frame], CSV, options=WriteOptions(null="NULL")) == b'a\n"x"\nNULL\n""\n" "\n'


def test_csv_protects_formulas_in_cells_and_header_unless_told_to_keep_them() -> None:
    frame = pl.DataFrame({"=h": ["=1+1", "-5"]})
    assert written([frame], CSV) == b"'=h\n'=1+1\n-5\n"
    assert written([frame], CSV, options=WriteOptions(formulas="keep")) == b"=h\n=1+1\n-5\n"


def test_csv_header_is_the_files_own_and_can_be_left_out() -> None:
    wanted = [Column(0, "Id ", "Id"), Column(1, "Id", "Id_2"), Column(2, " ", "column_3")]
    frame = text_frame([("1", "2", "3")], ["Id", "Id_2", "column_3"])
    assert written([frame], CSV, wanted) == b"Id ,Id,column_3\n1,2,3\n"
    assert written([frame], CSV, wanted, WriteOptions(header=False)) == b"1,2,3\n"


def test_csv_begins_with_a_byte_order_mark_when_asked() -> None:
    assert written([text_frame([])], CSV, options=WriteOptions(bom=True)) == b"\xef\xbb\xbfa,b,c\n"


@pytest.mark.parametrize(
    "options", [{"delimiter": d} for d in ("", "ab", "§", '"', "\n")] + [{"null": "a,b"}, {"null": '"'}]
)
def test_csv_options_that_would_break_the_file_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(FileRefused) as refused:
        written([text_frame([])], CSV, options=WriteOptions(**cast("Any", options)))
    assert refused.value.code == Code.BAD_OPTION


# JSON


@settings(max_examples=150)
@given(tables(), st.sampled_from([NDJSON, JSON]), st.sampled_from([None, "number", "boolean", "json"]))
def test_json_reads_back_as_it_was(rows: Rows, kind: WriteFormat, native: Any) -> None:
    wanted = [WriteColumn(name="a"), WriteColumn(name="b"), WriteColumn(name="c", native=native)]
    data = written([text_frame(rows), text_frame(rows)], kind, wanted)
    objects = json.loads(data) if kind is JSON else [json.loads(line) for line in data.split(b"\n")[:-1]]
    assert [(row["a"], row["b"]) for row in objects] == [row[:2] for row in rows * 2]
    for row, value in zip(rows * 2, objects, strict=True):
        assert value["c"] == row[2] or (row[2] is not None and value["c"] == json.loads(row[2]))


def test_json_numbers_keep_their_digits() -> None:
    cells = [
        "0.10",
        "1e5",
        "1E-7",
        "9007199254740993",
        "-0",
        "12345678901234567890.5",
        "00042",
        "+1",
        "1.",
        "NaN",
        "",
        None,
    ]
    data = written([pl.DataFrame({"n": cells})], NDJSON, [WriteColumn(name="n", native="number")])
    raw = [line.removeprefix('{"n":').removesuffix("}") for line in data.decode().split("\n")[:-1]]
    assert raw == [*cells[:6], '"00042"', '"+1"', '"1."', '"NaN"', '""', "null"]


def test_json_texts_that_are_not_what_their_column_says_are_strings() -> None:
    frame = pl.DataFrame(
        {"b": ["true", "TRUE", None], "j": ['{"a": 1,\r\n "b": [0.10]}', "{'a'}", "[" * 5000 + "]" * 5000]}
    )
    wanted = [WriteColumn(name="b", native="boolean"), WriteColumn(name="j", native="json")]
    lines = written([frame], NDJSON, wanted).split(b"\n")[:-1]
    assert lines[0] == b'{"b":true,"j":{"a": 1,   "b": [0.10]}}'
    assert [json.loads(line)["j"] for line in lines[1:]] == frame["j"].to_list()[1:]
    assert json.loads(lines[1])["b"] == "TRUE"


def test_json_array_is_valid_with_any_number_of_rows() -> None:
    frame = text_frame([("1", None, "x")])
    assert written([frame.head(0)], JSON) == b"[]\n"
    assert written([frame], JSON) == b'[\n{"a":"1","b":null,"c":"x"}\n]\n'
    assert json.loads(written([frame, frame.head(0), frame], JSON)) == frame.to_dicts() * 2


# typed frames, in every text format

moment = dt.datetime.fromisoformat

TYPED = pl.DataFrame(
    {
        "int": [-7, None],
        "float": [0.1, float("-inf")],
        "decimal": pl.Series([Decimal("0.10"), None], dtype=pl.Decimal(20, 2)),
        "bool": [True, None],
        "date": [dt.date(2024, 2, 29), None],
        "datetime": [moment("2024-02-29T01:02:03.450"), None],
        "zoned": pl.Series([moment("2024-07-01T12:00"), None]).dt.replace_time_zone("Europe/Berlin"),
        "time": [dt.time(1, 2, 3), None],
        "duration": [dt.timedelta(days=1, seconds=5), None],
        "list": [["a", None], None],
        "struct": [{"n": Decimal("1.50")}, None],
        "binary": [b"\x00\xff", None],
        "category": pl.Series(["x", None], dtype=pl.Categorical),
        "nothing": [None, None],
    }
)
TYPED_TEXTS = [
    "-7",
    "0.1",
    "0.10",
    "true",
    "2024-02-29",
    "2024-02-29T01:02:03.450",
    "2024-07-01T12:00:00+02:00",
    "01:02:03",
    "P1DT5S",
    '["a",null]',
    '{"n":1.50}',
    "\\x00ff",
    "x",
    "",
]


def test_typed_values_are_written_as_exact_text_in_csv() -> None:
    _, first, second = csv_rows(written([TYPED], CSV))
    assert first == TYPED_TEXTS
    assert second == ["", "'-Infinity", *[""] * 12]  # no plain number: Excel would take it for a name


def test_typed_values_are_written_by_their_kind_in_json() -> None:
    first, second = written([TYPED], NDJSON).decode().split("\n")[:-1]
    raw = dict(zip(TYPED.columns, TYPED_TEXTS, strict=True))
    as_is = {"int", "float", "decimal", "bool", "list", "struct"}
    members = [f'"{name}":{raw[name] if name in as_is else json.dumps(raw[name])}' for name in TYPED.columns[:-1]]
    assert first == "{" + ",".join(members) + ',"nothing":null}'
    assert json.loads(second) == {name: "-Infinity" if name == "float" else None for name in TYPED.columns}


# Parquet


@settings(max_examples=30)
@given(rows=tables())
def test_parquet_reads_back_as_it_was(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("parquet") / "x.parquet"
    with open_writer(path, PARQUET, columns("a", "b", "c")) as writer:
        writer.write(text_frame(rows))
    table = pq.ParquetFile(path).read()
    assert [str(kind) for kind in table.schema.types] == ["string"] * 3
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_parquet_keeps_types_and_fills_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    frame = pl.concat([TYPED] * 20_000)
    with open_writer(path, PARQUET, columns(*TYPED.columns)) as writer:
        for _ in range(6):
            writer.write(frame)
    file = pq.ParquetFile(path)
    groups = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
    assert sum(groups) == writer.rows == 240_000
    assert 80_000 <= groups[0] <= 100_000
    back = pl.DataFrame(file.read_row_group(0).slice(0, 2))
    assert back.equals(TYPED.with_columns(pl.col("category", "nothing").cast(pl.String)))


def test_parquet_without_rows_still_has_its_columns(tmp_path: Path) -> None:
    with open_writer(tmp_path / "x.parquet", PARQUET, columns("a", "b")):
        pass
    assert pq.read_schema(tmp_path / "x.parquet").names == ["a", "b"]


def test_parquet_refuses_a_column_that_changes_its_type(tmp_path: Path) -> None:
    frames = [pl.DataFrame({"a": [1]}), pl.DataFrame({"a": ["x"]})]
    with pytest.raises(FileRefused, match="began as Int64 and is String now"):
        write_to(tmp_path / "x.parquet", PARQUET, frames)
    assert list(tmp_path.iterdir()) == []


# every format

FRAME = text_frame([("1", "2", "3"), (None, "", "x")])


@pytest.mark.parametrize("kind", WriteFormat)
def test_an_error_leaves_no_file(kind: WriteFormat, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_to(tmp_path / "x", kind, [FRAME], KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", WriteFormat)
def test_an_error_leaves_the_older_file_as_it_was(kind: WriteFormat, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"older")
    with pytest.raises(ZeroDivisionError):
        write_to(path, kind, [FRAME], ZeroDivisionError())
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", WriteFormat)
def test_the_file_appears_when_it_is_complete(kind: WriteFormat, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with open_writer(path, kind, columns("a", "b", "c")) as writer:
        writer.write(text_frame([("1", "2", "3")]))
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]
    umask = os.umask(0o022)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "x.csv", tmp_path / "link.csv"
    path.write_bytes(b"older")
    path.chmod(0o600)
    link.symlink_to(path)
    with open_writer(link, CSV, columns("a")) as writer:
        writer.write(pl.DataFrame({"a": ["1"]}))
    assert link.is_symlink()
    assert path.read_bytes() == b"a\n1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", WriteFormat)
def test_a_full_disk_is_told(kind: WriteFormat) -> None:
    frames = [text_frame([(os.urandom(10_000).hex(), "2", "3")])] * 20
    with pytest.raises(FileRefused, match="No space left on device") as refused:
        write_to(Path("/dev/full"), kind, frames)
    assert refused.value.code == Code.WRITE_FAILED
    assert "space" in refused.value.hint


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", "zst"])
def test_a_full_disk_is_told_by_compressed_files_too(compression: Compression) -> None:
    writer = open_writer(Path("/dev/full"), CSV, columns("a", "b", "c"), WriteOptions(compression=compression))
    writer.write(FRAME)
    with pytest.raises(FileRefused, match="No space left on device"):
        writer.close()


def test_a_disk_that_fills_up_while_the_file_is_completed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileRefused, match="No space left"):
        write_to(tmp_path / "x.csv", CSV, [FRAME])
    assert list(tmp_path.iterdir()) == []


PLACES = {
    "missing/x.csv": "No such file",
    "file/x.csv": "Not a directory",
    "folder": "Is a directory",
    "x" * 300: "File name too long",
    "nul\0": "null byte",
}


@pytest.mark.parametrize(("place", "reason"), PLACES.items(), ids=PLACES.values())
def test_a_place_that_cannot_be_written_is_told(place: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileRefused, match=reason) as refused:
        open_writer(tmp_path / place, CSV, columns("a"))
    assert refused.value.code == Code.WRITE_FAILED
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file", tmp_path / "folder"]


@pytest.mark.parametrize("kind", WriteFormat)
def test_a_stream_is_left_open_and_may_take_little_at_a_time(kind: WriteFormat) -> None:
    class Slow(io.BytesIO):
        def write(self, data: Any, /) -> int:
            return super().write(memoryview(data)[:100])

    frame = text_frame([(str(index), "x", None) for index in range(200)])
    slow, fast = Slow(), io.BytesIO()
    for stream in (slow, fast):
        with open_writer(stream, kind, columns("a", "b", "c")) as writer:
            writer.write(frame)
    if kind is XLSX:  # a workbook says when it was made
        assert slow.getvalue()[-22:-16] == b"PK\x05\x06\0\0"
    else:
        assert slow.getvalue() == fast.getvalue()


@pytest.mark.parametrize("kind", WriteFormat)
def test_an_aborted_stream_is_not_ended_as_if_complete(kind: WriteFormat) -> None:
    whole, stream = written([FRAME], kind), io.BytesIO()
    writer = open_writer(stream, kind, columns("a", "b", "c"))
    writer.write(FRAME)
    writer.abort()
    del writer
    gc.collect()
    assert len(stream.getvalue()) < len(whole) or kind in (CSV, NDJSON)  # these have no end


def test_a_closed_stream_is_told() -> None:
    stream = io.BytesIO()
    stream.close()
    with pytest.raises(FileRefused, match="closed file"):
        open_writer(stream, CSV, columns("a"))


INFLATE: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


@pytest.mark.parametrize("suffix", INFLATE)
@pytest.mark.parametrize("kind", [CSV, NDJSON, JSON])
def test_text_formats_are_compressed_by_suffix(suffix: str, kind: WriteFormat, tmp_path: Path) -> None:
    frame = text_frame([(str(index), "x", None) for index in range(5_000)])
    path = tmp_path / f"x.{kind}.{suffix.upper()}"
    write_to(path, kind, [frame, frame])
    assert INFLATE[suffix](path.read_bytes()) == written([frame, frame], kind)


@pytest.mark.parametrize("kind", [XLSX, PARQUET])
def test_formats_that_are_compressed_already_are_not_compressed_again(kind: WriteFormat, tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match=r"Leave \.gz off"):
        open_writer(tmp_path / f"x.{kind}.gz", kind, columns("a"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [CSV, NDJSON, JSON])
def test_a_column_that_a_frame_does_not_have_is_null(kind: WriteFormat) -> None:
    frames = [pl.DataFrame({"b": ["1"]}), pl.DataFrame({"b": ["2"], "a": ["x"]})]
    full = [
        pl.DataFrame({"a": [None], "b": ["1"]}, schema={"a": pl.String, "b": pl.String}),
        frames[1].select("a", "b"),
    ]
    assert written(frames, kind, columns("a", "b")) == written(full, kind)


def test_a_column_that_the_writer_does_not_know_is_never_dropped(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without the columns"):
        write_to(tmp_path / "x.csv", CSV, [FRAME, FRAME.with_columns(late="a")])
    assert list(tmp_path.iterdir()) == []


def test_a_closed_writer_takes_no_rows(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "x.csv", CSV, columns("a"))
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write(pl.DataFrame({"a": ["1"]}))
    assert (tmp_path / "x.csv").read_bytes() == b"a\n"


@pytest.mark.parametrize("kind", WriteFormat)
def test_a_file_without_columns_is_refused(kind: WriteFormat) -> None:
    with pytest.raises(FileRefused) as refused:
        open_writer(io.BytesIO(), kind, [])
    assert refused.value.code == Code.BAD_OPTION


@pytest.mark.parametrize("kind", [CSV, NDJSON, PARQUET])
def test_very_long_texts_and_large_frames_are_written_whole(kind: WriteFormat, tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": ["ü" * 3_000_000, None, *map(str, range(250_000))]})
    path = tmp_path / "x"
    with open_writer(path, kind, columns("a")) as writer:
        writer.write(frame)
    if kind is PARQUET:
        assert pq.ParquetFile(path).read().column("a").to_pylist() == frame["a"].to_list()
    elif kind is NDJSON:
        with path.open() as lines:
            assert [json.loads(line)["a"] for line in lines] == frame["a"].to_list()
    else:
        assert pl.read_csv(path, infer_schema=False)["a"].to_list() == frame["a"].fill_null("").to_list()
