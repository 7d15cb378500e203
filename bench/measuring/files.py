"""Where the benchmarks' files lie, and how they are made."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

HERE = Path(__file__).resolve().parent.parent
DATA = HERE / "data"
SEED = 7


def folder(rows: int) -> Path:
    """The files for one number of rows. A file that is there is complete, and the same for the same rows and seed."""
    return DATA / f"people-{SEED}-{rows}"


def make_missing(makers: Mapping[Path, Callable[[Path], None]]) -> None:
    """Make those files that aren't there yet, each in one move."""
    for path, make in makers.items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.part")
            make(part)
            part.rename(path)


def prepare(console: Console, maker: str, rows: int, bytes_needed: int) -> None:
    """Check the disk, then make the files in a process of its own, so that its memory is given back."""
    console.print(f"{DATA.relative_to(HERE.parent)} takes up to {bytes_needed / 1e6:,.0f} MB.")
    DATA.mkdir(parents=True, exist_ok=True)
    missing = bytes_needed - _size(folder(rows)) - shutil.disk_usage(DATA).free
    if missing > 0:
        sys.exit(f"There are {missing / 1e6:,.0f} MB too few on the disk: free some, or measure fewer rows.")
    subprocess.run([sys.executable, "-m", maker, str(rows)], cwd=HERE, check=True)


def _size(made: Path) -> int:
    return sum(file.stat().st_size for file in made.glob("*"))
