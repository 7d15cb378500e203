"""A resumable upload on its way: from the bytes of requests to a job, once, whoever is killed in between."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import psycopg
from fastapi import Request
from psycopg import Connection
from psycopg_pool import PoolTimeout
from starlette.requests import ClientDisconnect

from rowcall.api import uploads as bodies
from rowcall.api.imports import begin_import
from rowcall.api.service import Caller, Service
from rowcall.api.uploads import STALLED, aside, write_blocks
from rowcall.errors import Final, RowcallError
from rowcall.model import Code
from rowcall.store import uploads
from rowcall.store.files.filestore import file_store
from rowcall.store.files.pieces import Pieces
from rowcall.store.jobs import Job
from rowcall.store.leftovers import discard
from rowcall.store.uploads import Upload, Wanted

_PASSING = (Code.UPLOAD_BUSY, Code.SCOPE_BUSY)
"""Why an upload is no job yet: the same request may be sent again, and the file is kept until then."""
ALGORITHMS = ("sha1", "sha256")
CONFIG_AT = "header/Upload-Metadata/config"


@dataclass(frozen=True, slots=True)
class Visit:
    """An upload as a request finds it."""

    at: Service
    caller: Caller
    upload: Upload

    def again(self) -> "Visit":
        """As it is now."""
        with self.at.connection(self.caller) as connection:
            return replace(self, upload=uploads.get_upload(connection, self.upload.id, self.caller.organisation))

    def noted(self, received: int, sha256: str | None = None) -> "Visit":
        """With so many bytes on disk."""
        whose, expires = self.caller.organisation, self.at.settings.upload_expires
        with self.at.connection(self.caller) as connection:
            noted = uploads.set_received(connection, self.upload, whose, received, sha256=sha256, expires=expires)
        return replace(self, upload=noted)


async def visited(at: Service, caller: Caller, upload_id: UUID) -> Visit:
    """The upload that a request is about."""

    def found() -> Visit:
        with at.connection(caller) as connection:
            return Visit(at, caller, uploads.get_upload(connection, upload_id, caller.organisation))

    return await aside(found)


def added(at: Service, caller: Caller, wanted: Wanted) -> UUID:
    """A new upload."""
    with at.connection(caller) as connection:
        return uploads.add_upload(connection, wanted, expires=at.settings.upload_expires)


def deleted(visit: Visit, pieces: Pieces | None) -> None:
    """Give an upload up."""
    with visit.at.connection(visit.caller) as connection:
        uploads.delete_upload(connection, visit.upload, visit.caller.organisation)
    if pieces:
        file_store(visit.at.settings).abandon(pieces.path)


@asynccontextmanager
async def pieces_of(visit: Visit, *, create: bool = False) -> AsyncGenerator[Pieces | None]:
    """The upload's file, which nobody else writes to meanwhile; none if it isn't here."""
    folder = file_store(visit.at.settings).uploads
    pieces = await aside(Pieces.of, folder, visit.upload.id, create=create)
    try:
        if pieces and not await aside(pieces.lock):
            told = f"Another request writes to upload {visit.upload.id}."
            raise Final(Code.UPLOAD_BUSY, told, hint="Ask for its offset when that one has ended.")
        yield pieces
    finally:
        if pieces:
            await aside(pieces.close)


async def received_with(request: Request, visit: Visit, offset: int, checksum: str | None) -> Visit:
    """The upload with what a request brings; if that is the last of it, with its job."""
    expected = Checksum.of(checksum) if checksum else None
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and offset + int(announced) > visit.upload.length:
        told = f"{int(announced):,} bytes from {offset:,} on exceed the {visit.upload.length:,} of Upload-Length."
        raise Final(Code.FILE_TOO_LARGE, told, hint="Ask with HEAD how much is there, and send the rest.")
    if visit.upload.sha256:
        _require_offset(visit.upload, offset)
        return await completed(visit, raising=True)
    async with pieces_of(visit, create=visit.upload.received == 0) as pieces:
        visit = await aside(visit.again)  # as it is now that nobody else writes to it
        _require_offset(visit.upload, offset)
        if pieces is None:
            raise _lost(visit.upload)
        await aside(_gone_on, visit, pieces)
        visit = await _written(request, visit, pieces, expected)
        if visit.upload.received == visit.upload.length:
            visit = await aside(_job_made, visit, pieces)
    return visit


def _gone_on(visit: Visit, pieces: Pieces) -> None:
    """Be ready for more, which goes to the store as it comes."""
    pieces.go_on(visit.upload.received, file_store(visit.at.settings).ahead(pieces.path, visit.upload.length))


async def _written(request: Request, visit: Visit, pieces: Pieces, expected: "Checksum | None") -> Visit:
    """Write the body. What is on disk is noted as it gets there, so that little is lost with the process."""
    offset, length = visit.upload.received, visit.upload.length
    following = asyncio.create_task(aside(pieces.catch_up))  # the hash of what another process was sent
    noted = offset

    def write(block: bytes) -> None:
        nonlocal noted
        pieces.write(block, most=length)
        if expected:
            expected.hash.update(block)
        elif noted < pieces.out.durable:
            noted = pieces.out.durable
            with suppress(psycopg.Error, PoolTimeout):  # it will be noted at the end
                visit.noted(noted)

    body = _Body(request)
    try:
        try:
            await write_blocks(body.pieces(), write)
        finally:
            await asyncio.gather(following, return_exceptions=True)
    except Final:  # longer than was announced, or it can't be written: none of it is taken
        await aside(pieces.drop, noted)
        raise
    if expected and (body.cut or not expected.holds()):
        await aside(pieces.drop, offset)
        if body.stalled:
            raise Final(Code.TOO_SLOW, f"No byte came for {STALLED:g} seconds; the piece was dropped.")
        if body.cut:
            return visit
        raise Final(Code.CHECKSUM_MISMATCH, "The piece is not what its checksum says; it was dropped.")
    received = await aside(pieces.settle)
    if received < length:
        visit = await aside(visit.noted, received)
        if body.stalled:
            raise Final(Code.TOO_SLOW, f"No byte came for {STALLED:g} seconds; those that had come are kept.")
        return visit
    return await aside(lambda: visit.noted(received, pieces.sha256()))


class _Body:
    """The bytes of a request for as long as they come."""

    def __init__(self, request: Request) -> None:
        self._stream = request.stream()
        self.stalled = self.cut = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Ends also when the connection does, or nothing comes through it."""
        try:
            while True:
                yield await asyncio.wait_for(anext(self._stream), STALLED)
        except StopAsyncIteration:
            return
        except ClientDisconnect:
            self.cut = True
        except TimeoutError:
            self.cut = self.stalled = True


