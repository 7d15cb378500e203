"""What was written as JSON comes back, wherever the blocks of the file begin and end."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowcall.formats.json.rows import open_json, open_ndjson

from ..json_reading import read


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("json") / "file"


Value = tuple[str, str | None]  # JSON, and the text that it means
Object = tuple[str, dict[str, str]]

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
TRICKS = st.sampled_from(['a":1', '\\":', "}", "{[", ",", '"', "\\", "\n", "x" * 50])
NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


@st.composite
def json_texts(draw: st.DrawFn) -> Value:
    text = draw(TEXTS | TRICKS)
    return json.dumps(text, ensure_ascii=draw(st.booleans())), text


@st.composite
def json_objects(draw: st.DrawFn, values: st.SearchStrategy[Value], blanks: st.SearchStrategy[str]) -> Object:
    """An object with distinct keys, and its values without the nulls."""
    keys = draw(st.lists(st.sampled_from(["a", "b", "c"]) | TEXTS, max_size=4, unique=True))
    members: list[str] = []
    expected: dict[str, str] = {}
    for key in keys:
        raw, value = draw(values)
        name = json.dumps(key, ensure_ascii=draw(st.booleans()))
        members.append(f"{draw(blanks)}{name}{draw(blanks)}:{draw(blanks)}{raw}")
        if value is not None:
            expected[key] = value
    return "{" + ",".join(members) + draw(blanks) + "}", expected


def json_records(blank: str) -> st.SearchStrategy[Object]:
    """Objects with values of all kinds and these blanks between their parts."""
    blanks = st.text(blank, max_size=3)
    plain = st.one_of(
        json_texts(),
        NUMBERS.map(lambda text: (text, text)),
        st.sampled_from([("true", "true"), ("false", "false"), ("null", None)]),
    )

    def nested(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
        items = st.lists(values.map(lambda value: value[0]), max_size=3).map(lambda items: f"[{','.join(items)}]")
        objects = json_objects(values, blanks).map(lambda pair: pair[0])
        return (items | objects).map(lambda raw: (raw, raw))

    return json_objects(st.recursive(plain, nested, max_leaves=6), blanks)


RECORDS = json_records(" \t\n")
BLOCKS = st.integers(1, 40) | st.none()
relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@relaxed
@given(st.lists(RECORDS, max_size=6), BLOCKS, st.text(" \t\n", max_size=3), st.booleans())
def test_an_array_gives_the_values_that_were_written(
    place: Path, rows: list[Object], block: int | None, blank: str, wrapped: bool
) -> None:
    data = "[" + ",".join(f"{blank}{raw}{blank}" for raw, _ in rows) + "]"
    if wrapped:
        data = f'{{"x":"]}}",\n"data":{data},"y":[]}}'
    outcome = read(place, data, open_json, block=block)
    assert outcome.bad == []
    assert outcome.values == [expected for _, expected in rows]
    assert outcome.raw == [raw.encode() for raw, _ in rows]
    at = 0
    for (raw, _), line in zip(rows, outcome.lines, strict=True):
        at = data.index(raw, at)
        assert line == 1 + data.count("\n", 0, at)
        at += len(raw)


@relaxed
@given(st.lists(RECORDS, min_size=2, max_size=6), BLOCKS, st.text(" \t\n\x1e", max_size=3))
def test_objects_in_a_row_give_the_values_that_were_written(
    place: Path, rows: list[Object], block: int | None, blank: str
) -> None:
    outcome = read(place, blank.join(raw for raw, _ in rows), open_json, block=block)
    assert outcome.bad == []
    assert outcome.values == [expected for _, expected in rows]


Line = tuple[bytes, dict[str, str] | None]
NO_ROWS = [b"", b" ", b"\r", b"[]", b'{"a":1,"a":2}', b'{"a":"\\u0000"}', b'{"a":\xff}', b'{"a":{"b":1,"b":1}}']
NOISE = st.binary(max_size=12).map(lambda noise: noise.replace(b"\n", b"").replace(b"{", b""))
LINES: st.SearchStrategy[Line] = st.one_of(
    json_records(" \t").map(lambda pair: (pair[0].encode(), pair[1])),
    (st.sampled_from(NO_ROWS) | NOISE).map(lambda line: (line, None)),
)


@relaxed
@given(st.lists(LINES, max_size=12), BLOCKS, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_lines_become_rows_or_bad_records_or_blanks(
    place: Path, lines: list[Line], block: int | None, newline: bytes, ended: bool
) -> None:
    data = b'{"a":"first"}\n' + newline.join(line for line, _ in lines) + (newline if ended else b"")
    outcome = read(place, data, open_ndjson, block=block)
    assert outcome.got.rebuilt == data
    assert outcome.values == [{"a": "first"}, *(expected for _, expected in lines if expected is not None)]


@relaxed
@given(st.lists(RECORDS, min_size=1, max_size=5), st.data(), BLOCKS)
def test_a_damaged_document_never_raises_and_never_hides(
    place: Path, rows: list[Object], data: st.DataObject, block: int | None
) -> None:
    text = ("[\n" + ",\n".join(raw for raw, _ in rows) + "\n]").encode()
    at = data.draw(st.integers(1, len(text) - 1))
    damage = data.draw(st.sampled_from([b"", b'"', b"{", b"}", b"[", b"]", b",", b"\\", b"\n", b"\xff", b"\0"]))
    cut = data.draw(st.integers(0, 3))
    outcome = read(place, text[:at] + damage + text[at + cut :], open_json, block=block)
    told = sum(map(len, outcome.raw)) + sum(bad.size for bad in outcome.bad)
    records = len(outcome.rows) + len(outcome.bad)
    between = 2 * records + 6  # commas, line ends, outer brackets
    assert len(text) + len(damage) - cut - told <= between
    if outcome.bad == []:
        assert [raw for raw, _ in rows if raw.encode() not in outcome.raw][1:] == []
