"""One database for all tests of the engine, emptied before each: making a new one takes longer than most imports."""

from collections.abc import Generator

import pytest
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Identifier

from rowcall.store.db import Database

from ..database import Server

_OWN_TABLES = (
    "SELECT tablename FROM pg_tables WHERE schemaname = 'rowcall' AND tablename NOT IN ('migration', 'organisation')"
)
_OTHER_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$|rowcall$)'"


@pytest.fixture(scope="session")
def kept_database(shared_server: Server) -> Generator[Database]:
    """A database with Rowcall's tables, on each supported version."""
    with shared_server.new_database() as database:
        yield database


@pytest.fixture
def database(kept_database: Database) -> Database:
    """The same, with nothing in it."""
    with kept_database.connect() as connection, connection.transaction():
        cursor = connection.cursor(row_factory=scalar_row)
        connection.execute("SET LOCAL lock_timeout = '10s'")
        schemas = SQL(", ").join(map(Identifier, cursor.execute(_OTHER_SCHEMAS).fetchall()))
        connection.execute(SQL("DROP SCHEMA {} CASCADE").format(schemas))
        connection.execute("CREATE SCHEMA public")
        # many times quicker than to truncate: there are few rows, and each table has a file or three
        connection.execute("SET LOCAL session_replication_role = replica")
        tables = [Identifier("rowcall", name) for name in cursor.execute(_OWN_TABLES).fetchall()]
        connection.execute(SQL(";").join(SQL("DELETE FROM {}").format(table) for table in tables))
    return kept_database
