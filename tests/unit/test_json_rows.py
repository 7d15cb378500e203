"""JSON as rows: values, columns, bad records and lines."""

from pathlib import Path

import pytest

from rowcall.formats.json import elements
from rowcall.formats.json.rows import open_json, open_ndjson
from rowcall.formats.reading import KIB
from rowcall.model import Code

from ..json_reading import Opener, limited, opened, read, refused


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "file"


# values


@pytest.mark.parametrize(
    "number",
    [
        "0.10",
        "1E5",
        "-0",
        "-0.0",
        "1e999",
        "1234567890123456789",
        "9" * 40,
        "9" * 5000,
        "-12345678901234567890",
        "1.0e+00",
    ],
)
def test_numbers_keep_their_digits(place: Path, number: str) -> None:
    line = f'{{"n":{number}}}\n'
    assert read(place, line, open_ndjson).rows == [{"n": number}]
    assert read(place, line * 3, open_ndjson).rows == [{"n": number}] * 3
    assert read(place, f"[{line}]", open_json).rows == [{"n": number}]


def test_values_come_as_text_and_nested_ones_as_they_stand(place: Path) -> None:
    line = r'{"s":"a\"\u00fc\n\\","t":true,"f":false,"z":null,"o":{"k" : [1, 2.50,"x"] },"a":[ ]}'
    for opener, data in ((open_ndjson, line), (open_json, f"[{line}]")):
        row = read(place, data, opener).rows[0]
        nested = {"o": '{"k" : [1, 2.50,"x"] }', "a": "[ ]"}
        assert row == {"s": 'a"ü\n\\', "t": "true", "f": "false", "z": None, **nested}


def test_a_column_may_change_its_kind_from_row_to_row(place: Path) -> None:
    values = ['"text"', "1", "null", "true", '{"a":1}', '"1"', "[]", '"\\u00e9"', "2.50"]
    lines = "".join(f'{{"v":{values[i % len(values)]}}}\n' for i in range(900))
    expected = ["text", "1", None, "true", '{"a":1}', "1", "[]", "é", "2.50"]
    assert [row["v"] for row in read(place, lines, open_ndjson).rows] == expected * 100


def test_keys_are_only_text(place: Path) -> None:
    line = r'{"__proto__":"p","":"e"," ":"b","a":"1","a ":"2","q\"\\":"3","\u00fc":"4","c0":"5"}' + "\n"
    reading = opened(place, line * 50, open_ndjson)
    names = [column.name for column in reading.columns]
    assert len(set(names)) == len(names)
    assert [column.header for column in reading.columns] == ["__proto__", "", " ", "a", "a ", 'q"\\', "ü", "c0"]
    assert [list(batch.frame.row(49)) for batch in reading] == [["p", "e", "b", "1", "2", "3", "4", "5"]]
    assert {note.code for note in reading.detected.notes} == {Code.BLANK_HEADER, Code.SIMILAR_HEADERS}


def test_an_empty_object_is_a_row_without_values(place: Path) -> None:
    assert read(place, "{}\n{}\n", open_ndjson).rows == [{}, {}]
    assert read(place, '{}\n{"a":1}\n', open_ndjson).values == [{}, {"a": "1"}]


# columns


def test_columns_grow_and_never_move(place: Path) -> None:
    lines = [f'{{"a":{i},"k{i // 100}":"x"}}' for i in range(1000)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elements, "BLOCK", 500)
        reading = opened(place, "\n".join(lines), open_ndjson)
        seen = reading.columns
        assert 2 <= len(seen) < 11
        for batch in reading:
            assert reading.columns[: len(seen)] == seen
            assert batch.frame.columns == [column.name for column in reading.columns]
            seen = reading.columns
            if len(seen) == 11:
                break
        assert len(seen) == 11


