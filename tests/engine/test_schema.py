"""The schema that is written down and the one that the migrations make are the same."""

from pathlib import Path
from typing import Any

import psycopg

from rowcall.store import migrate
from rowcall.store.db import Database

from ..database import Server

SCHEMA = Path(migrate.__file__).parent / "schema.sql"
CATALOG = """
    SELECT 'column', format('%s.%s', c.relname, a.attname),
           concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
                     pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'rowcall'::regnamespace AND c.relkind IN ('r', 'p', 'v')
      AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'constraint', format('%s %s', conrelid::regclass, conname), pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'rowcall'::regnamespace
    UNION ALL
    SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'rowcall'
    UNION ALL
    SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'rowcall'
    UNION ALL
    SELECT 'options', relname, concat_ws(' ', relrowsecurity, relforcerowsecurity, reloptions::text)
    FROM pg_class WHERE relnamespace = 'rowcall'::regnamespace AND relkind IN ('r', 'p', 'v')
    UNION ALL
    SELECT 'policy', tablename || ' ' || policyname, concat_ws(' ', permissive, roles::text, cmd, qual, with_check)
    FROM pg_policies WHERE schemaname = 'rowcall'
    UNION ALL
    SELECT 'label', format('%s %s', enumtypid::regtype, enumsortorder), enumlabel FROM pg_enum
    UNION ALL
    SELECT 'trigger', format('%s %s', tgrelid::regclass, tgname), pg_get_triggerdef(oid)
    FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT 'function', oid::regprocedure::text, pg_get_functiondef(oid)
    FROM pg_proc WHERE pronamespace = 'rowcall'::regnamespace
"""


def _catalog(connection: psycopg.Connection[Any]) -> dict[tuple[str, str], str]:
    with connection.transaction(force_rollback=True):
        connection.execute("DROP TABLE IF EXISTS rowcall.migration")
        return {(kind, name): definition for kind, name, definition in connection.execute(CATALOG.encode())}


def test_schema_file_and_migrations_build_the_same_database(database: Database, shared_server: Server) -> None:
    with psycopg.connect(shared_server.url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE written_down")
        try:
            with psycopg.connect(shared_server.url_of("written_down")) as connection:
                connection.execute(SCHEMA.read_bytes())
                written = _catalog(connection)
        finally:
            admin.execute("DROP DATABASE written_down WITH (FORCE)")
    with database.connect() as connection:
        migrated = _catalog(connection)
    assert migrated == written
    assert ("view", "row_status") in written
