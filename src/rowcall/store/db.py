"""Where the database is, how a session with it is set up, and what its errors mean."""

import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, LiteralString

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from rowcall.config import Settings
from rowcall.errors import Final, Retryable, RowcallError
from rowcall.model import Code
from rowcall.store.grants import require_grants
from rowcall.store.keeping import Keep, has_spoken
from rowcall.store.migrate import migrate

_OLDEST = 15
_HAS_TRANSACTION_TIMEOUT = 17_00_00

# Our side of the wire: a server that vanished is noticed in seconds. The address given may say otherwise.
_CLIENT: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5_000,
}

# The server's side: values mean the same everywhere, and the claims of a client that vanished are free in seconds.
# Rows are looked up by key or place, thousands at a time: that must not turn into a scan of the whole target.
# Nor is any statement worth compiling: what PostgreSQL expects of a job's size is a guess.
# Set by a statement, not at connecting: poolers such as PgBouncer refuse options that they don't know.
_NOTICED = {
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "5s",
}
"""By which a client that vanished is noticed, also while its session is idle."""
_SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "extra_float_digits": "1",
    "random_page_cost": "1.1",
    "jit": "off",
    "client_connection_check_interval": "500ms",
    **_NOTICED,
}
_SET: LiteralString = "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) setting (name, value)"
_NO_ENDLESS_BATCH = {"transaction_timeout": "15min"}  # from PostgreSQL 17 on
_BATCHES = ("worker", "ingest")
_NO_WAIT_FOR_DISK = {"synchronous_commit": "off"}
"""For rows that are brought in: should the server crash, they come from the file again. Later commits wait for all."""

# PostgreSQL tells why it turned a client away only in words. These won't change by waiting.
_TURNED_AWAY = ("authentication failed", "no password supplied", "does not exist", "pg_hba.conf", "permission denied")

_GONE = ("08", "57P", "25P03", "25P04")  # connection lost; server stops or starts; session ended by a timeout
_BUSY = ("40001", "40P01", "55P03", "57014", "53200", "53300")  # collision, deadlock, lock, cancel, memory, connections
_FULL = "53100"
_NEEDED = {"sequence": "USAGE", "schema": "USAGE", "table": "SELECT, INSERT, UPDATE"}
_DENIED = re.compile(rf"^permission denied for ({'|'.join(_NEEDED)}) (\S+)$")


_LENT_WITHIN = 5.0
"""Seconds that a request waits for a session before it is told that there is none."""


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Database:
    """Where Rowcall's tables and the application's own live; gives out connections."""

    url: str = field(repr=False)  # it may hold a password
    patience: float = 60
    revive: Callable[[], None] = field(default=_nothing, repr=False)
    """Starts the server again if it is ours and died."""
    process: str = ""
    """The worker process that the sessions belong to; told in their names."""
    keep: Keep | None = field(default=None, repr=False, compare=False)
    """Where sessions wait for their next use. Without it, each is a new one."""

    @contextmanager
    def keeping(self) -> Generator["Database"]:
        """The same, with sessions that are used again for as long as this lasts."""
        keep = Keep(_NOTICED)
        try:
            yield replace(self, keep=keep)
        finally:
            keep.close()

    def connect(self, role: str = "command", *, idle_timeout: float = 5) -> Connection[TupleRow]:
        """A session, in autocommit. A transaction left idle for longer than `idle_timeout` seconds is ended."""
        try:
            connection = self._session(role)
        except psycopg.OperationalError as error:
            raise _no_connection(_parameters(self.url), error) from error
        try:
            _require_version(connection)
            connection.execute(*session_settings(idle_timeout, self._settings_for(role, connection)))
        except psycopg.Error as error:
            connection.close()
            raise translated(error) from error
        except Final:
            connection.close()
            raise
        return connection

    def _session(self, role: str) -> Connection[TupleRow]:
        if self.keep is None:
            return psycopg.connect(self.conninfo(role), autocommit=True)
        return self.keep.lend(self.conninfo("idle"))

    def _settings_for(self, role: str, connection: Connection[TupleRow]) -> dict[str, str]:
        has_timeout = connection.info.server_version >= _HAS_TRANSACTION_TIMEOUT
        return {
            "application_name": self._name(role),
            **(_NO_ENDLESS_BATCH if role in _BATCHES and has_timeout else {}),
            **(_NO_WAIT_FOR_DISK if role == "ingest" else {}),
        }

    def _name(self, role: str) -> str:
        return f"rowcall {role} {self.process}".strip()

    def conninfo(self, role: str) -> str:
        """The address for sessions with this role."""
        return _conninfo(self.url, self._name(role))

    def pool(self, role: str, size: int) -> ConnectionPool[Connection[TupleRow]]:
        """Sessions to be lent out, in autocommit; not open yet."""
        return ConnectionPool(
            self.conninfo(role),
            kwargs={"autocommit": True},
            min_size=1,
            max_size=size,
            timeout=_LENT_WITHIN,
            open=False,
            configure=_set_up,
            check=_still_there,
        )

    def reconnect(self, role: str = "command", *, idle_timeout: float = 5) -> Connection[TupleRow]:
        """Like `connect`, but keeps trying for as long as patience lasts while the database is away."""
        deadline, pause = time.monotonic() + self.patience, 0.05
        while True:
            try:
                self.revive()
                return self.connect(role, idle_timeout=idle_timeout)
            except Retryable:
                if time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)


