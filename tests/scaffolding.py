"""Scaffolded sources as their user meets them: formatted, and a class to work with."""

import subprocess
import sys
from pathlib import Path

from rowcall import Importer

RUFF = Path(sys.executable).parent / "ruff"


def created(source: str) -> type[Importer]:
    """The importer that the source declares."""
    space: dict[str, object] = {"__name__": "scaffolded"}
    exec(source, space)
    classes = [thing for thing in space.values() if isinstance(thing, type) and issubclass(thing, Importer)]
    return classes[-1]


def assert_formatted(source: str, folder: Path) -> None:
    path = folder / "importer.py"
    path.write_text(source, encoding="utf-8")
    for command in (["format", "--diff"], ["check", "--select", "E4,E7,E9,F,I,W,Q"]):
        done = subprocess.run([RUFF, *command, "--isolated", path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + source
