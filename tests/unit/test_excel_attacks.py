"""Workbooks made to break their reader: each ends in a refusal that says why, or in issues."""

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from rowcall.errors import FileRefused
from rowcall.formats.reading import Limits, Skipped
from rowcall.model import Code

from .workbook_files import (
    SHEET,
    compound_file,
    opened,
    parts_of,
    read,
    sheet_xml,
    text_row,
    write_ods,
    write_xls,
    write_zip,
)

HEADER = text_row(1, "id", "name")
BOMB = '<!DOCTYPE b [<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10)) + "]>"


def refused(path: Path, **options: object) -> FileRefused:
    with pytest.raises(FileRefused) as caught:
        read(path, **options)
    return caught.value


def book(tmp_path: Path, parts: Mapping[str, str | bytes]) -> Path:
    return write_zip(tmp_path / "book.xlsx", parts)


def test_two_far_corners_are_streamed(tmp_path: Path) -> None:
    corners = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    with opened(book(tmp_path, parts_of(corners))) as reading:
        (batch,) = list(reading)
    assert batch.lines.to_list() == [1, 1_048_576]
    assert batch.frame.width == 16_384
    assert [(run.kind, run.count) for run in batch.skipped] == [(Skipped.BLANK, 1_048_574)]


@pytest.mark.parametrize("place", ["XFE1", "ZZZ1", "A1048577", "A16777217", "A99999999999", "A0", "1", "a1", "$A$1"])
def test_cells_beyond_the_sheet_are_refused(tmp_path: Path, place: str) -> None:
    error = refused(book(tmp_path, parts_of(f'<row><c r="{place}"><v>1</v></c></row>')))
    assert error.code == Code.WORKBOOK_CORRUPT
    assert place in error.message


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="2"><c r="A2"><v>1</v></c></row><row r="1"><c r="A1"><v>1</v></c></row>',
        '<row r="1"><c r="B1"><v>1</v></c><c r="A1"><v>1</v></c></row>',
        '<row r="1"><c r="A1"><v>1</v></c><c r="A1"><v>2</v></c></row>',
        f'<row r="9">{"<c><v>1</v></c>" * 16_385}</row>',
        '<row r="x"><c><v>1</v></c></row>',
    ],
)
def test_cells_out_of_order_are_refused(tmp_path: Path, rows: str) -> None:
    assert refused(book(tmp_path, parts_of(rows)), header=0).code == Code.WORKBOOK_CORRUPT


@pytest.mark.parametrize("part", [SHEET, "xl/sharedStrings.xml", "xl/workbook.xml", "xl/styles.xml", "_rels/.rels"])
@pytest.mark.parametrize("declared", [BOMB, '<!DOCTYPE b [<!ENTITY a SYSTEM "file:///etc/passwd">]>', "<!DOCTYPE b>"])
def test_declared_entities_are_refused(tmp_path: Path, part: str, declared: str) -> None:
    shared = '<row r="2"><c r="A2" t="s"><v>0</v></c></row>'
    parts = parts_of(HEADER + shared, strings="<si><t>x</t></si>", styles="<s/>")
    parts[part] = declared + parts[part].replace('<?xml version="1.0"?>', "")
    error = refused(book(tmp_path, parts))
    assert error.code == Code.WORKBOOK_CORRUPT
    assert part in error.message


def test_a_document_type_behind_other_markup_is_refused(tmp_path: Path) -> None:
    hidden = f"<!-- -->{BOMB}<?odd?>" + parts_of(HEADER)[SHEET].removeprefix('<?xml version="1.0"?>')
    assert "document type" in refused(book(tmp_path, parts_of(HEADER) | {SHEET: hidden})).message


def test_an_entity_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    assert refused(book(tmp_path, parts_of(text_row(1, "&lol9;")))).code == Code.WORKBOOK_CORRUPT


