"""Rowcall over HTTP, from Python."""

from typing import TYPE_CHECKING

from rowcall.lazy import lazily

if TYPE_CHECKING:
    from rowcall.client.answers import (
        Export,
        ExportOrder,
        ImportConfig,
        Importer,
        ImporterSummary,
        Issue,
        Item,
        Job,
        PendingItem,
        Preview,
        Readiness,
        Receipt,
        Replacement,
        Reprocessed,
        Summary,
        TemplateName,
        View,
    )
    from rowcall.client.answers.columns import ColumnAnswers, ColumnUpdate, Join
    from rowcall.client.answers.values import ValueSaid
    from rowcall.client.client import Client

__all__ = [
    "Client",
    "ColumnAnswers",
    "ColumnUpdate",
    "Export",
    "ExportOrder",
    "ImportConfig",
    "Importer",
    "ImporterSummary",
    "Issue",
    "Item",
    "Job",
    "Join",
    "PendingItem",
    "Preview",
    "Readiness",
    "Receipt",
    "Replacement",
    "Reprocessed",
    "Summary",
    "TemplateName",
    "ValueSaid",
    "View",
]

_HOMES = {
    "client": ("Client",),
    "answers.columns": ("ColumnAnswers", "ColumnUpdate", "Join"),
    "answers.values": ("ValueSaid",),
}
_ELSEWHERE = {name for names in _HOMES.values() for name in names}
__getattr__ = lazily(__name__, {**_HOMES, "answers": [name for name in __all__ if name not in _ELSEWHERE]})