@lru_cache(64)
def _conninfo(url: str, name: str) -> str:
    ours = {"application_name": name, "client_encoding": "UTF8"}
    return make_conninfo(**{**_CLIENT, **_parameters(url), **ours})


def _set_up(connection: Connection[Any]) -> None:
    connection.execute(*session_settings())


def _still_there(connection: Connection[Any]) -> None:
    """Raise if a session that lay idle is over. Asking the server takes as long as a small statement: only if it spoke.

    When it ends a session it says so, or hangs up; between statements it is silent otherwise.
    """
    if has_spoken(connection.fileno()):
        ConnectionPool.check_connection(connection)


def session_settings(
    idle_timeout: float = 5, more: Mapping[str, str] = MappingProxyType({})
) -> tuple[LiteralString, list[list[str]]]:
    """The statement, with its values, that every session of ours begins with."""
    settings = {**_SETTINGS, "idle_in_transaction_session_timeout": f"{int(idle_timeout * 1000)}ms", **more}
    return _SET, [list(settings), list(settings.values())]


@contextmanager
def open_database(settings: Settings) -> Generator[Database]:
    """The database of the settings, its tables up to date; with no address given, the embedded server."""
    with reach_database(settings) as database:
        yield _migrated(database)


@contextmanager
def reach_database(settings: Settings) -> Generator[Database]:
    """The database of the settings as it is, its tables perhaps not up to date."""
    with ExitStack() as stack:
        if settings.database_url:
            database = Database(settings.database_url, settings.patience)
        else:
            from rowcall.store.embedded import embedded_server  # needs flock and a wheel that an address does without

            server = stack.enter_context(embedded_server(settings.data_dir))
            database = Database(server.url, settings.patience, server.ensure_running)
        yield stack.enter_context(database.keeping())


def is_retryable(error: psycopg.Error) -> bool:
    """Whether the same work may succeed later."""
    return isinstance(translated(error), Retryable)


def translated(error: psycopg.Error) -> RowcallError:
    """What an error of PostgreSQL or of the connection means for the work."""
    state = error.sqlstate or ""
    said = (error.diag.message_primary or str(error)).strip().partition("\n")[0]
    if state.startswith(_GONE) or (not state and isinstance(error, psycopg.OperationalError)):
        return Retryable(Code.DATABASE_GONE, f"The connection to the database was lost: {said}.")
    if state == _FULL:
        hint = "Make room on the database server; the work goes on from where it stopped."
        return Retryable(Code.DATABASE_FULL, f"The database's disk is full: {said}.", hint=hint)
    if state in _BUSY:
        return Retryable(Code.DATABASE_BUSY, f"The database could not do it now: {said}.")
    denied = _DENIED.match(said)
    hint = f"GRANT {_NEEDED[denied[1]]} ON {denied[1].upper()} {denied[2]} to the role that imports." if denied else ""
    return Final(Code.DATABASE_REFUSED, f"The database refused: {said}{f' ({state})' if state else ''}.", hint=hint)


def _migrated(database: Database) -> Database:
    try:
        with database.connect("migrate") as connection:
            require_grants(connection, "rowcall")
            migrate(connection)
    except psycopg.Error as error:
        raise translated(error) from error
    return database


def _parameters(url: str) -> dict[str, Any]:
    """The parts of an address. What PostgreSQL says about a bad one may show its password, so we don't repeat it."""
    try:
        parameters = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise _bad_address() from None
    host, port = str(parameters.get("host") or ""), str(parameters.get("port") or "0")
    if "@" in host or not port.replace(",", "").isdigit():
        raise _bad_address()
    return parameters


def _bad_address() -> Final:
    return Final(
        Code.BAD_SETTING,
        "ROWCALL_DATABASE_URL is no PostgreSQL address; postgresql://user:password@host:5432/database is expected.",
        hint="Characters such as @ / : # % in the password have to be percent-encoded.",
    )


def _no_connection(parameters: dict[str, Any], error: psycopg.OperationalError) -> RowcallError:
    host, port = parameters.get("host") or "the local socket", parameters.get("port") or 5432
    said = str(error).strip().partition("\n")[0].rpartition("failed: ")[2]
    where = f"PostgreSQL at {host}, port {port}, "
    if any(words in str(error) for words in _TURNED_AWAY):
        hint = "Correct user, password and database in ROWCALL_DATABASE_URL, or create them on the server."
        return Final(Code.DATABASE_REFUSED, f"{where}turned us away: {said}.", hint=hint)
    hint = "See that it runs and can be reached from here, and that ROWCALL_DATABASE_URL names the right place."
    return Retryable(Code.DATABASE_UNREACHABLE, f"{where}gave no connection: {said}.", hint=hint)


def _require_version(connection: Connection[TupleRow]) -> None:
    found = connection.info.server_version // 10_000
    if found < _OLDEST:
        raise Final(
            Code.DATABASE_TOO_OLD,
            f"The server is PostgreSQL {found}; {_OLDEST} or later is needed.",
            hint="Upgrade it, or unset ROWCALL_DATABASE_URL to use the embedded server.",
        )
