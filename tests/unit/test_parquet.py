"""Parquet and Arrow files as rows."""

import random
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from rowcall.errors import FileRefused
from rowcall.formats.arrow.child import read_arrow, read_parquet
from rowcall.formats.arrow.opening import open_arrow, open_parquet
from rowcall.formats.reading import MIB, Batch, Detected, Fact, Limits, LocalFile, Reading, ReadOptions
from rowcall.model import Code

pa: Any = pyarrow
pq: Any = pyarrow.parquet
ipc: Any = pyarrow.ipc

BASE = Detected(Fact("parquet", "test"))
Writer = Callable[[Any, Path], None]


def write_parquet(table: Any, path: Path, **options: object) -> None:
    pq.write_table(table, path, **options)


def write_file(table: Any, path: Path) -> None:
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_stream(table: Any, path: Path) -> None:
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def opened(path: Path, limits: Limits | None = None) -> Reading:
    """Open a file as its first bytes tell."""
    options = ReadOptions(limits=limits or Limits())
    opener = open_parquet if path.read_bytes()[:4] == b"PAR1" else open_arrow
    return opener(LocalFile(path, path.name), options, BASE)


def all_of(path: Path) -> tuple[list[str], list[tuple[str | None, ...]], list[Batch]]:
    with opened(path) as reading:
        batches = list(reading)
        rows = [row for batch in batches for row in batch.frame.rows()]
        return [column.name for column in reading.columns], rows, batches


def refusal(read: Callable[[str, Limits], Any], path: Path, limits: Limits | None = None) -> FileRefused:
    with pytest.raises(FileRefused) as caught:
        list(read(str(path), limits or Limits()))
    assert caught.value.message
    assert caught.value.hint
    return caught.value


def ints(values: list[int | None], kind: Any) -> Any:
    return pa.array(values, pa.int64()).cast(kind)


NOON = 1709294700123456  # 2024-03-01T12:05:00.123456Z
DECIMALS = [Decimal("1.10"), Decimal("-0.00000001")]
STRUCTS: list[dict[str, object]] = [{"x": 1.5, "y": ['a"ü\n']}, {"x": None, "y": []}]
MAPS = [[("k", 1)], [("k", 1), ("k", 2)]]
DATES = [[datetime(2024, 3, 1)], []]  # noqa: DTZ001 (a column without a zone)

