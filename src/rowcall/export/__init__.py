"""Rows leave the database: a resource, the fields and rows wanted of it, frames, a file."""

from rowcall.export.filters import Filter
from rowcall.export.resource import Resource, declared, find_resource, known_resources
from rowcall.export.results import JobResults, select_results
from rowcall.export.rows import export_rows
from rowcall.export.run import export_to
from rowcall.export.selection import Selection, select_rows

__all__ = [
    "Filter",
    "JobResults",
    "Resource",
    "Selection",
    "declared",
    "export_rows",
    "export_to",
    "find_resource",
    "known_resources",
    "select_results",
    "select_rows",
]
