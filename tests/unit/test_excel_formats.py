"""XLS, XLSB and ODS come through the guarded child and read like an XLSX."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rowcall.model import Code

from .workbook_files import read, write_ods, write_xls, write_xlsb

CELLS: list[tuple[int, int, object]] = [
    (2, 1, "id"),
    (2, 2, "name"),
    (2, 3, "paid"),
    (3, 1, 7),
    (3, 2, "00042"),
    (3, 3, 0.1),
    (6, 1, 1e21),
    (6, 2, "é\nü"),
    (6, 3, True),
]


@pytest.mark.parametrize(
    ("write", "name", "day", "noon"),
    [
        (write_xls, "book.xls", (45352, "date"), (45352.5, "date")),
        (write_xlsb, "book.xlsb", "2024-03-01", "2024-03-01T12:00:00"),
    ],
)
def test_binary_workbooks_read_like_others(
    tmp_path: Path, write: Callable[..., Path], name: str, day: object, noon: object
) -> None:
    got = read(write(tmp_path / name, [*CELLS, (7, 1, 8), (7, 2, day), (7, 3, noon)]))
    assert got.columns == ["id", "name", "paid"]
    assert got.values == [
        ("7", "00042", "0.1"),
        ("1e+21", "é\nü", "true"),
        ("8", "2024-03-01", "2024-03-01T12:00:00"),
    ]
    assert got.lines == [4, 7, 8]
    assert got.counts.blank == 4
    assert got.reading.detected.sheets[0].rows == 4


def test_an_ods_reads_like_others(tmp_path: Path) -> None:
    def cell(kind: str, value: str = "", text: str = "") -> str:
        stored = f' office:{"value" if kind == "float" else kind + "-value"}="{value}"' if value else ""
        return f'<table:table-cell office:value-type="{kind}"{stored}><text:p>{text}</text:p></table:table-cell>'

    header = "<table:table-cell/>" + "".join(cell("string", text=name) for name in ("id", "when", "code", "ok"))
    row = "<table:table-cell/>" + cell("float", "7") + cell("date", "2024-03-01T13:45:00")
    row += cell("string", text="00042") + cell("boolean", "true")
    blank = '<table:table-row table:number-rows-repeated="3"><table:table-cell/></table:table-row>'
    rows = f"{blank}<table:table-row>{header}</table:table-row>{blank}<table:table-row>{row}</table:table-row>"
    got = read(write_ods(tmp_path / "book.ods", rows))
    assert got.columns == ["id", "when", "code", "ok"]
    assert got.values == [("7", "2024-03-01T13:45:00", "00042", "true")]
    assert got.lines == [8]
    assert [(sheet.name, sheet.rows) for sheet in got.reading.detected.sheets] == [("Data", 2), ("Empty", 0)]
    assert Code.HIDDEN_SHEETS not in got.notes