Columns = list[tuple[str, str, Any, list[str | None]]]
COLUMNS: Columns = [
    ("int", "number", pa.array([-(2**63), None], pa.int64()), ["-9223372036854775808", None]),
    ("uint", "number", pa.array([2**64 - 1, 0], pa.uint64()), ["18446744073709551615", "0"]),
    ("double", "number", pa.array([7.0, 0.1]), ["7.0", "0.1"]),
    ("odd double", "number", pa.array([float("nan"), float("-inf")]), ["NaN", "-Infinity"]),
    ("single", "number", pa.array([0.1, 1e20], pa.float32()), ["0.1", "1e+20"]),
    ("decimal", "number", pa.array(DECIMALS, pa.decimal128(30, 8)), ["1.10000000", "-0.00000001"]),
    ("bool", "boolean", pa.array([True, False]), ["true", "false"]),
    ("text", "text", pa.array(["00042", ""]), ["00042", ""]),
    ("large text", "text", pa.array(["ü", None], pa.large_string()), ["ü", None]),
    ("dictionary", "text", pa.array(["TRUE", "1e5"]).dictionary_encode(), ["TRUE", "1e5"]),
    ("date", "date", pa.array([date(1, 1, 1), date(9999, 12, 31)]), ["0001-01-01", "9999-12-31"]),
    ("time", "time", pa.array([time(1, 2, 3), time(23, 59, 59, 500000)]), ["01:02:03", "23:59:59.500000"]),
    ("local", "datetime", ints([NOON, 0], pa.timestamp("us")), ["2024-03-01T12:05:00.123456", "1970-01-01T00:00:00"]),
    ("utc", "datetime", ints([NOON, None], pa.timestamp("us", "UTC")), ["2024-03-01T12:05:00.123456Z", None]),
    ("zoned", "datetime", ints([NOON, None], pa.timestamp("us", "+05:30")), ["2024-03-01T17:35:00.123456+05:30", None]),
    ("unknown zone", "datetime", ints([0, None], pa.timestamp("ms", "No/Where")), ["1970-01-01T00:00:00Z", None]),
    ("nanoseconds", "datetime", ints([NOON, None], pa.timestamp("ns")), ["1970-01-20T18:48:14.700123456", None]),
    ("duration", "text", pa.array([timedelta(seconds=1.5), timedelta(microseconds=-1)]), ["PT1.5S", "PT-0.000001S"]),
    ("binary", "text", pa.array([b"\x00\xff", b""]), ["\\x00ff", "\\x"]),
    ("uuid", "text", pa.array([bytes(range(16)), None], pa.uuid()), ["00010203-0405-0607-0809-0a0b0c0d0e0f", None]),
    ("nothing", "text", pa.nulls(2), [None, None]),
    ("list", "json", pa.array([[1, None], None]), ["[1,null]", None]),
    ("struct", "json", pa.array(STRUCTS), ['{"x":1.5,"y":["a\\"ü\\n"]}', '{"x":null,"y":[]}']),
    ("map", "json", pa.array(MAPS, pa.map_(pa.string(), pa.int8())), ['{"k":1}', '[["k",1],["k",2]]']),
    ("list of dates", "json", pa.array(DATES), ['["2024-03-01T00:00:00"]', "[]"]),
    ("list of decimals", "json", pa.array([DECIMALS[:1], []]), ["[1.10]", "[]"]),
]
UNION = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
ARROW_ONLY: Columns = [
    ("view", "text", pa.array(["x", "é"], pa.string_view()), ["x", "é"]),
    ("runs", "text", pa.RunEndEncodedArray.from_arrays([2], ["x"]), ["x", "x"]),
    ("list view", "json", pa.array([[1, 2], None], pa.list_view(pa.int64())), ["[1,2]", None]),
    ("fixed list", "json", pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), ["[1,2]", None]),
    ("interval", "text", pa.array([(1, 2, 3500000000), None], pa.month_day_nano_interval()), ["P1M2DT3.5S", None]),
    ("union", "json", UNION, ["1", '"b"']),
]


def table_of(columns: Columns) -> Any:
    return pa.table({header: array for header, _, array, _ in columns})


@pytest.mark.parametrize(("write", "columns"), [(write_parquet, COLUMNS), (write_stream, COLUMNS + ARROW_ONLY)])
def test_every_type_becomes_text(tmp_path: Path, write: Writer, columns: Columns) -> None:
    path = tmp_path / "types"
    write(table_of(columns), path)
    with opened(path) as reading:
        assert [(column.header, column.native) for column in reading.columns] == [each[:2] for each in columns]
        (batch,) = reading
        for header, _, _, expected in columns:
            assert batch.frame[header].to_list() == expected, header
        assert [batch.numbers.to_list(), batch.lines.to_list()] == [[1, 2], [1, 2]]
        notes = [note.message for note in reading.detected.notes if note.code == Code.OTHER_DATA]
        assert len(notes) == 1
        assert "binary" in notes[0]


def test_rows_are_numbered_through_all_groups_and_reading_again_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "many"
    write_parquet(pa.table({"n": range(30_000)}), path, row_group_size=12_000)
    with opened(path) as reading:
        for _ in range(2):
            batches = list(reading)
            assert max(batch.frame.height for batch in batches) <= 20_000
            assert [n for batch in batches for n in batch.numbers] == list(range(1, 30_001))
            assert [n for batch in batches for n in batch.frame["n"]] == [str(n) for n in range(30_000)]
            assert (reading.counts.rows, reading.position) == (30_000, path.stat().st_size)


