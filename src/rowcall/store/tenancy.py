"""The wall between organisations inside PostgreSQL: the role that requests run under, and what it may see.

Every table that requests touch has row-level security (`rowcall.keep_apart` in the migrations). Under `rowcall_api` a
transaction sees only what its settings say: `rowcall.organisation`, `rowcall.account` (`*` for all of them). Unset,
they show nothing. For everybody else, the command line and the workers, there is no wall.
"""

import re
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, LiteralString, cast
from uuid import UUID

import psycopg
from psycopg import ClientCursor, Connection
from psycopg.rows import dict_row, scalar_row

from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.migrate import take_turns
from rowcall.store.queries import query

EVERYBODY = "*"
"""Stands for all accounts of an organisation; no account has that name."""
# Policies make statements look costly, so that PostgreSQL would compile them first: for a second, on the way to 300 ms.
_BEGIN_AS = """
    BEGIN;
    SELECT set_config('role', 'rowcall_api', true), set_config('rowcall.organisation', %(for_organisation)s, true),
           set_config('rowcall.account', %(for_account)s, true), set_config('jit', 'off', true)
"""
_ATTEMPTS = 10
_GRANT = re.compile("GRANT .* ON ")
# The role is the whole server's: others may make it, or grant it, from another database at the same moment.
_COLLISIONS = (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject, psycopg.errors.InternalError_)


@contextmanager
def seeing_only(connection: Connection[Any], organisation: UUID, account: str) -> Generator[None]:
    """A transaction that sees nothing but what belongs to an organisation, and to an account of it.

    It begins with one message to the server, which only values that are written out can be part of: every exchange
    costs a busy process more than the statement does.
    """
    ClientCursor(connection).execute(_BEGIN_AS, _whose(organisation, account))
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error):  # the session is over, and the transaction with it
            connection.rollback()
        raise
    connection.commit()


def read_only_theirs(
    connection: Connection[Any], organisation: UUID, account: str, names: Sequence[str], given: Mapping[str, Any]
) -> list[list[dict[str, Any]]]:
    """The rows of some queries, by name, in such a transaction; all of it in one exchange."""
    cursor = ClientCursor(connection, row_factory=dict_row)
    statements = "; ".join([_BEGIN_AS, *(query(name) for name in names), "COMMIT"])
    cursor.execute(statements, {**_whose(organisation, account), **given})
    found = [result.fetchall() for result in cursor.results() if result.description]
    return found[1:]


def _whose(organisation: UUID, account: str) -> dict[str, str]:
    return {"for_organisation": str(organisation), "for_account": account}


def lacking(connection: Connection[Any]) -> list[str]:
    """What must be run before requests can be served, as SQL."""
    return connection.cursor(row_factory=scalar_row).execute(query("api_role_lacks"), {}).fetchall()


def may_make_role(connection: Connection[Any]) -> bool:
    """Whether this session may make roles."""
    statement = "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
    return bool(connection.cursor(row_factory=scalar_row).execute(statement).fetchone())


def open_to_api(connection: Connection[Any]) -> None:
    """Make the role that requests run under, with the rights it needs; nothing to do costs one query."""
    for attempt in range(_ATTEMPTS):
        if not (statements := lacking(connection)):
            return
        try:
            with connection.transaction():
                take_turns(connection)
                for statement in statements:
                    connection.execute(cast("LiteralString", statement))  # names in it are quoted by PostgreSQL
        except psycopg.errors.InsufficientPrivilege as error:
            raise _not_allowed(connection) from error
        except _COLLISIONS:
            time.sleep(0.02 * attempt)
    if lacking(connection):
        raise _not_allowed(connection)


def _not_allowed(connection: Connection[Any]) -> Final:
    who = connection.info.user
    left = lacking(connection)
    hard = [statement for statement in left if not _GRANT.match(statement)]  # grants on its tables an owner can make
    return Final(
        Code.API_ROLE_MISSING,
        f"The role rowcall_api, which keeps organisations apart, isn't ready, and {who} may not make it so.",
        hint=f"Have an administrator run, in this database: {'; '.join(hard or left)};",
    )
