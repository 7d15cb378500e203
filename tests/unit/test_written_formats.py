"""CSV, NDJSON, JSON and Parquet: what comes back from the files written."""

import csv
import datetime as dt
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.errors import FileRefused
from rowcall.formats.formulas import restore
from rowcall.formats.reading import Column
from rowcall.formats.writing import WriteColumn, WriteFormat, WriteOptions, open_writer
from rowcall.model import Code

from ..writing import CSV, JSON, NDJSON, PARQUET, Rows, columns, tables, text_frame, write_to, written

pq = cast("Any", parquet)  # pyarrow has no annotations


def csv_rows(data: bytes, **dialect: Any) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True, **dialect))


# CSV


@settings(max_examples=150, deadline=None)
@given(tables(), st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["minimal", "all"]), st.booleans())
def test_csv_reads_back_as_it_was(rows: Rows, delimiter: str, quote: Any, windows: bool) -> None:
    options = WriteOptions(delimiter=delimiter, quote=quote, newline="\r\n" if windows else "\n")
    data = written([text_frame(rows)], CSV, options=options)
    header, *body = csv_rows(data, delimiter=delimiter)
    assert header == ["a", "b", "c"]
    expected = [tuple(cell or "" for cell in row) for row in rows]
    assert restore(text_frame([tuple(row) for row in body])).rows() == expected


@settings(deadline=None)
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
    assert written([frame], CSV) == b'"a"\n"x"\n""\n""\n" "\n'
    assert written([frame], CSV, options=WriteOptions(null="NULL")) == b'"a"\n"x"\nNULL\n""\n" "\n'


def test_csv_protects_formulas_in_cells_and_header_unless_told_to_keep_them() -> None:
    frame = pl.DataFrame({"=h": ["=1+1", "-5"], "b": ["1", "2"]})
    assert written([frame], CSV) == b"'=h,b\n'=1+1,1\n-5,2\n"
    assert written([frame], CSV, options=WriteOptions(formulas="keep")) == b"=h,b\n=1+1,1\n-5,2\n"


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


@settings(max_examples=150, deadline=None)
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


def test_json_that_is_a_text_or_null_is_written_as_the_text_of_its_json() -> None:
    cells = ['"x"', "null", "5", "[null]", None]
    lines = written([pl.DataFrame({"j": cells})], NDJSON, [WriteColumn(name="j", native="json")]).split(b"\n")[:-1]
    assert [json.loads(line)["j"] for line in lines] == ['"x"', "null", 5, [None], None]


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


@settings(max_examples=30, deadline=None)
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
