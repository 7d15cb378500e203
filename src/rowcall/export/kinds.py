"""How each type of PostgreSQL leaves the database: what its text stands for, and its type in files that have types."""

from dataclasses import dataclass
from typing import Literal

import polars as pl
from psycopg.sql import SQL, Composable, Identifier

from rowcall.store.targets import TargetColumn

_DECIMAL_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Kind:
    """What the texts of a column stand for."""

    native: Literal["text", "number", "boolean", "date", "datetime", "time", "json"]
    dtype: pl.DataType
    """The type in Parquet; String where it has none that holds every value."""
    zone: bool = False
    array: bool = False

    def selected(self, column: str) -> Composable:
        """The expression that makes the column's text."""
        if self.array:
            return SQL("array_to_json({})").format(Identifier(column))
        if self.native == "boolean":
            return SQL("{}::text").format(Identifier(column))  # true, where COPY would write t
        return Identifier(column)


_TEXT = Kind("text", pl.String())
_KINDS = {
    "bool": Kind("boolean", pl.Boolean()),
    "int2": Kind("number", pl.Int16()),
    "int4": Kind("number", pl.Int32()),
    "int8": Kind("number", pl.Int64()),
    "float4": Kind("number", pl.Float32()),
    "float8": Kind("number", pl.Float64()),
    "date": Kind("date", pl.Date()),
    "timestamp": Kind("datetime", pl.Datetime("us")),
    "timestamptz": Kind("datetime", pl.Datetime("us", "UTC"), zone=True),
    "time": Kind("time", pl.String()),  # 24:00 is a time to PostgreSQL alone
    "json": Kind("json", pl.String()),
    "jsonb": Kind("json", pl.String()),
}
_TEXT_ELEMENTS = ("text", "varchar", "bpchar", "uuid", "date", "timestamp", "timestamptz")
_OWN_ELEMENTS = ("bool", "int2", "int4", "int8", "float4", "float8")


def kind_of(column: TargetColumn) -> Kind:
    """What a column's texts stand for."""
    if column.base == "numeric":
        return _numeric(column.precision, column.scale)
    if column.base.startswith("_"):
        return _array(column.base[1:])
    return _KINDS.get(column.base, _TEXT)


def _numeric(precision: int | None, scale: int | None) -> Kind:
    if precision is None or scale is None or not 0 <= scale <= precision <= _DECIMAL_DIGITS:
        return Kind("number", pl.String())  # no decimal type keeps all of its digits
    return Kind("number", pl.Decimal(precision, scale))


def _array(element: str) -> Kind:
    if element in _OWN_ELEMENTS:
        return Kind("json", pl.List(_KINDS[element].dtype), array=True)
    return Kind("json", pl.List(pl.String()) if element in _TEXT_ELEMENTS else pl.String(), array=True)
