"""Writing workbooks: what comes back from them, and the limits of the format."""

import datetime as dt
import io
import re
import resource
import tempfile
import zipfile
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import openpyxl
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from rowcall.errors import FileRefused
from rowcall.formats.writing import Comments, Refused, WriteColumn, WriteFormat, WriteOptions, Writer, open_writer
from rowcall.model import Code

XLSX = WriteFormat.XLSX
_MARKUP = ["<r>x</r>", "<r>", "</r>", "&amp;", "]]>", "_x0041_", "_x0041", "x0042_", "_", "_x005F_", "\x01", "\x1f"]
_VALUES = ["=1+1", "-5", "'", "00042", "1e5", "TRUE", "\r", "\n", "\t", " ", "😀", "\u202e", "\ufeff", "\x85", "\u2028"]
moment = dt.datetime.fromisoformat
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff")
texts = st.text(characters, max_size=15) | st.lists(st.sampled_from(_MARKUP + _VALUES), max_size=5).map("".join)


def columns(*names: str) -> list[WriteColumn]:
    return [WriteColumn(name=name) for name in names]


def written(
    frame: pl.DataFrame,
    wanted: Sequence[WriteColumn] = (),
    options: WriteOptions | None = None,
    comments: Comments | None = None,
) -> bytes:
    stream = io.BytesIO()
    with open_writer(stream, XLSX, wanted or columns(*frame.columns), options or WriteOptions()) as writer:
        assert writer.write(frame, comments) == ()
    return stream.getvalue()


def sheet_of(data: bytes) -> Any:
    return cast("Any", openpyxl.load_workbook(io.BytesIO(data)).worksheets[0])


def by_openpyxl(data: bytes) -> list[tuple[Any, ...]]:
    return list(sheet_of(data).iter_rows(values_only=True, min_row=2))


def by_calamine(data: bytes) -> list[list[Any]]:
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
    return cast("list[list[Any]]", workbook.get_sheet_by_index(0).to_python(skip_empty_area=False))[1:]


def unescaped(text: str | None) -> str | None:
    """openpyxl leaves the escapes of workbooks as they are."""
    return text and re.sub("_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), text)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(texts | st.none(), texts), min_size=1, max_size=12))
def test_texts_read_back_as_they_were(rows: list[tuple[str | None, str]]) -> None:
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String}, orient="row")
    data = written(frame)
    assert [tuple(map(unescaped, row)) for row in by_openpyxl(data)] == rows
    assert by_calamine(data) == [[a or "", b] for a, b in rows]


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("\ufffe\uffff", "_xFFFE__xFFFF_"),
        ("\0", "_x0000_"),
        ("_x0041_x0042_", "_x005F_x0041_x005F_x0042_"),
        ("_x", "_x"),
    ],
)
def test_what_xml_cannot_hold_is_escaped_as_excel_does(text: str, stored: str) -> None:
    data = written(pl.DataFrame({"a": [text]}))
    assert by_openpyxl(data) == [(stored,)]
    assert unescaped(stored) == text


def test_texts_are_never_formulas_links_or_markup() -> None:
    cells = ["=1+1", "@x", "http://example.com", "<r><t>x</t></r>", "-5", "'=1"]
    sheet = sheet_of(written(pl.DataFrame({"=a": cells})))
    assert [cell.value for cell in sheet["A"]] == ["=a", *cells]
    assert {(cell.data_type, cell.hyperlink, cell.number_format) for cell in sheet["A"]} == {("s", None, "@")}
    assert [cell.quotePrefix for cell in sheet["A"]][1:] == [True, True, False, False, False, True]
    kept = sheet_of(written(pl.DataFrame({"a": cells}), options=WriteOptions(formulas="keep")))
    assert [cell.quotePrefix for cell in kept["A"]][1:] == [False] * 6


