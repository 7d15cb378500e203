"""Which rows are wanted: `age>=18`, `city=Oslo`, `deleted_at=null`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast

from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.errors import Final
from rowcall.model import Code

Operator = Literal["=", "!=", ">=", "<=", ">", "<"]
_FILTER = re.compile(r"([^<>=!]+)(>=|<=|!=|=|>|<)(.*)", re.DOTALL)

# PostgreSQL takes a bare 'text' for a value of the column's own type. A cast would cut 'abc' down to varchar(2).
# Rows without a value are different from any value.
_COMPARISONS = {
    "!=": SQL("{} IS DISTINCT FROM {}"),
    ">=": SQL("{} >= {}"),
    "<=": SQL("{} <= {}"),
    ">": SQL("{} > {}"),
    "<": SQL("{} < {}"),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition that the exported rows meet. Several values that a field may equal are alternatives."""

    field: str
    operator: Operator
    value: str | None
    """None for rows that have no value there; goes with = and != only."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The filter that a person wrote, such as `age>=18`."""
        match = _FILTER.fullmatch(text)
        if match is None:
            raise _unreadable(text)
        field, operator, value = match.groups()
        found = cls(field.strip(), cast("Operator", operator), None if value == "null" else value)
        if found.value is None and operator not in ("=", "!="):
            raise _unreadable(text)
        return found


def condition(filters: Sequence[Filter]) -> Composed:
    """The filters as SQL."""
    equal: dict[str, list[Filter]] = {}
    for each in filters:
        if each.operator == "=":
            equal.setdefault(each.field, []).append(each)
    parts = [_any_of(Identifier(field), alternatives) for field, alternatives in equal.items()]
    parts += [_compared(each) for each in filters if each.operator != "="]
    return SQL(" AND ").join(parts)


def _any_of(column: Identifier, alternatives: Sequence[Filter]) -> Composable:
    values = [Value(each.value) for each in alternatives if each.value is not None]
    parts: list[Composable] = []
    if values:
        parts.append(SQL("{} IN ({})").format(column, SQL(", ").join(values)))
    if len(values) < len(alternatives):
        parts.append(SQL("{} IS NULL").format(column))
    return SQL("({})").format(SQL(" OR ").join(parts))


def _compared(each: Filter) -> Composable:
    return _COMPARISONS[each.operator].format(Identifier(each.field), Value(each.value))


def _unreadable(text: str) -> Final:
    return Final(
        Code.BAD_OPTION,
        f"{text!r} is no filter: a field, one of = != >= <= > <, and a value are expected.",
        hint="For example age>=18 or city=Oslo; city=null and city!=null ask for rows without and with a value.",
    )
