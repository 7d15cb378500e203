"""The embedded PostgreSQL: shared by processes, stopped by the last, recovered whatever was killed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.pq import PGconn, Ping

from rowcall.config import Settings
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.db import Database, open_database
from rowcall.store.embedded import EmbeddedServer, server_account

from ..database import copy_owned

_USER = """
import os, sys
from pathlib import Path
from rowcall.config import Settings
from rowcall.store import embedded
from rowcall.store.db import open_database
from rowcall.store.queries import query
query("role_lacks")
if len(sys.argv) > 2:  # after the imports, and what is read later: that account may have no way to where Python is
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
with open_database(Settings(data_dir=Path(sys.argv[1]))) as database:
    with database.connect() as connection:
        print(*connection.execute("SELECT pg_postmaster_start_time()").fetchone(), flush=True)
    sys.stdin.read()
"""


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rowcall-test-", dir="/tmp"))
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def used_once() -> Generator[Path]:
    """A data directory where the server ran and stopped, which others are copied from."""
    folder = _new_folder()
    with open_database(Settings(data_dir=folder)):
        pass
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data_dir(used_once: Path) -> Generator[Path]:
    folder = _new_folder()
    copy_owned(used_once / "postgres", folder / "postgres")
    yield folder
    with open_database(Settings(data_dir=folder)):  # whoever comes and leaves last stops the server
        pass
    assert not _runs(folder)
    shutil.rmtree(folder)


def _runs(data_dir: Path) -> bool:
    return PGconn.ping(EmbeddedServer(data_dir).url.encode()) == Ping.OK


def _postmaster(data_dir: Path) -> int:
    return int((data_dir / "postgres/data/postmaster.pid").read_text().split()[0])


@contextmanager
def _user(data_dir: Path, *options: str) -> "Generator[subprocess.Popen[str]]":
    """Another process that uses the server until its input ends; the first line it says is when the server started."""
    command = [sys.executable, "-c", _USER, str(data_dir), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as user:
        yield user
        user.communicate()


def _line(user: "subprocess.Popen[str]") -> str:
    assert user.stdout is not None
    return user.stdout.readline()


def test_processes_share_it_and_the_last_one_stops_it(data_dir: Path) -> None:
    with _user(data_dir) as first:
        started = _line(first)
        with _user(data_dir) as second:
            assert _line(second) == started
        assert _runs(data_dir)
    assert not _runs(data_dir)


def test_it_is_durable_and_closed_to_the_network(data_dir: Path) -> None:
    names = ("fsync", "full_page_writes", "synchronous_commit", "listen_addresses", "checkpoint_timeout")
    with open_database(Settings(data_dir=data_dir)) as database, database.connect() as connection:
        values = [connection.execute("SELECT current_setting(%s)", [name]).fetchone() for name in names]
    assert values == [("on",), ("on",), ("on",), ("",), ("15min",)]
    assert (data_dir / "postgres").stat().st_mode & 0o077 == 0


def test_a_killed_user_does_not_keep_it_running(data_dir: Path) -> None:
    with _user(data_dir) as user:
        _line(user)
        user.kill()
    assert _runs(data_dir)
    with open_database(Settings(data_dir=data_dir)):
        pass
    assert not _runs(data_dir)


def test_a_killed_server_is_started_again_and_has_what_was_committed(data_dir: Path) -> None:
    with open_database(Settings(data_dir=data_dir)) as database:
        with database.connect() as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
            os.kill(_postmaster(data_dir), signal.SIGKILL)
        with database.reconnect() as connection:
            assert connection.execute("SELECT one FROM kept").fetchone() == (1,)


def test_a_server_killed_with_its_users_is_started_again(data_dir: Path) -> None:
    with _user(data_dir) as user:
        _line(user)
        os.kill(_postmaster(data_dir), signal.SIGKILL)
        user.kill()
    with open_database(Settings(data_dir=data_dir)):
        assert _runs(data_dir)


def test_another_program_with_the_dead_servers_id_is_no_server(data_dir: Path) -> None:
    with open_database(Settings(data_dir=data_dir)):
        pid_file = data_dir / "postgres/data/postmaster.pid"
        left = pid_file.read_text().partition("\n")[2]
    account = server_account().uid if os.geteuid() == 0 else None  # PostgreSQL fears only those of its own account
    with subprocess.Popen(["sleep", "60"], user=account) as stranger:
        pid_file.write_text(f"{stranger.pid}\n{left}")
        pid_file.chmod(0o666)
        with open_database(Settings(data_dir=data_dir)):
            assert _runs(data_dir)
        stranger.kill()


def test_a_lock_file_that_was_never_written_is_no_server(data_dir: Path) -> None:
    (data_dir / "postgres/data/postmaster.pid").touch()
    with open_database(Settings(data_dir=data_dir)):
        assert _runs(data_dir)


@pytest.mark.parametrize("name", ["long" * 30, 'it\'s a $(place), "with" 100% `everything`'])
def test_the_data_directory_may_have_any_name(used_once: Path, name: str) -> None:
    outer = _new_folder()
    folder = outer / name
    folder.mkdir()
    copy_owned(used_once / "postgres", folder / "postgres")
    with open_database(Settings(data_dir=folder)) as database, database.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    Path(EmbeddedServer(folder).socket_dir).rmdir()
    shutil.rmtree(outer)


def test_a_socket_folder_of_somebody_else_is_refused(used_once: Path) -> None:
    outer = _new_folder()
    folder = outer / ("long" * 30)
    folder.mkdir()
    copy_owned(used_once / "postgres", folder / "postgres")
    socket_dir = EmbeddedServer(folder).socket_dir
    socket_dir.mkdir()
    socket_dir.chmod(0o777)
    with pytest.raises(Final, match="closed to all others") as caught, open_database(Settings(data_dir=folder)):
        pass
    assert caught.value.code == Code.EMBEDDED_FAILED
    socket_dir.rmdir()
    shutil.rmtree(outer)


def test_data_of_another_version_is_left_alone(used_once: Path) -> None:
    folder = _new_folder()
    copy_owned(used_once / "postgres", folder / "postgres")
    (folder / "postgres/data/PG_VERSION").write_text("16\n")
    with pytest.raises(Final, match="made by PostgreSQL 16"), open_database(Settings(data_dir=folder)):
        pass
    shutil.rmtree(folder)


def test_a_start_that_was_killed_while_making_the_data_is_made_anew() -> None:
    folder = _new_folder()
    EmbeddedServer(folder)
    (folder / "postgres/data.new").mkdir()
    (folder / "postgres/data.new/PG_VERSION").touch()
    with open_database(Settings(data_dir=folder)) as database, database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM rowcall.job").fetchone() == (0,)
    shutil.rmtree(folder)


def test_sessions_of_a_killed_server_are_waited_for(data_dir: Path) -> None:
    with open_database(Settings(data_dir=data_dir)) as database, database.connect() as busy:
        busy.execute("SELECT 1")
        os.kill(_postmaster(data_dir), signal.SIGKILL)
        began = time.monotonic()
        Database(database.url, 20, database.revive).reconnect().close()
        assert time.monotonic() - began < 10


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_plain_user_starts_it_and_root_may_join(used_once: Path) -> None:
    account = 65_534
    folder = _new_folder()
    copy_owned(used_once / "postgres", folder / "postgres")
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, account, account)
    with _user(folder, str(account)) as user:
        started = _line(user)
        with _user(folder) as root:
            assert _line(root) == started
    assert not _runs(folder)
    shutil.rmtree(folder)


def test_a_data_directory_closed_to_others_will_do() -> None:
    closed = Path(tempfile.mkdtemp(prefix="rowcall-test-", dir="/tmp"))
    try:
        with open_database(Settings(data_dir=closed / "deep" / "er")) as database, database.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        shutil.rmtree(closed)
