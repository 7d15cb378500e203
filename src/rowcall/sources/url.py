"""Fetches what a URL leads to, and posts to one: every connection behind the guard, every byte and second counted."""

import ssl
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import responses
from typing import TYPE_CHECKING, BinaryIO

from rowcall.errors import Final, Retryable
from rowcall.model import Code
from rowcall.sources.guard import Guard
from rowcall.sources.place import Place, joined

if TYPE_CHECKING:  # httpcore takes a quarter of a second to load, and most commands do without
    from rowcall.sources.exchange import Answer, Sending

PAUSES = (1.0, 5.0, 20.0)
"""Seconds before each further attempt."""
_LONGEST_PAUSE = 120.0
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_MAY_PASS = (408, 425, 429)
_LEFT_PACKED = ("", "identity", "gzip", "x-gzip", "zstd")
"""Files so encoded are read as packed files are, under the same limits; whatever else we can't unpack."""
_HEAD = 1024
_PAGE = (b"<!doctype html", b"<html", b"<head", b"<body")
_AGENT = "rowcall"


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """How far to go for something."""

    guard: Guard
    most: int
    """Bytes."""
    seconds: float
    """For all attempts together."""
    check: Callable[[], None] = _nothing
    """Raises when somebody wants it to end; asked several times a second."""
    tell: Callable[[int, int], None] = lambda _, __: None
    """Takes bytes so far and in all; 0 if that isn't known."""
    connect: float = 10
    quiet: float = 30
    trust: ssl.SSLContext | None = None


class _Passing(Retryable):
    """Worth another attempt; `wait` is what the server asked for."""

    wait: float = 0


def fetch(place: Place, out: BinaryIO, how: Fetching) -> int:
    """Write what is at a place; its size. What may pass is tried again, from the beginning."""
    pulse = _pulse(place, how)
    for pause in (*PAUSES, None):
        out.seek(0)
        out.truncate()
        try:
            return _followed(place, out, how, pulse)
        except _Passing as trouble:
            if pause is None or trouble.wait > _LONGEST_PAUSE:
                raise Final(trouble.code, trouble.message, hint=_again(trouble)) from trouble
            _rest(max(pause, trouble.wait), pulse)
    raise AssertionError


def _again(trouble: _Passing) -> str:
    return f"It asks to be left alone for {trouble.wait:,.0f} s." if trouble.wait else "Import it again later."


@dataclass(frozen=True, slots=True)
class Posted:
    """What became of something that was posted."""

    status: int
    retry_after: float


def post(place: Place, content: bytes, headers: Mapping[str, str], how: Fetching) -> Posted:
    """Post something, once. What is answered beside the status nobody reads."""
    from rowcall.sources.exchange import Sending

    sending = Sending(method="POST", place=place, headers={"User-Agent": _AGENT, **headers}, content=content)
    with _answered(sending, how, _pulse(place, how)) as answer:
        return Posted(answer.status, _retry_after(answer))


def _pulse(place: Place, how: Fetching) -> Callable[[], None]:
    deadline = time.monotonic() + how.seconds

    def pulse() -> None:
        how.check()
        if time.monotonic() > deadline:
            hint = "Fetch it by other means and upload it, or raise ROWCALL_URL_TIMEOUT."
            told = f"{place.shown} takes longer than the {how.seconds:,.0f} s that are given to it."
            raise Final(Code.URL_UNREACHABLE, told, hint=hint)

    return pulse


def _rest(seconds: float, pulse: Callable[[], None]) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        pulse()
        time.sleep(min(left, 0.25))


@contextmanager
def _answered(sending: "Sending", how: Fetching, pulse: Callable[[], None]) -> "Generator[Answer]":
    from rowcall.sources.exchange import exchanged

    try:
        addresses = how.guard.addresses(sending.place)
        with exchanged(
            sending, addresses, pulse, connect=how.connect, quiet=min(how.quiet, how.seconds), trust=how.trust
        ) as answer:
            yield answer
    except Retryable as error:
        if error.code != Code.URL_UNREACHABLE or isinstance(error, _Passing):
            raise
        raise _Passing(error.code, error.message) from error


def _followed(place: Place, out: BinaryIO, how: Fetching, pulse: Callable[[], None]) -> int:
    """Through redirects, each of which is a place to be checked, to the file."""
    from rowcall.sources.exchange import Sending

    headers = {"User-Agent": _AGENT, "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
    for _ in range(_MOST_REDIRECTS + 1):
        with _answered(Sending(method="GET", place=place, headers=headers), how, pulse) as answer:
            if answer.status not in _REDIRECTS or not answer.headers.get("location"):
                _require_file(place, answer)
                return _poured(place, answer, out, how)
            place = _next(place, answer.headers["location"].encode("latin-1").decode("utf-8", "replace"))
    raise Final(Code.URL_REFUSED, f"{place.shown} is behind more than {_MOST_REDIRECTS} redirects.")


def _next(place: Place, location: str) -> Place:
    there = joined(place, location)
    if (place.scheme, there.scheme) == ("https", "http"):
        raise Final(Code.URL_REFUSED, f"{place.shown} redirects from https to http.")
    return there


def _require_file(place: Place, answer: "Answer") -> None:
    if answer.status == HTTPStatus.OK:
        encoding = answer.headers.get("content-encoding", "").strip().lower()
        if encoding not in _LEFT_PACKED:
            raise Final(Code.CONTENT_MISMATCH, f"{place.shown} comes in the encoding {encoding!r}, unasked.")
        return
    told = f"{place.shown} answers {answer.status} {responses.get(answer.status, '')}".strip() + ", not with a file."
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status in _MAY_PASS:
        passing = _Passing(Code.URL_FAILED, told)
        passing.wait = _retry_after(answer)
        raise passing
    raise Final(Code.URL_FAILED, told, hint="See that the URL is right and may be read from here.")


def _retry_after(answer: "Answer") -> float:
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):  # no date, or one without its zone
        return 0


def _poured(place: Place, answer: "Answer", out: BinaryIO, how: Fetching) -> int:
    length = answer.headers.get("content-length", "")
    total = int(length) if length.isascii() and length.isdecimal() and len(length) < 19 else 0
    if total > how.most:
        raise _too_large(place, how.most)
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    head, size = b"", 0
    for piece in answer.body:
        size += len(piece)
        if size > how.most:
            raise _too_large(place, how.most)
        if len(head) < _HEAD:
            head += piece[:_HEAD]
            _require_data(place, head, kind)
        out.write(piece)
        how.tell(size, total)
    return size


def _require_data(place: Place, head: bytes, kind: str) -> None:
    """A page to log in, or one that says sorry, comes with 200 as a file would."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith(_PAGE) or (start.startswith(b"<") and kind in ("text/html", "application/xhtml+xml")):
        hint = "Perhaps one has to log in there, or the link is to a page about the file."
        raise Final(Code.CONTENT_MISMATCH, f"{place.shown} gives a web page where a file was expected.", hint=hint)


def _too_large(place: Place, most: int) -> Final:
    told = f"{place.shown} gives more than the {most:,} bytes that are taken."
    return Final(Code.FILE_TOO_LARGE, told, hint="Divide the file, compress it, or raise ROWCALL_MAX_UPLOAD.")
