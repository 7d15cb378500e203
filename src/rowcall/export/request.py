"""An export that was asked for over HTTP is looked up, checked and written."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from psycopg import Connection, IsolationLevel

from rowcall.errors import Final
from rowcall.export.filters import Filter
from rowcall.export.resource import Resource
from rowcall.export.results import JobResults, select_results
from rowcall.export.rows import BLOCK
from rowcall.export.run import export_to
from rowcall.export.selection import Selection, select_rows
from rowcall.formats import WriteOptions
from rowcall.formats.reading import KIB, MIB
from rowcall.importer.declaration import nearest
from rowcall.model import Code
from rowcall.store.exports import ExportRequest
from rowcall.store.jobs import get_job

_SMALL_BLOCK = 256 * KIB


@contextmanager
def snapshot(connection: Connection[Any], organisation: UUID) -> Generator[None]:
    """A transaction that sees the database as it is at one moment, as an organisation may see it."""
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        connection.execute("SELECT set_config('rowcall.organisation', %s, true)", [str(organisation)])
        yield


def choose(
    connection: Connection[Any], request: ExportRequest, resources: Mapping[str, Resource], organisation: UUID
) -> Selection | JobResults:
    """What a request asks for, if there is such a thing and the organisation may have it."""
    if request.job is not None:
        return select_results(
            connection, get_job(connection, str(request.job), organisation=organisation), request.view
        )
    filters = [Filter.parse(text) for text in request.filters]
    resource = resource_of(request.resource or "", resources)
    return select_rows(connection, resource, fields=request.fields, filters=filters, organisation=organisation)


def resource_of(name: str, resources: Mapping[str, Resource]) -> Resource:
    """A resource that a pack declares. Other tables are for those who have the database itself."""
    if name not in resources:
        told = f"There is no resource {name!r}. {nearest(name, resources)}"
        hint = f"Known are: {', '.join(sorted(resources))}." if resources else "No pack declares one."
        raise Final(Code.UNKNOWN_RESOURCE, told.strip(), hint=hint)
    return resources[name]


def export_request(
    connection: Connection[Any],
    chosen: Selection | JobResults,
    request: ExportRequest,
    target: Path | BinaryIO,
    *,
    small: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write what was chosen as the request says; how many rows. If `small`, with less memory, and less quickly."""
    options = WriteOptions(bom=request.bom)
    block = BLOCK
    if small:
        options, block = replace(options, row_group=MIB), _SMALL_BLOCK
    return export_to(connection, chosen, target, request.format, options=options, block=block, progress=progress)
