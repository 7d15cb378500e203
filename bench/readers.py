"""Measures Rowcall's readers and writers beside others: `python bench/readers.py --rows 1000000`.

Everything in one run: the contenders alternate in three rounds, each measurement in a fresh process. Writes
`readers.json` and `readers.svg`, and ends with 1 when a must doesn't hold.
"""

import argparse
import shutil
import sys

from rich.console import Console
from rich.progress import track

from measuring.chart import write_chart
from measuring.files import HERE, prepare
from reading import files, plan
from reading.chart import panels
from reading.files import Files
from reading.report import show
from reading.results import Results, collect
from reading.trial import Sample, Trial, measure

_ROUNDS = 3
_FEWEST = 10_000


def main() -> int:
    wanted = Files(_rows())
    console = Console()
    prepare(console, "reading.data", wanted.rows, wanted.bytes_needed)
    results = _measured(wanted, console)
    show(console, results)
    results.write(HERE / "readers.json")
    write_chart(panels(results), HERE / "readers.svg")
    return 0 if all(must.holds for must in results.musts) else 1


def _rows() -> int:
    parser = argparse.ArgumentParser(description="Measure Rowcall's readers and writers beside others.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the CSV file (at least 10,000)")
    rows: int = parser.parse_args().rows
    if rows < _FEWEST:
        parser.error(f"--rows must be at least {_FEWEST:,}, so that every kind of defect occurs")
    return rows


def _measured(wanted: Files, console: Console) -> Results:
    trials = plan.trials(wanted)
    samples: dict[Trial, list[Sample]] = {trial: [] for trial in trials}
    for trial in track(trials * _ROUNDS, f"{_ROUNDS} rounds", console=console):
        samples[trial].append(measure(trial))
    for written in wanted.folder.glob("written.*"):
        written.unlink()
    tenfold = plan.tenfold(wanted)
    return collect(samples, wanted.rows, tenfold, [_grown(wanted, tenfold)])


def _grown(wanted: Files, tenfold: Trial) -> Sample:
    """Rowcall on the clean file's rows ten times over. That file is the largest, so it isn't kept."""
    try:
        with wanted.path(files.CLEAN).open("rb") as clean, tenfold.file.open("wb") as grown:
            grown.write(clean.readline())
            body = clean.tell()
            for _ in range(10):
                clean.seek(body)
                shutil.copyfileobj(clean, grown, 2**20)
        return measure(tenfold)
    finally:
        tenfold.file.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
