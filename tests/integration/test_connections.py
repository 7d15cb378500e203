"""Sessions with PostgreSQL: how they are set up, what happens when it is away, what its errors mean."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any, LiteralString

import psycopg
import pytest

from rowcall.config import Settings, settings_from
from rowcall.errors import Final, Retryable, RowcallError
from rowcall.model import Code
from rowcall.store import db, keeping
from rowcall.store.db import Database, is_retryable, open_database, translated

from ..database import Server


def test_a_session_means_the_same_on_every_server(database: Database) -> None:
    with Database(f"{database.url}&application_name=mine").connect("committer") as connection:
        show = {
            name: connection.execute("SELECT current_setting(%s)", [name]).fetchone()
            for name in ("application_name", "timezone", "datestyle", "client_encoding", "extra_float_digits")
        }
        assert connection.autocommit
    assert [value for (value,) in filter(None, show.values())] == ["rowcall committer", "UTC", "ISO, YMD", "UTF8", "1"]


def test_a_transaction_left_idle_is_ended(database: Database) -> None:
    with database.connect(idle_timeout=0.1) as connection:
        connection.execute("BEGIN")
        time.sleep(0.4)
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("SELECT 1")
    assert translated(caught.value).code == Code.DATABASE_GONE


def test_what_a_killed_client_holds_is_free_at_once_even_inside_a_statement(database: Database) -> None:
    script = f"""
from rowcall.store.db import Database
with Database({database.url!r}).connect() as connection:
    connection.execute("SELECT pg_advisory_lock(7)")
    print("held", flush=True)
    connection.execute("SELECT pg_sleep(30)")
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"held\n"
        client.kill()
    began = time.monotonic()
    with database.connect() as connection:
        connection.execute("SELECT pg_advisory_lock(7)")
    assert time.monotonic() - began < 10


def test_an_absent_server_is_named_without_the_password() -> None:
    with pytest.raises(Retryable) as caught:
        Database("postgresql://me:s3cret@127.0.0.1:9/shop").connect()
    assert caught.value.code == Code.DATABASE_UNREACHABLE
    assert "at 127.0.0.1, port 9, gave no connection: Connection refused" in str(caught.value)
    assert "s3cret" not in str(caught.value) + repr(Database("postgresql://me:s3cret@127.0.0.1:9/shop"))


@pytest.mark.parametrize("url", ["me:s3cret@host", "postgresql://me:s3/cret@host/x", "postgresql://me:p@s3cret@host/x"])
def test_an_address_that_is_none_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(Final) as caught:
        Database(url).connect()
    assert caught.value.code == Code.BAD_SETTING
    assert "s3" not in str(caught.value)


def test_being_turned_away_is_final_and_being_one_too_many_is_not(server: Server) -> None:
    with pytest.raises(Final, match=r'turned us away: FATAL: *database "shop" does not exist'):
        Database(server.url_of("shop")).connect()
    with Database(server.url).connect() as connection:
        connection.execute("CREATE ROLE busy LOGIN CONNECTION LIMIT 0")
    with pytest.raises(Retryable, match="too many connections"):
        Database(server.url.replace("postgres@", "busy@")).connect()


def test_a_server_that_is_too_old_is_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "_OLDEST", 99)
    with pytest.raises(Final, match="99 or later is needed") as caught:
        database.connect()
    assert caught.value.code == Code.DATABASE_TOO_OLD


def test_reconnecting_outlasts_a_killed_server(server: Server) -> None:
    database = Database(server.url, patience=20)
    connection = database.connect()
    server.kill()
    with pytest.raises(psycopg.OperationalError) as caught:
        connection.execute("SELECT pg_sleep(5)")
    connection.close()
    assert translated(caught.value).code == Code.DATABASE_GONE
    back = Timer(0.5, server.start)
    back.start()
    with database.reconnect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    back.join()


