"""Runs the `rowcall` command as a user does, and measures what it took."""

import os
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..forking import forked

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


def _feed(pipe: BinaryIO, content: bytes) -> None:
    with suppress(BrokenPipeError), pipe:  # it need not be read
        pipe.write(content)
