"""What a role that doesn't own Rowcall's tables needs of them, told as the statements that grant it."""

from typing import Any

from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.queries import query

_ALL = ("rowcall", "rowcall_queue")


def missing_grants(connection: Connection[Any], *schemas: str) -> list[str]:
    """What the session's role has to be granted on all that is in these schemas, as SQL; nothing for their owner."""
    given = {"schemas": list(schemas or _ALL)}
    return connection.cursor(row_factory=scalar_row).execute(query("role_lacks"), given).fetchall()


def require_grants(connection: Connection[Any], *schemas: str) -> None:
    """Refuse to go on with a role that would be refused later, maybe in the midst of a job; all it lacks is told."""
    if not missing_grants(connection, *schemas):
        return
    who, where = connection.info.user, connection.info.dbname
    raise Final(
        Code.GRANTS_MISSING,
        f"The role {who} may not do all that is needed with Rowcall's tables, which are another's.",
        hint=f"Have their owner run, in database {where}: {'; '.join(missing_grants(connection))};",
    )


def to_change_tables(connection: Connection[Any]) -> str:
    """What the session's role has to be granted to change Rowcall's tables, or to make them, as SQL."""
    return connection.cursor(row_factory=scalar_row).execute(query("role_to_migrate"), {}).fetchall()[0]
