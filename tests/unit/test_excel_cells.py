"""What a cell of a workbook becomes, the same by every way of reading it."""

import re
from pathlib import Path

import pytest

from rowcall.formats.reading import Limits
from rowcall.formats.workbook.xlsx_cells import fast_cells
from rowcall.formats.workbook.xlsx_parts import Book
from rowcall.model import Code

from ..reading import Rows
from .workbook_files import SHEET, SPACES, parts_of, read, styles_of, write_zip

FORMATS = (
    "yyyy-mm-dd",
    "d/m/yy h:mm",
    "h:mm:ss AM/PM",
    "[h]:mm",
    "0.00",
    "&quot;on &quot;dddd",
    "[$-409]mmm d, yyyy;@",
    "#,##0 &quot;days&quot;",
    "mm:ss.0",
)
DATE, DATETIME, TIME, ELAPSED, MONEY, WEEKDAY, LOCALE, DAYS, STOPWATCH = range(1, 10)

STRINGS = [
    "<si><t>plain</t></si>",
    '<si><t xml:space="preserve"> kept </t></si>',
    "<si><r><t>rich</t></r><r><rPr><b/></rPr><t> text</t></r></si>",
    "<si><t>東京</t><rPh sb='0' eb='2'><t>トウキョウ</t></rPh><phoneticPr fontId='1'/></si>",
    "<si><t>a &amp;lt; b &lt; &#233; &#x1F600;</t></si>",
    "<si><t>line_x000D_\nbreak _x005F_x0041_ _xD83D__xDE00_ _x0000_</t></si>",
    "<si><t/></si>",
]

# what is stored, and what it reads as; None is a null, a code is an issue (and a null)
CELLS: list[tuple[str, str | Code | None]] = [
    ("<v>7</v>", "7"),
    ("<v>7.0</v>", "7"),
    ("<v>-0.1</v>", "-0.1"),
    ("<v>0.10000000000000001</v>", "0.1"),
    ("<v>1.0999999999999999E-2</v>", "0.011"),
    ("<v>1E+21</v>", "1e+21"),
    ("<v>1.5E+3</v>", "1500"),
    ("<v>1234567890123456789</v>", "1234567890123456789"),
    ("<v>3.3333333333333335</v>", "3.3333333333333335"),
    ("<v>-0</v>", "0"),
    ("<v>abc</v>", Code.CELL_BROKEN),
    ("<v>NaN</v>", Code.CELL_BROKEN),
    ("<v></v>", None),
    ("<v/>", None),
    ("", None),
    (f's="{MONEY}"><v>2.5</v>', "2.5"),
    (f's="{DAYS}"><v>3</v>', "3"),
    ('s="999"><v>3</v>', "3"),
    (f's="{DATE}"><v>45352</v>', "2024-03-01"),
    (f's="{DATE}"><v>45352.5</v>', "2024-03-01T12:00:00"),
    (f's="{DATE}" t="n"><v>1</v>', "1900-01-01"),
    (f's="{DATE}"><v>59</v>', "1900-02-28"),
    (f's="{DATE}"><v>60</v>', Code.DATE_OUT_OF_RANGE),
    (f's="{DATE}"><v>61</v>', "1900-03-01"),
    (f's="{DATE}"><v>0</v>', Code.DATE_OUT_OF_RANGE),
    (f's="{DATE}"><v>-1</v>', Code.DATE_OUT_OF_RANGE),
    (f's="{DATE}"><v>2958465</v>', "9999-12-31"),
    (f's="{DATE}"><v>2958466</v>', Code.DATE_OUT_OF_RANGE),
    (f's="{DATE}"><v>1E+300</v>', Code.DATE_OUT_OF_RANGE),
    (f's="{DATE}" t="s"><v>0</v>', "plain"),
    (f's="{DATETIME}"><v>45352</v>', "2024-03-01T00:00:00"),
    (f's="{DATETIME}"><v>45352.572916666664</v>', "2024-03-01T13:45:00"),
    (f's="{DATETIME}"><v>45352.5729224537</v>', "2024-03-01T13:45:00.500"),
    (f's="{TIME}"><v>0.5729166666666666</v>', "13:45:00"),
    (f's="{TIME}"><v>0</v>', "00:00:00"),
    (f's="{TIME}"><v>45352.25</v>', "2024-03-01T06:00:00"),
    (f's="{STOPWATCH}"><v>0.5</v>', "12:00:00"),
    (f's="{ELAPSED}"><v>1.1458333333333333</v>', "27:30:00"),
    (f's="{ELAPSED}"><v>-0.5</v>', "-12:00:00"),
    (f's="{WEEKDAY}"><v>45352</v>', "2024-03-01"),
    (f's="{LOCALE}"><v>45352</v>', "2024-03-01"),
    ('t="d"><v>2024-03-01</v>', "2024-03-01"),
    ('t="b"><v>1</v>', "true"),
    ('t="b"><v>0</v>', "false"),
    ('t="b"><v>2</v>', Code.CELL_BROKEN),
    ('t="e"><v>#N/A</v>', Code.CELL_ERROR),
    ('t="e"><f>1/0</f><v>#DIV/0!</v>', Code.CELL_ERROR),
    ("<f>A1&amp;1</f><v></v>", Code.NOT_CALCULATED),
    ("<f>A1</f>", Code.NOT_CALCULATED),
    ('t="n"><f t="shared" si="0"/><v/>', Code.NOT_CALCULATED),
    ('t="odd"><v>1</v>', Code.CELL_BROKEN),
    ('t="s"><v>0</v>', "plain"),
    ('t="s"><v>1</v>', " kept "),
    ('t="s"><v>2</v>', "rich text"),
    ('t="s"><v>3</v>', "東京"),
    ('t="s"><v>4</v>', "a &lt; b < é 😀"),
    ('t="s"><v>5</v>', "line\r\nbreak _x0041_ 😀 _x0000_"),
    ('t="s"><v>6</v>', ""),
    ('t="s"><v>-1</v>', Code.CELL_BROKEN),
    ('t="s"><v>7</v>', Code.CELL_BROKEN),
    ('t="s"><v>99999999999999999999</v>', Code.CELL_BROKEN),
    ('t="str"><v>00042</v>', "00042"),
    ('t="str"><f>A1&amp;""</f><v></v>', ""),
    ('t="str"><f t="shared" si="0"/><v>cached &gt; 1</v>', "cached > 1"),
    ('t="str"><v>=1+1</v>', "=1+1"),
    ('t="inlineStr"><is><t>TRUE</t></is>', "TRUE"),
    ('t="inlineStr"><is><t xml:space="preserve">1e5 </t></is>', "1e5 "),
    ('t="inlineStr"><is><t>tab\tand\nline</t></is>', "tab\tand\nline"),
]


