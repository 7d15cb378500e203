"""Rowcall: bulk data into and out of PostgreSQL, with every row accounted for."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

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

_ELSEWHERE = {
    "rowcall.model": ("Code", "Issue", "Status"),
    "rowcall.errors": ("Final", "Retryable", "RowcallError"),
    "rowcall.export.resource": ("Resource",),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the command line is quick to start without them."""
    if name not in __all__:
        raise AttributeError(f"module 'rowcall' has no attribute {name!r}")
    home = next((module for module, names in _ELSEWHERE.items() if name in names), "rowcall.importer")
    return getattr(import_module(home), name)