def test_settling_completes_the_columns_and_says_what_they_hold(place: Path) -> None:
    lines = [
        '{"n":1,"b":true,"j":[1],"t":"x","m":1,"z":null}',
        '{"n":null,"b":null,"j":{},"m":"x"}',
        '{"n":2.5,"late":-1}',
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elements, "BLOCK", 60)
        reading = opened(place, "\n".join(lines), open_ndjson)
        assert {column.native for column in reading.columns} == {None}
        reading.settle()
        natives = {column.header: column.native for column in reading.columns}
        kinds = {"n": "number", "b": "boolean", "j": "json", "t": "text", "m": "text", "z": "text", "late": "number"}
        assert natives == kinds
        assert {batch.frame.width for batch in reading} == {7}


def test_reading_again_starts_anew(place: Path) -> None:
    reading = opened(place, '{"a":1}\n{"b":2}\n', open_ndjson)
    first = [batch.frame.to_dicts() for batch in reading]
    assert [batch.frame.to_dicts() for batch in reading] == first
    assert reading.counts.rows == 2
    assert reading.position == place.stat().st_size


def test_a_record_with_too_many_new_keys_is_bad_and_its_keys_are_forgotten(place: Path) -> None:
    lines = '{"a":1,"b":2}\n{"c":1,"d":2}\n{"c":3}\n{"a":1,"b":2,"c":3,"d":4}\n'
    for _ in range(2):
        outcome = read(place, lines, open_ndjson, limited(columns=3))
        assert outcome.values == [{"a": "1", "b": "2"}, {"c": "3"}]
        assert outcome.codes == [Code.TOO_MANY_COLUMNS] * 2


def test_wide_sparse_records_make_small_batches(place: Path) -> None:
    lines = "".join(f'{{"k{i}":1}}\n' for i in range(1200))
    reading = opened(place, lines, open_ndjson)
    assert max(batch.frame.height * batch.frame.width for batch in reading) <= 1_100_000
    assert reading.counts.good == 1200
    assert len(reading.columns) == 1200


# bad records


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"a":1,"a":2}', Code.DUPLICATE_KEY),
        (b'{"a":1,"a" :2}', Code.DUPLICATE_KEY),
        (b'{"a":1,"\\u0061":2}', Code.DUPLICATE_KEY),
        (b'{"a":{"x":1,"y":2,"x":3}}', Code.DUPLICATE_KEY),
        (b'{"a":[{"x":1,"x":{}}]}', Code.DUPLICATE_KEY),
        (b'{"a":{"x":1,"x" :"\\":"}}', Code.DUPLICATE_KEY),
        (b"[1]", Code.NOT_AN_OBJECT),
        (b'"text"', Code.NOT_AN_OBJECT),
        (b"null", Code.NOT_AN_OBJECT),
        (b'{"a":tru}', Code.INVALID_JSON),
        (b'{"a":NaN}', Code.INVALID_JSON),
        (b'{"a":-Infinity}', Code.INVALID_JSON),
        (b'{"a":01}', Code.INVALID_JSON),
        (b'{"a":"tab\t"}', Code.INVALID_JSON),
        (b"{'a':1}", Code.INVALID_JSON),
        (b'{"a":1} {"a":2}', Code.INVALID_JSON),
        (b'{"a":', Code.INVALID_JSON),
        (b"garbage", Code.INVALID_JSON),
        (b'{"a":"\\u0000"}', Code.NUL_CHARACTER),
        (b'{"a":["\\u0000"]}', Code.NUL_CHARACTER),
        (b'{"\\u0000":1}', Code.NUL_CHARACTER),
        (b'{"a":"\0"}', Code.NUL_CHARACTER),
        (b'{"a":"\\ud800"}', Code.INVALID_ENCODING),
        (b'{"a":["\\udc00\\ud800"]}', Code.INVALID_ENCODING),
        (b'{"a":"\xff"}', Code.INVALID_ENCODING),
        (b'{"a":"\xc0\x80"}', Code.INVALID_ENCODING),
        (b'{"a":["\xed\xa0\x80"]}', Code.INVALID_ENCODING),
        (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", Code.JSON_TOO_DEEP),
        (b"[" * 100_000, Code.JSON_TOO_DEEP),
        (b'{"a":' * 100_000, Code.JSON_TOO_DEEP),
    ],
)
def test_a_bad_record_is_told_and_its_neighbours_stand(place: Path, line: bytes, code: Code) -> None:
    good = b'{"a":"\\ud83d\\ude00 \\\\u0000"}'
    data = b"\n".join([good] * 70 + [line] + [good] * 30)
    for opener in (open_ndjson, open_json):
        whole = data if opener is open_ndjson else b"[" + data.replace(b"\n", b",\n") + b"]"
        outcome = read(place, whole, opener)
        assert outcome.codes == [code]
        assert (outcome.bad[0].number, outcome.bad[0].line) == (71, 71)
        assert outcome.bad[0].raw.strip(b",\n") == line
        assert outcome.bad[0].message
        assert outcome.rows == [{"a": "\U0001f600 \\u0000"}] * 100


