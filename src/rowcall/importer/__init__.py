"""Declaring importers: fields, rules, keys, and where to find them."""

from rowcall.importer.dates import Date, DateTime
from rowcall.importer.fields import Check, ColumnLimits, ColumnReading, Field, folded, folded_values
from rowcall.importer.importer import Importer, ItemImporter, WholeFileImporter
from rowcall.importer.lookups import Lookup
from rowcall.importer.matching import Fail, Flow, OnMatch, OnMissing, Skip, Update, Version
from rowcall.importer.numbers import Boolean, Decimal, Integer
from rowcall.importer.outcomes import ItemResult, RowOutcome
from rowcall.importer.rules import Rule, rule
from rowcall.importer.texts import Choice, Email, Json, List, Text, Uuid

__all__ = [
    "Boolean",
    "Check",
    "Choice",
    "ColumnLimits",
    "ColumnReading",
    "Date",
    "DateTime",
    "Decimal",
    "Email",
    "Fail",
    "Field",
    "Flow",
    "Importer",
    "Integer",
    "ItemImporter",
    "ItemResult",
    "Json",
    "List",
    "Lookup",
    "OnMatch",
    "OnMissing",
    "RowOutcome",
    "Rule",
    "Skip",
    "Text",
    "Update",
    "Uuid",
    "Version",
    "WholeFileImporter",
    "folded",
    "folded_values",
    "rule",
]
