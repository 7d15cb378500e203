"""The commands, and how their errors reach a person."""

import os
import sys
from typing import NoReturn

import typer
from rich.console import Console

from rowcall.cli.convert import convert
from rowcall.cli.inspect import inspect
from rowcall.errors import Final, RowcallError
from rowcall.model import Code

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
        _fail(error)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(Final(Code.SYSTEM_ERROR, f"The system refused: {error.strerror or error}{where}."))
    except Exception as error:
        if os.environ.get("ROWCALL_DEBUG"):
            raise
        hint = "This is a bug: please report it, with what ROWCALL_DEBUG=1 prints in addition."
        _fail(Final(Code.INTERNAL_ERROR, f"{type(error).__name__}: {error}", hint=hint))


def _fail(error: RowcallError) -> NoReturn:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]{error.code}[/] ", end="")
    console.print(error.message, markup=False)
    if error.hint:
        console.print(error.hint, markup=False, style="dim")
    sys.exit(1)
