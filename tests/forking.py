"""Commands that are forked from a process which has loaded the program: loading takes most of the time of a small one.

That process gets the command, its folder, its environment and four files over its socket: the three standard ones, and
one to tell exit code and peak memory through, when the command has ended. It answers with the number of the new
process.
"""

import atexit
import faulthandler
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import BinaryIO

import rowcall.cli

_ROOT = Path(__file__).parents[1]
_APART = ("serve", "worker")
_one_at_a_time = threading.Lock()
_LATER = ("typer._adapters", "rich._emoji_codes", "rowcall.client.client", "rowcall.engine.run")
"""What commands load when they need it. Not importers: these have Polars start threads, which don't outlive a fork."""


@dataclass
class Forked:
    """A process, with what a `Popen` has."""

    pid: int
    _told: int
    """A pipe that exit code and memory come through."""
    stdout: BinaryIO | None = None
    returncode: int | None = None
    memory: int = 0
    """The peak, of the process or of one of its children, in KB."""
    _handle: int = field(init=False)

    def __post_init__(self) -> None:
        self._handle = os.pidfd_open(self.pid)  # the number may be another's later

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("forked", timeout)
        return code

    def _ended(self, seconds: float) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            self.returncode, self.memory = json.loads(os.read(self._told, 100) or f"[{-signal.SIGKILL}, 0]")
            os.close(self._told)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def forked(
    command: Sequence[str],
    environment: dict[str, str],
    *,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int,
    folder: Path = _ROOT,
) -> Forked:
    """A process that runs `rowcall …`, or `importing JOB`. Without a file for its output there is a pipe of it."""
    told, out = os.pipe(), os.pipe() if stdout is None else None
    message = json.dumps([list(command), environment, str(folder)])
    with Path(os.devnull).open("rb") as nothing:
        files = [nothing.fileno() if stdin is None else stdin, out[1] if out else stdout or 1, stderr, told[1]]
        with _one_at_a_time:
            asked, _ = _forker()
            socket.send_fds(asked, [message.encode()], files)
            number = int(asked.recv(100))
    os.close(told[1])
    if out:
        os.close(out[1])
    return Forked(number, told[0], os.fdopen(out[0], "rb", 0) if out else None)


@cache
def _forker() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """It ends with us, when its socket does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    with theirs:
        # not as a module: commands would tell its name as theirs
        command = [sys.executable, "-c", f"from tests.forking import serve; serve({theirs.fileno()})"]
        return ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=_ROOT)


# ---------------------------------------------------------------------------------------------------- over there


def serve(number: int) -> None:
    """Fork what is asked for over a socket, until it is closed."""
    asked = socket.socket(fileno=number)
    commands = (module.name for module in iter_modules(rowcall.cli.__path__) if module.name not in _APART)
    for name in [*(f"rowcall.cli.{name}" for name in commands), *_LATER]:
        import_module(name)
    told: dict[int, int] = {}
    ended, ends = socket.socketpair()
    ends.setblocking(False)
    signal.set_wakeup_fd(ends.fileno())
    signal.signal(signal.SIGCHLD, _wake)
    while True:
        ready, _, _ = select.select([asked, ended], [], [])
        if ended in ready:
            ended.recv(1000)
            _tell_ended(told)
        if asked in ready:
            message, files, _, _ = socket.recv_fds(asked, 1_000_000, 4)
            if not message:
                return
            command, environment, folder = json.loads(message)
            for name in set(command[1:2]) & set(_APART):
                import_module(f"rowcall.cli.{name}")
            gc.freeze()  # what is loaded stays: nobody need look for garbage in it
            child = os.fork()
            if child == 0:
                for file in (asked.detach(), ended.detach(), ends.detach(), files.pop(), *told.values()):
                    os.close(file)
                _run(command, environment, folder, files)
            told[child] = files.pop()
            for file in files:
                os.close(file)
            asked.send(str(child).encode())


def _wake(*_: object) -> None:
    """Signals that nothing is to be done for wake nobody."""


def _tell_ended(told: dict[int, int]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.wait4(-1, os.WNOHANG))[0]:
            child, status, used = ended
            with suppress(BrokenPipeError):
                os.write(told[child], json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss]).encode())
            os.close(told.pop(child))


def _run(command: list[str], environment: dict[str, str], folder: str, files: list[int]) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv[:] = command
    if environment.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()
    status = 1
    try:
        _main(command)
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    _leave(status)


def _main(command: list[str]) -> None:
    if command[0] == "rowcall":
        from rowcall.cli.app import main

        main()
    else:
        from .faults.importing import main

        main(command[1])


def _leave(status: int) -> None:
    """End as an interpreter does, but for taking apart what the other process loaded: that takes longest of all."""
    vars(threading)["_shutdown"]()  # pools are told first, then all threads are waited for
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        with suppress(OSError):
            file.flush()
    os._exit(status)
