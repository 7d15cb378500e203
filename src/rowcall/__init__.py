"""Rowcall: bulk data into and out of PostgreSQL, with every row accounted for."""

from importlib.metadata import version
from typing import TYPE_CHECKING

from rowcall.lazy import lazily

if TYPE_CHECKING:
    from rowcall.errors import Final, Retryable, RowcallError
    from rowcall.export.resource import Resource
    from rowcall.importer import (
        Boolean,
        Choice,
        Date,
        DateTime,
        Decimal,
        Email,
        Fail,
        Field,
        Flow,
        Importer,
        Integer,
        ItemImporter,
        ItemResult,
        Json,
        List,
        Lookup,
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
    "Code",
    "Date",
    "DateTime",
    "Decimal",
    "Email",
    "Fail",
    "Field",
    "Final",
    "Flow",
    "Importer",
    "Integer",
    "Issue",
    "ItemImporter",
    "ItemResult",
    "Json",
    "List",
    "Lookup",
    "Resource",
    "Retryable",
    "RowOutcome",
    "RowcallError",
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
    "errors": ("Final", "Retryable", "RowcallError"),
    "export.resource": ("Resource",),
    "model": ("Code", "Issue", "Status"),
}
_ELSEWHERE = {"__version__", *(name for names in _HOMES.values() for name in names)}
__getattr__ = lazily(__name__, {**_HOMES, "importer": [name for name in __all__ if name not in _ELSEWHERE]})
