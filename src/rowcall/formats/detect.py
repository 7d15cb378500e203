"""Finds out what a file is, by its content. Its name is only a hint, and a mismatch is told."""

import codecs
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePath

from rowcall.errors import FileRefused
from rowcall.formats.encoding import find_encoding, wide_encoding
from rowcall.formats.inflate import compression_of, inflate, unzip
from rowcall.formats.reading import KIB, Fact, Format, Limits, LocalFile, Note, ReadOptions
from rowcall.formats.workbook.xlsx_zip import check_directory
from rowcall.model import Code

_HEAD = 64 * KIB
_MAX_NESTING = 2

_BY_SUFFIX = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".psv", ".dat", ".asc"), Format.CSV),
    **dict.fromkeys((".xlsx", ".xlsm", ".xltx", ".xltm"), Format.XLSX),
    **dict.fromkeys((".xls", ".xlt"), Format.XLS),
    **dict.fromkeys((".ods", ".ots"), Format.ODS),
    ".xlsb": Format.XLSB,
    **dict.fromkeys((".ndjson", ".jsonl", ".ldjson"), Format.NDJSON),
    **dict.fromkeys((".json", ".geojson"), Format.JSON),
    **dict.fromkeys((".parquet", ".pq"), Format.PARQUET),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), Format.ARROW),
}

_WORKBOOKS = (Format.XLSX, Format.XLSB, Format.ODS)

# What people bring by mistake. First bytes, and what to call it.
_OTHERS = (
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a media file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a Windows program"),
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"PGDMP", "a PostgreSQL dump"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"{\\rtf", "an RTF document"),
)
_NOT_TEXT = (0, *range(2, 9), *range(14, 27), 127)  # 1 and 31 are delimiters somewhere
_MARKUP = ((b"<!doctype html", "a web page"), (b"<html", "a web page"), (b"<?xml", "an XML document"))


@dataclass(frozen=True, slots=True)
class Found:
    """A plain file, what it is, and how that was found out."""

    file: LocalFile
    format: Format
    why: str
    compression: Fact | None
    notes: tuple[Note, ...]


def detect(file: LocalFile, options: ReadOptions, folder: Path) -> Found:
    """Unpack the file as far as needed (into `folder`) and find out its format."""
    limits, layers = options.limits, list[str]()
    notes: list[Note] = []
    while True:
        head = _head(file)
        layer = compression_of(head)
        entry = _one_entry(file, limits) if layer is None and head.startswith(b"PK") else None
        if layer is None and entry is None:
            break
        layers.append(layer or "zip")
        if len(layers) > _MAX_NESTING:
            raise FileRefused(
                Code.ARCHIVE_NOT_ONE_FILE,
                "The file is packed more than twice over.",
                hint="Unpack it and bring the file.",
            )
        if entry is not None:
            file = unzip(file, entry, limits, folder)
        else:
            file, more = inflate(file, layer or "", limits, folder)
            notes += more
    found, why = (options.format, "given") if options.format else _format(file, head, options)
    notes += _mismatch(file.name, found)
    compression = Fact(" in ".join(reversed(layers)), "first bytes") if layers else None
    return Found(file, found, why, compression, tuple(notes))


def _head(file: LocalFile) -> bytes:
    with file.path.open("rb") as raw:
        head = raw.read(_HEAD)
    if not head:
        raise FileRefused(Code.EMPTY_FILE, "The file is empty (0 bytes).", hint="Check that the export wrote it.")
    return head


def _one_entry(file: LocalFile, limits: Limits) -> zipfile.ZipInfo | None:
    """The only file of a zip archive; None when the archive is a workbook."""
    try:
        check_directory(file.path, limits)
        with zipfile.ZipFile(file.path) as archive:
            entries = archive.infolist()
    except FileRefused as refusal:
        if refusal.code != Code.WORKBOOK_CORRUPT or _BY_SUFFIX.get(Path(file.name).suffix.lower()) in _WORKBOOKS:
            raise
        raise FileRefused(Code.ARCHIVE_CORRUPT, refusal.message, hint=refusal.hint) from refusal
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise FileRefused(
            Code.ARCHIVE_CORRUPT, f"The zip archive can't be read: {error}.", hint="Transfer or save the file again."
        ) from error
    names = {entry.filename for entry in entries}
    if _workbook(names) or any(name.startswith(("word/", "ppt/")) for name in names) or "mimetype" in names:
        return None
    if len(entries) > limits.zip_entries:
        raise _not_one_file(f"{len(entries):,} files")
    files = [e for e in entries if not e.is_dir() and not _is_clutter(e.filename)]
    if len(files) != 1:
        shown = ", ".join(repr(e.filename[:80]) for e in files[:3]) or "nothing"
        raise _not_one_file(f"{len(files)} files ({shown}{', …' * (len(files) > 3)})")
    return files[0]


