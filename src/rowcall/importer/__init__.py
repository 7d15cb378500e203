"""Declaring importers: fields, rules, keys, and where to find them."""

from rowcall.importer.dates import Date, DateTime
from rowcall.importer.fields import Check, ColumnLimits, ColumnReading, Field, folded, folded_values
from rowcall.importer.fingerprint import Compared, Fingerprint, Mismatch
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
    "Compared",
    "Date",
    "DateTime",
    "Decimal",
    "Email",
    "Fail",
    "Field",
    "Fingerprint",
    "Flow",
    "Importer",
    "Integer",
    "ItemImporter",
    "ItemResult",
    "Json",
    "List",
    "Lookup",
    "Mismatch",
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