def test_columns_of_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "twins"
    write_parquet(pa.table([[1], [2], [3]], names=["a", "a", ""]), path)
    names, rows, _ = all_of(path)
    assert (len(set(names)), rows) == (3, [("1", "2", "3")])


@pytest.mark.parametrize("write", [write_parquet, write_stream])
def test_rows_whose_text_is_none_are_bad(tmp_path: Path, write: Writer) -> None:
    texts = pa.array([b"ok", b"nul\0", b"bad\xff", None])
    texts = pa.Array.from_buffers(pa.string(), 4, texts.buffers())
    path = tmp_path / "texts"
    write(pa.table({"s": texts, "n": [1, 2, 3, 4]}), path)
    _, rows, batches = all_of(path)
    assert rows == [("ok", "1"), (None, "4")]
    assert [n for batch in batches for n in batch.numbers] == [1, 4]
    bad = [(bad.number, bad.code, bad.cells) for batch in batches for bad in batch.bad]
    assert bad == [
        (2, Code.NUL_CHARACTER, ("nul\0", "2")),
        (3, Code.INVALID_ENCODING, ("bad\ufffd", "3")),
    ]


def test_dates_without_a_text_are_issues(tmp_path: Path) -> None:
    path = tmp_path / "dates"
    days = pa.array([0, 10**9, -(10**7), None], pa.int32()).cast(pa.date32())
    seconds = ints([2**60, 0, 0, 0], pa.timestamp("ms"))
    write_parquet(pa.table({"day": days, "at": seconds}), path)
    _, rows, batches = all_of(path)
    assert [row[0] for row in rows] == ["1970-01-01", None, None, None]
    issues = [issue for batch in batches for issue in batch.issues]
    assert [(issue.number, issue.column, issue.value) for issue in issues if not issue.column] == [
        (2, 0, "1000000000"),
        (3, 0, "-25410-12-06"),
    ]
    assert {issue.code for issue in issues} == {Code.DATE_OUT_OF_RANGE}
    assert [(issue.number, issue.column) for issue in issues if issue.column] == [(1, 1)]


def test_a_file_without_rows_has_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    write_file(pa.table({"a": pa.array([], pa.int64())}), path)
    with opened(path) as reading:
        assert [column.name for column in reading.columns] == ["a"]
        assert sum(batch.frame.height for batch in reading) == 0


def test_a_stream_that_stops_early_is_told(tmp_path: Path) -> None:
    path = tmp_path / "stream"
    write_stream(pa.table({"a": [1, 2]}), path)
    whole = path.read_bytes()
    for data, codes in ((whole[:-8], [Code.TRUNCATED]), (whole + b"more", [Code.TRAILING_BYTES])):
        path.write_bytes(data)
        with opened(path) as reading:
            assert sum(batch.frame.height for batch in reading) == 2
            assert [note.code for note in reading.detected.notes] == codes


# refusals


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(FileRefused) as caught:
        opened(path)
    assert caught.value.code == Code.EMPTY_FILE


def test_a_damaged_file_is_refused_wherever_it_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    write_parquet(pa.table({"a": [f"text {n}" for n in range(5000)]}), path)
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], whole[:8], b"PAR1" + b"\xff" * 100 + b"PAR1"):
        path.write_bytes(data)
        assert refusal(read_parquet, path).code == Code.PARQUET_CORRUPT
    path.write_bytes(b"no arrow at all")
    assert refusal(read_arrow, path).code == Code.PARQUET_CORRUPT


