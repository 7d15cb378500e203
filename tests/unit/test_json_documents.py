"""JSON documents: where the records lie, and what happens when one is broken."""

import json
from pathlib import Path

import pytest

from rowcall.formats.json import elements
from rowcall.formats.json.rows import open_json
from rowcall.formats.reading import ReadOptions
from rowcall.model import Code

from ..json_reading import limited, opened, read, refused


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "file"


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
        patch.setattr(elements, "BLOCK", 100)
        reading = opened(place, data, open_json, limited(record_bytes=1000))
        assert ["meta" in note.message for note in reading.detected.notes] == [True]
        reading.settle()
        reading.settle()
        assert len(reading.detected.notes) == 2
        assert "total, data" in reading.detected.notes[1].message


def test_an_option_names_the_key(place: Path) -> None:
    data = '{"a":[{"x":1}],"b":[{"x":2}],"c":[1,2],"d":{}}'
    assert read(place, data, open_json, ReadOptions(records="b")).rows == [{"x": "2"}]
    assert read(place, data, open_json, ReadOptions(records="c")).codes == [Code.NOT_AN_OBJECT] * 2
    assert "a, b, c, d" in refused(place, data, open_json, ReadOptions(records="e")).message
    assert refused(place, data, open_json, ReadOptions(records="d")).code == Code.NO_RECORDS
    assert refused(place, "[]", open_json, ReadOptions(records="d")).code == Code.NO_RECORDS


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
    assert outcome.got.numbers == [3]


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


@pytest.mark.parametrize(("block", "size"), [(11, 1000), (1000, 50_000), (200_000, 50_000), (None, 50_000)])
def test_an_element_that_is_too_long_is_passed_by(place: Path, block: int | None, size: int) -> None:
    long = '{"a":["' + "],}" * size + '"]}'
    for data, ends in ((f'[{{"a":1}},{long},{{"a":2}}]', 1), (f'[{{"a":1}},{{"a":2}},\n{long}\n]', 1), (long, 0)):
        outcome = read(place, data, open_json, limited(record_bytes=2 * size), block=block)
        assert outcome.values == [{"a": "1"}, {"a": "2"}] * ends
        assert outcome.codes == [Code.LINE_TOO_LONG]
        assert outcome.bad[0].size in (len(long), len(long) + 1)
        assert long.encode().startswith(outcome.bad[0].raw)
