"""Workbooks: which sheet, which header, and what becomes of each row."""

from pathlib import Path

import polars as pl
import pytest

from rowcall.errors import FileRefused
from rowcall.formats.reading import Limits, Skipped, SkippedLines
from rowcall.model import Code

from .workbook_files import opened, parts_of, read, sheet_xml, text_row, write_zip

HEADER = text_row(1, "id", "name")


def numbers(first: int, last: int) -> str:
    return "".join(f'<row r="{i}"><c r="A{i}"><v>{i}</v></c></row>' for i in range(first, last + 1))


def book(tmp_path: Path, *bodies: str, **parts: object) -> Path:
    return write_zip(tmp_path / "book.xlsx", parts_of(*bodies, **parts))  # pyright: ignore[reportArgumentType] (passed on)


def skipped(path: Path) -> list[SkippedLines]:
    with opened(path) as reading:
        return [run for batch in reading for run in batch.skipped]


def test_a_workbook_of_another_program_is_read(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    frame = pl.DataFrame({"id": [1, 2], "name": ["Ada", "00042"], "paid": [12.5, None], "ok": [True, False]})
    frame.write_excel(path, "People")
    got = read(path)
    assert got.columns == ["id", "name", "paid", "ok"]
    assert got.values == [("1", "Ada", "12.5", "true"), ("2", "00042", None, "false")]
    assert (got.numbers, got.lines) == ([1, 2], [2, 3])
    assert got.detected("sheet") == "People"


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    with opened(book(tmp_path, HEADER + numbers(2, 5))) as reading:
        first = [batch.frame.rows() for batch in reading]
        assert first == [batch.frame.rows() for batch in reading]
        assert reading.counts.rows == 4
        assert reading.position == reading.file.size


def test_the_first_visible_sheet_with_rows_is_chosen(tmp_path: Path) -> None:
    rows = HEADER + numbers(2, 3)
    path = book(tmp_path, "", rows, rows, names=("Empty", "Secret", "Data"), states=("visible", "hidden", "visible"))
    got = read(path)
    assert got.detected("sheet") == "Data"
    assert [(s.name, s.rows, s.visible) for s in got.reading.detected.sheets] == [
        ("Empty", 0, True),
        ("Secret", 3, False),
        ("Data", 3, True),
    ]
    assert got.notes == [Code.HIDDEN_SHEETS]


@pytest.mark.parametrize(("wanted", "found"), [("data", "DATA"), ("Data", "Data"), (1, "DATA"), (2, "Data")])
def test_a_sheet_is_chosen_by_name_or_position(tmp_path: Path, wanted: str | int, found: str) -> None:
    path = book(tmp_path, HEADER, HEADER, names=("DATA", "Data"))
    assert read(path, sheet=wanted).detected("sheet") == found


@pytest.mark.parametrize("wanted", ["Nope", 0, 3])
def test_a_missing_sheet_is_refused_with_the_names_of_those_there_are(tmp_path: Path, wanted: str | int) -> None:
    path = book(tmp_path, HEADER, HEADER, names=("One", "Two"))
    with pytest.raises(FileRefused, match=r"'One' .*'Two'") as refused:
        read(path, sheet=wanted)
    assert refused.value.code == Code.SHEET_NOT_FOUND


def test_a_chart_sheet_is_no_sheet_of_data(tmp_path: Path) -> None:
    parts = parts_of(HEADER, HEADER, names=("Chart", "Data"))
    rels = "xl/_rels/workbook.xml.rels"
    parts[rels] = parts[rels].replace("worksheet", "chartsheet", 1)
    got = read(write_zip(tmp_path / "book.xlsx", parts))
    assert [sheet.name for sheet in got.reading.detected.sheets] == ["Data"]


def test_a_workbook_without_rows_is_refused(tmp_path: Path) -> None:
    for options in ({}, {"sheet": 1}):
        with pytest.raises(FileRefused) as refused:
            read(book(tmp_path, "", '<row r="1"><c r="A1" s="1"/></row>', names=("A", "B")), **options)
        assert refused.value.code == Code.NO_RECORDS


def test_a_header_without_rows_gives_columns(tmp_path: Path) -> None:
    got = read(book(tmp_path, HEADER))
    assert got.columns == ["id", "name"]
    assert (got.counts.rows, got.counts.header) == (0, 1)


def test_the_header_may_stand_anywhere(tmp_path: Path) -> None:
    body = (
        text_row(2, "Report of March")
        + '<row r="4"><c r="C4" t="str"><v>id</v></c><c r="D4" t="str"><v>name</v></c></row>'
        + '<row r="5"><c r="C5"><v>1</v></c><c r="D5" t="str"><v>Ada</v></c></row>'
    )
    path = book(tmp_path, body)
    got = read(path)
    assert got.columns == ["id", "name"]
    assert got.values == [("1", "Ada")]
    assert got.lines == [5]
    assert got.detected("header") == "4"
    assert got.reading.detected.preamble == ("Report of March",)
    assert skipped(path) == [
        SkippedLines(Skipped.BLANK, 1, 1),
        SkippedLines(Skipped.PREAMBLE, 2, 1),
        SkippedLines(Skipped.BLANK, 3, 1),
        SkippedLines(Skipped.HEADER, 4, 1),
    ]


def test_the_header_row_may_be_given(tmp_path: Path) -> None:
    path = book(tmp_path, HEADER + text_row(2, "Id", "Name") + numbers(3, 4))
    assert read(path, header=2).columns == ["Id", "Name"]
    none = read(path, header=0)
    assert none.columns == ["column_1", "column_2"]
    assert none.detected("header") == "none"
    assert none.counts.rows == 4
    with pytest.raises(FileRefused) as refused:
        read(path, header=9)
    assert refused.value.code == Code.NO_RECORDS
    with pytest.raises(FileRefused) as refused:
        read(book(tmp_path, HEADER + numbers(3, 4)), header=2)
    assert refused.value.code == Code.BAD_OPTION


def test_numbers_from_the_first_row_on_have_no_header(tmp_path: Path) -> None:
    got = read(book(tmp_path, numbers(1, 5)))
    assert (got.columns, got.counts.rows, got.detected("header")) == (["column_1"], 5, "none")


def test_a_header_repeated_below_is_no_row(tmp_path: Path) -> None:
    got = read(book(tmp_path, HEADER + numbers(2, 3) + text_row(4, "id", "name") + numbers(5, 5)))
    assert (got.counts.rows, got.counts.header) == (3, 2)
    assert got.numbers == [1, 2, 3]
    assert got.lines == [2, 3, 5]


def test_formatted_rows_without_values_are_blank(tmp_path: Path) -> None:
    styled = "".join(
        f'<row r="{i}" ht="15"><c r="A{i}" s="3"/><c r="B{i}" t="str"><f>X{i}</f><v></v></c></row>'
        for i in range(4, 15_004)
    )
    path = book(tmp_path, HEADER + numbers(2, 3) + styled + '<row r="15010"/>')
    got = read(path)
    assert (got.counts.rows, got.counts.blank) == (2, 15_007)
    assert skipped(path)[-1] == SkippedLines(Skipped.BLANK, 4, 15_007)
    assert got.reading.detected.sheets[0].rows == 3


def test_rows_missing_in_the_file_are_blank_and_keep_the_others_in_place(tmp_path: Path) -> None:
    got = read(book(tmp_path, HEADER + numbers(10, 10) + numbers(1_000_000, 1_000_000)))
    assert got.lines == [10, 1_000_000]
    assert got.counts.blank == 8 + 999_989


def test_a_value_beside_the_table_makes_the_row_bad_and_loses_nothing(tmp_path: Path) -> None:
    cells = '<c r="A200"><v>7</v></c><c r="E200" t="str"><v>stray</v></c>'
    body = HEADER + numbers(2, 199) + f'<row r="200">{cells}</row>' + numbers(201, 201)
    got = read(book(tmp_path, body))
    (bad,) = got.bad
    assert (bad.number, bad.line, bad.code) == (199, 200, Code.TOO_MANY_FIELDS)
    assert bad.cells == ("7", "", "", "", "stray")
    assert bad.text == "7\t\t\t\tstray"
    assert "Data!E200" in bad.message
    assert got.numbers[-1] == 200


def test_a_value_left_of_the_table_makes_the_row_bad(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{i}"><c r="C{i}"><v>{i}</v></c></row>' for i in range(2, 200))
    body = f'<row r="1"><c r="C1" t="str"><v>id</v></c></row>{rows}' + numbers(200, 200)
    (bad,) = read(book(tmp_path, body)).bad
    assert bad.cells == ("200", "", "")


def test_empty_columns_around_the_table_are_left_out(tmp_path: Path) -> None:
    body = HEADER.replace("</row>", '<c r="C1" s="1"/><c r="D1" t="str"><v></v></c></row>') + numbers(2, 3)
    assert read(book(tmp_path, body)).columns == ["id", "name"]


def test_columns_with_values_but_no_name_are_kept(tmp_path: Path) -> None:
    body = HEADER + '<row r="2"><c r="A2"><v>1</v></c><c r="C2"><v>3</v></c></row>'
    got = read(book(tmp_path, body))
    assert got.columns == ["id", "name", "column_3"]
    assert got.values == [("1", None, "3")]
    assert got.notes == [Code.BLANK_HEADER]


def test_hidden_rows_are_read_and_told(tmp_path: Path) -> None:
    hidden = '<row r="2" hidden="1"><c r="A2"><v>2</v></c></row><row r="3" hidden="true"><c r="A3"><v>3</v></c></row>'
    got = read(book(tmp_path, HEADER + hidden + numbers(4, 4)))
    assert got.counts.rows == 3
    (note,) = got.reading.detected.notes
    assert note.code == Code.HIDDEN_ROWS
    assert "2" in note.message


def test_merged_cells_are_told(tmp_path: Path) -> None:
    parts = parts_of(HEADER)
    merged = '<mergeCells count="2"><mergeCell ref="A2:B2"/><mergeCell ref="A3:B3"/></mergeCells>'
    parts["xl/worksheets/sheet1.xml"] = sheet_xml(HEADER + numbers(2, 3), after=merged)
    (note,) = read(write_zip(tmp_path / "book.xlsx", parts)).reading.detected.notes
    assert note.code == Code.MERGED_CELLS
    assert ": 2." in note.message


def test_too_many_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileRefused) as refused:
        read(book(tmp_path, HEADER), limits=Limits(columns=1))
    assert refused.value.code == Code.TOO_MANY_COLUMNS


def test_a_header_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileRefused) as refused:
        read(book(tmp_path, HEADER), limits=Limits(header_bytes=5))
    assert refused.value.code == Code.HEADER_TOO_LONG