def test_null_is_no_cell_and_empty_is_an_empty_text() -> None:
    data = written(pl.DataFrame({"a": ["", None], "b": ["x", "y"]}))
    sheet = zipfile.ZipFile(io.BytesIO(data)).read("xl/worksheets/sheet1.xml").decode()
    assert re.findall(r'<c r="(\w+)"', sheet) == ["A1", "B1", "A2", "B2", "B3"]


def test_typed_values_are_cells_of_their_kind() -> None:
    now = moment("2024-02-29T13:14:15")
    precise = now.replace(microsecond=123_000)
    frame = pl.DataFrame(
        {
            "int": [-7],
            "float": [0.1],
            "decimal": pl.Series([Decimal("12.50")], dtype=pl.Decimal(20, 2)),
            "bool": [True],
            "date": [now.date()],
            "datetime": [now],
            "precise": [precise],
            "time": [now.time()],
        }
    )
    data = written(frame)
    found = {cell.value: cell.number_format for cell in sheet_of(data)[2]}
    assert found == {
        -7: "General",
        0.1: "General",
        12.5: "0.00",
        True: "General",
        moment("2024-02-29"): "yyyy-mm-dd",
        now: "yyyy-mm-dd hh:mm:ss",
        precise: "yyyy-mm-dd hh:mm:ss.000",
        now.time(): "hh:mm:ss",
    }
    assert by_calamine(data)[0][4:6] == [now.date(), now]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.datetimes(moment("1950-01-01"), moment("2079-01-01")), min_size=1, max_size=10))
def test_a_moment_of_our_time_survives_to_the_microsecond(moments: list[dt.datetime]) -> None:
    sheet = zipfile.ZipFile(io.BytesIO(written(pl.DataFrame({"a": moments})))).read("xl/worksheets/sheet1.xml")
    serials = [Fraction(float(serial)) for serial in re.findall(rb"<v>([^<]+)</v>", sheet)]
    micros = [round((serial - 25_569) * 86_400 * 10**6) for serial in serials]
    assert [moment("1970-01-01") + dt.timedelta(microseconds=count) for count in micros] == moments


def test_values_that_a_cell_cannot_hold_exactly_are_text() -> None:
    frame = pl.DataFrame(
        {
            "int": [10**15],
            "decimal": pl.Series([Decimal("12345678901234.50")], dtype=pl.Decimal(20, 2)),
            "float": [float("nan")],
            "date": [dt.date(1900, 2, 28)],
            "datetime": [moment("1899-12-31T01:00")],
            "zoned": pl.Series([moment("2024-07-01T12:00")]).dt.replace_time_zone("Europe/Berlin"),
            "duration": [dt.timedelta(hours=30)],
            "list": [[1, 2]],
        }
    )
    texts = ["1000000000000000", "12345678901234.50", "NaN", "1900-02-28", "1899-12-31T01:00:00"]
    assert by_openpyxl(written(frame)) == [(*texts, "2024-07-01T12:00:00+02:00", "P1DT6H", "[1,2]")]


def test_dates_are_values_from_the_first_to_the_last_day_that_excel_counts_rightly() -> None:
    days = [dt.date(1900, 2, 28), dt.date(1900, 3, 1), dt.date(9999, 12, 31)]
    rows = by_openpyxl(written(pl.DataFrame({"a": days})))
    assert rows == [("1900-02-28",), (moment("1900-03-01"),), (moment("9999-12-31"),)]


def test_native_numbers_are_numbers_where_they_read_back_the_same() -> None:
    numbers = ["0", "7", "-7", "123456789012345", "0.5", "-0.001", "12.25", "99999999999999.5"]
    others = ["00042", "+7", "-0", "1.0", "0.10", "1e5", ".5", "5.", "1234567890123456", "0.00001", "1,5", "", "x", "٣"]
    wanted = [WriteColumn(name="n", native="number")]
    cells = [cell for (cell,) in by_openpyxl(written(pl.DataFrame({"n": [*numbers, *others]}), wanted))]
    assert cells[: len(numbers)] == [float(number) for number in numbers]
    assert cells[len(numbers) :] == others
    assert by_openpyxl(written(pl.DataFrame({"n": numbers}))) == [(number,) for number in numbers]


