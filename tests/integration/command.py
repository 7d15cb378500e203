"""Runs the `rowcall` command as a user does, and measures what it took."""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..forking import Forked, forked

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
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, os.fdopen(writing, "wb") as feeding:
        process = forked(
            ["rowcall", *map(str, arguments)],
            {**os.environ, "COLUMNS": "120", **environment},
            stdin=reading,
            stdout=out.fileno(),
            stderr=err.fileno(),
            folder=Path.cwd(),
        )
        os.close(reading)
        feeder = threading.Thread(target=_feed, args=[feeding, stdin])
        feeder.start()
        status = process.wait(300)
        feeder.join()
        out.seek(0)
        err.seek(0)
        return Done(status, out.read().decode(), err.read().decode(), process.memory / 1024)


@contextmanager
def serving(*options: str, **environment: str) -> Generator[tuple[Forked, str]]:
    """A service that goes on while the test asks it something, and its address. It is told to stop at the end."""
    service = forked(["rowcall", "serve", "--port", "0", *options], {**os.environ, **environment}, stderr=2)
    assert service.stdout is not None
    with service.stdout:
        try:
            yield service, service.stdout.readline().decode().split()[-1]
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(60)


def _feed(pipe: BinaryIO, content: bytes) -> None:
    with suppress(BrokenPipeError), pipe:  # it need not be read
        pipe.write(content)
