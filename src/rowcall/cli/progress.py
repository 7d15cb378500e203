"""A progress bar on a terminal; nothing elsewhere."""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from rowcall.formats import Batch, Reading


def batches_with_progress(reading: Reading, label: str) -> Iterator[Batch]:
    """The batches of a reading, with a bar that follows its bytes."""
    with _bar() as progress:
        task = progress.add_task(label, total=max(1, reading.file.size), rows=0)
        for batch in reading:
            yield batch
            progress.update(task, completed=reading.position, rows=reading.counts.rows)


@contextmanager
def _bar() -> Generator[Progress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        yield progress