def test_a_row_too_long_is_a_bad_record(tmp_path: Path) -> None:
    long = "x" * 3_000
    body = HEADER + numbers(2, 3) + text_row(4, "4", long, "beside") + numbers(5, 5)
    got = read(book(tmp_path, body), limits=Limits(record_bytes=2_000))
    assert got.columns == ["id", "name"]
    (bad,) = got.bad
    assert (bad.number, bad.line, bad.code, bad.size) == (3, 4, Code.LINE_TOO_LONG, 3_007)
    assert bad.text.startswith("4\t")
    assert got.lines == [2, 3, 5]


def test_long_texts_are_read(tmp_path: Path) -> None:
    assert read(book(tmp_path, HEADER + text_row(2, "1", "x" * 100_000))).values == [("1", "x" * 100_000)]


def test_wide_sheets_come_in_batches_of_fewer_rows(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{i}"><c r="A{i}"><v>1</v></c><c r="XFD{i}"><v>2</v></c></row>' for i in range(2, 130))
    body = '<row r="1"><c r="A1" t="str"><v>a</v></c><c r="XFD1" t="str"><v>z</v></c></row>' + rows
    with opened(book(tmp_path, body)) as reading:
        heights = [batch.frame.height for batch in reading]
    assert sum(heights) == 128
    assert max(heights) == 61