def test_native_truth_values_are_truth_values() -> None:
    frame = pl.DataFrame({"b": ["true", "false", "TRUE", None], "x": ["1"] * 4})
    wanted = [WriteColumn(name="b", native="boolean"), WriteColumn(name="x")]
    assert [row[0] for row in by_openpyxl(written(frame, wanted))] == [True, False, "TRUE", None]


def test_the_header_is_styled_frozen_and_filtered() -> None:
    sheet = sheet_of(written(pl.DataFrame({"a": ["1", "2"], "b": ["x", "y"]})))
    assert sheet["A1"].font.bold
    assert sheet["A1"].fill.fgColor.rgb == "FFE7EBF0"
    assert (sheet.freeze_panes, sheet.auto_filter.ref, sheet.dimensions) == ("A2", "A1:B3", "A1:B3")


def test_the_header_can_be_left_out() -> None:
    sheet = sheet_of(written(pl.DataFrame({"a": ["1"]}), options=WriteOptions(header=False)))
    assert (sheet["A1"].value, sheet.freeze_panes, sheet.dimensions) == ("1", None, "A1:A1")


def test_a_workbook_without_rows_is_valid() -> None:
    with open_writer(stream := io.BytesIO(), XLSX, columns("a", "b")):
        pass
    assert by_calamine(stream.getvalue()) == []
    assert [cell.value for cell in sheet_of(stream.getvalue())[1]] == ["a", "b"]
    with open_writer(stream := io.BytesIO(), XLSX, columns("a", "b"), WriteOptions(header=False)):
        pass
    assert sheet_of(stream.getvalue())["A1"].value is None


def test_columns_are_as_wide_as_their_texts_within_reason_and_hidden_where_asked() -> None:
    frame = pl.DataFrame({"key": ["k"], "text": ["x" * 30], "long": ["x" * 500]})
    sheet = sheet_of(written(frame, [WriteColumn(name="key", hidden=True), *columns("text", "long")]))
    shapes = sheet.column_dimensions
    assert (shapes["A"].hidden, shapes["B"].hidden) == (True, False)
    assert 30 < shapes["B"].width < 35
    assert 55 < shapes["C"].width < 65


def test_comments_lie_on_their_cells_also_past_refused_rows() -> None:
    frame = pl.DataFrame({"a": ["1", "x" * 40_000, "3"], "b": ["1", "2", "3"]})
    wanted = [WriteColumn(name="a", note="Help <&>"), WriteColumn(name="b")]
    with open_writer(stream := io.BytesIO(), XLSX, wanted) as writer:
        refused = writer.write(frame, {(0, "b"): "first", (1, "b"): "gone", (2, "a"): "third" + "!" * 2_000})
        writer.write(frame.head(1), {(0, "a"): "fourth"})
    assert [refusal.row for refusal in refused] == [1]
    sheet = sheet_of(stream.getvalue())
    found = {cell.coordinate: cell.comment.text for row in sheet for cell in row if cell.comment}
    assert found == {"A1": "Help <&>", "B2": "first", "A3": "third" + "!" * 994 + "…", "A4": "fourth"}


def test_short_choices_are_in_the_rule_and_others_on_a_hidden_sheet() -> None:
    long = tuple(f"choice {index}" for index in range(100))
    wanted = [
        WriteColumn(name="a", choices=("yes", "no & <maybe>")),
        WriteColumn(name="b", choices=long),
        WriteColumn(name="c", choices=("a,b", "<r>c</r>")),
    ]
    data = written(pl.DataFrame({"a": ["yes"], "b": ["choice 1"], "c": ["a,b"]}), wanted)
    rules = {str(rule.sqref): rule.formula1 for rule in sheet_of(data).data_validations.dataValidation}
    assert rules == {
        "A2:A1048576": '"yes,no & <maybe>"',
        "B2:B1048576": "_choices!$A$1:$A$100",
        "C2:C1048576": "_choices!$B$1:$B$2",
    }
    hidden = cast("Any", openpyxl.load_workbook(io.BytesIO(data)).worksheets[1])
    assert hidden.sheet_state == "hidden"
    assert [cell.value for cell in hidden["A"]] == list(long)
    assert [cell.value for cell in hidden["B"]][:3] == ["a,b", "<r>c</r>", None]


