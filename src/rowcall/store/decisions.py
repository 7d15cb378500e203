"""What people decided of columns, by header: kept for the next file of the same importer."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from rowcall.errors import Final
from rowcall.formats.columns import normal
from rowcall.model import Code
from rowcall.store.jobs import new_id
from rowcall.store.queries import query


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDecision:
    """Which field columns with a header go to; None: they are left out."""

    id: UUID
    importer: str
    header: str
    """As headers are compared."""
    written: str
    """As the file had it."""
    target_field: str | None
    decided_by: str
    decided_at: datetime


def remember(
    connection: Connection[Any],
    organisation: UUID,
    importer: str,
    decided: Iterable[tuple[str, str | None]],
    who: str,
) -> None:
    """Keep decisions, each a header and its field. Those of the same header are replaced; of columns of one file that
    are headed alike, one that goes to a field counts before those that are left out.

    In the order of the headers, whoever keeps some: two who do so at once wait for each other, and no longer.
    """
    left_out_first = sorted(decided, key=lambda each: each[1] is not None)
    by_header = {normal(written): (written, name) for written, name in left_out_first}
    about = {"organisation": organisation, "importer": importer, "by": who}
    given = [
        {"id": new_id(), "header": header, "written": written, "field": name, **about}
        for header, (written, name) in sorted(by_header.items())
        if header
    ]
    connection.cursor().executemany(query("remember_column"), given)


def decisions_of(
    connection: Connection[Any], organisation: UUID, *, importer: str | None = None
) -> list[ColumnDecision]:
    """What was decided in an organisation, the latest first."""
    given = {"organisation": organisation, "importer": importer}
    return connection.cursor(row_factory=class_row(ColumnDecision)).execute(query("column_decisions"), given).fetchall()


def forget(connection: Connection[Any], organisation: UUID, decision: UUID) -> ColumnDecision:
    """The decision, which doesn't count any more."""
    given = {"organisation": organisation, "id": decision}
    cursor = connection.cursor(row_factory=class_row(ColumnDecision))
    found = cursor.execute(query("forget_column"), given).fetchone()
    if found is None:
        raise Final(Code.DECISION_NOT_FOUND, f"There is no decision {str(decision)!r}.")
    return found
