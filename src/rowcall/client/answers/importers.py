"""Importers, with their fields and rules."""

from rowcall.client.answers.wire import Wire


class ImporterSummary(Wire, frozen=True, kw_only=True):
    """An importer in a list."""

    name: str
    description: str
    target: str = ""


class ImporterField(Wire, frozen=True, kw_only=True):
    """What an importer takes."""

    name: str
    type: str
    column: str | None = None
    required: bool = False
    default: str | None = None
    aliases: list[str] = []
    help: str = ""
    demands: dict[str, str] = {}
    only_when: dict[str, list[str]] = {}
    """The jobs that have it, by mode or context; empty: all."""


class ImporterRule(Wire, frozen=True, kw_only=True):
    """What a row of an importer has to meet."""

    name: str
    field: str | None = None
    code: str
    message: str


class Importer(Wire, frozen=True, kw_only=True):
    """All about an importer."""

    name: str
    description: str
    target: str = ""
    keys: list[list[str]] = []
    on_match: str
    preview: bool = False
    atomic: bool = False
    once: bool = False
    timezone: str | None = None
    context: list[ImporterField] = []
    """What an upload has to say of its file, or may."""
    scope: list[str] | None = None
    """The context by which one job is active at a time; None: as many as come."""
    fields: list[ImporterField] = []
    rules: list[ImporterRule] = []
