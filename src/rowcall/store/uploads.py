"""Uploads that come piece by piece: what is known of them, and how much is on disk."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from rowcall.errors import Final, RowcallError
from rowcall.model import Code
from rowcall.store.files.filestore import FileStore, remove_old
from rowcall.store.files.pieces import Pieces
from rowcall.store.jobs import new_id
from rowcall.store.queries import query

_MOST = 1_000
"""Unfinished uploads that an organisation may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody wants to upload, and what is to be done with it."""

    organisation: UUID
    account: str
    importer: str
    config: str
    file_name: str
    idempotency_key: str | None
    metadata: str
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An upload and how far it is. With `sha256`, all of it is there."""

    id: UUID
    account: str
    importer: str
    config: str
    file_name: str
    idempotency_key: str | None
    metadata: str
    length: int
    received: int
    sha256: str | None
    job_id: UUID | None
    error: Mapping[str, str] | None
    expires_at: datetime
    expired: bool


def add_upload(connection: Connection[Any], wanted: Wanted, *, expires: float) -> UUID:
    """A file is about to come in pieces."""
    given = {name: getattr(wanted, name) for name in Wanted.__dataclass_fields__}
    given |= {"id": new_id(), "seconds": expires, "most": _MOST}
    added = connection.cursor(row_factory=scalar_row).execute(query("add_upload"), given).fetchone()
    if added is None:
        told = f"There are {_MOST:,} unfinished uploads already."
        raise Final(Code.TOO_MANY_REQUESTS, told, hint="Finish some, or DELETE them.")
    return added


def get_upload(connection: Connection[Any], upload_id: UUID, organisation: UUID) -> Upload:
    """An upload of an organisation, unless its time is over."""
    given = {"id": upload_id, "organisation": organisation}
    found = connection.cursor(row_factory=dict_row).execute(query("get_upload"), given).fetchone()
    if found is None:
        raise Final(Code.UPLOAD_NOT_FOUND, f"There is no upload {upload_id}.", hint="Begin a new one.")
    if found["expired"]:
        raise Final(Code.UPLOAD_GONE, f"Nobody went on with upload {upload_id} in time.", hint="Begin a new one.")
    return Upload(**found)


def set_received(
    connection: Connection[Any],
    upload: Upload,
    organisation: UUID,
    received: int,
    *,
    sha256: str | None = None,
    expires: float,
) -> Upload:
    """Note how much of it is on disk; it lasts longer from then on."""
    given = {"id": upload.id, "organisation": organisation, "received": received, "sha256": sha256, "seconds": expires}
    until = connection.cursor(row_factory=scalar_row).execute(query("set_received"), given).fetchone()
    if until is None:
        raise Final(Code.UPLOAD_GONE, f"Upload {upload.id} was removed, or has become a job.")
    return replace(upload, received=received, sha256=sha256, expires_at=until)


def set_job(connection: Connection[Any], upload: Upload, organisation: UUID, job_id: UUID) -> bool:
    """Note the job that it became, in the job's own transaction; false if it has become one before."""
    given = {"id": upload.id, "organisation": organisation, "job": job_id}
    return connection.execute(query("set_upload_job"), given).rowcount == 1


def set_error(connection: Connection[Any], upload: Upload, organisation: UUID, error: RowcallError) -> None:
    """Note why no job can be made of it."""
    told = Jsonb(error.told(over_http=True))
    connection.execute(query("set_upload_error"), {"id": upload.id, "organisation": organisation, "error": told})


def delete_upload(connection: Connection[Any], upload: Upload, organisation: UUID) -> None:
    connection.execute(query("delete_upload"), {"id": upload.id, "organisation": organisation})


def remove_expired(connection: Connection[Any], store: FileStore, *, expires: float) -> int:
    """Take away uploads that nobody went on with, and pieces that no upload knows any more; how many.

    One that somebody writes to at this moment is left alone.
    """
    count = 0
    for upload_id in connection.cursor(row_factory=scalar_row).execute(query("expired_uploads")).fetchall():
        pieces = Pieces.of(store.uploads, upload_id)
        try:
            if pieces is None or pieces.lock():
                count += connection.execute(query("delete_expired"), {"id": upload_id}).rowcount
                store.abandon(store.uploads / str(upload_id))
        finally:
            if pieces:
                pieces.close()
    return count + remove_old(store.uploads, "*", expires + 86_400)
