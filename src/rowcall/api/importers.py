"""The importers of a service, for those who want to know what they take."""

from typing import Any

from fastapi import APIRouter

from rowcall.api.models.wire import Text, Wire
from rowcall.api.openapi import refusals
from rowcall.api.service import TheService
from rowcall.engine.documents import importer_document, importer_summary
from rowcall.model import Code

router = APIRouter(prefix="/v1/importers", tags=["importers"])


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
