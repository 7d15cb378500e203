"""One quick pass over a sheet's XML: how many rows hold a value, how many are hidden, what is merged."""

import re
from collections.abc import Iterator

from rowcall.formats.workbook.sheet_cells import SheetSurvey
from rowcall.formats.workbook.xlsx_blocks import ROWS, Document, Elements, blocks
from rowcall.formats.workbook.xlsx_parts import SheetPart
from rowcall.formats.workbook.xlsx_xml import Attributes, XmlWalk

_HIDDEN = re.compile(rb'<row [^<>]*\bhidden="(?:1|true)"')
_NOTHING = re.compile(rb"<v></v>|<t></t>")
_SEAM = len(b"<mergeCell")


def survey(sheet: SheetPart, stream: Iterator[bytes], longest: int) -> SheetSurvey:
    """Read the sheet to its end, checksum included."""
    rows = hidden = merged = 0
    for block in blocks(sheet.part, stream, ROWS, longest):
        if isinstance(block, Elements):
            rows += _rows_with_values(block.data)
            hidden += len(_HIDDEN.findall(block.data)) if b'hidden="' in block.data else 0
        elif isinstance(block, Document):
            walk = _SurveyWalk(sheet.part)
            walk.run(block.data)
            rows, hidden, merged = rows + walk.rows, hidden + walk.hidden, walk.merged
        else:
            merged = _merged(block.data)
    return SheetSurvey(sheet.name, rows, sheet.visible, hidden, merged)


def _rows_with_values(data: bytes) -> int:
    """A text that is shared and empty counts as a value here; only reading the texts would tell."""
    if b"<v></v>" in data or b"<t></t>" in data:
        data = _NOTHING.sub(b"", data)
    return sum(b"</v>" in row or b"</t>" in row for row in data.split(b"</row>"))


def _merged(tail: Iterator[bytes]) -> int:
    count, seam = 0, b""
    for piece in tail:
        count += (seam + piece).count(b"mergeCell ")
        seam = piece[-_SEAM + 1 :]
    return count


class _SurveyWalk:
    """The same by the slow way, for sheets that can't be cut."""

    def __init__(self, part: str) -> None:
        self.rows = self.hidden = self.merged = 0
        self._filled = self._inside = False
        self._xml = XmlWalk(part, self._start, self._end, self._data)

    def run(self, data: Iterator[bytes]) -> None:
        for piece in data:
            self._xml.feed(piece)
        self._xml.feed(b"", final=True)

    def _start(self, name: str, attributes: Attributes) -> None:
        if name == "row":
            self._filled = False
            self.hidden += attributes.get("hidden") in ("1", "true")
        elif name in ("v", "t"):
            self._inside = True
        elif name == "mergeCell":
            self.merged += 1

    def _end(self, name: str) -> None:
        if name == "row":
            self.rows += self._filled
        elif name in ("v", "t"):
            self._inside = False

    def _data(self, _: str) -> None:
        self._filled = self._filled or self._inside
