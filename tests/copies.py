"""Databases that are used again: a new one costs more than most tests do, for its sessions know nothing yet.

What a test leaves behind is removed, and what then is not as it was made shows: such a database is dropped.
"""

from contextlib import ExitStack
from typing import Any, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from rowcall.store.db import Database

_MOST_USES = 60  # what was deleted still takes room in tables, and in the catalogues most of all

_OURS: LiteralString = (
    "(SELECT oid FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema')"
)
_CLEAN: LiteralString = f"""
CREATE FUNCTION pg_temp.clean(made oid, at bigint, filled oid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE drops text; name text;
BEGIN
    SET LOCAL session_replication_role TO replica;  -- rows go in any order, whoever refers to them
    SET LOCAL client_min_messages TO error;
    FOR drops IN
        SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE oid > made AND oid IN {_OURS}
        UNION ALL SELECT format('DROP EXTENSION IF EXISTS %I CASCADE', extname) FROM pg_extension WHERE oid > made
        UNION ALL SELECT format('DROP %s IF EXISTS %I.%I CASCADE', kind, nspname, relname)
        FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
        JOIN (VALUES ('r', 'TABLE'), ('p', 'TABLE'), ('v', 'VIEW'), ('m', 'MATERIALIZED VIEW'), ('f', 'FOREIGN TABLE'),
                     ('c', 'TYPE'), ('S', 'SEQUENCE')) AS k (relkind, kind) ON k.relkind = c.relkind::text
        WHERE c.oid > made AND relnamespace IN {_OURS} AND n.oid < made AND NOT EXISTS (
            SELECT FROM pg_depend d
            WHERE d.objid = c.oid AND d.deptype IN ('a', 'i') AND d.classid = 'pg_class'::regclass)
        UNION ALL SELECT format('DROP TYPE IF EXISTS %s CASCADE', t.oid::regtype) FROM pg_type t
        WHERE t.oid > made AND typtype IN ('d', 'e', 'r') AND typnamespace IN {_OURS} AND typnamespace < made
        UNION ALL SELECT format('DROP ROUTINE IF EXISTS %s CASCADE', p.oid::regprocedure) FROM pg_proc p
        WHERE p.oid > made AND pronamespace IN {_OURS} AND pronamespace < made
    LOOP EXECUTE drops; END LOOP;
    FOR name IN SELECT oid::regclass::text FROM pg_class
                WHERE relkind = 'r' AND relnamespace IN {_OURS} AND pg_relation_size(oid) > 0 AND oid <> ALL (filled)
    LOOP EXECUTE format('DELETE FROM %s', name); END LOOP;
    FOR name IN SELECT oid::regclass::text FROM pg_class WHERE oid = ANY (filled)
    LOOP EXECUTE format('DELETE FROM %s WHERE xmin::text::bigint >= %s', name, at); END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
    FROM pg_sequences WHERE last_value IS NOT NULL;
END $$"""
_FILLED: LiteralString = f"""
CREATE FUNCTION pg_temp.filled() RETURNS TABLE (id oid, digest text) LANGUAGE plpgsql AS $$
BEGIN
    FOR id IN SELECT oid FROM pg_class
              WHERE relkind = 'r' AND relnamespace IN {_OURS} AND pg_relation_size(oid) > 0 LOOP
        EXECUTE format('SELECT md5(string_agg(t::text, '','' ORDER BY t::text)) FROM %s t', id::regclass) INTO digest;
        IF digest IS NOT NULL THEN RETURN NEXT; END IF;
    END LOOP;
END $$"""
# What there is and how it is made, what is set, and who else is in the midst of something.
_SHAPE: LiteralString = f"""
SELECT count(*), sum(hashtextextended(each::text, 0)) FROM (
    SELECT (oid, relname, relnamespace, relowner, relkind, relrowsecurity, relforcerowsecurity, relacl, reloptions)
           AS each
    FROM pg_class WHERE relnamespace IN {_OURS}
    UNION ALL
    SELECT (attrelid, attnum, attname, atttypid, atttypmod, attnotnull, attidentity, attgenerated, attacl,
            attstattarget)
    FROM pg_attribute WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace IN {_OURS})
    UNION ALL SELECT (oid, proname, prosrc, proacl, proowner, prosecdef, proconfig)
    FROM pg_proc WHERE pronamespace IN {_OURS}
    UNION ALL SELECT (oid, typname, typacl, typdefault) FROM pg_type WHERE typnamespace IN {_OURS}
    UNION ALL SELECT (oid, tgenabled, tgname) FROM pg_trigger
    UNION ALL SELECT (oid, conname, convalidated, condeferrable) FROM pg_constraint
    UNION ALL SELECT (oid, polname, polqual::text) FROM pg_policy
    UNION ALL SELECT (oid, adbin::text) FROM pg_attrdef
    UNION ALL SELECT (oid, ev_enabled) FROM pg_rewrite
    UNION ALL SELECT (oid, enumlabel) FROM pg_enum
    UNION ALL SELECT (oid, nspname, nspowner, nspacl) FROM pg_namespace WHERE oid IN {_OURS}
    UNION ALL SELECT (oid, evtname) FROM pg_event_trigger
    UNION ALL SELECT (oid, defaclacl) FROM pg_default_acl
    UNION ALL SELECT (oid, extname) FROM pg_extension
    UNION ALL SELECT (oid, castfunc) FROM pg_cast
    UNION ALL SELECT (oid, collname) FROM pg_collation WHERE collnamespace IN {_OURS}
    UNION ALL SELECT (oid, oprname) FROM pg_operator WHERE oprnamespace IN {_OURS}
    UNION ALL SELECT (oid, datacl, datconnlimit, datallowconn) FROM pg_database WHERE datname = current_database()
    UNION ALL SELECT (setrole, setconfig) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
    WHERE datname = current_database()
    UNION ALL SELECT (pid, state) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND state <> 'idle'
      AND pid <> pg_backend_pid()
    UNION ALL SELECT (pid, locktype) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE datname = current_database() AND pid <> pg_backend_pid()) found
"""


