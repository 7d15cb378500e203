"""Measures imports and exports beside others: `python bench/engine.py --rows 1000000 [--only clean,upsert]`.

Everything in one run on one PostgreSQL: the contenders of a section alternate in three rounds, each a whole command
in a fresh process on a fresh database. Writes `results.json` and `chart.svg` when nothing was left out, and ends with
1 when a must doesn't hold.
"""

import argparse
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from rich.console import Console
from rich.progress import track

from importing import files
from importing.chart import panels
from importing.files import Files
from importing.plan import Section, sections
from importing.report import complaints, section_table
from importing.results import Figures, Results, figures_of
from importing.server import Server, Start, running_server
from importing.trial import Sample, measure
from measuring.chart import write_chart
from measuring.files import HERE, prepare
from measuring.musts import musts_table

_FEWEST = 10_000
_NAMES = ("clean", "errors", "upsert", "preview", "formats", "export", "memory")


@dataclass(frozen=True, slots=True)
class _Options:
    rows: int
    only: Sequence[str]


def main() -> int:
    options = _options()
    wanted, console = Files(options.rows), Console()
    prepare(console, "importing.data", wanted.rows, wanted.bytes_needed)
    chosen = [section for section in sections(wanted) if section.name in options.only]
    console.print("Each figure is of a whole command, from its start to its end; the medians of the rounds.")
    results = _measured(wanted, chosen, console)
    console.print(musts_table(results.musts, results.rows))
    if set(options.only) == set(_NAMES):
        results.write(HERE / "results.json")
        write_chart(panels(results), HERE / "chart.svg")
    return 0 if results.hold else 1


def _options() -> _Options:
    parser = argparse.ArgumentParser(description="Measure Rowcall's imports and exports beside others.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the CSV file (at least 10,000)")
    some = f"some of {', '.join(_NAMES)}; then nothing is written"
    parser.add_argument("--only", default=",".join(_NAMES), help=some)
    given = parser.parse_args()
    only: list[str] = given.only.split(",")
    if unknown := set(only) - set(_NAMES):
        parser.error(f"--only knows no {', '.join(sorted(unknown))}, but {', '.join(_NAMES)}")
    if given.rows < _FEWEST:
        parser.error(f"--rows must be at least {_FEWEST:,}: with fewer, only the start of a command is measured")
    return _Options(given.rows, only)


def _measured(wanted: Files, chosen: Sequence[Section], console: Console) -> Results:
    figures: list[Figures] = []
    with running_server() as server:
        for start in _starts(chosen):
            server.prepare(start, wanted)
        for section in chosen:
            with _grown(wanted) if section.name == "memory" else nullcontext():
                found = _rounds(server, section, console)
            console.print(section_table(section.title, found), *complaints(found), sep="\n")
            figures += found
        release = server.release
    return Results(wanted.rows, {(found.section, found.key): found for found in figures}, release)


def _starts(chosen: Sequence[Section]) -> list[Start]:
    """What the trials begin with; the empty table first, because the others are made from it."""
    needed = {trial.start for section in chosen for trial in section.trials}
    return [start for start in Start if start in needed or start is Start.EMPTY]


def _rounds(server: Server, section: Section, console: Console) -> list[Figures]:
    taken: dict[str, list[Sample]] = {trial.key: [] for trial in section.trials}
    present = [trial for trial in section.trials if not trial.unavailable]
    for trial in track(present * section.rounds, section.name, console=console, transient=True):
        taken[trial.key].append(measure(server, trial))
    return [figures_of(section.name, trial, taken[trial.key]) for trial in section.trials]


@contextmanager
def _grown(wanted: Files) -> Generator[None]:
    """With the file of ten times the rows, which is the largest, so it isn't kept."""
    try:
        subprocess.run([sys.executable, "-m", "importing.data", str(wanted.rows), "tenfold"], cwd=HERE, check=True)
        yield
    finally:
        wanted.path(files.TENFOLD).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
