"""Writes an importer for a table that exists, or for a Table Schema: a start, for a person to go on from."""

from rowcall.importer.scaffold.schema import scaffold_schema
from rowcall.importer.scaffold.table import scaffold_table

__all__ = ["scaffold_schema", "scaffold_table"]
