"""A file on its way to a server, by tus: a cut connection costs what was under way, and the rest goes on from there."""

import base64
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import httpx

from rowcall.client.asking import Asking, Pauses
from rowcall.errors import FileRefused, RequestRefused, ServerUnavailable
from rowcall.model import Code

_PIECE = 64 * 1024
_TUS = {"Tus-Resumable": "1.0.0"}
_GO_ON = (Code.WRONG_OFFSET, Code.UPLOAD_BUSY, Code.TOO_SLOW)
"""Refusals after which it is asked how much has come, and gone on from there."""
Sent = Callable[[int, int], None]
"""Told how many bytes are sent, and of how many."""


def opened(file: str | Path | bytes | BinaryIO) -> AbstractContextManager[BinaryIO]:
    """The bytes of a file. What the caller has opened stays open."""
    if isinstance(file, bytes):
        return BytesIO(file)
    if not isinstance(file, str | Path):
        return nullcontext(file)
    try:
        return Path(file).open("rb")
    except OSError as error:
        told = f"{str(file)!r} can't be opened: {error.strerror}."
        raise FileRefused(Code.FILE_NOT_FOUND, told, hint="Check the path.") from error


def upload(asking: Asking, stream: BinaryIO, told: dict[str, str], progress: Sent) -> str:
    """Bring a file of known length; the path of the import that it becomes."""
    start = stream.tell()
    length = stream.seek(0, os.SEEK_END) - start
    metadata = ",".join(f"{name} {base64.b64encode(text.encode()).decode()}" for name, text in told.items())
    headers = {**_TUS, "Upload-Length": str(length), "Upload-Metadata": metadata}
    answer = asking.answer("POST", "/v1/uploads", headers=headers)  # one that nobody goes on with expires
    place, offset = answer.headers["location"], 0
    pauses = Pauses(asking.patience)
    failure: Exception | None = None
    while not (found := answer.headers.get("rowcall-import")):
        failure = None
        try:
            stream.seek(start + offset)
            answer = _send(asking, place, _pieces(stream, offset, length, progress), offset, length)
        except (httpx.TransportError, ServerUnavailable, RequestRefused) as error:
            failure = asking.unreachable(error) if isinstance(error, httpx.TransportError) else error
            if isinstance(failure, RequestRefused) and failure.code not in _GO_ON:
                raise
            if not pauses.take(failure.retry_after if isinstance(failure, ServerUnavailable) else 0):
                raise failure from None
            answer = asking.answer("HEAD", place, headers=_TUS)
        now = int(answer.headers["upload-offset"])
        if now > offset or (now == length and _is_busy(failure)):  # all is there, and becomes an import right now
            pauses.begin_anew()
        offset = now
    return found


def _is_busy(failure: Exception | None) -> bool:
    return isinstance(failure, RequestRefused) and failure.code == Code.UPLOAD_BUSY


def _send(asking: Asking, place: str, content: Iterator[bytes], offset: int, length: int) -> httpx.Response:
    headers = {
        **_TUS,
        "Content-Type": "application/offset+octet-stream",
        "Content-Length": str(length - offset),
        "Upload-Offset": str(offset),
    }
    return asking.once("PATCH", place, headers=headers, content=content)


def _pieces(stream: BinaryIO, sent: int, length: int, progress: Sent) -> Iterator[bytes]:
    """The rest of the file. What is added to it meanwhile is left out."""
    while sent < length:
        piece = stream.read(min(_PIECE, length - sent))
        if not piece:
            told = f"The file ended after {sent:,} of {length:,} bytes."
            raise FileRefused(Code.FILE_CORRUPT, told, hint="Import it when nobody writes to it any more.")
        yield piece
        sent += len(piece)
        progress(sent, length)


def send_unsized(
    asking: Asking, stream: BinaryIO, name: str, fields: dict[str, str], key: str, progress: Sent
) -> httpx.Response:
    """Bring a file whose length isn't known before its end, in one go: it can't be read again to go on."""
    quoted = name.replace("%", "%25")  # the server takes percent signs for what browsers mean by them
    counted = _Counted(stream, progress)

    def attempt() -> httpx.Response:
        form = {"headers": {"Idempotency-Key": key}, "data": fields, "files": {"file": (quoted, counted)}}
        try:
            return asking.once("POST", "/v1/imports", **form)
        except ServerUnavailable as error:
            if not counted.sent:
                raise
            hint = "A stream can't be read again: send a file, or the stream once more."
            raise RequestRefused(error.code, error.message, hint=hint, status=error.status or 503) from error

    return asking.tried(attempt, safe=False)


class _Counted:
    """A stream that tells how much was read of it, and has no end that could be looked for."""

    def __init__(self, stream: BinaryIO, progress: Sent) -> None:
        self._stream = stream
        self._progress = progress
        self.sent = 0

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(size)
        self.sent += len(piece)
        self._progress(self.sent, 0)
        return piece
