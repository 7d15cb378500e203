"""Migrations: in order, once, whole or not at all, by any number of processes."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest

from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.db import Database
from rowcall.store.migrate import migrate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "0001_first.sql").write_text("CREATE TABLE first (id int); INSERT INTO first VALUES (1);")
    (tmp_path / "0003_third.sql").write_text("ALTER TABLE second ADD b text DEFAULT '100%';")
    (tmp_path / "0002_second.sql").write_text("CREATE TABLE second AS SELECT id FROM first;")
    return tmp_path


def _migrate(database: Database, folder: Path) -> list[str]:
    with database.connect("migrate") as connection:
        return migrate(connection, folder, table="test_migration")


def test_what_is_missing_is_applied_in_order_and_once(database: Database, folder: Path) -> None:
    assert _migrate(database, folder) == ["0001_first", "0002_second", "0003_third"]
    assert _migrate(database, folder) == []
    (folder / "0004_fourth.sql").write_text("CREATE TABLE fourth ();")
    assert _migrate(database, folder) == ["0004_fourth"]
    with database.connect() as connection:
        assert connection.execute("SELECT * FROM second").fetchall() == [(1, "100%")]


def test_with_nothing_to_do_nothing_is_written(database: Database, folder: Path) -> None:
    _migrate(database, folder)
    with database.connect() as connection:
        connection.execute("SET default_transaction_read_only = on")
        assert migrate(connection, folder, table="test_migration") == []


def test_several_processes_share_the_work(database: Database, folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(_migrate, [database] * 4, [folder] * 4))
    assert sorted(chain(*applied)) == ["0001_first", "0002_second", "0003_third"]


def test_a_failing_migration_leaves_nothing_and_can_be_corrected(database: Database, folder: Path) -> None:
    bad = folder / "0002_second.sql"
    bad.write_text("CREATE TABLE second (id int); CREATE TABLE first (id int);")
    with pytest.raises(Final, match=r'0002_second failed .* relation "first" already exists') as caught:
        _migrate(database, folder)
    assert caught.value.code == Code.MIGRATION_FAILED
    bad.write_text("CREATE TABLE second (id int);")
    assert _migrate(database, folder) == ["0002_second", "0003_third"]


def test_a_role_that_may_not_migrate_is_told_what_is_pending(database: Database, folder: Path) -> None:
    with database.connect() as connection:
        connection.execute("DROP ROLE IF EXISTS weak")
        connection.execute("CREATE ROLE weak LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA rowcall TO weak")
        connection.execute("SET ROLE weak")
        with pytest.raises(Final, match=r"lacks 0001_first, 0002_second, 0003_third, and role .* may not") as caught:
            migrate(connection, folder, table="test_migration")
        connection.execute("RESET ROLE")
        connection.execute("DROP OWNED BY weak")
        connection.execute("DROP ROLE weak")
    assert caught.value.code == Code.MIGRATIONS_PENDING
    assert "rowcall migrate" in caught.value.hint
    assert caught.value.hint.endswith("Or: GRANT postgres TO weak;")
    assert _migrate(database, folder) == ["0001_first", "0002_second", "0003_third"]


def test_a_killed_migrator_does_not_block_the_next(database: Database, folder: Path) -> None:
    slow = folder / "0002_second.sql"
    slow.write_text("CREATE TABLE second (id int); SELECT pg_sleep(30);")
    script = f"""
from pathlib import Path
from rowcall.store.db import Database
from rowcall.store.migrate import migrate
with Database({database.url!r}).connect("killed") as connection:
    migrate(connection, Path({str(folder)!r}), table="test_migration")
"""
    with subprocess.Popen([sys.executable, "-c", script]) as migrator, database.connect() as connection:
        asleep = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rowcall killed' AND wait_event = 'PgSleep'"
        )
        while connection.execute(asleep).fetchone() != (1,):
            assert migrator.poll() is None
            time.sleep(0.05)
        migrator.kill()
    slow.write_text("CREATE TABLE second (id int);")
    began = time.monotonic()
    assert _migrate(database, folder) == ["0002_second", "0003_third"]
    assert time.monotonic() - began < 10
