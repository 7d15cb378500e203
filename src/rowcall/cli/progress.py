"""How far the work is: a bar on a terminal; elsewhere a line now and then, if it takes long."""

import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from rowcall.formats import Batch, Reading
from rowcall.model import Progress as JobProgress

_LINE_EVERY = 5.0
"""Seconds between lines where there is no terminal."""
Tell = Callable[[JobProgress], None]


def batches_with_progress(reading: Reading, label: str) -> Iterator[Batch]:
    """The batches of a reading, with a bar that follows its bytes."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeRemainingColumn(),
    )
    with _bar(columns) as progress:
        task = progress.add_task(label, total=max(1, reading.file.size), rows=0)
        for batch in reading:
            yield batch
            progress.update(task, completed=reading.position, rows=reading.counts.rows)


@contextmanager
def job_progress(*, quiet: bool) -> Generator[Tell]:
    """Takes how far a job is and shows it: phase, rows, rows per second, time left, failures."""
    if sys.stderr.isatty():
        with _job_bar() as tell:
            yield tell
    else:
        yield (lambda _: None) if quiet else _lines()


@contextmanager
def _job_bar() -> Generator[Tell]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(complete_style="cyan", finished_style="cyan"),  # green would say that no row failed
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TextColumn("{task.fields[rate]:,.0f} rows/s", style="dim"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failures]}", style="yellow"),
    )
    with _bar(columns) as progress:
        task = progress.add_task("starting", total=None, rows=0, rate=0, failures="")
        pace = _Pace()

        def tell(how: JobProgress) -> None:
            if pace.enters(how):
                progress.reset(task, total=max(1, how.total))
            failures = f"{how.failed:,} failed" if how.failed else ""
            progress.update(
                task,
                description=how.phase,
                total=max(1, how.total),
                completed=how.done,
                rows=how.rows,
                rate=pace.rate(how),
                failures=failures,
            )

        yield tell


def _lines() -> Tell:
    pace = _Pace()
    said = time.monotonic()

    def tell(how: JobProgress) -> None:
        nonlocal said
        pace.enters(how)
        if time.monotonic() - said < _LINE_EVERY:
            return
        said = time.monotonic()
        percent = 100 * how.done // max(1, how.total)
        failed = f", {how.failed:,} failed" if how.failed else ""
        told = f"{how.phase} {percent} %: {how.rows:,} rows, {pace.rate(how):,.0f} rows/s{failed}\n"
        with suppress(OSError):  # the work goes on, whether or not somebody can be told of it
            sys.stderr.write(told)

    return tell


class _Pace:
    """Rows per second within a phase."""

    def __init__(self) -> None:
        self._phase = ""
        self._began = 0.0
        self._rows = 0

    def enters(self, how: JobProgress) -> bool:
        """Whether this is the first that is heard of a phase."""
        if how.phase == self._phase:
            return False
        self._phase, self._began, self._rows = how.phase, time.monotonic(), _rows(how)
        return True

    def rate(self, how: JobProgress) -> float:
        elapsed = time.monotonic() - self._began
        return (_rows(how) - self._rows) / elapsed if elapsed > 0.1 else 0.0


def _rows(how: JobProgress) -> int:
    return how.done if how.phase in ("checking", "writing") else how.rows  # before, what is done are bytes


@contextmanager
def _bar(columns: tuple[ProgressColumn, ...]) -> Generator[Progress]:
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        yield progress
