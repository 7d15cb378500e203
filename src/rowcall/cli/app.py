"""The commands, and how their errors reach a person."""

import os
import sys

import typer
from rich.console import Console

from rowcall.cli.convert import convert
from rowcall.cli.inspect import inspect
from rowcall.errors import RowcallError

app = typer.Typer(
    help="Bulk data into and out of PostgreSQL, with every row accounted for.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(inspect)
app.command()(convert)


def main() -> None:
    """Run the command line. Exit code 0: done; 2: done, with errors in some rows; 1: failed."""
    try:
        app(standalone_mode=True)
    except RowcallError as error:
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        console.print(f"[bold red]{error.code}[/] ", end="")
        console.print(error.message, markup=False)
        if error.hint:
            console.print(error.hint, markup=False, style="dim")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