def test_damage_behind_the_first_rows_is_told_when_it_is_met(tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    write_parquet(
        pa.table({"a": [f"text {n}" for n in range(20_000)]}),
        path,
        row_group_size=10_000,
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )
    whole = bytearray(path.read_bytes())
    whole[-3000:-2000] = b"\xff" * 1000
    path.write_bytes(whole)
    with opened(path) as reading, pytest.raises(FileRefused) as caught:
        list(reading)
    assert caught.value.code == Code.PARQUET_CORRUPT
    assert reading.counts.rows >= 10_000


def test_an_encrypted_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "encrypted"
    path.write_bytes(b"PARE" + b"\x15\x04" * 40 + (80).to_bytes(4, "little") + b"PARE")
    assert refusal(read_parquet, path).code == Code.PASSWORD_PROTECTED


def varint(value: int) -> bytes:
    """A number as it stands in a Parquet footer."""
    value *= 2
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def with_rows(data: bytes, rows: int, said: int, *, times: int) -> bytes:
    """A Parquet file whose footer says another number of rows."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8].replace(varint(rows), varint(said), times)
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_numbers_of_rows_that_cannot_be_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "lying"
    write_parquet(pa.table({"a": [7] * 70_001}), path)
    whole = path.read_bytes()
    path.write_bytes(with_rows(whole, 70_001, 10**12, times=-1))
    assert refusal(read_parquet, path).code == Code.PARQUET_TOO_LARGE
    path.write_bytes(with_rows(whole, 70_001, 70_002, times=1))
    assert refusal(read_parquet, path).code == Code.PARQUET_CORRUPT
    path.write_bytes(with_rows(whole, 70_001, 90_001, times=-1))
    assert refusal(read_parquet, path).code == Code.PARQUET_CORRUPT
    write_stream(pa.table({"nothing": pa.nulls(2**31 - 2)}), path)
    assert refusal(read_arrow, path).code == Code.PARQUET_TOO_LARGE


def test_limits_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "wide"
    write_parquet(pa.table({"a": [{"x": 1, "y": 2}], "b": [1]}), path)
    assert refusal(read_parquet, path, Limits(columns=2)).code == Code.TOO_MANY_COLUMNS
    assert refusal(read_parquet, path, Limits(inflated_bytes=10)).code == Code.PARQUET_TOO_LARGE
    assert refusal(read_parquet, path, Limits(json_depth=1)).code == Code.JSON_TOO_DEEP
    write_file(pa.table({"a": [{"x": 1, "y": 2}], "b": [1]}), path)
    assert refusal(read_arrow, path, Limits(columns=2)).code == Code.TOO_MANY_COLUMNS
    write_parquet(pa.table({}), path)
    assert refusal(read_parquet, path).code == Code.NO_RECORDS


def test_a_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    texts = pa.DictionaryArray.from_arrays([0] * 2000, ["x" * MIB])
    write_parquet(pa.table({"a": texts}), path)
    with pytest.raises(FileRefused) as caught, opened(path) as reading:
        list(reading)
    assert caught.value.code == Code.READER_FAILED


FUZZ = """
import resource, sys
from rowcall.errors import FileRefused
from rowcall.formats.arrow.child import read_arrow, read_parquet
from rowcall.formats.reading import MIB, Limits

resource.setrlimit(resource.RLIMIT_DATA, (450 * MIB, 450 * MIB))
for path in sys.argv[1:]:
    try:
        for _ in (read_parquet if path.endswith("parquet") else read_arrow)(path, Limits()):
            pass
    except (FileRefused, MemoryError):
        print("refused")
    else:
        print("read")
"""


def test_damaged_bytes_anywhere_end_in_rows_or_a_refusal(tmp_path: Path) -> None:
    table = table_of(COLUMNS)
    chance = random.Random(5)  # the same files in each run
    paths: list[str] = []
    for name, write in (("parquet", write_parquet), ("file", write_file), ("stream", write_stream)):
        write(table, tmp_path / name)
        whole = (tmp_path / name).read_bytes()
        for number in range(50):
            data = bytearray(whole)
            for _ in range(chance.choice([1, 2, 8])):
                data[chance.randrange(len(data))] = chance.choice([0, 127, 128, 255, chance.randrange(256)])
            path = tmp_path / f"{number}.{name}"
            path.write_bytes(data)
            paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, *paths], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split()) == {"read", "refused"}
