"""Runs the `rowcall` command as a user does, and measures what it took."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

COMMAND = Path(sys.executable).parent / "rowcall"


@dataclass(frozen=True)
class Done:
    """A finished command. `memory` is the peak of the process or of one of its children, in MB."""

    status: int
    out: str
    err: str
    memory: float


def rowcall(*arguments: str | Path, stdin: bytes = b"", **environment: str) -> Done:
    """In a process of its own, which is forked from one that has loaded the program already."""
    message = {
        "arguments": [str(each) for each in arguments],
        "environment": {**os.environ, "COLUMNS": "120", **environment},
        "folder": str(Path.cwd()),
    }
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, os.fdopen(writing, "wb") as feeding:
        asked, _ = _forker()
        socket.send_fds(asked, [json.dumps(message).encode()], [reading, out.fileno(), err.fileno()])
        os.close(reading)
        feeder = threading.Thread(target=_feed, args=[feeding, stdin])
        feeder.start()
        answer = asked.recv(1000)
        feeder.join()
        assert answer, "the process that runs commands is gone"
        status, memory = json.loads(answer)
        out.seek(0)
        err.seek(0)
        return Done(status, out.read().decode(), err.read().decode(), memory / 1024)


def _feed(pipe: BinaryIO, content: bytes) -> None:
    with suppress(BrokenPipeError), pipe:  # it need not be read
        pipe.write(content)


@cache
def _forker() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """It ends with us, when its socket does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(300)
    with theirs:
        command = [sys.executable, Path(__file__).with_name("forker.py"), str(theirs.fileno())]
        return ours, subprocess.Popen(command, pass_fds=[theirs.fileno()])
