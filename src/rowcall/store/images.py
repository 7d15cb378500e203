"""Rows of a target as JSON, from which every value comes back as it was."""

from typing import Literal

from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.store.targets import Target, TargetColumn

_FLOATS = ("float4", "float8")


_ALL_OF_T = SQL("t.*")


def image_of(target: Target, row: Composable = _ALL_OF_T) -> Composed:
    """A row `t` of the target as JSON. What would come back otherwise (`json` loses its form) is there as a text.

    `row` is that row as one value, where `t` has more than its columns.
    """
    texts = [
        SQL("{}, {}").format(Value(name), imaged(column))
        for name, column in target.columns.items()
        if column.own_json or column.is_array or column.base in _FLOATS
    ]
    image = SQL("to_jsonb({})").format(row)
    return SQL("({} || jsonb_build_object({}))").format(image, SQL(", ").join(texts)) if texts else image


def json_of(column: TargetColumn) -> Composed:
    """A column of a row `t` as its image has it, as a text: so `1.0` is not `1.00`."""
    return SQL("coalesce({}::text, 'null')").format(imaged(column))


def imaged(column: TargetColumn, alias: Literal["s", "t"] = "t") -> Composed:
    """A column of a row as its image has it."""
    value = SQL(alias + ".{}").format(Identifier(column.name))
    if column.own_json:
        how = "to_jsonb({0}::text)"
    elif column.is_array:  # where it begins is told by its text alone, and not every collation lets it be searched
        how = """CASE WHEN starts_with({0}::text COLLATE "C", '[') THEN to_jsonb({0}::text) ELSE to_jsonb({0}) END"""
    elif column.base in _FLOATS:  # numbers of JSON have no zero below zero
        how = "CASE WHEN {0}::text = '-0' THEN to_jsonb({0}::text) ELSE to_jsonb({0}) END"
    else:
        how = "to_jsonb({0})"
    return SQL(how).format(value)


def columns_of_image(image: Composable, columns: list[TargetColumn]) -> Composed:
    """An image as a row `b` with these columns, in their own types; see `value_of`."""
    typed = [
        SQL("{} {}").format(Identifier(column.name), SQL("text" if column.own_json else column.type))  # pyright: ignore[reportArgumentType] (the catalog's own words)
        for column in columns
    ]
    return SQL("jsonb_to_record({}) AS b ({})").format(image, SQL(", ").join(typed))


def value_of(column: TargetColumn) -> Composed:
    """A column of such a row, as the target takes it."""
    return SQL("b.{}::{}" if column.own_json else "b.{}").format(
        Identifier(column.name),
        *([SQL(column.type)] if column.own_json else []),  # pyright: ignore[reportArgumentType] (the catalog's own words)
    )