def test_reconnecting_gives_up_when_patience_ends(server: Server) -> None:
    server.stop()
    began = time.monotonic()
    with pytest.raises(Retryable) as caught:
        Database(server.url, patience=0.5).reconnect()
    assert caught.value.code == Code.DATABASE_UNREACHABLE
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("state", "kind", "code"),
    [
        ("08006", Retryable, Code.DATABASE_GONE),
        ("57P01", Retryable, Code.DATABASE_GONE),
        ("40001", Retryable, Code.DATABASE_BUSY),
        ("40P01", Retryable, Code.DATABASE_BUSY),
        ("55P03", Retryable, Code.DATABASE_BUSY),
        ("57014", Retryable, Code.DATABASE_BUSY),
        ("53300", Retryable, Code.DATABASE_BUSY),
        ("53100", Retryable, Code.DATABASE_FULL),
        ("23505", Final, Code.DATABASE_REFUSED),
        ("42P01", Final, Code.DATABASE_REFUSED),
    ],
)
def test_errors_mean(database: Database, state: LiteralString, kind: type[RowcallError], code: Code) -> None:
    with database.connect() as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute(f"DO $$ BEGIN RAISE EXCEPTION 'so it is' USING ERRCODE = '{state}'; END $$")
    error = translated(caught.value)
    assert (type(error), error.code) == (kind, code)
    assert "so it is" in error.message
    assert is_retryable(caught.value) == (kind is Retryable)


def test_a_terminated_session_is_retryable(database: Database) -> None:
    with database.connect() as connection, database.connect() as operator:
        operator.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
        with pytest.raises(psycopg.Error) as first:
            connection.execute("SELECT 1")
        with pytest.raises(psycopg.Error) as second:
            connection.execute("SELECT 1")
    assert is_retryable(first.value)
    assert is_retryable(second.value)


def test_a_pool_lends_no_session_that_was_ended_while_it_lay_there(database: Database) -> None:
    with database.pool("serve", 1) as pool, database.connect() as operator:
        with pool.connection() as lent:
            first = lent.info.backend_pid
        operator.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
        with pool.connection() as lent:
            assert lent.execute("SELECT pg_backend_pid()").fetchone() != (first,)


def test_a_pool_asks_the_server_nothing_before_it_lends(database: Database) -> None:
    with database.pool("serve", 1) as pool, database.connect() as operator:
        with pool.connection() as lent:
            lent.execute("SELECT 'mine'")
            who = lent.info.backend_pid
        with pool.connection():
            said = operator.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [who]).fetchone()
    assert said == ("SELECT 'mine'",)


def test_a_kept_session_is_used_again_and_knows_nothing_of_its_last_use(database: Database) -> None:
    with database.keeping() as kept:
        with kept.connect("ingest") as connection:
            first = connection.info.backend_pid
            connection.execute("CREATE TEMP TABLE t (); SELECT pg_advisory_lock(7); SET search_path TO x; LISTEN y")
            with connection.transaction():
                for _ in range(6):  # so often that it is prepared
                    connection.execute("SELECT %s", [1])
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")  # others may have it
        connection.close()
        with database.connect() as operator:
            assert operator.execute("SELECT pg_try_advisory_lock(7)").fetchone() == (True,)
            named = operator.execute("SELECT application_name FROM pg_stat_activity WHERE pid = %s", [first])
            assert named.fetchone() == ("rowcall idle",)
        with kept.connect("runner", idle_timeout=7) as connection, kept.connect() as another:
            assert first == connection.info.backend_pid != another.info.backend_pid
            shown = """
                SELECT name, setting FROM pg_settings WHERE name IN ('application_name', 'search_path', 'TimeZone',
                    'transaction_timeout', 'idle_in_transaction_session_timeout')
            """
            assert {"transaction_timeout": "0", **dict(connection.execute(shown).fetchall())} == {
                "application_name": "rowcall runner",
                "search_path": '"$user", public',
                "TimeZone": "UTC",
                "transaction_timeout": "0",
                "idle_in_transaction_session_timeout": "7000",
            }
            left = connection.execute("SELECT to_regclass('pg_temp.t'), (SELECT count(*) FROM pg_prepared_statements)")
            assert left.fetchone() == (None, 0)
    with database.connect() as operator:
        await_end_of(operator, first)


