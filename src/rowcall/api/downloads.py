"""Files to take away: their names, and the parts of them that were asked for."""

import re
from pathlib import Path
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import FileResponse

from rowcall.api.problems import problem
from rowcall.formats import WriteFormat
from rowcall.model import Code

MEDIA_TYPES = {
    WriteFormat.CSV: "text/csv; charset=utf-8",
    WriteFormat.NDJSON: "application/x-ndjson",
    WriteFormat.JSON: "application/json",
    WriteFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    WriteFormat.PARQUET: "application/vnd.apache.parquet",
}
_RANGE = re.compile(r"(\d{1,18})-(\d{0,18})|-(\d{1,18})")
_MOST_RANGES = 16
_UNSAFE = re.compile(r"[^A-Za-z0-9._ -]")


def disposition(name: str) -> str:
    """The header that names a file, for old clients in ASCII and for all others as it is (RFC 6266)."""
    return f"attachment; filename=\"{_UNSAFE.sub('_', name)}\"; filename*=UTF-8''{quote(name, safe='')}"


def file_answer(request: Request, path: Path, *, name: str, kind: WriteFormat, tag: str) -> Response:
    """A file that never changes, or the parts of it that were asked for."""
    etag = f'"{tag}"'
    size = path.stat().st_size
    asked = request.headers.get("range")
    if asked is not None and not _counts(request, asked, etag):
        request.scope["headers"] = [each for each in request.scope["headers"] if each[0] != b"range"]
    elif asked is not None and not _can_be_given(asked, size):
        hint = f"Ask for bytes=FIRST-LAST, from 0; at most {_MOST_RANGES} at once."
        told = f"The range can't be given: the file has {size:,} bytes."
        refusal = problem(416, Code.RANGE_NOT_SATISFIABLE, told, hint=hint)
        refusal.headers["content-range"] = f"bytes */{size}"
        return refusal
    headers = {"content-disposition": disposition(name), "etag": etag, "cache-control": "private, no-transform"}
    return FileResponse(path, headers=headers, media_type=MEDIA_TYPES[kind])


def _counts(request: Request, asked: str, etag: str) -> bool:
    """Whether a range is about bytes, and about this very file; else the whole file is given."""
    unit = asked.partition("=")[0].strip().lower()
    return unit == "bytes" and request.headers.get("if-range", etag) == etag


def _can_be_given(asked: str, size: int) -> bool:
    parts = asked.partition("=")[2].split(",", _MOST_RANGES)
    found = [_RANGE.fullmatch(part.strip()) for part in parts]
    return len(parts) <= _MOST_RANGES and all(part and _fits(part, size) for part in found)


def _fits(part: re.Match[str], size: int) -> bool:
    first, last, ending = part.groups()
    if ending is not None:
        return int(ending) > 0 and size > 0
    return int(first) < size and (not last or int(first) <= int(last))
