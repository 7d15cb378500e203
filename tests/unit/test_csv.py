"""Delimited text: what the dialect detection finds, and what becomes of each line."""

from pathlib import Path
from typing import Any

import pytest

from rowcall.errors import FileRefused
from rowcall.formats import Reading, ReadOptions, Skipped, open_rows
from rowcall.model import Code

from ..reading import Rows, read


def rows(tmp_path: Path, data: str | bytes, **options: Any) -> Rows:
    path = tmp_path / "file.csv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read(path, ReadOptions(**options))


@pytest.mark.parametrize(
    ("data", "delimiter"),
    [
        ("a,b,c\n1,2,3\n4,5,6\n", ","),
        ("a;b;c\n1,5;2,5;3\n4;5,25;6\n", ";"),
        ("a\tb\tc\n1\t2\t3\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ("name:age:city\nBob:3:York\nAnn:4:Rome\n", ":"),
        ("a^b\n1^2\n3^4\n", "^"),
        ('"a" "b" "c"\n"1:2 3" "3" "4"\n', " "),
        ("a||b\n1||2\n", "||"),
        ("1,5;2,5;3\n4,5;5,5;6\n7,5;8,5;9\n", ";"),
        ('name,note\nAnn,"a;b;c"\nBob,"d;e;f"\n', ","),
        ("Full name\nAnn Lee\nBob Ray\n", ","),
        ("time\n10:30:00\n11:30:00\n", ","),
    ],
)
def test_delimiter_is_the_one_under_which_records_agree(tmp_path: Path, data: str, delimiter: str) -> None:
    assert rows(tmp_path, data).detected("delimiter") == delimiter


def test_sep_line_names_the_delimiter_and_is_preamble(tmp_path: Path) -> None:
    got = rows(tmp_path, "sep=;\r\nid;name\r\n1;a,b\r\n")
    assert got.columns == ["id", "name"]
    assert got.values == [("1", "a,b")]
    assert (got.counts.preamble, got.lines) == (1, [3])


@pytest.mark.parametrize(
    ("data", "values"),
    [
        ('a,b\n"x, ""y""",2\n', [('x, "y"', "2")]),
        ("a,b\n'x, y',2\n'z',3\n'w',4\n", [("x, y", "2"), ("z", "3"), ("w", "4")]),
        ('a,b\n"x\\"y, z",2\n"w",3\n', [('x"y, z', "2"), ("w", "3")]),
        ('a,b\n"C:\\dir\\",2\n"D:\\",3\n', [("C:\\dir\\", "2"), ("D:\\", "3")]),
        ('a, b\n"x, y", "z, w"\n', [("x, y", "z, w")]),
        ('a,b\n5" pipe,2\n', [('5" pipe', "2")]),
        ('a,b\n"x" ,2\n', [("x", "2")]),
        ('a,b\n"line 1\nline 2\r\nline 3",2\n', [("line 1\nline 2\r\nline 3", "2")]),
        ("a,b\n,\n", [("", "")]),
        ('a,b\n"",""\n', [("", "")]),
        ("a,b\n 1 , 2 \n", [(" 1 ", " 2 ")]),
        ("id,n\n00042,1e5\n9007199254740993,TRUE\n", [("00042", "1e5"), ("9007199254740993", "TRUE")]),
        ("a,b\n\\.,x\nNULL,NaN\n", [("\\.", "x"), ("NULL", "NaN")]),
    ],
)
def test_fields_come_out_as_they_stood(tmp_path: Path, data: str, values: list[tuple[str, ...]]) -> None:
    got = rows(tmp_path, data)
    assert got.values == values
    assert got.bad == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end(tmp_path: Path, end: str) -> None:
    got = rows(tmp_path, end.join(["a,b", "1,2", "", "3,4", ""]))
    assert got.values == [("1", "2"), ("3", "4")]
    assert got.lines == [2, 4]
    assert got.counts.blank == 1


def test_a_stray_cr_divides_only_what_is_ragged_without_it(tmp_path: Path) -> None:
    body = "1,2\n" * 50
    got = rows(tmp_path, "a,b\n" + body + "3,x\ry\n" + "5,6\r7,8\n")
    assert got.values[-3:] == [("3", "x\ry"), ("5", "6"), ("7", "8")]
    assert got.bad == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('3,"never closed', Code.UNCLOSED_QUOTE),
        ('3,"closed" too early', Code.BROKEN_QUOTE),
        ("3", Code.TOO_FEW_FIELDS),
        ("3,4,5", Code.TOO_MANY_FIELDS),
        ("3,a\0b", Code.NUL_CHARACTER),
    ],
)
def test_a_bad_record_stands_alone_with_line_and_text(tmp_path: Path, line: str, code: Code) -> None:
    got = rows(tmp_path, f'a,b\n1,"x, y"\n{line}\n4,"z"\n5,6\n')
    assert got.values == [("1", "x, y"), ("4", "z"), ("5", "6")]
    assert [(b.number, b.line, b.code, b.text) for b in got.bad] == [(2, 3, code, line + "\n")]
    assert got.numbers == [1, 3, 4]


