"""Runs a Python program in this process and writes down its peak of memory when it ends.

From outside, the memory of a process can't be told from that of the processes it started.
"""

import atexit
import importlib
import resource
import sys
from pathlib import Path

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> None:
    """`python -m measuring.witness REPORT MODULE:FUNCTION ARGUMENT...`."""
    report, entry, *arguments = sys.argv[1:]
    atexit.register(_write, Path(report))
    module, _, name = entry.partition(":")
    sys.argv = [name, *arguments]
    sys.exit(getattr(importlib.import_module(module), name)())


def _write(report: Path) -> None:
    report.write_text(f"{_rss(resource.RUSAGE_SELF)} {_rss(resource.RUSAGE_CHILDREN)}", encoding="ascii")


def _rss(who: int) -> int:
    return resource.getrusage(who).ru_maxrss * _RSS_UNIT


if __name__ == "__main__":
    main()
