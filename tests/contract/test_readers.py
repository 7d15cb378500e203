"""One contract for every reader: the same table in each format reads as the same rows."""

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import cast
from xml.sax.saxutils import escape

import polars as pl
import pytest
import zstandard

from rowcall.errors import FileRefused
from rowcall.formats import Limits, ReadOptions, WriteColumn, WriteFormat, open_rows, open_writer
from rowcall.model import Code

from ..reading import read
from ..unit.workbook_files import write_ods, write_xls, write_xlsb

Table = list[dict[str, str]]

TEXTS = (
    "00042",
    "1e5",
    "9007199254740993",
    "TRUE",
    "2024-03-01",
    "Zoë, naïve",
    'a "quoted" one',
    "two\nlines",
    " x ",
    "'",
)


def _frame(table: Table) -> pl.DataFrame:
    return pl.DataFrame(table, schema=dict.fromkeys(_names(table), pl.String))


def _names(table: Table) -> list[str]:
    return list(table[0]) if table else ["id", "text"]


def _written(kind: WriteFormat) -> Callable[[Path, Table], Path]:
    def write(folder: Path, table: Table) -> Path:
        path = folder / f"table.{kind}"
        with open_writer(path, kind, [WriteColumn(name=name) for name in _names(table)]) as writer:
            writer.write(_frame(table))
        return path

    return write


def _tsv(folder: Path, table: Table) -> Path:
    path = folder / "table.tsv"
    path.write_bytes(_frame(table).write_csv(separator="\t").encode())
    return path


def _arrow_file(folder: Path, table: Table) -> Path:
    path = folder / "table.arrow"
    _frame(table).write_ipc(path, compat_level=pl.CompatLevel.oldest())
    return path


def _arrow_stream(folder: Path, table: Table) -> Path:
    path = folder / "table.arrows"
    _frame(table).write_ipc_stream(path, compat_level=pl.CompatLevel.oldest())
    return path


def _keyed_json(folder: Path, table: Table) -> Path:
    path = folder / "table.json"
    path.write_text(json.dumps({"meta": {"page": 1}, "data": table}, indent=2))
    return path


def _cells(table: Table) -> list[tuple[int, int, object]]:
    lines = [_names(table), *(list(row.values()) for row in table)]
    return [(r, c, value) for r, line in enumerate(lines) for c, value in enumerate(line)]


def _xls(folder: Path, table: Table) -> Path:
    return write_xls(folder / "table.xls", _cells(table))


def _xlsb(folder: Path, table: Table) -> Path:
    return write_xlsb(folder / "table.xlsb", _cells(table))


def _ods(folder: Path, table: Table) -> Path:
    def cell(text: str) -> str:
        lines = "".join(f"<text:p>{escape(line).replace(' ', '<text:s/>')}</text:p>" for line in text.split("\n"))
        return f'<table:table-cell office:value-type="string">{lines}</table:table-cell>'

    lines = [_names(table), *(list(row.values()) for row in table)]
    rows = "".join(f"<table:table-row>{''.join(map(cell, line))}</table:table-row>" for line in lines)
    return write_ods(folder / "table.ods", rows)


def _packed(pack: Callable[[bytes], bytes], suffix: str) -> Callable[[Path, Table], Path]:
    def write(folder: Path, table: Table) -> Path:
        path = folder / f"table.csv.{suffix}"
        path.write_bytes(pack(_frame(table).write_csv().encode()))
        return path

    return write


WRITERS: dict[str, Callable[[Path, Table], Path]] = {
    **{kind.value: _written(kind) for kind in WriteFormat},
    "tsv": _tsv,
    "json under a key": _keyed_json,
    "arrow file": _arrow_file,
    "arrow stream": _arrow_stream,
    "xls": _xls,
    "xlsb": _xlsb,
    "ods": _ods,
    "csv.gz": _packed(gzip.compress, "gz"),
    "csv.bz2": _packed(bz2.compress, "bz2"),
    "csv.xz": _packed(lzma.compress, "xz"),
    "csv.zst": _packed(zstandard.ZstdCompressor().compress, "zst"),
}
BINARY = {"xls", "xlsb"}  # made by hand in these tests, for small texts only

each_format = pytest.mark.parametrize("kind", WRITERS)


