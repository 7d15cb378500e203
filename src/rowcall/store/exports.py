"""Exports that are written in the background: what was asked for, and how far each is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
from psycopg import Connection
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from rowcall.decoding import converted
from rowcall.errors import Final, RowcallError
from rowcall.formats import WriteFormat
from rowcall.model import EXPORT_MOVES, Code, ExportState
from rowcall.store.cursors import decoded, encoded
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Origin, new_id
from rowcall.store.queries import query


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """What is to be exported, and how: rows of a resource, or what became of the rows of a job."""

    format: WriteFormat
    resource: str | None = None
    fields: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    """As a person writes them: `age>=18`."""
    job: UUID | None = None
    view: Wanted = field(default_factory=Wanted)
    """Which rows of the job."""
    bom: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """An export in the background."""

    id: UUID
    organisation_id: UUID
    account: str
    format: WriteFormat
    request: ExportRequest
    file_name: str
    state: ExportState
    claim: UUID | None
    """Of the attempt that is under way, or the last one."""
    attempts: int
    rows: int
    total: int | None
    bytes: int
    location: str | None
    """Of the finished file, below the folder of exports."""
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    expires_at: datetime | None
    last_error: dict[str, str] | None


def create_or_find(
    connection: Connection[Any], request: ExportRequest, file_name: str, origin: Origin
) -> tuple[Export, bool]:
    """A new export, or the one that the same request made before; and whether it is new. Called in a transaction."""
    export_id = new_id()
    given = {
        "id": export_id,
        "organisation": origin.organisation,
        "account": origin.account,
        "request_id": origin.request_id,
        "client_address": origin.client_address,
        "idempotency_key": origin.idempotency_key,
        "fingerprint": origin.fingerprint,
        "resource": request.resource,
        "job": request.job,
        "format": request.format,
        "request": Jsonb(msgspec.to_builtins(request)),
        "file_name": file_name,
    }
    if connection.execute(query("add_export"), given).rowcount:
        return get_export(connection, export_id, origin.organisation), True
    key = {"organisation": origin.organisation, "key": origin.idempotency_key}
    found, fingerprint = connection.execute(query("export_by_key"), key).fetchone() or (None, None)
    if found is None or fingerprint != origin.fingerprint:
        raise Final(
            Code.KEY_REUSED,
            f"The Idempotency-Key {origin.idempotency_key!r} was used for another export.",
            hint="Send the same content, or another key.",
        )
    return get_export(connection, found, origin.organisation), False


def get_export(connection: Connection[Any], export_id: UUID, organisation: UUID) -> Export:
    """An export of an organisation."""
    given = {"id": export_id, "organisation": organisation}
    found = connection.cursor(row_factory=dict_row).execute(query("get_export"), given).fetchone()
    if found is None:
        raise Final(Code.EXPORT_NOT_FOUND, f"There is no export {str(export_id)!r}.")
    return _export(found)


def page_of_exports(
    connection: Connection[Any], organisation: UUID, *, state: ExportState | None, after: str | None, size: int
) -> tuple[list[Export], str | None]:
    """Exports of an organisation behind a cursor, the newest first, and the cursor of what follows."""
    last = decoded("exports", after, UUID) if after else None
    given = {"organisation": organisation, "state": state, "after": last, "most": size}
    rows = connection.cursor(row_factory=dict_row).execute(query("page_of_exports"), given)
    found = [_export(row) for row in rows]
    return found, encoded("exports", found[-1].id) if len(found) == size else None


def cancel(connection: Connection[Any], export_id: UUID, organisation: UUID) -> tuple[Export, bool]:
    """The export, and whether it was cancelled by this: only one that hasn't ended can be."""
    while True:  # each time around it was seen in a later state
        export = get_export(connection, export_id, organisation)
        if ExportState.CANCELLED not in EXPORT_MOVES[export.state]:
            return export, False
        given = {"id": export_id, "organisation": organisation, "before": export.state}
        if connection.execute(query("cancel_export"), given).rowcount:
            return get_export(connection, export_id, organisation), True


# -- for workers, which do the exports of every organisation


def take_next(connection: Connection[Any]) -> Export | None:
    """An export that waits, begun by this session, which has it to itself until `let_go`; None if there is none."""
    for export_id in connection.cursor(row_factory=scalar_row).execute(query("waiting_exports")).fetchall():
        locked = connection.execute(query("lock_export"), {"id": str(export_id)}).fetchone()
        if not locked or not locked[0]:
            continue
        given = {"id": export_id, "claim": uuid4()}
        if row := connection.cursor(row_factory=dict_row).execute(query("begin_export"), given).fetchone():
            return _export(row)
        let_go(connection, export_id)  # it ended meanwhile
    return None


def let_go(connection: Connection[Any], export_id: UUID) -> None:
    connection.execute(query("unlock_export"), {"id": str(export_id)})


def note(connection: Connection[Any], export: Export, *, rows: int, size: int, total: int | None) -> bool:
    """Keep how far an export is; False if it isn't ours any more."""
    return _if_ours(connection, "note_export", export, rows=rows, bytes=size, total=total)


def complete(connection: Connection[Any], export: Export, *, rows: int, size: int, location: str, days: int) -> bool:
    """The file is written; False if it isn't wanted any more."""
    return _if_ours(connection, "complete_export", export, rows=rows, bytes=size, location=location, days=days)


def fail(connection: Connection[Any], export: Export, error: RowcallError) -> bool:
    """It can't be done; False if it isn't ours any more."""
    return _if_ours(connection, "fail_export", export, error=_error(error))


def note_error(connection: Connection[Any], export: Export, error: RowcallError) -> bool:
    """Keep what interrupted it; it will be begun anew. False if it isn't ours any more."""
    return _if_ours(connection, "note_export_error", export, error=_error(error))


def put_back(connection: Connection[Any], export: Export) -> bool:
    """Leave it to another worker; False if it isn't ours any more."""
    return _if_ours(connection, "put_back_export", export)


def unattended(connection: Connection[Any]) -> list[UUID]:
    """Exports that nobody works on and nobody was told of."""
    return connection.cursor(row_factory=scalar_row).execute(query("unattended_exports")).fetchall()


def expire(connection: Connection[Any]) -> int:
    """Let go of exports whose time is over; how many. Their files are left over by this."""
    return connection.execute(query("expire_exports")).rowcount


def files_of(connection: Connection[Any], ids: Iterable[UUID]) -> Mapping[UUID, str | None]:
    """The finished file of each of these exports that has one; None for one that is or may be under way."""
    return dict(connection.execute(query("export_files"), {"ids": list(ids)}))


def _if_ours(connection: Connection[Any], name: str, export: Export, **given: Any) -> bool:
    return connection.execute(query(name), {"id": export.id, "claim": export.claim, **given}).rowcount == 1


def _export(row: dict[str, Any]) -> Export:
    told: dict[str, Any] = {
        "state": ExportState(row["state"]),
        "format": WriteFormat(row["format"]),
        "request": converted(row["request"], ExportRequest),
    }
    return Export(**{**row, **told})


def _error(error: RowcallError) -> Jsonb:
    return Jsonb(error.told(over_http=True))
