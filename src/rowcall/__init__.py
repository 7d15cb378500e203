"""Rowcall: bulk data into and out of PostgreSQL, with every row accounted for."""

from importlib.metadata import version
from typing import TYPE_CHECKING

from rowcall.lazy import lazily

if TYPE_CHECKING:
    from rowcall.client import Client
    from rowcall.errors import Final, RequestRefused, Retryable, RowcallError, ServerUnavailable
    from rowcall.export.resource import Resource
    from rowcall.importer import (
        Boolean,
        Choice,
        Compared,
        Date,
        DateTime,
        Decimal,
        Email,
        Fail,
        Field,
        Fingerprint,
        Flow,
        Importer,
        Integer,
        ItemImporter,
        ItemResult,
        Json,
        List,
        Lookup,
        Mismatch,
        RowOutcome,
        Skip,
        Text,
        Update,
        Uuid,
        Version,
        WholeFileImporter,
        rule,
    )
    from rowcall.model import Code, Issue, Status

__version__ = version("rowcall")
__all__ = [
    "Boolean",
    "Choice",
    "Client",
    "Code",
    "Compared",
    "Date",
    "DateTime",
    "Decimal",
    "Email",
    "Fail",
    "Field",
    "Final",
    "Fingerprint",
    "Flow",
    "Importer",
    "Integer",
    "Issue",
    "ItemImporter",
    "ItemResult",
    "Json",
    "List",
    "Lookup",
    "Mismatch",
    "RequestRefused",
    "Resource",
    "Retryable",
    "RowOutcome",
    "RowcallError",
    "ServerUnavailable",
    "Skip",
    "Status",
    "Text",
    "Update",
    "Uuid",
    "Version",
    "WholeFileImporter",
    "__version__",
    "rule",
]

_HOMES = {
    "client": ("Client",),
    "errors": ("Final", "RequestRefused", "Retryable", "RowcallError", "ServerUnavailable"),
    "export.resource": ("Resource",),
    "model": ("Code", "Issue", "Status"),
}
_ELSEWHERE = {"__version__", *(name for names in _HOMES.values() for name in names)}
__getattr__ = lazily(__name__, {**_HOMES, "importer": [name for name in __all__ if name not in _ELSEWHERE]})
