"""A file that comes with a request, stored as it comes: multipart, or the body itself."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import ParamSpec, Protocol, TypeVar
from urllib.parse import unquote

from fastapi import Request
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from rowcall.engine.failures import failure_of
from rowcall.errors import DoesNotFit, Final, UnsupportedEncoding
from rowcall.model import Code
from rowcall.store.files.filestore import Incoming, StoredFile, too_large

_BESIDE = 1 << 20
"""What a form may hold beside its file: names, texts, boundaries."""
_BLOCK = 1 << 20
STALLED = 30.0
"""Seconds after which a request is given up of which nothing comes."""
_SECONDS = 1.0
"""How long bytes wait for others to come before they are written."""
_writing = ThreadPoolExecutor(32, thread_name_prefix="upload")  # they may all wait for a disk, others must not
P = ParamSpec("P")
R = TypeVar("R")


class Takes(Protocol):
    """Where files come in."""

    def begin(self, *, most: int | None = None) -> Incoming: ...


@dataclass(slots=True)
class Upload:
    """What came: the file, its name, and the form's other fields; or a URL to fetch it from."""

    file: StoredFile | None
    name: str
    fields: dict[str, str] = field(default_factory=dict[str, str])
    config_at: str = "body/config"
    """Where in the request the configuration is."""
    url: str | None = None
    url_with_secrets: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Form:
    """What is expected beside a file: the names of a form's fields, and what has to be right with all that is told."""

    names: frozenset[str] = frozenset()
    check: Callable[[Mapping[str, str], str, str | None], object] = lambda _, __, ___: None
    """Takes the fields, none where the body is the file itself, and the file's name, and raises if the file can't be
    used with them. Called again when all has come, with the file's hash."""


@asynccontextmanager
async def received(
    request: Request, store: Takes, *, name: str, most: int, form: Form | None = None
) -> AsyncGenerator[Upload]:
    """The upload of a request. Nothing of it stays if it is cut off, too large, or told wrong things of."""
    form = form or Form()
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most + _BESIDE:
        raise too_large(most)
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    require_plain(request, gzip=kind != b"multipart/form-data")
    if kind != b"multipart/form-data":
        await aside(form.check, {}, name, None)  # before gigabytes come in vain
    incoming = await aside(store.begin, most=most)
    try:
        if kind == b"multipart/form-data":
            parts = _Parts(incoming, form.names)
            await _feed(request, parts, options.get(b"boundary", b""))
            if parts.file_name is None:
                raise Final(Code.BAD_REQUEST, "The form has no part with a file.", hint="Send it as the field `file`.")
            name, fields = parts.file_name, parts.fields
        else:
            await write_blocks(_arriving(request), incoming.write)
            fields = {}
        await aside(form.check, fields, name, incoming.sha256)
        file = await aside(incoming.keep)
    except ClientDisconnect as error:
        raise Final(Code.BAD_REQUEST, "The connection was cut before all had come.") from error
    else:
        yield Upload(file, name, fields)
    finally:
        await aside(incoming.close)


def require_plain(request: Request, *, gzip: bool = False) -> None:
    """Refuse a body that is packed for the way. A file in gzip is stored as it comes, and unpacked when it is read."""
    packed = request.headers.get("content-encoding", "identity").strip().lower()
    if packed not in (("identity", "gzip", "x-gzip") if gzip else ("identity",)):
        taken = "gzip, identity" if gzip else "identity"
        told = f"The body's Content-Encoding is {packed!r}; {taken.replace(', ', ' or ')} is expected."
        raise UnsupportedEncoding(Code.UNSUPPORTED_BODY, told, hint="Send it as it is.", taken=taken)


async def _arriving(request: Request) -> AsyncIterator[bytes]:
    """A body for as long as it comes."""
    stream = request.stream()
    try:
        while True:
            async with asyncio.timeout(STALLED):
                piece = await anext(stream)
            yield piece
    except StopAsyncIteration:
        return
    except TimeoutError as error:
        raise Final(Code.TOO_SLOW, f"No byte came for {STALLED:g} seconds.") from error


async def aside(work: Callable[P, R], *given: P.args, **options: P.kwargs) -> R:
    """Have a thread do what may wait for a disk or a network. A disk that is full is no mistake of ours."""
    try:
        return await asyncio.get_running_loop().run_in_executor(_writing, lambda: work(*given, **options))
    except OSError as error:
        raise failure_of(error) from error