def _not_one_file(found: str) -> FileRefused:
    return FileRefused(
        Code.ARCHIVE_NOT_ONE_FILE,
        f"The zip archive holds {found}; exactly one is expected.",
        hint="Unpack it and bring the files one by one.",
    )


def _is_clutter(name: str) -> bool:
    path = PurePath(name)
    return path.parts[:1] == ("__MACOSX",) or path.name in {".DS_Store", "Thumbs.db", "desktop.ini"}


def _workbook(names: set[str]) -> Format | None:
    if "xl/workbook.bin" in names:
        return Format.XLSB
    if "xl/workbook.xml" in names or ("[Content_Types].xml" in names and any(n.startswith("xl/") for n in names)):
        return Format.XLSX
    return Format.ODS if {"content.xml", "mimetype"} <= names else None


def _format(file: LocalFile, head: bytes, options: ReadOptions) -> tuple[Format, str]:
    if head.startswith(b"PK"):
        return _zip_format(file)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return Format.XLS, "an OLE container, as Excel 97–2003 writes"
    if head.startswith((b"\x09\x08", b"\x09\x04", b"\x09\x02", b"\x09\x00")) and head[3:4] == b"\0":
        return Format.XLS, "an early Excel stream"
    if head.startswith((b"PAR1", b"PARE")):
        return Format.PARQUET, "first bytes PAR1"
    if head.startswith(b"ARROW1") or (head.startswith(b"\xff\xff\xff\xff") and len(head) > 8 and head[7] == 0):
        return Format.ARROW, "an Arrow message"
    _refuse_others(head, options.encoding)
    return _text_format(file, head, options)


def _zip_format(file: LocalFile) -> tuple[Format, str]:
    with zipfile.ZipFile(file.path) as archive:
        found = _workbook(set(archive.namelist()))
    if found is None:
        raise _unknown("a document of another Office program")
    return found, "a zip archive with the parts of a workbook"


def _refuse_others(head: bytes, encoding: str | None) -> None:
    name = next((name for magic, name in _OTHERS if head.startswith(magic)), None)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()[:64].lower()
    name = name or next((name for tag, name in _MARKUP if start.startswith(tag)), None)
    if name:
        raise _unknown(name)
    if not (encoding or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or wide_encoding(head)):
        control = sum(head.count(byte) for byte in _NOT_TEXT)
        if control > max(8, len(head) // 25) and (50 * head.count(0) > len(head) or not _is_utf8(head)):
            raise _unknown("binary data of no known kind")


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3  # the head may end inside a character
    return True


def _unknown(what: str) -> FileRefused:
    return FileRefused(
        Code.UNKNOWN_FORMAT,
        f"This is {what}, not a file of rows.",
        hint="Bring CSV, TSV, XLSX, XLS, XLSB, ODS, NDJSON, JSON, Parquet or Arrow, plain or compressed.",
    )


def _text_format(file: LocalFile, head: bytes, options: ReadOptions) -> tuple[Format, str]:
    encoding, mark = find_encoding(file.path, options.encoding)
    text = head[mark:].decode(encoding.value, "ignore").lstrip()
    if not text:
        return Format.CSV, "text"
    opening, following = text[0], text[1:].lstrip()[:1]
    if opening == "[" and (not following or following in '{[]"-0123456789tfn'):
        return Format.JSON, "starts like a JSON array"
    if opening == "{" and (not following or following in '"}'):
        alone = bool(options.records) and "\n" not in text.rstrip()  # which lie in it, then
        lines = _is_line_json(text) and not alone
        return (Format.NDJSON, "a JSON object on each line") if lines else (Format.JSON, "a JSON object")
    return Format.CSV, "text"


def _is_line_json(text: str) -> bool:
    """Whether the first line is a whole object: it ends with a brace, and another object may follow."""
    first, _, rest = text.partition("\n")
    following = rest.lstrip()[:1]
    return first.rstrip().endswith("}") and following in ("", "{")


def _mismatch(name: str, found: Format) -> list[Note]:
    suffix = Path(name).suffix.lower()
    hinted = _BY_SUFFIX.get(suffix)
    if hinted in (None, found) or {hinted, found} == {Format.JSON, Format.NDJSON}:
        return []
    return [
        Note(Code.NAME_MISMATCH, f"The name ends in {suffix}, but the content is {found.value}; the content decides.")
    ]