class Copy:
    """A database that is a copy of a template, and can be made one again."""

    def __init__(self, server: str, url: str, template: str) -> None:
        self._server, self._name = server, Identifier(str(conninfo_to_dict(url)["dbname"]))
        with psycopg.connect(server, autocommit=True) as connection:
            make = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
            connection.execute(make.format(self._name, Identifier(template)))
        self._uses = 0
        self._stack = ExitStack()
        self.database = self._stack.enter_context(Database(url).keeping())
        self._session = self._stack.enter_context(psycopg.connect(url, autocommit=True))
        self._session.execute("SET lock_timeout TO '5s'")  # somebody may be in the midst of something for ever
        self._session.execute(_CLEAN)
        self._session.execute(_FILLED)
        found = self._session.execute(
            "SELECT oid, pg_current_xact_id()::text::bigint FROM pg_database WHERE datname = current_database()"
        )
        self._made = found.fetchone()
        self._state = self._seen()

    def is_clean_again(self) -> bool:
        """Remove what was made since; whether all is as it was."""
        self._uses += 1
        if self._uses == _MOST_USES or self._made is None:
            return False
        _, filled = self._state
        try:
            with self._session.transaction():
                self._session.execute("SELECT pg_temp.clean(%s, %s, %s)", [*self._made, [oid for oid, _ in filled]])
            return self._seen() == self._state
        except psycopg.Error:
            return False

    def _seen(self) -> tuple[Any, list[tuple[Any, ...]]]:
        filled = self._session.execute("SELECT id, digest FROM pg_temp.filled() ORDER BY id").fetchall()
        return self._session.execute(_SHAPE).fetchone(), filled

    def close(self) -> None:
        self._stack.close()

    def drop(self) -> None:
        self.close()
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(self._name))