@each_format
def test_text_stays_text(tmp_path: Path, kind: str) -> None:
    table = [{"id": str(i), "text": text} for i, text in enumerate(TEXTS)]
    got = read(WRITERS[kind](tmp_path, table))
    assert got.columns == ["id", "text"]
    assert [text for _, text in got.values] == list(TEXTS)
    assert (got.bad, got.issues) == ([], [])


@each_format
def test_rows_are_numbered_and_counted(tmp_path: Path, kind: str) -> None:
    count = 50 if kind in BINARY else 1_500
    table = [{"id": str(i), "text": f"row {i}"} for i in range(count)]
    got = read(WRITERS[kind](tmp_path, table))
    assert got.numbers == list(range(1, count + 1))
    assert got.lines == sorted(set(got.lines))
    assert (got.counts.rows, got.counts.good, got.counts.bad) == (count, count, 0)
    assert got.values[-1] == (str(count - 1), f"row {count - 1}")


@each_format
def test_reading_again_gives_the_same(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path, [{"id": str(i), "text": "x"} for i in range(50)])
    with open_rows(path) as reading:
        first = [batch.frame.rows() for batch in reading]
        assert [batch.frame.rows() for batch in reading] == first
        assert reading.counts.rows == 50


@each_format
def test_stopping_early_leaves_nothing_behind(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = WRITERS[kind](tmp_path, [{"id": str(i), "text": "x"} for i in range(50)])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with open_rows(path) as reading:
        next(iter(reading))
    assert list(scratch.iterdir()) == []


@each_format
def test_a_stream_reads_like_its_file(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path, [{"id": "1", "text": "x"}])
    assert read(io.BytesIO(path.read_bytes()), name="no hint").values == [("1", "x")]


@each_format
def test_a_name_of_another_format_changes_nothing_but_a_note(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path, [{"id": "1", "text": "x"}, {"id": "2", "text": "y"}])
    other = "x.csv" if kind == "parquet" else "x.parquet"
    got = read(path, name=other)
    assert got.values == [("1", "x"), ("2", "y")]
    assert "NAME_MISMATCH" in got.notes


@each_format
def test_more_columns_than_the_limit_are_refused(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path, [{f"c{i}": "x" for i in range(12)}] * 2)
    options = ReadOptions(limits=Limits(columns=10))
    if "json" in kind:
        got = read(path, options)  # keys come record by record: each is judged by itself
        assert {bad.code for bad in got.bad} == {Code.TOO_MANY_COLUMNS}
    else:
        with pytest.raises(FileRefused) as refusal:
            read(path, options)
        assert refusal.value.code == Code.TOO_MANY_COLUMNS


@pytest.mark.parametrize("kind", ["csv", "tsv", "ndjson", "json", "json under a key"])
def test_of_a_truncated_text_all_but_the_last_record_stand(tmp_path: Path, kind: str) -> None:
    table = [{"id": str(i), "text": f'row "{i}" of a table'} for i in range(2_000)]
    path = WRITERS[kind](tmp_path, table)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    got = read(path)
    assert 1_300 < got.counts.good < 1_400
    assert got.values == [tuple(row.values()) for row in table[: got.counts.good]]
    assert len(got.bad) == 1


@pytest.mark.parametrize("kind", [k for k in WRITERS if k not in ("csv", "tsv") and "json" not in k])
def test_a_truncated_container_is_refused(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path, [{"id": str(i), "text": f"row {i}"} for i in range(50 if kind in BINARY else 2_000)])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(FileRefused):
        read(path)


@pytest.mark.parametrize("kind", [kind for kind in WRITERS if "json" not in kind and kind not in BINARY])
def test_no_rows_but_columns(tmp_path: Path, kind: str) -> None:
    got = read(WRITERS[kind](tmp_path, []))
    assert (got.columns, got.values) == (["id", "text"], [])


@pytest.mark.parametrize("kind", ["ndjson", "json", "parquet", "arrow file"])
def test_null_and_empty_are_told_apart_where_the_format_can(tmp_path: Path, kind: str) -> None:
    table = cast("Table", [{"id": "1", "text": None}, {"id": "2", "text": ""}])
    assert read(WRITERS[kind](tmp_path, table)).values == [("1", None), ("2", "")]
