"""How commands show things: one console, tables of single lines, JSON documents."""

import os
import sys
from collections.abc import Sequence
from typing import TextIO

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH = 120


class _Screen(Console):
    def on_broken_pipe(self) -> None:  # Rich's own ends the program, in the middle of its work and with its exit code
        unread(sys.stderr if self.stderr else sys.stdout)


def screen() -> Console:
    """Standard output; what isn't a terminal is 120 columns wide."""
    console = _Screen(highlight=False)
    return console if console.is_terminal else _Screen(highlight=False, width=WIDTH)


def beside() -> Console:
    """Standard error, in lines as long as they are."""
    return _Screen(stderr=True, highlight=False, soft_wrap=True)


def tell(value: object) -> None:
    """A JSON document on standard output."""
    try:
        sys.stdout.write(document(value) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the exit code is to say it still
        unread(sys.stdout)


def unread(file: TextIO) -> None:
    """Whoever read a standard file has seen enough: from now on it is the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, file.fileno())
    os.close(null)


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, whole: int, width: int, wrapped: int | None = None
) -> Table:
    """A table of single lines; what the first `whole` columns leave of the width is divided among the others.

    One column may go on in further lines instead of being cut. The first is never cut: it tells what commands ask for.
    """
    cells = [[Text.from_markup(cell) for cell in row] for row in rows]
    widths = [max([len(header), *(row[i].cell_len for row in cells)]) for i, header in enumerate(headers)]
    shares = _shares(widths[whole:], width - sum(widths[:whole]) - 3 * len(headers))
    shown = Table(box=SIMPLE_HEAD, header_style="dim", pad_edge=False)
    for i, header in enumerate(headers):
        if i == wrapped:
            shown.add_column(header, width=shares[i - whole])
            continue
        shown.add_column(header, no_wrap=True, overflow="ellipsis", min_width=0 if i else widths[0])
        for row in cells if i >= whole else ():
            row[i].truncate(shares[i - whole], overflow="ellipsis")
    for row in cells:
        shown.add_row(*row)
    return shown


def _shares(wanted: Sequence[int], width: int) -> list[int]:
    """The width divided evenly, where columns that need less than their share leave the rest to the others."""
    shares: dict[int, int] = {}
    for i in sorted(range(len(wanted)), key=lambda i: wanted[i]):
        share = max(8, width // (len(wanted) - len(shares)))
        shares[i] = min(wanted[i], share)
        width -= shares[i]
    return [shares[i] for i in range(len(wanted))]


def visible(text: str) -> str:
    """Text on one line, with control characters spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def short(text: str, most: int) -> str:
    """The same, cut to so many characters; what is cut ends with an ellipsis."""
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def document(value: object) -> str:
    """A JSON document for a program and, indented, for a person."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def there(server: str | None) -> str:
    """What a command that is told needs behind it to ask the same server."""
    return f" --server {server}" if server else ""
