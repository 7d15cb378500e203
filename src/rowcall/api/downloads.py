"""Files to take away: their names, and the parts of them that were asked for."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import FileResponse, StreamingResponse

from rowcall.api.problems import problem
from rowcall.formats import WriteFormat
from rowcall.model import Code
from rowcall.store.files.filestore import Reader

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


@dataclass(frozen=True, slots=True)
class Download:
    """A file that never changes."""

    name: str
    kind: WriteFormat
    size: int
    tag: str

    @property
    def etag(self) -> str:
        return f'"{self.tag}"'

    @property
    def headers(self) -> dict[str, str]:
        told = {"content-disposition": disposition(self.name), "etag": self.etag}
        return told | {"cache-control": "private, no-transform"}


def file_answer(request: Request, file: Download, source: Path | Reader) -> Response:
    """A file, or the parts of it that were asked for; nothing, for whoever has it (`If-None-Match`)."""
    if _has_it(request, file):
        return Response(status_code=304, headers=file.headers)
    ranges = _ranges(request, file)
    if ranges is None:
        return _refusal(file)
    if not isinstance(source, Path):
        return _streamed(request, file, source, ranges)
    if not ranges:
        request.scope["headers"] = [each for each in request.scope["headers"] if each[0] != b"range"]
    return FileResponse(source, headers=file.headers, media_type=MEDIA_TYPES[file.kind])


def _has_it(request: Request, file: Download) -> bool:
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    return "*" in known or file.etag in known


def _streamed(request: Request, file: Download, read: Reader, ranges: list[tuple[int, int]]) -> Response:
    """Who asks for several parts gets the whole."""
    (first, last), partial = (ranges[0], True) if len(ranges) == 1 else ((0, file.size - 1), False)
    headers = {**file.headers, "accept-ranges": "bytes", "content-length": str(last - first + 1)}
    if partial:
        headers["content-range"] = f"bytes {first}-{last}/{file.size}"
    body = read(first, last) if file.size and request.method != "HEAD" else iter(())
    return StreamingResponse(body, 206 if partial else 200, headers, MEDIA_TYPES[file.kind])


def _ranges(request: Request, file: Download) -> list[tuple[int, int]] | None:
    """The parts that are asked for, each from its first to its last byte; none for the whole, None for nonsense.

    A range that isn't about bytes, or is about another file, doesn't count.
    """
    asked = request.headers.get("range")
    unit, _, parts = (asked or "").partition("=")
    if unit.strip().lower() != "bytes" or request.headers.get("if-range", file.etag) != file.etag:
        return []
    found = [_RANGE.fullmatch(part.strip()) for part in parts.split(",", _MOST_RANGES)]
    ranges = [_range(part, file.size) for part in found if part]
    return ranges if len(ranges) == len(found) <= _MOST_RANGES and all(a <= b for a, b in ranges) else None


def _range(part: re.Match[str], size: int) -> tuple[int, int]:
    first, last, ending = part.groups()
    if ending is not None:
        return (max(0, size - int(ending)), size - 1)
    if last and int(last) < int(first):
        return (1, 0)
    return (int(first), min(int(last), size - 1) if last else size - 1)


def _refusal(file: Download) -> Response:
    hint = f"Ask for bytes=FIRST-LAST, from 0; at most {_MOST_RANGES} at once."
    told = f"The range can't be given: the file has {file.size:,} bytes."
    refusal = problem(416, Code.RANGE_NOT_SATISFIABLE, told, hint=hint)
    refusal.headers["content-range"] = f"bytes */{file.size}"
    return refusal
