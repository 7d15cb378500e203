"""Foreign keys that refer to a table: what would lose its footing if rows of the table were deleted."""

from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.sql import Identifier

from rowcall.store.queries import query
from rowcall.store.targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Referrer:
    """A foreign key of some table that refers to the target."""

    name: str
    table_schema: str
    table_name: str
    columns: list[str]
    target_columns: list[str]
    refuses: bool
    """PostgreSQL won't delete a row that is referred to; else it deletes or changes those that refer to it."""
    seen: bool
    """Whether this role can see all of that table."""

    @property
    def identifier(self) -> Identifier:
        return Identifier(self.table_schema, self.table_name)

    @property
    def table(self) -> str:
        return f"{self.table_schema}.{self.table_name}"

    def is_of(self, target: Target) -> bool:
        """Whether the target refers to itself."""
        return (self.table_schema, self.table_name) == (target.schema, target.name)


def referrers_of(connection: Connection[Any], target: Target) -> list[Referrer]:
    """All of them."""
    table = target.identifier.as_string(connection)
    cursor = connection.cursor(row_factory=class_row(Referrer))
    return cursor.execute(query("target_referrers"), {"table": table}).fetchall()
