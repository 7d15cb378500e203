"""Tables of commands fit their screen, and keep what other commands ask for."""

from io import StringIO
from uuid import uuid4

import pytest
from rich.console import Console

from rowcall.cli.screen import table


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