def test_parts_that_unpack_a_thousandfold_are_refused(tmp_path: Path) -> None:
    parts = parts_of(" " * 70_000_000)
    error = refused(book(tmp_path, parts))
    assert error.code == Code.WORKBOOK_TOO_LARGE
    assert SHEET in error.message


def test_a_workbook_too_large_unpacked_is_refused(tmp_path: Path) -> None:
    error = refused(book(tmp_path, parts_of(HEADER)), limits=Limits(inflated_bytes=1000))
    assert error.code == Code.WORKBOOK_TOO_LARGE


def test_texts_that_many_cells_share_are_counted_each_time(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(1, 1001))
    path = book(tmp_path, parts_of(rows, strings=f"<si><t>{'x' * 10_000}</t></si>"))
    assert refused(path, limits=Limits(inflated_bytes=5_000_000)).code == Code.WORKBOOK_TOO_LARGE


@pytest.mark.parametrize("text", ["<row r='1'>" + " " * 2_000_000, text_row(1, "x" * 2_000_000)])
def test_a_row_without_end_is_refused(tmp_path: Path, text: str) -> None:
    error = refused(book(tmp_path, parts_of(text)), limits=Limits(record_bytes=100_000))
    assert error.code in (Code.WORKBOOK_TOO_LARGE, Code.WORKBOOK_CORRUPT)


@pytest.mark.parametrize("odd", ["<!-- {} -->", "<row odd='{}'/><!-- -->"])
def test_markup_without_end_is_refused(tmp_path: Path, odd: str) -> None:
    parts = parts_of(odd.format("x" * 35_000_000) + HEADER)
    assert refused(book(tmp_path, parts)).code == Code.WORKBOOK_TOO_LARGE


@pytest.mark.parametrize("claimed", [10, 10**9])
def test_a_directory_that_lies_about_sizes_changes_nothing_or_is_refused(tmp_path: Path, claimed: int) -> None:
    path = book(tmp_path, parts_of(HEADER + text_row(2, "1", "Ada")))
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rfind(SHEET.encode()) - 46 + 24, claimed)
    path.write_bytes(data)
    assert refused(path).code in (Code.WORKBOOK_CORRUPT, Code.WORKBOOK_TOO_LARGE)


