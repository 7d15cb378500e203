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
        Reprocessed,
        Summary,
        View,
    )
    from rowcall.client.client import Client

__all__ = [
    "Client",
    "Export",
    "ExportOrder",
    "ImportConfig",
    "Importer",
    "ImporterSummary",
    "Issue",
    "Item",
    "Job",
    "PendingItem",
    "Preview",
    "Readiness",
    "Receipt",
    "Reprocessed",
    "Summary",
    "View",
]

_HOMES = {"client": ("Client",), "answers": [name for name in __all__ if name != "Client"]}
__getattr__ = lazily(__name__, _HOMES)
