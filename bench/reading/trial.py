"""One measurement in a fresh process: start it, time it, and take down its peak of memory.

A contender is a function that takes a file, imports and prepares what it needs, and returns what is to be timed.
"""

import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import msgspec

from measuring.process import run_afresh, warm

_TIMEOUT = 900


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
    """What one process measured; RSS as in `Ended`."""

    seconds: float = 0
    rss: int = 0
    children_rss: int = 0
    tally: Tally = Tally(0)
    error: str = ""


def measure(trial: Trial) -> Sample:
    """Run the trial in a process of its own, its file in the page cache."""
    warm(trial.file)
    ended = run_afresh("reading.trial:main", trial.task, str(trial.file), timeout=_TIMEOUT)
    if ended.status:
        return Sample(error=ended.failure)
    told = msgspec.json.decode(ended.output.splitlines()[-1], type=Sample)
    return replace(told, rss=ended.rss, children_rss=ended.children_rss)


def main() -> None:
    """Run a task on a file and tell how long it took, what it found or stopped with."""
    task, file = sys.argv[1:]
    module, _, name = task.partition(":")
    prepare = cast("Callable[[Path], Run]", getattr(importlib.import_module(module), name))
    run = prepare(Path(file))
    started = time.perf_counter()
    try:
        tally, error = run(), ""
    except Exception as stopped:  # whatever a contender stops with is its result
        tally, error = Tally(0), f"{type(stopped).__name__}: {_first_line(stopped)}"
    sample = Sample(seconds=time.perf_counter() - started, tally=tally, error=error)
    print(msgspec.json.encode(sample).decode())


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