def test_bad_utf8_is_on_its_own_line(tmp_path: Path) -> None:
    body = b"".join(b"%d,Zo\xc3\xab\n" % i for i in range(5_000))
    got = rows(tmp_path, b"id,n\n" + body + b"x,\xff\xfe\ny,\xc0\xaf\nz,ok\n")
    assert [(b.line, b.code) for b in got.bad] == [(5_002, Code.INVALID_ENCODING), (5_003, Code.INVALID_ENCODING)]
    assert got.values[-1] == ("z", "ok")


def test_an_open_quote_never_glues_records(tmp_path: Path) -> None:
    lines = [f"{i},{i}" for i in range(1_000)]
    lines[10] = '10,"10'
    lines[500] = '500,"x"'
    lines[700] = '700",700'
    got = rows(tmp_path, "a,b\n" + "\n".join(lines) + "\n")
    assert [b.line for b in got.bad] == [12]
    assert len(got.values) == 999
    assert got.values[499] == ("500", "x")
    assert ('700"', "700") in got.values


def test_two_lost_quotes_in_the_same_file_do_not_swallow_what_is_between(tmp_path: Path) -> None:
    got = rows(tmp_path, 'a,b,c\n1,"x,3\n4,5,6\n7,8,9\n10",11,12\n13,14,15\n')
    assert [b.line for b in got.bad] == [2]
    assert got.values == [("4", "5", "6"), ("7", "8", "9"), ('10"', "11", "12"), ("13", "14", "15")]


def test_a_ragged_record_of_several_lines_stays_one_record(tmp_path: Path) -> None:
    got = rows(tmp_path, 'a,b\n1,2\n3,"line 1\nand line 2, with a comma, or two",5\n6,7\n')
    assert [(b.line, b.code) for b in got.bad] == [(3, Code.TOO_MANY_FIELDS)]
    assert got.values == [("1", "2"), ("6", "7")]


def test_blank_comment_and_repeated_header_lines_are_counted(tmp_path: Path) -> None:
    data = '# made today\na,b\n1,2\n\n  \n# "odd\na,b\n3,4\n'
    got = rows(tmp_path, data, comment="#")
    assert got.values == [("1", "2"), ("3", "4")]
    assert (got.counts.blank, got.counts.comment, got.counts.header) == (2, 2, 2)
    assert got.rebuilt == data.encode()


def test_preamble_is_kept_apart(tmp_path: Path) -> None:
    got = rows(tmp_path, "Sales report\n\nRegion: North\nid;amount\n1;2,5\n2;3,5\n3;4,5\n")
    assert got.columns == ["id", "amount"]
    assert got.reading.detected.preamble[0] == "Sales report"
    assert got.values[0] == ("1", "2,5")