@pytest.mark.parametrize("twin", ["xl/workbook.xml", "XL/Workbook.xml", "/xl/workbook.xml", "xl\\workbook.xml"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_of_one_name_are_refused(tmp_path: Path, twin: str) -> None:
    path = book(tmp_path, parts_of(HEADER))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(twin, "<workbook/>")
    error = refused(path)
    assert error.code == Code.WORKBOOK_CORRUPT
    assert "xl/workbook.xml" in error.message


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_pictures_of_one_name_do_no_harm(tmp_path: Path) -> None:
    path = book(tmp_path, parts_of(HEADER) | {"xl/media/image1.png": "x"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/media/image1.png", "y")
    assert read(path).columns == ["id", "name"]


def test_overlapping_entries_are_refused(tmp_path: Path) -> None:
    path = book(tmp_path, parts_of(HEADER))
    data = bytearray(path.read_bytes())
    first = data.find(b"PK\1\2")
    struct.pack_into("<I", data, data.find(b"PK\1\2", first + 1) + 42, 1)
    path.write_bytes(data)
    assert "overlaps" in refused(path).message


def test_too_many_entries_are_refused_before_they_are_read(tmp_path: Path) -> None:
    parts = parts_of(HEADER) | {f"junk/{i}": "" for i in range(50)}
    assert refused(book(tmp_path, parts), limits=Limits(zip_entries=20)).code == Code.WORKBOOK_TOO_LARGE
    assert refused(book(tmp_path, parts), limits=Limits(zip_entries=1)).code == Code.WORKBOOK_TOO_LARGE


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_a_workbook_cut_short_is_refused(tmp_path: Path, share: float) -> None:
    path = book(tmp_path, parts_of(HEADER))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert refused(path).code == Code.WORKBOOK_CORRUPT


def test_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    path = book(tmp_path, parts_of(HEADER + "".join(text_row(i, str(i), "x") for i in range(2, 500))))
    data = bytearray(path.read_bytes())
    data[data.find(SHEET.encode()) + len(SHEET) + 100] ^= 4
    path.write_bytes(data)
    assert refused(path).code == Code.WORKBOOK_CORRUPT


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/_rels/workbook.xml.rels", SHEET])
def test_a_missing_part_is_refused(tmp_path: Path, part: str) -> None:
    parts = parts_of(HEADER)
    del parts[part]
    error = refused(book(tmp_path, parts))
    assert error.code == Code.WORKBOOK_CORRUPT
    assert part in error.message


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/_rels/workbook.xml.rels", SHEET, "xl/sharedStrings.xml"])
@pytest.mark.parametrize("content", ["", "<broken", "\0\0\0", "{}"])
def test_a_part_that_is_no_xml_is_refused(tmp_path: Path, part: str, content: str) -> None:
    parts = parts_of(HEADER, strings="") | {part: content}
    assert refused(book(tmp_path, parts)).code in (Code.WORKBOOK_CORRUPT, Code.NO_RECORDS)


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_a_sheet_in_another_encoding_is_refused(tmp_path: Path, encoding: str) -> None:
    sheet = sheet_xml(HEADER).replace('"1.0"', f'"1.0" encoding="{encoding}"').encode(encoding)
    assert refused(book(tmp_path, {**parts_of(HEADER), SHEET: sheet})).code == Code.WORKBOOK_CORRUPT


def test_a_count_of_shared_texts_is_not_believed(tmp_path: Path) -> None:
    parts = parts_of('<row r="1"><c r="A1" t="s"><v>0</v></c></row>', strings="<si><t>x</t></si>")
    parts["xl/sharedStrings.xml"] = parts["xl/sharedStrings.xml"].replace("<sst", '<sst count="4000000000"')
    assert read(book(tmp_path, parts), header=0).values == [("x",)]


def test_names_in_the_archive_are_never_paths(tmp_path: Path) -> None:
    parts = parts_of(HEADER) | {"../../escaped": "x", "/etc/escaped": "x"}
    assert read(book(tmp_path, parts)).columns == ["id", "name"]
    assert [path.name for path in tmp_path.rglob("*")] == ["book.xlsx"]


def test_a_sheet_that_lies_elsewhere_is_not_fetched(tmp_path: Path) -> None:
    parts = parts_of(HEADER)
    name = "xl/_rels/workbook.xml.rels"
    parts[name] = parts[name].replace('"worksheets/sheet1.xml"', '"http://127.0.0.1/x" TargetMode="External"')
    assert refused(book(tmp_path, parts)).code == Code.WORKBOOK_CORRUPT


def test_protected_workbooks_are_refused_as_such(tmp_path: Path) -> None:
    packed = tmp_path / "packed.xlsx"
    packed.write_bytes(compound_file("EncryptedPackage", b"secret"))
    old = write_xls(tmp_path / "old.xls", [(0, 0, "a")], encrypted=True)
    locked = book(tmp_path, parts_of(HEADER))
    data = bytearray(locked.read_bytes())
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        struct.pack_into("<H", data, data.find(mark) + at, 1)
    locked.write_bytes(data)
    assert [refused(path).code for path in (packed, old, locked)] == [Code.PASSWORD_PROTECTED] * 3


def test_an_ods_that_repeats_its_cells_dies_alone(tmp_path: Path) -> None:
    cell = '<table:table-cell table:number-columns-repeated="90" office:value-type="float" office:value="1"/>'
    row = f'<table:table-row table:number-rows-repeated="1000000">{cell}</table:table-row>'
    assert refused(write_ods(tmp_path / "bomb.ods", row)).code == Code.READER_FAILED


def test_a_compound_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.xls"
    path.write_bytes(compound_file("WordDocument", b"Dear reader"))
    assert refused(path).code == Code.WORKBOOK_CORRUPT
