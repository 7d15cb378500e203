"""Runs the `rowcall` command as a user does, and measures what it took."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

COMMAND = Path(sys.executable).parent / "rowcall"


@dataclass(frozen=True)
class Done:
    """A finished command. `memory` is the peak of the process and of its children, in MB."""

    status: int
    out: str
    err: str
    memory: float


def rowcall(*arguments: str | Path, stdin: bytes | None = None, **environment: str) -> Done:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [COMMAND, *arguments],
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, "COLUMNS": "120", **environment},
        )
        if process.stdin:
            process.stdin.write(stdin or b"")
            process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Done(process.returncode, out.read().decode(), err.read().decode(), usage.ru_maxrss / 1024)