@pytest.mark.parametrize("header", ["a,b,", "a,b"])
def test_a_trailing_delimiter_is_not_a_column(tmp_path: Path, header: str) -> None:
    body = "".join(f"{i},x,\n" for i in range(1_000))
    got = rows(tmp_path, f"{header}\n{body}5,6,extra\n7,8\n")
    assert got.columns == ["a", "b"]
    assert got.values[-1] == ("7", "8")
    assert [(b.code, b.cells) for b in got.bad] == [(Code.TOO_MANY_FIELDS, ("5", "6", "extra"))]


def test_one_empty_field_too_many_may_mean_that_values_are_shifted(tmp_path: Path) -> None:
    data = "a,b\n1,2\nSmith, John,\n5,6\n"
    assert [b.cells for b in rows(tmp_path, data).bad] == [("Smith", " John", "")]
    assert rows(tmp_path, data, ragged="pad").values[1] == ("Smith", " John")


def test_short_records_are_padded_when_asked(tmp_path: Path) -> None:
    got = rows(tmp_path, "a,b,c\n1,2,3\n4\n5,6,7\n", ragged="pad")
    assert got.values[1] == ("4", "", "")
    assert got.bad == []


def test_a_header_wider_than_its_rows_keeps_all_its_columns(tmp_path: Path) -> None:
    got = rows(tmp_path, "a,b,c\n1,2\n3,4\n5,6\n7,8,9\n")
    assert got.columns == ["a", "b", "c"]
    assert got.values == [("1", "2", ""), ("3", "4", ""), ("5", "6", ""), ("7", "8", "9")]


def test_width_is_the_records_usual_one(tmp_path: Path) -> None:
    got = rows(tmp_path, "a,b\n1,2,3\n4,5,6\n7,8\n")
    assert got.columns == ["a", "b", "column_3"]
    assert [b.line for b in got.bad] == [4]
    assert "BLANK_HEADER" in got.notes


def test_headers_that_look_alike_are_kept_apart_and_flagged(tmp_path: Path) -> None:
    got = rows(tmp_path, "id,id ,i\u200bd,,id,__proto__\n1,2,3,4,5,6\n7,8,9,1,2,3\n")
    assert len(set(got.columns)) == 6
    assert got.columns[3] == "column_4"
    assert {"DUPLICATE_HEADER", "SIMILAR_HEADERS", "BLANK_HEADER"} <= set(got.notes)


def test_equal_headers_are_numbered(tmp_path: Path) -> None:
    assert rows(tmp_path, "a,a,a_2,a\n1,2,3,4\n5,6,7,8\n").columns == ["a", "a_2", "a_2_2", "a_3"]
    many = ",".join(["same"] * 16_000)
    assert rows(tmp_path, f"{many}\n{many.replace('same', '1')}\n").columns[-1] == "same_16000"


def test_no_header(tmp_path: Path) -> None:
    got = rows(tmp_path, "1,2\n3,4\n5,6\n")
    assert got.columns == ["column_1", "column_2"]
    assert got.values[0] == ("1", "2")
    assert rows(tmp_path, "a,b\n3,4\n", header=0).values == [("a", "b"), ("3", "4")]


def test_header_on_a_given_line(tmp_path: Path) -> None:
    got = rows(tmp_path, "x,y\na,b\n1,2\n", header=2)
    assert (got.columns, got.values, got.counts.preamble) == (["a", "b"], [("1", "2")], 1)
    with pytest.raises(FileRefused, match="line 9"):
        rows(tmp_path, "a,b\n1,2\n", header=9)


def test_header_only(tmp_path: Path) -> None:
    got = rows(tmp_path, "id,name\n")
    assert (got.columns, got.values, got.counts.header) == (["id", "name"], [], 1)


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf", b"\n\n  \n", "\ufeff".encode("utf-16-le")])
def test_a_file_without_text_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FileRefused) as refusal:
        rows(tmp_path, data)
    assert refusal.value.code == Code.EMPTY_FILE


def test_too_many_columns_are_refused(tmp_path: Path) -> None:
    header = ",".join(f"c{i}" for i in range(20_000))
    with pytest.raises(FileRefused) as refusal:
        rows(tmp_path, f"{header}\n{header}\n")
    assert refusal.value.code == Code.TOO_MANY_COLUMNS


