"""Importers that are forked from a process which has loaded the program: loading takes most of the time of a small one.

That process gets the job, the environment and three files over its socket: for output, for errors, and one that tells
the exit code; it is closed with the importer, however that ends. It answers with the importer's number.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

_ROOT = Path(__file__).parents[2]


@dataclass
class Forked:
    """An importer, with what a `Popen` has."""

    pid: int
    stdout: BinaryIO
    _told: int
    """A pipe that the exit code comes through."""
    _handle: int = field(init=False)
    _code: int | None = None

    def __post_init__(self) -> None:
        self._handle = os.pidfd_open(self.pid)  # the number may be another's later

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("importing", timeout)
        return code

    def _ended(self, seconds: float) -> int | None:
        if self._code is None and select.select([self._told], [], [], seconds)[0]:
            self._code = int(os.read(self._told, 10) or -signal.SIGKILL)
            os.close(self._told)
        return self._code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def forked(job: str, environment: dict[str, str], errors: BinaryIO) -> Forked:
    """A process that works on a job."""
    out, told = os.pipe(), os.pipe()
    asked, _ = _forker()
    socket.send_fds(asked, [json.dumps([job, environment]).encode()], [out[1], errors.fileno(), told[1]])
    os.close(out[1])
    os.close(told[1])
    return Forked(int(asked.recv(100)), os.fdopen(out[0], "rb", 0), told[0])


@cache
def _forker() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """It ends with us, when its socket does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    with theirs:
        command = [sys.executable, "-m", "tests.faults.forking", str(theirs.fileno())]
        return ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=_ROOT)


# ---------------------------------------------------------------------------------------------------- over there


def _serve(asked: socket.socket) -> None:
    import_module("rowcall.engine.run")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        message, files, _, _ = socket.recv_fds(asked, 1_000_000, 3)
        if not message:
            return
        child = os.fork()
        if child == 0:
            asked.close()
            job, environment = json.loads(message)
            _work(job, environment, files)
        for file in files:
            os.close(file)
        asked.send(str(child).encode())


def _work(job: str, environment: dict[str, str], files: list[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    out, errors, told = files
    os.dup2(out, 1)
    os.dup2(errors, 2)
    os.close(out)
    os.close(errors)
    os.environ.clear()
    os.environ.update(environment)
    code = 1
    try:
        from .importing import main

        main(job)
        code = 0
    finally:
        sys.stdout.flush()
        if code:
            traceback.print_exc()
        os.write(told, str(code).encode())
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