def test_nesting_up_to_the_limit_is_read(place: Path) -> None:
    nested = "[" * 63 + "]" * 63
    assert read(place, f'{{"a":{nested}}}', open_ndjson).rows == [{"a": nested}]


def test_the_doubled_key_and_the_place_of_an_error_are_named(place: Path) -> None:
    outcome = read(place, '{"amount":1,"amount":2}\n{"x":nul}', open_ndjson)
    assert "'amount'" in outcome.bad[0].message
    assert "character" in outcome.bad[1].message
    assert "line 2" in outcome.bad[1].message


def test_the_last_line_may_be_cut_off(place: Path) -> None:
    outcome = read(place, '{"a":"1"}\n{"a":"2', open_ndjson)
    assert (outcome.values, outcome.codes) == ([{"a": "1"}], [Code.TRUNCATED])
    assert read(place, '{"a":"1"}\n{"a":"2"}', open_ndjson).codes == []


def test_strings_that_look_like_keys_hide_no_doubled_key(place: Path) -> None:
    tricky = r'{"a":"\":","b":"{\"x\": 1}","c":"\\\":","d":" : \"a\" : "}'
    doubled = r'{"a":"\":","b":1,"c":2,"b":"x"}'
    outcome = read(place, f"{tricky}\n" * 40 + doubled, open_ndjson)
    assert len(outcome.rows) == 40
    assert outcome.codes == [Code.DUPLICATE_KEY]


# lines


def test_every_byte_of_the_lines_is_accounted_for(place: Path) -> None:
    data = b'\n \t\r\n{"a":1}\r\n\n\nbad\n{"a":\xff}\n  {"a":2} \n\x0b\n\r\n{"a":3}'
    outcome = read(place, b"\xef\xbb\xbf" + data, open_ndjson)
    assert outcome.values == [{"a": "1"}, {"a": "2"}, {"a": "3"}]
    assert outcome.lines == [3, 8, 11]
    assert [line for line, number, _ in outcome.got.pieces if not number] == [1, 4, 10]
    assert outcome.got.counts.blank == 5
    assert outcome.got.rebuilt == data


@pytest.mark.parametrize("block", [7, 1000, 200_000, None])
def test_a_line_that_is_too_long_is_passed_by(place: Path, block: int | None) -> None:
    long = b'{"a":"' + b"x" * 150_000 + b'"}\n'
    data = b'{"a":1}\n' + long + b'{"a":2}\n' + long[:-1]
    outcome = read(place, data, open_ndjson, limited(record_bytes=100_000), block=block)
    assert outcome.values == [{"a": "1"}, {"a": "2"}]
    assert outcome.codes == [Code.LINE_TOO_LONG] * 2
    assert [(bad.line, bad.size) for bad in outcome.bad] == [(2, len(long)), (4, len(long) - 1)]
    assert all(0 < len(bad.raw) <= 64 * KIB and long.startswith(bad.raw) for bad in outcome.bad)


@pytest.mark.parametrize("opener", [open_ndjson, open_json])
@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(place: Path, data: bytes, opener: Opener) -> None:
    assert refused(place, data, opener).code == Code.EMPTY_FILE


def test_blank_lines_alone_give_no_rows(place: Path) -> None:
    outcome = read(place, "\n\n  \n", open_ndjson)
    assert outcome.rows == []
    assert outcome.got.counts.blank == 3