def test_a_row_with_too_long_a_cell_is_refused_and_the_others_stand() -> None:
    fits, too_long = "x" * 32_765 + "😀", "x" * 32_766 + "😀"  # Excel counts UTF-16 units
    frame = pl.DataFrame({"a": ["1", fits, too_long, "4", "5"], "b": ["1", "2", "3", too_long * 2, "5"]})
    with open_writer(stream := io.BytesIO(), XLSX, columns("a", "b")) as writer:
        refused = writer.write(frame)
    message = "A cell of a workbook holds at most 32,767 characters; there are more in "
    assert refused == (
        Refused(2, "a", Code.CELL_TOO_LONG, message + "'a' (32,768)."),
        Refused(3, "b", Code.CELL_TOO_LONG, message + "'b' (65,536)."),
    )
    assert writer.rows == 3
    assert by_openpyxl(stream.getvalue()) == [("1", "1"), (fits, "2"), ("5", "5")]


def test_more_rows_than_a_sheet_holds_are_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [None] * 1_048_575}, schema={"a": pl.String})
    writer = open_writer(tmp_path / "x.xlsx", XLSX, columns("a"))
    assert writer.write(frame) == ()
    with pytest.raises(FileRefused, match="1,048,575 rows under its header") as refused:
        writer.write(frame.head(1))
    assert refused.value.code == Code.FORMAT_LIMIT
    assert "CSV" in refused.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("header", ["x", "x" * 40_000])
def test_more_columns_or_header_than_a_sheet_holds_are_refused(header: str, tmp_path: Path) -> None:
    count = 16_385 if header == "x" else 1
    with pytest.raises(FileRefused) as refused:
        open_writer(tmp_path / "x.xlsx", XLSX, columns(*(f"{header}{index}" for index in range(count))))
    assert refused.value.code == Code.FORMAT_LIMIT
    assert list(tmp_path.iterdir()) == []


def test_more_comments_than_memory_should_hold_are_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [None] * 50_001}, schema={"a": pl.String})
    writer = open_writer(tmp_path / "x.xlsx", XLSX, columns("a"))
    with pytest.raises(FileRefused, match="50,000 comments"):
        writer.write(frame, {(row, "a"): "x" for row in range(50_001)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a/b", "x" * 32, "'x", "a\nb"])
def test_a_name_that_no_sheet_can_have_is_refused(name: str) -> None:
    with pytest.raises(FileRefused) as refused:
        open_writer(io.BytesIO(), XLSX, columns("a"), WriteOptions(sheet=name))
    assert refused.value.code == Code.BAD_OPTION


def test_the_temporary_file_has_no_name_that_could_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_writer(io.BytesIO(), XLSX, columns("a")) as writer:
        writer.write(pl.DataFrame({"a": ["x"]}))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows", [10, 1_000])
def test_a_disk_too_full_for_the_temporary_file_is_told(rows: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer = open_writer(io.BytesIO(), XLSX, columns("a"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))  # the system then refuses to make a file longer
    try:
        with pytest.raises(FileRefused, match="A temporary file can't be written: File too large") as refused:
            _write_and_close(writer, pl.DataFrame({"a": ["x" * 100] * rows}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused.value.code == Code.WRITE_FAILED


def _write_and_close(writer: Writer, frame: pl.DataFrame) -> None:
    writer.write(frame)
    writer.close()