async def write_blocks(stream: AsyncIterator[bytes], write: Callable[[bytes], object]) -> None:
    """Have a thread write what comes, a block at a time, while the next one comes."""
    block, begun = bytearray(), time.monotonic()
    under_way: asyncio.Task[object] | None = None
    try:
        async for piece in stream:
            block += piece
            if len(block) >= _BLOCK or time.monotonic() - begun > _SECONDS:
                if under_way:
                    await under_way
                under_way = asyncio.create_task(aside(write, bytes(block)))
                block, begun = bytearray(), time.monotonic()
        if under_way:
            await under_way
    finally:
        if under_way:  # whoever called us may close what it writes to
            await asyncio.gather(under_way, return_exceptions=True)
    await aside(write, bytes(block))


async def _feed(request: Request, parts: "_Parts", boundary: bytes) -> None:
    try:
        parser = parts.parser(boundary)

        def write(block: bytes) -> None:
            parser.write(block)
            parts.weigh(block)

        await write_blocks(_arriving(request), write)
        parser.finalize()
    except ValueError as error:  # what the parser raises
        raise Final(Code.BAD_REQUEST, f"The form can't be read: {error}.") from error
    if not parts.ended:
        raise Final(Code.BAD_REQUEST, "The form ends before its last boundary: something is missing.")


def file_name(told: str) -> str:
    """A name that a file is sent under."""
    if "\0" in told:
        raise Final(Code.BAD_REQUEST, "The name of the file has a NUL in it.")
    return told


def _no_such_field(name: str, names: frozenset[str]) -> Final:
    """Passed over, a misspelt `config` would have a file imported otherwise than was said."""
    known = f"Known are: {', '.join(sorted({*names, 'file'}))}."
    wrong = [{"at": f"body/{name}", "message": "There is no such field"}]
    return DoesNotFit(Code.BAD_REQUEST, f"A form of this kind has no field {name!r}.", hint=known, errors=wrong)


class _Parts:
    """The parts of a form as they come: the file goes to disk, all else is small and kept."""

    def __init__(self, incoming: Incoming, names: frozenset[str]) -> None:
        self.file_name: str | None = None
        self._names = names
        self.fields: dict[str, str] = {}
        self.ended = False
        self._beside = 0
        self._incoming = incoming
        self._header: tuple[bytearray, bytearray] = bytearray(), bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._name = ""
        self._text = bytearray()
        self._is_file = False

    def parser(self, boundary: bytes) -> MultipartParser:
        if not boundary:
            raise Final(Code.BAD_REQUEST, "The form's boundary is missing from its content type.")
        callbacks: dict[str, Callable[..., None]] = {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._end_form,
        }
        return MultipartParser(boundary, callbacks)  # pyright: ignore[reportArgumentType] (its own TypedDict)

    def weigh(self, block: bytes) -> None:
        """Count what came, of which the file's own bytes are taken off; the rest stays in memory."""
        self._beside += len(block)
        if self._beside > _BESIDE:
            raise Final(Code.BAD_REQUEST, "The form holds more than a megabyte beside its file.")

    def _begin(self) -> None:
        self._headers, self._text = {}, bytearray()

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header[0].extend(data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1].extend(data[start:end])

    def _end_header(self) -> None:
        name, value = self._header
        self._headers[bytes(name).lower()] = bytes(value)
        self._header = bytearray(), bytearray()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = options.get(b"name", b"").decode(errors="replace")
        # some clients give a name of a file to every part, texts too
        self._is_file = self._name == "file" or (b"filename" in options and self._name not in self._names)
        if self._is_file:
            if self.file_name is not None:
                raise Final(Code.BAD_REQUEST, "The form has two files; one is expected.")
            self.file_name = file_name(unquote(options.get(b"filename", b"upload").decode(errors="replace")))

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self._incoming.write(data[start:end])
            self._beside -= end - start
            return
        self._text += data[start:end]

    def _end(self) -> None:
        if self._is_file:
            return
        if self._name not in self._names:
            raise _no_such_field(self._name, self._names)
        if self._name in self.fields:
            raise Final(Code.BAD_REQUEST, f"The form has the field {self._name!r} twice.")
        self.fields[self._name] = self._text.decode(errors="replace")

    def _end_form(self) -> None:
        self.ended = True