async def completed(visit: Visit, *, raising: bool = False) -> Visit:
    """If all of it is there and its job is not, somebody was killed in between: make it now."""
    upload = visit.upload
    if upload.job_id or upload.received < upload.length or (upload.error and not raising):
        return visit
    try:
        async with pieces_of(visit) as pieces:
            visit = await aside(visit.again)
            return visit if visit.upload.job_id else await aside(_job_made, visit, pieces)
    except RowcallError:
        if raising:
            raise
        return await aside(visit.again)


def _job_made(visit: Visit, pieces: Pieces | None) -> Visit:
    """The upload with the job that it becomes, once."""
    upload, store = visit.upload, file_store(visit.at.settings)
    if upload.sha256 is None:
        if pieces is None:
            raise _lost(upload)
        pieces.go_on(upload.received)
        visit = visit.noted(upload.received, pieces.sha256())
    path = store.uploads / str(upload.id)
    file = store.adopt(path, visit.upload.sha256 or "", upload.length)
    sender = replace(visit.caller, account=upload.account)

    def note(connection: Connection[Any], job: Job) -> None:
        if not uploads.set_job(connection, upload, sender.organisation, job.id):
            raise Final(Code.UPLOAD_BUSY, f"Upload {upload.id} has become an import meanwhile.")

    body = bodies.Upload(file, upload.file_name, {"config": upload.config}, CONFIG_AT)
    try:
        begin_import(visit.at, sender, body, upload.importer, upload.idempotency_key, note)
    except Final as error:
        if error.code not in _PASSING:
            with visit.at.connection(sender) as connection:
                uploads.set_error(connection, upload, sender.organisation, error)
            discard(store, file, visit.at.pool.connection)
            store.abandon(path)
        raise
    store.abandon(path)
    return visit.again()


def _lost(upload: Upload) -> Final:
    told = f"What had come of upload {upload.id} is not here."
    return Final(Code.UPLOAD_GONE, told, hint="Begin a new one. Several servers have to share the folder of uploads.")


def _require_offset(upload: Upload, offset: int) -> None:
    if offset != upload.received:
        told = f"Upload-Offset is {offset:,}, and {upload.received:,} bytes have come."
        raise Final(Code.WRONG_OFFSET, told, hint="Ask with HEAD, and go on from there.")


@dataclass(frozen=True, slots=True)
class Checksum:
    """What the body of a request is said to be."""

    hash: Any  # hashlib's own, which has no public type
    expected: bytes

    @classmethod
    def of(cls, text: str) -> "Checksum":
        algorithm, _, value = text.partition(" ")
        if algorithm not in ALGORITHMS:
            raise Final(Code.BAD_REQUEST, f"Upload-Checksum is by {algorithm!r}; sha1 or sha256 is expected.")
        try:
            return cls(hashlib.new(algorithm, usedforsecurity=False), base64.b64decode(value, validate=True))
        except ValueError as error:
            raise Final(Code.BAD_REQUEST, "Upload-Checksum has no value in base64.") from error

    def holds(self) -> bool:
        return self.hash.digest() == self.expected
