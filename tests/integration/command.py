"""Runs the `rowcall` command as a user does, and measures what it took."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

COMMAND = Path(sys.executable).parent / "rowcall"

# On Linux a process begins with the peak memory of the one that starts it: a small one in between keeps ours out.
_MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)
"""


@dataclass(frozen=True)
class Done:
    """A finished command. `memory` is the peak of the process or of one of its children, in MB."""

    status: int
    out: str
    err: str
    memory: float


def rowcall(*arguments: str | Path, stdin: bytes = b"", **environment: str) -> Done:
    with tempfile.NamedTemporaryFile() as peak:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MEASURE, peak.name, COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            env={**os.environ, "COLUMNS": "120", **environment},
        )
        memory = int(Path(peak.name).read_text()) / 1024
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode(), memory)
