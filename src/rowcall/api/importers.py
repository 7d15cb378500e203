"""The importers of a service, for those who want to know what they take."""

from io import BytesIO
from typing import Any

from fastapi import APIRouter, Response

from rowcall.api.downloads import MEDIA_TYPES, disposition
from rowcall.api.models.wire import Text, Wire
from rowcall.api.openapi import headers, refusals
from rowcall.api.service import TheService
from rowcall.engine.documents import importer_document, importer_summary
from rowcall.export.template import write_template
from rowcall.formats import WriteFormat
from rowcall.model import Code

router = APIRouter(prefix="/v1/importers", tags=["importers"])
_XLSX = MEDIA_TYPES[WriteFormat.XLSX]
_WORKBOOK: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The workbook.",
        "headers": headers("Content-Disposition"),
        "content": {_XLSX: {"schema": {"type": "string", "format": "binary"}}},
    }
}


class ImporterSummary(Wire):
    """An importer in a list."""

    name: str
    description: str
    target: str
    """The table that rows go to; empty where the importer writes for itself."""


class ImporterField(Wire):
    """What an importer takes."""

    name: str
    type: str
    column: str
    required: bool
    default: str | None
    aliases: list[str]
    help: str
    demands: dict[str, str]
    """What values have to meet."""
    only_when: dict[str, list[str]]
    """Which jobs have it: by `mode` or a name of the context, the values of which one will do. Empty: all."""


class ImporterRule(Wire):
    """What a row has to meet."""

    name: str
    field: str | None
    code: str
    message: str


class ImporterAnswer(ImporterSummary):
    """All about an importer."""

    keys: list[list[str]]
    """Fields that a row is known by."""
    on_match: str
    preview: bool
    atomic: bool
    once: bool
    timezone: str
    context: list[ImporterField]
    """What an upload has to say of its file, or may."""
    scope: list[str] | None
    """The context by which one job is active at a time; null: as many as come."""
    fields: list[ImporterField]
    rules: list[ImporterRule]


@router.get("", responses=refusals())
def list_importers(at: TheService) -> list[ImporterSummary]:
    """The importers that there are."""
    return [ImporterSummary(**importer_summary(*each)) for each in at.registry.by_name().items()]


@router.get("/{name}", responses=refusals(Code.UNKNOWN_IMPORTER))
def read_importer(name: Text, at: TheService) -> ImporterAnswer:
    """All about one: fields, rules, key, what happens on a match."""
    told: dict[str, Any] = importer_document(at.registry.importer(name))
    return ImporterAnswer.model_validate(told)


@router.get(
    "/{name}/template.xlsx",
    response_class=Response,
    responses={**_WORKBOOK, **refusals(Code.UNKNOWN_IMPORTER, Code.DATABASE_REFUSED)},
)
def read_importer_template(name: Text, at: TheService) -> Response:
    """A workbook to fill in: a column for each field, the required ones first, with a comment on what it takes.

    Choices and look-ups can be picked.
    """
    importer, out = at.registry.importer(name), BytesIO()
    with at.pool.connection() as connection:
        write_template(connection, importer, out)
    told = {"content-disposition": disposition(f"{importer.name}.xlsx"), "cache-control": "no-store"}
    return Response(out.getvalue(), media_type=_XLSX, headers=told)