def test_a_large_cell_is_a_cell(tmp_path: Path) -> None:
    large = "line of text, with a comma\n" * 400_000  # 10.8 MB
    got = rows(tmp_path, f'a,b\n1,"{large}"\n2,x\n')
    assert got.values == [("1", large), ("2", "x")]
    assert got.lines == [2, 400_003]


def test_a_line_beyond_the_limit_is_one_bad_record(tmp_path: Path) -> None:
    from rowcall.formats import Limits

    limits = Limits(record_bytes=2**20)
    got = rows(tmp_path, "a,b\n1,2\n" + "x" * 5_000_000 + "\n3,4\n", limits=limits)
    assert got.values == [("1", "2"), ("3", "4")]
    assert [(b.line, b.number, b.code, b.size) for b in got.bad] == [(3, 2, Code.LINE_TOO_LONG, 5_000_001)]
    assert got.lines == [2, 4]


def test_a_quote_open_beyond_the_limit_costs_its_own_line_only(tmp_path: Path) -> None:
    from rowcall.formats import Limits

    data = "a,b\n1,2\n" + '3,"open\n' + "5,6\n" * 600_000
    got = rows(tmp_path, data, limits=Limits(record_bytes=2**20))
    assert [(b.line, b.code) for b in got.bad] == [(3, Code.UNCLOSED_QUOTE)]
    assert got.counts.good == 600_001


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n\n3\n")
    with open_rows(path) as reading:
        first = [(b.frame.rows(), b.bad, b.skipped) for b in reading]
        counts = reading.counts
        assert [(b.frame.rows(), b.bad, b.skipped) for b in reading] == first
        assert reading.counts == counts
        assert reading.position == path.stat().st_size


def test_overrides_decide(tmp_path: Path) -> None:
    assert rows(tmp_path, "a;b,c\n1;2,3\n", delimiter=",").columns == ["a;b", "c"]
    assert rows(tmp_path, "a,b\n'x',2\n'y',3\n'z',4\n", quote='"').values[0] == ("'x'", "2")
    assert rows(tmp_path, 'a,b\n"x",2\n', quote="").values == [('"x"', "2")]
    assert rows(tmp_path, "a,b\nx\\,y,2\n", escape="backslash").values == [("x,y", "2")]
    assert rows(tmp_path, "a§b\n1§2\n", delimiter="§").values == [("1", "2")]
    assert rows(tmp_path, "a\tb\n1\t2\n", delimiter="tab").columns == ["a", "b"]


@pytest.mark.parametrize(
    "options", [{"delimiter": ""}, {"delimiter": '"'}, {"delimiter": ";;;"}, {"quote": "ab"}, {"encoding": "utf-7"}]
)
def test_impossible_options_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(FileRefused):
        rows(tmp_path, "a,b\n1,2\n", **options)


def test_protected_formulas_come_back_as_they_were(tmp_path: Path) -> None:
    got = rows(tmp_path, "a,b\n'=1+1,'+x\n-5,'quoted'\n''=y,it's\n")
    assert got.values == [("=1+1", "+x"), ("-5", "'quoted'"), ("'=y", "it's")]
    assert "FORMULA_GUARD" in got.notes
    assert "FORMULA_GUARD" not in rows(tmp_path, "a,b\nit's,'x'\n").notes


def test_skipped_runs_are_in_the_files_order(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("top\na,b,c\n1,2,3\n\n\n4,5,6\n\n")
    with open_rows(path) as reading:
        runs = [run for batch in reading for run in batch.skipped]
    assert [(r.kind, r.line, r.count) for r in runs] == [
        (Skipped.PREAMBLE, 1, 1),
        (Skipped.HEADER, 2, 1),
        (Skipped.BLANK, 4, 2),
        (Skipped.BLANK, 7, 1),
    ]


def test_open_rows_gives_a_reading(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with open_rows(str(tmp_path / "x.csv")) as reading:
        assert isinstance(reading, Reading)