def sheet_rows(count: int = len(CELLS)) -> str:
    header = '<row r="1"><c r="A1" t="str"><v>key</v></c><c r="B1" t="str"><v>value</v></c></row>'
    return header + "".join(
        f'<row r="{i}"><c r="A{i}" t="str"><v>k</v></c>'
        f'<c r="B{i}"{" " + stored if stored.startswith(("s=", "t=")) else ">" + stored}</c></row>'
        for i, (stored, _) in enumerate(CELLS[:count], 2)
    )


def usual(xml: str) -> str:
    return xml


def one_by_one(xml: str) -> str:
    """A comment keeps the sheet from being cut, so expat reads all of it."""
    return xml.replace("<sheetData>", "<sheetData><!-- <row> -->").replace("<worksheet", "<!-- --><worksheet")


def from_the_middle(xml: str) -> str:
    return xml.replace('<row r="20">', '<?odd <row r="20">?><row r="20">')


def block_by_block(xml: str) -> str:
    """Attributes in an order that nobody writes."""
    return re.sub(r'<c (r="A\d+") t="str">', r'<c t="str" \1>', xml)


def with_prefix(xml: str) -> str:
    return re.sub(r"<(/?)(?=[a-z])", r"<\1x:", xml).replace("xmlns=", "xmlns:x=")


def with_white_space(xml: str) -> str:
    return re.sub(r"(<row[^>]*>|</row>|</c>)", "\\1\r\n  ", xml)


def without_places(xml: str) -> str:
    return re.sub(r' r="[A-Z]*\d+"', "", xml)


def in_cdata(xml: str) -> str:
    return xml.replace("<v>k</v>", "<v><![CDATA[k]]></v>")


WAYS = [usual, one_by_one, from_the_middle, block_by_block, with_prefix, with_white_space, without_places, in_cdata]


