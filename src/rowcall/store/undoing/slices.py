"""The temporary tables in which it is found out what can be taken back, and is noted what was."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Composed, Identifier
from psycopg.sql import Literal as Value

from rowcall.store.grid import Wanted
from rowcall.store.queries import query
from rowcall.store.referrers import Referrer
from rowcall.store.targets import Target


def same_row(target: Target, key: SQL) -> Composed:
    """Whether a key, as texts, is that of the row `t`."""
    columns = [target.columns[name] for name in target.primary_key]
    return SQL(" AND ").join(
        column.equal(
            Identifier("t", column.name),
            SQL("({})[{}]::{}").format(key, place, SQL(column.type)),  # pyright: ignore[reportArgumentType] (the catalog's own words)
        )
        for place, column in enumerate(columns, 1)
    )


@dataclass(frozen=True, slots=True)
class Versions:
    """How rows of a target are told to be versions of the same thing."""

    column: str
    """Which has their number."""
    keys: tuple[tuple[str, ...], ...]
    """Columns that they agree in, in one or the other of these ways."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """What is taken back: rows of a job, from a target."""

    job_id: UUID
    target: Target
    referrers: Sequence[Referrer]
    which: Wanted
    versions: Versions | None = None

    @property
    def at(self) -> Composed:
        """Where the target's row `t` of a row `u` is that was found. The key tells in which partition to look."""
        place = SQL("t.ctid = u.tid AND t.tableoid = u.part AND t.xmin = u.now")
        key = [same_row(self.target, SQL("u.key"))] if self.target.kind == "p" else []
        return SQL(" AND ").join([place, *key])

    @property
    def outcome(self) -> Composed:
        """The outcome `o` of a row `u` that was found."""
        return SQL(query("undoing_outcome")).format(job=Value(self.job_id))

    @property
    def row(self) -> Composed:
        """The target's row `t` of it."""
        return SQL(query("undoing_target")).format(own=self.target.own_rows, at=self.at)

    @property
    def needs_no_asking(self) -> bool:
        """Whether PostgreSQL itself refuses to delete any row that something stands in the way of."""
        return self.versions is None and all(referrer.refuses for referrer in self.referrers)

    @property
    def refers_to_itself(self) -> bool:
        """Whether a row of the target may refer to another one."""
        return any(referrer.is_of(self.target) for referrer in self.referrers)


def prepare(connection: Connection[Any]) -> None:
    """Make the temporary tables of this session. Outside a transaction, so that they outlive one that is undone."""
    connection.execute(query("undoing_tables"))


def left(connection: Connection[Any]) -> list[int]:
    """The rows that are to be taken back, by all that is known so far, in order."""
    return connection.cursor(row_factory=scalar_row).execute(query("undoing_left")).fetchall()


def count_done(connection: Connection[Any]) -> int:
    """How many were."""
    return connection.cursor(row_factory=scalar_row).execute(query("undoing_done")).fetchone() or 0


def refuse(connection: Connection[Any], issues: dict[int, str]) -> None:
    """Note why rows can't be taken back: issues as JSON."""
    connection.execute(query("undoing_refused"), {"rows": list(issues), "issues": list(issues.values())})
