"""A clock that is wrong. Few machines have libfaketime: Python's own is put off before anything else is imported."""

import os
from pathlib import Path

_WRONG = """
import time
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + {seconds}
time.time_ns = lambda: _time_ns() + {seconds} * 10**9
"""


def wrong_clock(folder: Path, seconds: int) -> dict[str, str]:
    """The environment of processes whose clock is off by so much."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_WRONG.format(seconds=seconds))
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