def written(tmp_path: Path, change: object = usual, *, properties: str = "") -> Path:
    parts = parts_of(sheet_rows(), strings="".join(STRINGS), styles=styles_of(*FORMATS), properties=properties)
    assert callable(change)
    parts[SHEET] = str(change(parts[SHEET]))
    return write_zip(tmp_path / "cells.xlsx", parts)


def told(got: Rows) -> list[str | Code | None]:
    """The value of each row; where the cell can't be used, why."""
    codes = {issue.number: issue.code for issue in got.issues}
    assert all(got.values[number - 1][1] is None for number in codes)
    return [codes.get(number, row[1]) for number, row in zip(got.numbers, got.values, strict=True)]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_cells_read_the_same_by_every_way(tmp_path: Path, way: object) -> None:
    got = read(written(tmp_path, way))
    for (stored, expected), found in zip(CELLS, told(got), strict=True):
        assert found == expected, stored
    assert got.lines == list(range(2, len(CELLS) + 2))
    assert got.reading.detected.sheets[0].rows == len(CELLS) + 1


@pytest.mark.parametrize("size", [5, 64])
@pytest.mark.parametrize("way", [usual, one_by_one, from_the_middle, with_prefix])
def test_it_does_not_matter_how_the_file_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: object, size: int
) -> None:
    parts = parts_of(sheet_rows(18), strings="".join(STRINGS), styles=styles_of(*FORMATS))
    assert callable(way)
    parts[SHEET] = str(way(parts[SHEET]))
    path = write_zip(tmp_path / "cells.xlsx", parts)
    whole = read(path)
    monkeypatch.setattr("rowcall.formats.workbook.xlsx_zip._READ", size)
    pieces = read(path)
    assert (pieces.values, pieces.lines, pieces.issues) == (whole.values, whole.lines, whole.issues)
    assert pieces.reading.detected == whole.reading.detected


def test_the_usual_forms_are_read_the_fast_way() -> None:
    book = Book((), (), None, from_1904=False)
    assert fast_cells(sheet_rows().encode(), book.kind) is not None
    for form in (
        '<row r="1" spans="1:2" ht="15.75" customHeight="1" x14ac:dyDescent="0.25"><c r="A1" s="1"/></row>',
        '<row r="1">\n<c r="A1" t="n"><v>1</v></c></row>\n<row r="2"></row>\n',
        '<row r="1"><c r="A1" cm="1"><f t="array" ref="A1">SUM(B1)</f><v>1</v></c></row>',
        '<row r="1"><c r="A1" t="str"><f aca="false">B1&amp;"&lt;"</f><v>x</v></c></row>',
        '<row r="1" /><row r="2"><c r="A2" /></row>',
    ):
        assert fast_cells(form.encode(), book.kind) is not None, form


@pytest.mark.parametrize(
    "form",
    [
        '<row r="1"><c t="n" r="A1"><v>1</v></c></row>',
        '<row r="1"><c r="A1"><v>&unknown;</v></c></row>',
        '<row r="1"><c r="A1"><v>\1</v></c></row>',
        '<row r="1"><c r="A1"><v>1</v><v>2</v></c></row>',
        '<row r="1"><c r="a1"><v>1</v></c></row>',
        '<row r="1"><c r="A1"><is><r><t>rich</t></r></is></c></row>',
        '<row r="1"><c r="A1"><v>1</v></c></row><other/>',
    ],
)
def test_any_other_form_is_left_to_the_parser(form: str) -> None:
    assert fast_cells(form.encode(), Book((), (), None, from_1904=False).kind) is None


def test_runs_of_an_inline_text_are_joined(tmp_path: Path) -> None:
    runs = "<is><r><t>in</t></r><r><rPr><b/></rPr><t>line</t></r><rPh sb='0' eb='1'><t>no</t></rPh></is>"
    path = write_zip(tmp_path / "book.xlsx", parts_of(f'<row r="1"><c r="A1" t="inlineStr">{runs}</c></row>'))
    assert read(path, header=0).values == [("inline",)]


def test_an_issue_says_where_and_what(tmp_path: Path) -> None:
    by_value = {issue.value: issue for issue in read(written(tmp_path)).issues}
    error, date = by_value["#N/A"], by_value["60"]
    line = next(i for i, (stored, _) in enumerate(CELLS, 2) if "#N/A" in stored)
    assert (error.line, error.number, error.column) == (line, line - 1, 1)
    assert error.message == f"Data!B{line} holds the error #N/A."
    assert "60" in date.message


