"""Tables of commands fit their screen, and keep what other commands ask for; what can't be told stops nothing."""

import errno
import sys
from datetime import UTC, datetime
from io import StringIO
from uuid import uuid4

import pytest
from rich.console import Console

from rowcall.cli import decisions, progress
from rowcall.cli.screen import table
from rowcall.client.answers.values import JobNamed, Named, ValueDecision
from rowcall.model import Progress


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_first_column_is_whole_however_narrow_the_screen(width: int) -> None:
    ids = [str(uuid4()) for _ in range(3)]
    rows = [(each, "an importer of a long name", "field", "x" * 60, "y" * 60) for each in ids]
    out = StringIO()
    console = Console(file=out, width=width)
    console.print(table(("id", "importer", "field", "value", "stands for"), rows, whole=3, width=width))
    lines = out.getvalue().splitlines()
    assert [each for each in ids if not any(each in line for line in lines)] == []
    assert max(len(line) for line in lines) <= width


@pytest.mark.parametrize("width", [110, 111, 120])
def test_decisions_tell_their_job_whole(width: int) -> None:
    found = ValueDecision(
        id=uuid4(),
        importer="an_importer_of_a_long_name",
        field="a_field_of_a_long_name",
        value="v" * 60,
        action="map",
        target=Named(id="1", label="t" * 60),
        decided_by="somebody@example.org",
        decided_at=datetime.now(UTC),
        job=JobNamed(id=uuid4(), number="BU202611190001"),
    )
    out = StringIO()
    decisions._show(Console(file=out, width=width), [found])  # pyright: ignore[reportPrivateUsage] (its lines alone)
    [*_, line] = out.getvalue().rstrip().splitlines()
    assert ("BU202611190001" in line, str(found.id) in line, len(line) <= width) == (True, True, True)


def test_progress_that_can_not_be_told_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(StringIO):
        def write(self, s: str, /) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(progress, "_LINE_EVERY", 0)
    monkeypatch.setattr(sys, "stderr", Full())
    with progress.job_progress(quiet=False) as tell:
        tell(Progress(phase="writing", rows=1, done=1, total=2))
        tell(Progress(phase="writing", rows=2, done=2, total=2))
