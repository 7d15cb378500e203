"""Workbooks made by hand, byte by byte where no library writes what a test needs."""

import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rowcall.formats.reading import Detected, Fact, LocalFile, Reading, ReadOptions
from rowcall.formats.workbook.opening import open_workbook

from ..reading import Rows, collect

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
SPACES = f'xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"'
SHEET = "xl/worksheets/sheet1.xml"


def opened(path: Path, options: ReadOptions | None = None) -> Reading:
    """A workbook, opened by its suffix."""
    return open_workbook(LocalFile(path, path.name), options or ReadOptions(), Detected(Fact(path.suffix[1:], "test")))


def read(path: Path, **options: Any) -> Rows:
    """A workbook, read whole."""
    with opened(path, ReadOptions(**options)) as reading:
        return collect(reading)


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    """A .rels part: id to type and target."""
    body = "".join(
        f'<Relationship Id="{name}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}">{body}</Relationships>'


def sheet_xml(body: str, *, after: str = "") -> str:
    """A sheet's XML around these rows."""
    return f'<?xml version="1.0"?><worksheet {SPACES}><sheetData>{body}</sheetData>{after}</worksheet>'


def text_row(number: int, *texts: str) -> str:
    """A row of inline texts from column A."""
    cells = (f'<c r="{chr(65 + i)}{number}" t="inlineStr"><is><t>{text}</t></is></c>' for i, text in enumerate(texts))
    return f'<row r="{number}">{"".join(cells)}</row>'


def parts_of(
    *bodies: str,
    names: Sequence[str] = ("Data",),
    states: Sequence[str] = (),
    strings: str | None = None,
    styles: str | None = None,
    properties: str = "",
) -> dict[str, str]:
    """The parts of an XLSX whose sheets hold these rows."""
    states = states or ["visible"] * len(names)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{i}" state="{state}" r:id="rId{i}"/>'
        for i, (name, state) in enumerate(zip(names, states, strict=True), 1)
    )
    targets = {f"rId{i}": ("worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(names) + 1)}
    targets |= {"strings": ("sharedStrings", "sharedStrings.xml"), "styles": ("styles", "/xl/styles.xml")}
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations({"rId1": ("officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": f"<workbook {SPACES}>{properties}<sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(targets),
    }
    parts |= {f"xl/worksheets/sheet{i}.xml": sheet_xml(body) for i, body in enumerate(bodies, 1)}
    if strings is not None:
        parts["xl/sharedStrings.xml"] = f"<sst {SPACES}>{strings}</sst>"
    if styles is not None:
        parts["xl/styles.xml"] = styles
    return parts


def styles_of(*codes: str) -> str:
    """A styles part whose style 0 is General and 1, 2, … have these number formats."""
    formats = "".join(f'<numFmt numFmtId="{164 + i}" formatCode="{code}"/>' for i, code in enumerate(codes))
    used = "".join(f'<xf numFmtId="{164 + i}"/>' for i in range(len(codes)))
    return (
        f'<styleSheet {SPACES}><numFmts>{formats}</numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
        f'<cellXfs><xf numFmtId="0"/>{used}</cellXfs></styleSheet>'
    )


def write_zip(path: Path, parts: Mapping[str, str | bytes]) -> Path:
    """A zip of these parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def write_ods(path: Path, rows: str) -> Path:
    """An ODS with a visible sheet of these rows and an empty one."""
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    content = (
        f"<office:document-content {spaces}><office:body><office:spreadsheet>"
        f'<table:table table:name="Data">{rows}</table:table><table:table table:name="Empty"/>'
        f"</office:spreadsheet></office:body></office:document-content>"
    )
    manifest = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    return write_zip(path, {"mimetype": kind, "content.xml": content, "META-INF/manifest.xml": manifest})


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def write_xls(path: Path, cells: Sequence[tuple[int, int, object]], *, encrypted: bool = False) -> Path:
    """A BIFF8 workbook of one sheet: texts, numbers, truth values, and (number, "date") for a date."""
    formats = b"".join(_record(0xE0, struct.pack("<HH16x", 0, number)) for number in (0, 14))
    lock = _record(0x2F, struct.pack("<HHH48x", 1, 1, 1)) if encrypted else b""
    start = _record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0)) + lock + formats
    name = _record(0x85, struct.pack("<IBBBB4s", 0, 0, 0, 4, 0, b"Data"))
    offset = len(start) + len(name) + 4
    name = _record(0x85, struct.pack("<IBBBB4s", offset, 0, 0, 4, 0, b"Data"))
    body = b"".join(_xls_cell(row, col, value) for row, col, value in cells)
    sheet = _record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 0, 0, 0)) + body + _record(0x0A, b"")
    path.write_bytes(compound_file("Workbook", start + name + _record(0x0A, b"") + sheet))
    return path


def _xls_cell(row: int, col: int, value: object) -> bytes:
    match value:
        case bool():
            return _record(0x205, struct.pack("<HHHBB", row, col, 0, value, 0))
        case int() | float():
            return _record(0x203, struct.pack("<HHHd", row, col, 0, value))
        case (int() | float() as serial, str()):
            return _record(0x203, struct.pack("<HHHd", row, col, 1, serial))
        case _:
            text = str(value).encode("utf-16-le")
            return _record(0x204, struct.pack("<HHHHB", row, col, 0, len(text) // 2, 1) + text)


def compound_file(name: str, stream: bytes) -> bytes:
    """An OLE2 file with one stream, padded so that it needs no small sectors."""
    stream = stream.ljust(max(4096, -(-len(stream) // 512) * 512), b"\0")
    sectors = len(stream) // 512
    chain = [0xFFFFFFFD, 0xFFFFFFFE, *range(3, sectors + 2), 0xFFFFFFFE]
    table = struct.pack("<128I", *chain, *[0xFFFFFFFF] * (128 - len(chain)))
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    head += struct.pack("<HHHHH6xIIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0, 0)
    head = head.ljust(512, b"\xff")
    return (
        head
        + table
        + _directory("Root Entry", 5, 0xFFFFFFFE, 0, 1)
        + _directory(name, 2, 2, len(stream))
        + bytes(256)
        + stream
    )


def _directory(name: str, kind: int, start: int, size: int, child: int = 0xFFFFFFFF) -> bytes:
    text = name.encode("utf-16-le") + b"\0\0"
    return struct.pack("<64sHBBIII36xIQ", text, len(text), kind, 1, 0xFFFFFFFF, 0xFFFFFFFF, child, start, size)


def write_xlsb(path: Path, cells: Sequence[tuple[int, int, object]]) -> Path:
    """A binary workbook of one sheet."""
    bundle = struct.pack("<II", 0, 1) + _wide("rId1") + _wide("Data")
    workbook = _binary(0x83) + _binary(0x8F) + _binary(0x9C, bundle) + _binary(0x90) + _binary(0x84)
    last_row, last_col = max(row for row, _, _ in cells), max(col for _, col, _ in cells)
    sheet = _binary(0x81) + _binary(0x94, struct.pack("<IIII", 0, last_row, 0, last_col)) + _binary(0x91)
    for number in sorted({row for row, _, _ in cells}):
        sheet += _binary(0, struct.pack("<IIHBBBI", number, 0, 300, 0, 0, 0, 0))
        sheet += b"".join(_xlsb_cell(col, value) for row, col, value in cells if row == number)
    sheet += _binary(0x92) + _binary(0x82)
    return write_zip(
        path,
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations({"rId1": ("officeDocument", "xl/workbook.bin")}),
            "xl/workbook.bin": workbook,
            "xl/_rels/workbook.bin.rels": relations({"rId1": ("worksheet", "worksheets/sheet1.bin")}),
            "xl/worksheets/sheet1.bin": sheet,
        },
    )


def _binary(kind: int, data: bytes = b"") -> bytes:
    number = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    assert len(data) < 0x80
    return number + bytes([len(data)]) + data


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def _xlsb_cell(col: int, value: object) -> bytes:
    at = struct.pack("<II", col, 0)
    match value:
        case bool():
            return _binary(4, at + bytes([value]))
        case int() | float():
            return _binary(5, at + struct.pack("<d", value))
        case _:
            return _binary(6, at + _wide(str(value)))