def test_the_1904_system_counts_from_another_day(tmp_path: Path) -> None:
    rows = "".join(
        f'<row r="{i}"><c r="A{i}" s="1"><v>{serial}</v></c></row>'
        for i, serial in enumerate(("0", "60", "43890", "-1", "2957003", "2957004"), 1)
    )
    path = tmp_path / "book.xlsx"
    write_zip(path, parts_of(rows, styles=styles_of("yyyy-mm-dd"), properties='<workbookPr date1904="1"/>'))
    got = read(path, header=0)
    assert got.values == [("1904-01-01",), ("1904-03-01",), ("2024-03-01",), (None,), ("9999-12-31",), (None,)]
    assert [issue.value for issue in got.issues] == ["-1", "2957004"]


def test_built_in_formats_have_no_code(tmp_path: Path) -> None:
    used = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 22, 21, 46, 4, 49))
    cells = "".join(f'<c r="{"ABCDEFG"[i]}1" s="{i}"><v>1.5</v></c>' for i in range(7))
    styles = f"<styleSheet {SPACES}><cellXfs>{used}</cellXfs></styleSheet>"
    path = write_zip(tmp_path / "book.xlsx", parts_of(f'<row r="1">{cells}</row>', styles=styles))
    day = "1900-01-01T12:00:00"
    assert read(path, header=0).values == [("1.5", day, day, day, "36:00:00", "1.5", "1.5")]


def test_every_odd_form_of_shared_texts_reads_the_same(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{i + 1}"><c r="A{i + 1}" t="s"><v>{i}</v></c></row>' for i in range(7))
    forms = ["".join(STRINGS), "<!-- <si> -->" + "".join(STRINGS), "\r\n".join(STRINGS)]
    parts = [parts_of(rows, strings=form) for form in forms]
    prefixed = parts_of(rows, strings=forms[0])
    name = "xl/sharedStrings.xml"
    prefixed[name] = with_prefix(prefixed[name])
    found = [read(write_zip(tmp_path / "book.xlsx", part), header=0) for part in [*parts, prefixed]]
    expected = [expected for stored, expected in CELLS if re.match(r't="s"><v>[0-5]<', stored)]
    for got in found:
        assert [row[0] for row in got.values] == expected
        assert got.counts.blank == 1


def test_shared_texts_beyond_memory_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = [(i * 7919) % 3000 for i in range(6000)]
    rows = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>{at}</v></c></row>' for i, at in enumerate(order, 1))
    strings = "".join(f"<si><t>text é {i}{'x' * (i % 300)}</t></si>" for i in range(3000))
    path = write_zip(tmp_path / "book.xlsx", parts_of(rows, strings=strings))
    held = read(path, header=0).values
    monkeypatch.setattr("rowcall.formats.workbook.xlsx_strings._HELD", 1000)
    monkeypatch.setattr("rowcall.formats.workbook.xlsx_strings._NEAR", 64)
    assert read(path, header=0).values == held
    assert held[1] == (f"text é {order[1]}{'x' * (order[1] % 300)}",)


def test_a_long_text_shared_by_many_cells_comes_in_small_batches(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(1, 101))
    rows += '<row r="101"><c r="A101"><v>1</v></c></row>'
    path = write_zip(tmp_path / "book.xlsx", parts_of(rows, strings=f"<si><t>{'x' * 500_000}</t></si>"))
    got = read(path, header=0)
    assert (got.counts.rows, got.counts.bad) == (101, 0)
    refused = read(path, header=0, limits=Limits(record_bytes=400_000))
    assert refused.counts.bad == 100
    assert refused.bad[0].code == Code.LINE_TOO_LONG


def test_macros_links_and_drawings_are_never_looked_at(tmp_path: Path) -> None:
    parts = parts_of('<row r="1"><c r="A1"><f>[1]Other!A1</f><v>5</v></c></row>')
    parts |= {"xl/vbaProject.bin": "not a project", "xl/externalLinks/externalLink1.xml": "<broken"}
    assert read(write_zip(tmp_path / "book.xlsx", parts), header=0).values == [("5",)]
