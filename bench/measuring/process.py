"""One Python program in a fresh process: how long it took from start to end, what it said, its peak of memory."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from measuring.files import HERE

_AFRESH = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
"""Started through a shell, which is small: on Linux a process begins with the peak RSS of the one that forked it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended. RSS is its peak in bytes.

    That of the processes it started is apart, and at least what it had itself when it started them.
    """

    status: int
    output: str
    errors: str
    seconds: float
    rss: int
    children_rss: int

    @property
    def failure(self) -> str:
        """Its status and last words."""
        last = (self.errors.strip().splitlines() or [""])[-1]
        return f"ended with status {self.status}: {last}"


def run_afresh(entry: str, *arguments: str, timeout: float, extra: Mapping[str, str] | None = None) -> Ended:
    """Run `module:function` with these arguments, and `extra` in its environment."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "rss"
        command = [*_AFRESH, sys.executable, "-m", "measuring.witness", str(report), entry, *arguments]
        started = time.perf_counter()
        child = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=_environment() | dict(extra or {}),
        )
        seconds = time.perf_counter() - started
        own, children = report.read_text(encoding="ascii").split() if report.exists() else (0, 0)
    return Ended(
        status=child.returncode,
        output=child.stdout,
        errors=child.stderr,
        seconds=seconds,
        rss=int(own),
        children_rss=int(children),
    )


def warm(file: Path) -> None:
    """Bring a file into the page cache, so that the disk isn't what is measured."""
    with file.open("rb", buffering=0) as raw:
        while raw.read(2**20):
            pass


def _environment() -> dict[str, str]:
    """With compiled modules cached, as when installed: Rowcall starts processes of its own while the clock runs."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(HERE), "PYTHONPYCACHEPREFIX": str(HERE / "data" / "bytecode")}
