"""`open_rows`: from any file to its rows."""

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from rowcall.errors import FileRefused
from rowcall.formats.arrow.opening import open_arrow, open_parquet
from rowcall.formats.csv.rows import open_csv
from rowcall.formats.detect import Found, detect
from rowcall.formats.encoding import Utf8Stream, find_encoding
from rowcall.formats.json.rows import open_json, open_ndjson
from rowcall.formats.reading import MIB, Detected, Fact, Format, LocalFile, Reading, ReadOptions
from rowcall.formats.workbook.opening import open_workbook
from rowcall.model import Code

_WORKBOOKS = (Format.XLSX, Format.XLS, Format.XLSB, Format.ODS)
_OPENERS = {
    Format.CSV: open_csv,
    Format.NDJSON: open_ndjson,
    Format.JSON: open_json,
    Format.PARQUET: open_parquet,
    Format.ARROW: open_arrow,
    **dict.fromkeys(_WORKBOOKS, open_workbook),
}


def open_rows(file: str | Path | BinaryIO, options: ReadOptions | None = None, *, name: str | None = None) -> Reading:
    """Open a file of any supported format, plain or compressed, and find out all about it but its rows.

    `file` is a path or a binary stream (which is first copied to disk); `name` is what its bringer called it.
    Raises FileRefused when the file can't be read; a record that can't is a BadRecord of its batch instead.
    """
    options = options or ReadOptions()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowcall-")))
        found = detect(_on_disk(file, name, folder), options, folder)
        _check_sheet(found, options)
        base = Detected(Fact(found.format.value, found.why), compression=found.compression, notes=found.notes)
        plain, base = _as_utf8(found, options, base, folder)
        reading = _OPENERS[found.format](plain, options, base)
        reading.close_with(stack.pop_all().close)
        return reading


def _check_sheet(found: Found, options: ReadOptions) -> None:
    if options.sheet not in (None, 1) and found.format not in _WORKBOOKS:  # the first is the file itself
        told = f"The sheet {options.sheet!r} is asked for, and a file of the format {found.format.value} has none."
        raise FileRefused(Code.BAD_OPTION, told, hint="Leave it out, or see whether this is the file that was meant.")


def _on_disk(file: str | Path | BinaryIO, name: str | None, folder: Path) -> LocalFile:
    if not isinstance(file, (str, Path)):
        path = folder / "stream"
        with path.open("wb") as out:
            shutil.copyfileobj(file, out, MIB)
        return LocalFile(path, name or "stream")
    path = Path(file)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist" if not path.exists() else "is not a regular file"
        raise FileRefused(Code.FILE_NOT_FOUND, f"{str(file)!r} {what}.", hint="Check the path.")
    try:
        path.open("rb").close()
    except OSError as error:
        raise FileRefused(Code.FILE_NOT_FOUND, f"{str(file)!r} can't be opened: {error.strerror}.") from error
    return LocalFile(path, name or path.name)


def _as_utf8(found: Found, options: ReadOptions, base: Detected, folder: Path) -> tuple[LocalFile, Detected]:
    """JSON is read as UTF-8 only: a file in another encoding is converted first."""
    if found.format not in (Format.JSON, Format.NDJSON):
        return found.file, base
    encoding, mark = find_encoding(found.file.path, options.encoding)
    base = replace(base, encoding=encoding)
    if encoding.value == "utf-8":
        return found.file, base
    path = folder / "utf-8"
    with found.file.path.open("rb") as raw, path.open("wb") as out:
        raw.seek(mark)
        stream = Utf8Stream(raw, encoding.value)
        while text := stream.read(MIB):
            out.write(text)
    return LocalFile(path, found.file.name), base
