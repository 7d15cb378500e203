"""One measurement in a fresh process: start it, time it, and take down its peak of memory.

A contender is a function that takes a file, imports and prepares what it needs, and returns what is to be timed.
"""

import importlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec

from files import HERE

_TIMEOUT = 900
_AFRESH = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
"""Started through a shell, which is small: on Linux a process begins with the peak RSS of the one that forked it."""
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Tally:
    """What a contender says it found; None where it doesn't tell."""

    good: int
    bad: int | None = None
    blank: int | None = None

    @property
    def lines(self) -> int:
        """The lines it accounts for, the header aside, when every record is one line."""
        return self.good + (self.bad or 0) + (self.blank or 0)


Run = Callable[[], Tally]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A contender with its file: `section` and `key` say where its result goes, `task` is `module:function`."""

    section: str
    key: str
    label: str
    task: str
    file: Path
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one process measured. RSS is its peak in bytes.

    That of the processes it started is apart, and at least what it had itself when it started them.
    """

    seconds: float = 0
    rss: int = 0
    children_rss: int = 0
    tally: Tally = Tally(0)
    error: str = ""


def measure(trial: Trial) -> Sample:
    """Run the trial in a process of its own, its file in the page cache."""
    _warm(trial.file)
    command = [*_AFRESH, sys.executable, __file__, trial.task, str(trial.file)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, env=_environment())
    if child.returncode:
        last = (child.stderr.strip().splitlines() or [""])[-1]
        return Sample(error=f"died with status {child.returncode}: {last}")
    return msgspec.json.decode(child.stdout.splitlines()[-1], type=Sample)


def _environment() -> dict[str, str]:
    """With compiled modules cached, as when installed: Rowcall starts processes of its own while the clock runs."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(HERE / "data" / "bytecode")}


def _warm(file: Path) -> None:
    with file.open("rb", buffering=0) as raw:
        while raw.read(2**20):
            pass


def _main(task: str, file: str) -> None:
    module, _, name = task.partition(":")
    prepare = cast("Callable[[Path], Run]", getattr(importlib.import_module(module), name))
    run = prepare(Path(file))
    started = time.perf_counter()
    try:
        tally, error = run(), ""
    except Exception as stopped:  # whatever a contender stops with is its result
        tally, error = Tally(0), f"{type(stopped).__name__}: {_first_line(stopped)}"
    seconds = time.perf_counter() - started
    own, children = _rss(resource.RUSAGE_SELF), _rss(resource.RUSAGE_CHILDREN)
    sample = Sample(seconds=seconds, rss=own, children_rss=children, tally=tally, error=error)
    print(msgspec.json.encode(sample).decode())


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def _rss(who: int) -> int:
    return resource.getrusage(who).ru_maxrss * _RSS_UNIT


if __name__ == "__main__":
    _main(*sys.argv[1:])
