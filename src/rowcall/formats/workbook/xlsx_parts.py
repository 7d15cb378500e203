"""The small parts of an XLSX workbook: its sheets, what its styles mean, and which date system it uses."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from rowcall.errors import FileRefused
from rowcall.formats.reading import MIB
from rowcall.formats.workbook.xlsx_xml import Attributes, walk
from rowcall.formats.workbook.xlsx_zip import Package, corrupt
from rowcall.model import Code

_SMALL_PART = 64 * MIB
_MOST_STYLES = 200_000  # Excel writes at most 65,490


class Kind(IntEnum):
    """What the stored text of a cell means."""

    NUMBER = 0
    DATE = 1
    DATETIME = 2
    TIME = 3
    DURATION = 4
    SHARED = 5
    TEXT = 6
    TRUTH = 7
    ERROR = 8
    UNKNOWN = 9
    FORMULA = 10
    """One without the value that it gives: it was never calculated."""


@dataclass(frozen=True, slots=True)
class SheetPart:
    """A sheet as the workbook lists it."""

    name: str
    part: str
    visible: bool


@dataclass(frozen=True, slots=True)
class Book:
    """What the cells of all sheets have in common."""

    sheets: tuple[SheetPart, ...]
    styles: tuple[Kind, ...]
    strings_part: str | None
    from_1904: bool

    def kind(self, cell_type: str | None, style: str | None) -> Kind:
        """The kind of a cell with these `t` and `s` attributes."""
        if cell_type is not None and cell_type != "n":
            return _TYPES.get(cell_type, Kind.UNKNOWN)
        index = int(style) if style and style.isascii() and style.isdigit() and len(style) < 10 else 0
        return self.styles[index] if index < len(self.styles) else Kind.NUMBER


_TYPES = {
    "s": Kind.SHARED,
    "str": Kind.TEXT,
    "inlineStr": Kind.TEXT,
    "d": Kind.TEXT,  # an ISO 8601 date, kept as it stands
    "b": Kind.TRUTH,
    "e": Kind.ERROR,
}


def read_book(package: Package) -> Book:
    """Read what must be known before the first cell."""
    main = _main_part(package)
    relations = _relations(package, main)
    walker = _WorkbookWalk(relations)
    walk(main, _small(package, main), walker.start)
    parts = {relation.kind: relation.target for relation in relations.values()}
    styles = _styles(package, parts["styles"]) if parts.get("styles", "") in package else ()
    strings = parts.get("sharedStrings", "")
    return Book(tuple(walker.sheets), styles, strings if strings in package else None, walker.from_1904)


@dataclass(frozen=True, slots=True)
class _Relation:
    kind: str
    target: str


def _main_part(package: Package) -> str:
    relations = _relations(package, "") if "_rels/.rels" in package else {}
    named = [relation.target for relation in relations.values() if relation.kind == "officeDocument"]
    main = named[0] if named else "xl/workbook.xml"
    if main not in package:
        raise corrupt(f"it has no part {main!r}.")
    return main


def _relations(package: Package, part: str) -> dict[str, _Relation]:
    """The parts that this one refers to, by the id it uses for them."""
    folder, name = posixpath.split(part)
    source = posixpath.join(folder, "_rels", f"{name}.rels")
    found: dict[str, _Relation] = {}

    def start(tag: str, attributes: Attributes) -> None:
        if tag == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
            kind = attributes.get("Type", "").rpartition("/")[2]
            found[attributes.get("Id", "")] = _Relation(kind, target.lstrip("/"))

    walk(source, _small(package, source), start)
    return found


def _small(package: Package, part: str) -> Iterator[bytes]:
    if part in package and package.size(part) > _SMALL_PART:
        raise FileRefused(
            Code.WORKBOOK_TOO_LARGE,
            f"The part {part!r} unpacks to {package.size(part) // MIB:,} MB, which only a made-up workbook does.",
            hint="Open the workbook in its own program and save it again.",
        )
    return package.stream(part)


@dataclass(slots=True)
class _WorkbookWalk:
    relations: dict[str, _Relation]
    sheets: list[SheetPart] = field(default_factory=list[SheetPart])
    from_1904: bool = False

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "sheet":
            self._sheet(attributes)
        elif tag == "workbookPr":
            self.from_1904 = attributes.get("date1904", "0") in ("1", "true")

    def _sheet(self, attributes: Attributes) -> None:
        name = attributes.get("name", "")
        by_id = next((value for key, value in attributes.items() if key.endswith(":id")), "")
        relation = self.relations.get(by_id)
        if relation is None:
            raise corrupt(f"the sheet {name!r} has no data.")
        if relation.kind == "worksheet":  # charts, dialogs and old macro sheets hold no rows
            self.sheets.append(SheetPart(name, relation.target, attributes.get("state", "visible") == "visible"))


def _styles(package: Package, part: str) -> tuple[Kind, ...]:
    walker = _StylesWalk()
    walk(part, _small(package, part), walker.start, walker.end)
    kinds = {number: format_kind(code) for number, code in walker.formats.items()}
    return tuple(kinds.get(number, _BUILT_IN.get(number, Kind.NUMBER)) for number in walker.cell_formats)


@dataclass(slots=True)
class _StylesWalk:
    formats: dict[int, str] = field(default_factory=dict[int, str])
    cell_formats: list[int] = field(default_factory=list[int])
    inside: bool = False

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "numFmt":
            self.formats[_number(attributes)] = attributes.get("formatCode", "")
        elif tag == "cellXfs":
            self.inside = True
        elif tag == "xf" and self.inside:
            self.cell_formats.append(_number(attributes))
        if len(self.formats) > _MOST_STYLES or len(self.cell_formats) > _MOST_STYLES:
            raise corrupt(f"it has more than {_MOST_STYLES:,} styles.")

    def end(self, tag: str) -> None:
        if tag == "cellXfs":
            self.inside = False


def _number(attributes: Attributes) -> int:
    text = attributes.get("numFmtId", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


# Built-in formats have no code in the file. 27-36 and 50-58 are dates in the East Asian editions.
_BUILT_IN = {
    **dict.fromkeys([14, 15, 16, 17, *range(27, 32), 36, *range(50, 59)], Kind.DATE),
    **dict.fromkeys([18, 19, 20, 21, 32, 33, 34, 35, 45, 47], Kind.TIME),
    22: Kind.DATETIME,
    46: Kind.DURATION,
}

_LONGEST_FORMAT = 255
_LITERALS = re.compile(r'"[^"]*"?|\\.|[_*].')
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]")
_BRACKETS = re.compile(r"\[[^\]]*\]?")  # colours, conditions, locales: [Red], [>100], [$-409]
_TIME_OF_DAY = re.compile(r"a/p|am/pm|h+[^dyh]*m*|m+[^dymh]*s|s")
_DAY = re.compile(r"[dyeg]|mmm|m")


def format_kind(code: str) -> Kind:
    """What a number format shows: `yyyy-mm-dd` a date, `h:mm` a time, `[h]:mm` a duration, `0.00` a number."""
    shown = _LITERALS.sub("", code[:_LONGEST_FORMAT].lower().partition(";")[0])
    if _ELAPSED.search(shown):
        return Kind.DURATION
    shown = _BRACKETS.sub("", shown)
    if "general" in shown or re.search(r"[0#?@]", re.sub(r"s[.,]0+", "s", shown)):
        return Kind.NUMBER
    time = _TIME_OF_DAY.search(shown) is not None
    day = _DAY.search(_TIME_OF_DAY.sub("", shown)) is not None
    if day and time:
        return Kind.DATETIME
    return Kind.TIME if time else Kind.DATE if day else Kind.NUMBER
