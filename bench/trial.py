"""One measurement in a fresh process: start it, time it, and take down its peak of memory.

A contender is a function that takes a file, imports and prepares what it needs, and returns what is to be timed.
"""

import importlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

_TIMEOUT = 900
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Tally:
    """What a contender says it found. Bad records and blank lines are 0 where it doesn't tell."""

    good: int
    bad: int = 0
    blank: int = 0


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
    """What one process measured. RSS is its peak in bytes, that of the processes it started apart."""

    seconds: float = 0
    rss: int = 0
    children_rss: int = 0
    good: int = 0
    bad: int = 0
    blank: int = 0
    error: str = ""


def measure(trial: Trial) -> Sample:
    """Run the trial in a process of its own, its file in the page cache."""
    _warm(trial.file)
    command = [sys.executable, __file__, trial.task, str(trial.file)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if child.returncode:
        last = (child.stderr.strip().splitlines() or [""])[-1]
        return Sample(error=f"died with status {child.returncode}: {last}")
    return Sample(**cast("dict[str, Any]", json.loads(child.stdout.splitlines()[-1])))


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
    sample = Sample(
        seconds=seconds, rss=_rss(resource.RUSAGE_SELF), children_rss=_rss(resource.RUSAGE_CHILDREN), error=error
    )
    print(json.dumps({**asdict(sample), **asdict(tally)}))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def _rss(who: int) -> int:
    return resource.getrusage(who).ru_maxrss * _RSS_UNIT


if __name__ == "__main__":
    _main(*sys.argv[1:])