def test_sessions_that_ended_or_are_in_the_middle_of_something_are_not_kept(database: Database) -> None:
    with database.keeping() as kept, database.connect() as operator:
        with kept.connect() as connection:
            ended = connection.info.backend_pid
        operator.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
        with kept.connect() as connection:
            busy = connection.info.backend_pid
            assert connection.execute("SELECT pg_backend_pid()").fetchone() == (busy,)
            connection.execute("BEGIN")
            connection.close()
        await_end_of(operator, busy)
        other = replace(kept, url=f"{kept.url}&keepalives_idle=3")
        with kept.connect() as connection, other.connect() as elsewhere:
            assert len({ended, busy, connection.info.backend_pid, elsewhere.info.backend_pid}) == 4
            last = elsewhere.info.backend_pid
        with other.connect() as elsewhere:
            assert elsewhere.info.backend_pid == last


def test_idle_sessions_are_few_and_end_after_a_while_as_old_ones_do(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.keeping() as kept, database.connect() as operator:
        with ExitStack() as stack:
            many = [stack.enter_context(kept.connect()).info.backend_pid for _ in range(10)]
        for pid in many[-2:]:  # the first to come back
            await_end_of(operator, pid)
        monkeypatch.setattr(keeping, "_OLD", 0.0)
        with kept.connect() as connection:
            old = connection.info.backend_pid
        await_end_of(operator, old)
        monkeypatch.setattr(keeping, "_IDLE", 0.0)
        with kept.connect() as connection:
            assert connection.info.backend_pid not in many
        for pid in many:
            await_end_of(operator, pid)


def await_end_of(operator: psycopg.Connection[Any], pid: int) -> None:
    deadline = time.monotonic() + 10
    while operator.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_opening_a_given_database_makes_the_tables(server: Server) -> None:
    settings = Settings(database_url=server.url, data_dir=Path("/nowhere"))
    for _ in range(2):
        with open_database(settings) as database, database.connect() as connection:
            assert connection.execute("SELECT count(*) FROM rowcall.job").fetchone() == (0,)


def test_settings_come_from_the_environment() -> None:
    given = {
        "ROWCALL_DATABASE_URL": "postgresql://db/shop",
        "ROWCALL_DATA_DIR": "/srv/rowcall",
        "ROWCALL_WORKERS": "4",
        "ROWCALL_DATABASE_PATIENCE": "2.5",
        "ROWCALL_LIMIT_COLUMNS": "10",
    }
    settings = settings_from(given)
    assert (settings.database_url, settings.data_dir) == ("postgresql://db/shop", Path("/srv/rowcall"))
    assert (settings.workers, settings.patience, settings.limits.columns) == (4, 2.5, 10)
    assert settings_from({}).database_url is None
    assert settings_from({}).batch_rows_max == 20_000


def test_data_is_kept_where_the_account_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert settings_from({}).data_dir == Path("/var/lib/rowcall")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert settings_from({"XDG_DATA_HOME": "/home/me/data"}).data_dir == Path("/home/me/data/rowcall")


@pytest.mark.parametrize(
    "given",
    [
        {"ROWCALL_WORKERS": "0"},
        {"ROWCALL_WORKERS": "two"},
        {"ROWCALL_DATABASE_PATIENCE": "-1"},
        {"ROWCALL_BATCH_ROWS_MIN": "30000"},
        {"ROWCALL_LIMIT_COLUMNS": "many"},
    ],
)
def test_a_wrong_setting_is_named(given: dict[str, str]) -> None:
    with pytest.raises(Final, match=next(iter(given))) as caught:
        settings_from(given)
    assert caught.value.code == Code.BAD_SETTING
