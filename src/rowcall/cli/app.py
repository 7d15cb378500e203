"""The commands, and how their errors reach a person."""

import os
import select
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer

from rowcall.cli.screen import beside, unread
from rowcall.engine.failures import failure_of
from rowcall.errors import Final, RequestRefused, RowcallError
from rowcall.model import Code

COMMANDS = {
    "inspect": ("inspect:inspect", "What a file is, what its columns hold, what is wrong with it."),
    "convert": ("convert:convert", "A file into another format."),
    "import": ("import_:import_file", "A file into a table, every row accounted for."),
    "resume": ("import_:resume", "Go on with a job that was interrupted."),
    "map": ("map:map_columns", "Which column of a job's file is which field, to see and to say."),
    "templates": ("templates:templates", "Mappings of columns that are used again: list, save, delete."),
    "values": ("values:values", "What the values of a job's file stand for, to see and to say."),
    "decisions": ("decisions:decisions", "What was decided of values and is remembered: list, revoke."),
    "fingerprint": ("fingerprint:fingerprint", "What differs between a file and the target, in a sample of its rows."),
    "acknowledge": ("fingerprint:acknowledge", "Let a job go on though some rows differ from the target."),
    "preview": ("preview:preview", "What a job would do, when it waits for that to be confirmed."),
    "submit": ("preview:submit", "Commit a job that was previewed."),
    "pause": ("moves:pause", "Have a job stop for now."),
    "cancel": ("moves:cancel", "Have a job stop for good; what is done stays."),
    "reprocess": ("moves:reprocess", "Try rows of a job again that failed or were skipped."),
    "undo": ("undo:undo", "Take back what a job wrote to its table."),
    "edit": ("edits:edit", "Correct cells of a row; it is verified at once."),
    "replace": ("edits:replace", "Replace a text in one column of many rows."),
    "rejects": ("edits:rejects", "Failed rows as a workbook, to be corrected and brought back."),
    "jobs": ("jobs:jobs", "The latest jobs and how far they are."),
    "rows": ("rows:rows", "What became of the rows of a job."),
    "receipt": ("receipt:receipt", "A job on one page: file, mapping, balance, who and when."),
    "export": ("export:export", "Rows of a table or a resource into a file."),
    "importers": ("importers:importers", "The importers there are, and their fields."),
    "scaffold": ("scaffold:scaffold", "An importer for a table that exists."),
    "migrate": ("migrate:migrate", "Bring the tables of Rowcall and of its packs up to date."),
    "retention": ("retention:retention", "Remove old jobs, with their rows and files."),
    "serve": ("serve:serve", "The HTTP service, with workers beside it."),
    "worker": ("worker:worker", "A process that works on jobs which came over HTTP."),
    "keys": ("keys:keys", "Keys for the HTTP service: make, list, revoke."),
    "accounts": ("accounts:accounts", "Whose keys they are: list, change."),
    "psql": ("psql:psql", "PostgreSQL's own client on the database."),
    "doctor": ("doctor:doctor", "Check the surroundings, or verify a job."),
}
"""Where each command is, and what the list of commands says about it."""

FOR_SERVERS = (
    *("import", "resume", "map", "templates", "values", "decisions", "preview", "submit"),
    *("pause", "cancel", "reprocess", "undo"),
    *("edit", "replace", "rejects"),
    *("jobs", "rows", "receipt", "export", "importers"),
    *("fingerprint", "acknowledge", "doctor"),
)
"""Those that take --server."""

_UsageError: Any = typer.BadParameter.__base__  # Click's, which newer versions of Typer have inside
_UsageError.exit_code = 1  # theirs is 2, which says here that some rows failed


def commands(asked: str) -> typer.Typer:
    """The command line. Only the command that is asked for is loaded: the list of them is there at once."""
    app = typer.Typer(
        help="Bulk data into and out of PostgreSQL, with every row accounted for.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_top)
    for name, (place, summary) in COMMANDS.items():
        found = _load(place) if name == asked else _elsewhere
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, short_help=summary)
            continue
        settings = {"ignore_unknown_options": name == "psql"}  # they are psql's own
        app.command(name, short_help=summary, context_settings=settings)(found)
    return app


def _tell_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"rowcall {version('rowcall')}\n")
        raise typer.Exit


def _load(place: str) -> Callable[..., None] | typer.Typer:
    """A command, or several under one name."""
    module, _, function = place.partition(":")
    return getattr(import_module(f"rowcall.cli.{module}"), function)


def _top(
    _: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Which version it is.")
    ] = (False),
) -> None:
    """Bulk data into and out of PostgreSQL, with every row accounted for."""


def _elsewhere() -> None:
    """Stands for a command that was not asked for."""


def main() -> None:
    """Run the command line. Exit code 0: done; 2: done, with errors in some rows; 1: failed."""
    _open_what_is_closed()
    try:
        _run()
    finally:
        for file in (sys.stdout, sys.stderr):
            try:
                file.flush()
            except BrokenPipeError:  # at the very end, it would become the exit code
                unread(file)


def _run() -> None:
    try:
        arguments = _arranged(sys.argv[1:])
        commands("".join(arguments[:1]))(arguments, standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as left:
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        _end_or_fail(left.__context__)  # Typer ends the program for it, in silence
    except Exception as error:
        _end_or_fail(error)


def _end_or_fail(error: Exception) -> NoReturn:
    if isinstance(error.__cause__ or error, BrokenPipeError) and _is_unread():
        sys.exit(0)
    failure = failure_of(error)
    if failure.code == Code.INTERNAL_ERROR and os.environ.get("ROWCALL_DEBUG"):
        raise error
    _fail(failure)


def _is_unread() -> bool:
    """Whether whoever read our output has seen enough: other pipes break too, and that is a failure."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in output.poll(0))


def _open_what_is_closed() -> None:
    """Have standard files that we were started without be the null device, and not what is opened next."""
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _arranged(arguments: list[str]) -> list[str]:
    """`rowcall --server URL jobs` is `rowcall jobs --server URL`."""
    first = "".join(arguments[:1])
    length = 2 if first == "--server" else 1 if first.startswith("--server=") else 0
    option, rest = arguments[:length], arguments[length:]
    if option and rest and rest[0] in COMMANDS and rest[0] not in FOR_SERVERS:
        told = f"`rowcall {rest[0]}` is not for a server: it works on files or the database itself."
        raise Final(Code.BAD_OPTION, told, hint=f"With --server go: {', '.join(FOR_SERVERS)}.")
    return [*rest[:1], *option, *rest[1:]]


def _fail(error: RowcallError) -> NoReturn:
    console = beside()
    console.print(f"[bold red]{error.code}[/] ", end="")
    console.print(error.message, markup=False)
    hint = (error.command_hint if isinstance(error, RequestRefused) else "") or error.hint
    if hint:
        console.print(hint, markup=False, style="dim")
    sys.exit(1)
