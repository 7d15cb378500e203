"""The queue: which job to look at next. Only a nudge: what there is to do, the job's own state says.

Procrastinate's tables live in a schema of their own. A nudge is put there in the transaction that gives reason for it.
"""

from pathlib import Path
from typing import Any
from uuid import UUID

from procrastinate import App, SyncPsycopgConnector
from procrastinate.schema import SchemaManager
from psycopg import Connection

from rowcall.store.grants import require_grants
from rowcall.store.migrate import migrate, pending

SCHEMA = "rowcall_queue"
ADVANCE = "advance"
EXPORT = "export"
_NUDGES = App(connector=SyncPsycopgConnector())  # never opened: nudges go over the caller's connection


def migrate_queue(connection: Connection[Any]) -> list[str]:
    """Bring Procrastinate's tables up to date."""
    require_grants(connection, SCHEMA)
    if not pending_of_queue(connection):  # who may only use the schema is refused where it could be made
        return []
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    connection.execute(f"SET search_path TO {SCHEMA}")
    try:
        applied = migrate(connection, Path(SchemaManager.get_migrations_path()), table="queue_migration")
        if applied:
            connection.execute(_AT_HOME)
        return applied
    finally:
        connection.execute("RESET search_path")


def pending_of_queue(connection: Connection[Any]) -> list[str]:
    """The migrations of Procrastinate that the database lacks."""
    return pending(connection, Path(SchemaManager.get_migrations_path()), table="queue_migration")


# triggers fire in whatever session deletes a row
_AT_HOME = """
DO $$
DECLARE routine regprocedure;
BEGIN
    FOR routine IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND prokind = 'f' LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path TO %I, pg_temp', routine, current_schema());
    END LOOP;
END $$
"""


_GO_THERE = "SELECT current_setting('search_path'), set_config('search_path', %s, true)"


def nudge(connection: Connection[Any], job_id: UUID, task: str = ADVANCE, *, behind: int = 0) -> None:
    """Have a worker look at a job (or an export), once this transaction is committed.

    `behind`: so many of the same organisation come first, so that who has few needn't wait for who has many.
    """
    with connection.transaction():
        (path, _) = connection.execute(_GO_THERE, [SCHEMA]).fetchone() or ("", "")
        _NUDGES.configure_task(task, connection=connection, priority=-behind).defer(job_id=str(job_id))
        connection.execute("SELECT set_config('search_path', %s, true)", [path])
