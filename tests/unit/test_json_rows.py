"""JSON as rows: newline-delimited records and documents."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowcall.errors import FileRefused
from rowcall.formats import json_elements
from rowcall.formats.json_rows import open_json, open_ndjson
from rowcall.formats.reading import (
    KIB,
    BadRecord,
    Batch,
    Detected,
    Fact,
    Limits,
    LocalFile,
    Reading,
    ReadOptions,
    SkippedLines,
)
from rowcall.model import Code

Opener = Callable[[LocalFile, ReadOptions, Detected], Reading]
BASE = Detected(Fact("json", "test"))


@dataclass
class Outcome:
    """All that came out of a file."""

    rows: list[dict[str, str | None]] = field(default_factory=list[dict[str, str | None]])
    numbers: list[int] = field(default_factory=list[int])
    lines: list[int] = field(default_factory=list[int])
    bad: list[BadRecord] = field(default_factory=list[BadRecord])
    skipped: list[SkippedLines] = field(default_factory=list[SkippedLines])
    raw: list[bytes] = field(default_factory=list[bytes])

    def add(self, batch: Batch, headers: list[str]) -> None:
        self.rows += [dict(zip(headers, row, strict=True)) for row in batch.frame.iter_rows()]
        self.numbers += batch.numbers.to_list()
        self.lines += batch.lines.to_list()
        self.bad += batch.bad
        self.skipped += batch.skipped
        self.raw += list(batch.raw)

    @property
    def codes(self) -> list[Code]:
        return [bad.code for bad in self.bad]

    @property
    def values(self) -> list[dict[str, str]]:
        """The rows without their nulls."""
        return [{key: value for key, value in row.items() if value is not None} for row in self.rows]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("json") / "file"


def opened(place: Path, data: bytes | str, opener: Opener, **options: object) -> Reading:
    place.write_bytes(data if isinstance(data, bytes) else data.encode())
    return opener(LocalFile(place, "file"), ReadOptions(**options), BASE)  # pyright: ignore[reportArgumentType] (any option)


def read(place: Path, data: bytes | str, opener: Opener, *, block: int | None = None, **options: object) -> Outcome:
    outcome = Outcome()
    with pytest.MonkeyPatch.context() as patch:
        if block is not None:
            patch.setattr(json_elements, "BLOCK", block)
        with opened(place, data, opener, **options) as reading:
            for batch in reading:
                outcome.add(batch, [column.header for column in reading.columns[: batch.frame.width]])
            assert reading.counts.rows == len(outcome.rows) + len(outcome.bad)
    numbers = sorted([*outcome.numbers, *(bad.number for bad in outcome.bad)])
    assert numbers == list(range(1, len(numbers) + 1))
    return outcome


def refused(place: Path, data: bytes | str, opener: Opener, **options: object) -> FileRefused:
    with pytest.raises(FileRefused) as caught:
        read(place, data, opener, **options)
    assert caught.value.message
    assert caught.value.hint
    return caught.value


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
        "-12345678901234567890123",
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
        patch.setattr(json_elements, "BLOCK", 500)
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
        patch.setattr(json_elements, "BLOCK", 60)
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
        outcome = read(place, lines, open_ndjson, limits=Limits(columns=3))
        assert outcome.values == [{"a": "1", "b": "2"}, {"c": "3"}]
        assert outcome.codes == [Code.TOO_MANY_COLUMNS] * 2


def test_wide_sparse_records_make_small_batches(place: Path) -> None:
    lines = "".join(f'{{"k{i}":1}}\n' for i in range(3000))
    reading = opened(place, lines, open_ndjson)
    assert max(batch.frame.height * batch.frame.width for batch in reading) <= 1_500_000
    assert reading.counts.good == 3000
    assert len(reading.columns) == 3000


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
    assert [(run.line, run.count) for run in outcome.skipped] == [(1, 2), (4, 2), (10, 1)]
    assert in_file_order(outcome) == data


def in_file_order(outcome: Outcome) -> bytes:
    pieces = [*zip(outcome.lines, outcome.raw, strict=True), *((bad.line, bad.raw) for bad in outcome.bad)]
    pieces += [(run.line, run.raw) for run in outcome.skipped]
    return b"".join(raw for _, raw in sorted(pieces))


@pytest.mark.parametrize("block", [7, 1000, 200_000, None])
def test_a_line_that_is_too_long_is_passed_by(place: Path, block: int | None) -> None:
    long = b'{"a":"' + b"x" * 150_000 + b'"}\n'
    data = b'{"a":1}\n' + long + b'{"a":2}\n' + long[:-1]
    outcome = read(place, data, open_ndjson, block=block, limits=Limits(record_bytes=100_000))
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
    assert sum(run.count for run in outcome.skipped) == 3


# documents


def test_records_under_a_key_are_found_and_the_rest_is_told(place: Path) -> None:
    data = '{"meta":{"data":[{"no":1}]},"errors":[],"data":[{"a":1},\n {"a":2}],"links":[]}'
    reading = opened(place, data, open_json)
    assert reading.detected.records is not None
    assert reading.detected.records.value == "data"
    assert "meta, errors, links" in reading.detected.notes[0].message
    assert [batch.frame.to_dicts() for batch in reading] == [[{"a": "1"}, {"a": "2"}]]
    assert [note.code for note in reading.detected.notes] == [Code.OTHER_DATA]


def test_keys_behind_a_long_array_are_told_when_it_was_read(place: Path) -> None:
    data = '{"meta":1,"data":[' + ",".join(['{"a":1}'] * 500) + '],"total":500,"data":"again"}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_elements, "BLOCK", 100)
        reading = opened(place, data, open_json, limits=Limits(record_bytes=1000))
        assert ["meta" in note.message for note in reading.detected.notes] == [True]
        reading.settle()
        reading.settle()
        assert len(reading.detected.notes) == 2
        assert "total, data" in reading.detected.notes[1].message


def test_an_option_names_the_key(place: Path) -> None:
    data = '{"a":[{"x":1}],"b":[{"x":2}],"c":[1,2],"d":{}}'
    assert read(place, data, open_json, records="b").rows == [{"x": "2"}]
    assert read(place, data, open_json, records="c").codes == [Code.NOT_AN_OBJECT] * 2
    assert "a, b, c, d" in refused(place, data, open_json, records="e").message
    assert refused(place, data, open_json, records="d").code == Code.NO_RECORDS
    assert refused(place, "[]", open_json, records="d").code == Code.NO_RECORDS


def test_one_object_is_one_row(place: Path) -> None:
    assert read(place, '{"a":1,"b":{"c":[1]}}', open_json).rows == [{"a": "1", "b": '{"c":[1]}'}]


@pytest.mark.parametrize("between", ["\n", "", "\n\n  ", "\n\x1e"])
def test_objects_may_follow_each_other(place: Path, between: str) -> None:
    objects = ['{\n  "a": 1,\n  "b": [{"x": 1}]\n}', '{"a":"}"}', '{"a":"\\"{"}']
    outcome = read(place, between.join(objects), open_json)
    assert [row["a"] for row in outcome.rows] == ["1", "}", '"{']
    assert outcome.raw == [text.encode() for text in objects]


@pytest.mark.parametrize("data", ["[]", " [ \n ] ", '{"data":[]}', '{"a":1,"data":[ ]}'])
def test_an_empty_array_has_no_rows(place: Path, data: str) -> None:
    outcome = read(place, data, open_json)
    assert (outcome.rows, outcome.bad) == ([], [])


@pytest.mark.parametrize("data", ["42", '"text"', "null", "garbage", "<html>"])
def test_a_document_without_records_is_refused(place: Path, data: str) -> None:
    error = refused(place, data, open_json)
    assert error.code == Code.NO_RECORDS
    assert data in error.message


def test_a_blank_document_is_refused(place: Path) -> None:
    assert refused(place, " \n ", open_json).code == Code.EMPTY_FILE


def test_elements_that_are_no_objects_are_bad(place: Path) -> None:
    outcome = read(place, '[1,"x",{"a":1},null,[{}],true]', open_json)
    assert outcome.codes == [Code.NOT_AN_OBJECT] * 5
    assert outcome.numbers == [3]


@pytest.mark.parametrize(
    ("data", "good", "codes"),
    [
        ('[{"a":1},{"a":2', ["1"], [Code.TRUNCATED]),
        ('[{"a":1},{"a":2}', ["1", "2"], [Code.TRUNCATED]),
        ('[{"a":1},', ["1"], [Code.TRUNCATED]),
        ('{"d":[{"a":1}]', ["1"], [Code.TRUNCATED]),
        ('[{"a":1},]', ["1"], [Code.INVALID_JSON]),
        ('[{"a":1},,{"a":2}]', ["1", "2"], [Code.INVALID_JSON]),
        ('[{"a":1}] {"a":2}', ["1"], [Code.INVALID_JSON]),
        ('[{"a":1}]]', ["1"], [Code.INVALID_JSON]),
        ('{"d":[{"a":1}]} x', ["1"], [Code.INVALID_JSON]),
        ('[{"a":1},{"a":2}}', ["1"], [Code.INVALID_JSON]),
    ],
)
@pytest.mark.parametrize("block", [1, None])
def test_a_broken_document_keeps_its_good_records(
    place: Path, data: str, good: list[str], codes: list[Code], block: int | None
) -> None:
    outcome = read(place, data, open_json, block=block)
    assert [row["a"] for row in outcome.rows] == good
    assert outcome.codes == codes


@pytest.mark.parametrize(
    "broken",
    [
        '{"a":"2},',
        '{"a":2",',
        '{"a":"2",',
        '{"a":"2"}},',
        '{"a":"2"}',
        '{"a":"2\n2"},',
        '{"a":["2"},',
        '{"a":"2"]},',
        '{"a":"2"} "',
    ],
)
@pytest.mark.parametrize("indent", ["", "  "])
@pytest.mark.parametrize("block", [3, 50, None])
def test_splitting_goes_on_at_the_next_record_that_opens_a_line(
    place: Path, broken: str, indent: str, block: int | None
) -> None:
    lines = ['{"a":"0"},', '{"a":"1"},', broken, '{"a":"3"},', '{"a":"4"}']
    data = "[\n" + "".join(f"{indent}{line}\n" for line in lines) + "]"
    outcome = read(place, data, open_json, block=block)
    assert [row["a"] for row in outcome.rows] == ["0", "1", "3", "4"]
    assert outcome.codes == [Code.INVALID_JSON]
    assert (outcome.bad[0].number, outcome.bad[0].line) == (3, 4)
    assert outcome.bad[0].text.strip() in f"{broken}\n"
    assert outcome.lines[-1] == 6 + broken.count("\n")


def test_pretty_printed_records_go_on_behind_a_broken_one(place: Path) -> None:
    records = [json.dumps({"id": i, "items": [{"n": 1}, {"n": 2}]}, indent=2) for i in range(300)]
    records[100] = records[100].replace("}", "", 1)
    records[200] = records[200].replace('"items"', '"items', 1)
    data = "[\n" + ",\n".join(records) + "\n]"
    data = data.replace("\n", "\n  ")
    outcome = read(place, data, open_json, block=2000)
    assert [row["id"] for row in outcome.rows] == [str(i) for i in range(300) if i not in (100, 200)]
    assert [bad.number for bad in outcome.bad] == [101, 201]


def test_a_break_without_lines_is_one_loss_up_to_the_end(place: Path) -> None:
    records = [f'{{"a":"{i}"}}' for i in range(100)]
    broken = ",".join([*records[:50], '{"a":"50}', *records[51:]])
    for block in (100, None):
        outcome = read(place, f"[{broken}]", open_json, block=block)
        assert [row["a"] for row in outcome.rows] == [str(i) for i in range(50)]
        assert outcome.codes == [Code.INVALID_JSON]
        assert outcome.bad[0].size == len(broken) + 1 - len(",".join(records[:50]) + ",")


@pytest.mark.parametrize("block", [11, 1000, 200_000, None])
def test_an_element_that_is_too_long_is_passed_by(place: Path, block: int | None) -> None:
    long = '{"a":["' + "],}" * 50_000 + '"]}'
    for data, ends in ((f'[{{"a":1}},{long},{{"a":2}}]', 1), (f'[{{"a":1}},{{"a":2}},\n{long}\n]', 1), (long, 0)):
        outcome = read(place, data, open_json, block=block, limits=Limits(record_bytes=100_000))
        assert outcome.values == [{"a": "1"}, {"a": "2"}] * ends
        assert outcome.codes == [Code.LINE_TOO_LONG]
        assert outcome.bad[0].size in (len(long), len(long) + 1)
        assert long.encode().startswith(outcome.bad[0].raw)


# properties

BLANKS = st.text(" \t\n", max_size=3)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


@st.composite
def strings(draw: st.DrawFn) -> tuple[str, str]:
    """A JSON string and its text."""
    text = draw(TEXTS | st.sampled_from(['a":1', '\\":', "}", "{[", ",", '"', "\\", "\n", "x" * 50]))
    return json.dumps(text, ensure_ascii=draw(st.booleans())), text


@st.composite
def nested(draw: st.DrawFn) -> str:
    inner = st.deferred(lambda: values).map(lambda value: value[0])
    if draw(st.booleans()):
        return "[" + draw(BLANKS) + ",".join(draw(st.lists(inner, max_size=3))) + draw(BLANKS) + "]"
    return draw(objects(inner.map(lambda raw: (raw, None))))[0]


values: st.SearchStrategy[tuple[str, str | None]] = st.one_of(
    strings(),
    NUMBERS.map(lambda text: (text, text)),
    st.sampled_from([("true", "true"), ("false", "false"), ("null", None)]),
    nested().map(lambda raw: (raw, raw)),
)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[tuple[str, str | None]]) -> tuple[str, dict[str, str]]:
    """A JSON object with distinct keys, and its values as text without the nulls."""
    keys = draw(st.lists(st.sampled_from(["a", "b", "c"]) | TEXTS, max_size=4, unique=True))
    ascii_ = draw(st.booleans())
    members: list[str] = []
    expected: dict[str, str] = {}
    for key in keys:
        raw, value = draw(inner)
        members.append(f"{draw(BLANKS)}{json.dumps(key, ensure_ascii=ascii_)}{draw(BLANKS)}:{draw(BLANKS)}{raw}")
        if value is not None:
            expected[key] = value
    return "{" + ",".join(members) + draw(BLANKS) + "}", expected


documents = st.lists(objects(values), max_size=6)
blocks = st.integers(1, 40) | st.none()
relaxed = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


@relaxed
@given(documents, blocks, st.lists(BLANKS, min_size=7, max_size=7), st.booleans())
def test_an_array_gives_the_values_that_were_written(
    place: Path, rows: list[tuple[str, dict[str, str]]], block: int | None, blanks: list[str], wrapped: bool
) -> None:
    text = "[" + ",".join(f"{blank}{raw}{blank}" for (raw, _), blank in zip(rows, blanks, strict=False)) + "]"
    data = f'{{"x":"]}}",\n"data":{text},"y":[]}}' if wrapped else text
    outcome = read(place, data, open_json, block=block)
    assert outcome.bad == []
    assert outcome.values == [expected for _, expected in rows]
    assert outcome.raw == [raw.encode() for raw, _ in rows]
    starts = [data.encode()[: data.encode().index(raw)].count(b"\n") + 1 for raw in outcome.raw[:1]]
    assert outcome.lines[:1] == starts


@relaxed
@given(st.lists(objects(values), min_size=2, max_size=6), blocks, BLANKS)
def test_objects_in_a_row_give_the_values_that_were_written(
    place: Path, rows: list[tuple[str, dict[str, str]]], block: int | None, blank: str
) -> None:
    outcome = read(place, blank.join(raw for raw, _ in rows), open_json, block=block)
    assert outcome.bad == []
    assert outcome.values == [expected for _, expected in rows]


LINES = st.one_of(
    objects(values).map(lambda pair: pair[0].replace("\n", " ").encode()),
    st.sampled_from(
        [b"", b" ", b"\r", b"[]", b'{"a":1,"a":2}', b'{"a":"\\u0000"}', b'{"a":\xff}', b'{"a":{"b":1,"b":1}}']
    ),
    st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")),
)


@relaxed
@given(st.lists(LINES, min_size=1, max_size=12), blocks, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_lines_become_rows_or_bad_records_or_blanks(
    place: Path, lines: list[bytes], block: int | None, newline: bytes, ended: bool
) -> None:
    data = newline.join(lines) + (newline if ended else b"")
    if data in (b"", b"\xef\xbb\xbf") or data.startswith(b"\xef\xbb\xbf"):
        return
    outcome = read(place, data, open_ndjson, block=block)
    assert in_file_order(outcome) == data
    expected = [row for line in data.split(b"\n") if (row := oracle(line)) is not None]
    assert outcome.values == expected


def oracle(line: bytes) -> dict[str, str] | None:
    """A line as the standard library reads it, where it is an object with distinct keys and proper text."""

    def distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        text = line.decode()
        found = json.loads(text, object_pairs_hook=distinct, parse_int=str, parse_float=str, parse_constant=int)
        json.dumps(found, ensure_ascii=False).encode()
    except ValueError:
        return None
    if not isinstance(found, dict) or "\\u0000" in text.replace("\\\\", ""):
        return None
    decoder = json.JSONDecoder()
    row: dict[str, str] = {}
    for key, value in json.loads(text).items():
        if value is None:
            continue
        row[key] = str(found[key]) if isinstance(found[key], str) else ("true" if value is True else "false")
        if isinstance(value, dict | list):
            row[key] = raw_value(text, key, decoder)
    return row


def raw_value(text: str, wanted: str, decoder: json.JSONDecoder) -> str:
    """The text of a nested value of an object, found by walking over its members."""
    at = text.index("{") + 1
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r,"))
        key, at = decoder.raw_decode(text, at)
        at = text.index(":", at) + 1
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r"))
        _, end = decoder.raw_decode(text, at)
        if key == wanted:
            return text[at:end]
        at = end


@relaxed
@given(st.lists(objects(values), min_size=1, max_size=5), st.data(), blocks)
def test_a_damaged_document_never_raises_and_never_invents(
    place: Path, rows: list[tuple[str, dict[str, str]]], data: st.DataObject, block: int | None
) -> None:
    text = ("[\n" + ",\n".join(raw for raw, _ in rows) + "\n]").encode()
    at = data.draw(st.integers(0, len(text) - 1))
    damage = data.draw(st.sampled_from([b"", b'"', b"{", b"}", b"[", b"]", b",", b"\\", b"\n", b"\xff", b"\0"]))
    cut = data.draw(st.integers(0, 3))
    damaged = text[:at] + damage + text[at + cut :]
    try:
        outcome = read(place, damaged, open_json, block=block)
    except FileRefused:
        return
    told = sum(map(len, outcome.raw)) + sum(bad.size for bad in outcome.bad)
    assert len(damaged) - told <= 2 * (len(outcome.rows) + len(outcome.bad)) + 6  # commas, line ends, outer brackets
    try:
        whole = json.loads(damaged)
    except ValueError:
        return
    if isinstance(whole, list):
        assert len(outcome.rows) + len(outcome.bad) == len(whole)
