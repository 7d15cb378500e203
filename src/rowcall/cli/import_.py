"""`rowcall import` and `rowcall resume`: a file into a table, every row accounted for."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, cast, get_args

import typer
from msgspec import structs

from rowcall.cli.desk import Server, client_of, only_here
from rowcall.cli.ended import failing
from rowcall.cli.options import AsJson, one_of, takes_read_options
from rowcall.cli.prompt import can_ask
from rowcall.client.answers import ImportConfig, TemplateName
from rowcall.errors import Final
from rowcall.formats import ReadOptions
from rowcall.importer.matching import Ask
from rowcall.model import Code, Mode

_Workers = Annotated[int | None, typer.Option(min=1, help="How many threads commit; else ROWCALL_WORKERS.")]


@takes_read_options()
def import_file(
    file: Annotated[str, typer.Argument(help="The file, or its URL; - for standard input.")],
    into: Annotated[str, typer.Option(metavar="NAME", help="The importer; `rowcall importers` lists them.")],
    mode: Annotated[
        str | None, typer.Option(help="Rows that are there already: insert or upsert; else as the importer says.")
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="HEADER=FIELD", help="The field of a column; HEADER= leaves it out, A+B=FIELD joins."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="The same value for all rows. Repeat it.")
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="NAME=VALUE", help="What the file is about, as NAME demands. Repeat it."),
    ] = None,
    template: Annotated[
        str | None, typer.Option(metavar="SOURCE/VARIANT", help="Map the columns as a template has them.")
    ] = None,
    separator: Annotated[
        list[str] | None,
        typer.Option("--separator", metavar="FIELD=TEXT", help="What stands between joined columns. Repeat it."),
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option(help="Ask about columns: never, unsure, always; else as the importer says, at a terminal unsure."),
    ] = None,
    *,
    read: ReadOptions,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would happen, and change nothing.")] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="Wait when it is known what would happen; `rowcall submit` goes on.")
    ] = False,
    workers: _Workers = None,
    batch_rows: Annotated[
        int | None, typer.Option(min=1, help="Commit so many rows at once; else as many as go well.")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Bring the rows of a file into the table of an importer, and tell what became of each.

    The same command again goes on with a job that was interrupted.
    At a terminal it asks what it isn't sure of, and shows the plan of a job that waits for that to be agreed to.
    Elsewhere the job waits, and it is told how to go on.
    Exit code 0: every row is in, or planned; 2: some rows failed; 3: it waits for an answer; 1: the import failed.
    """
    with failing(as_json=as_json):
        config = ImportConfig(
            mode=_mode(mode),
            mapping=_mapping(map_),
            constants=_values("--set", "field=value", set_),
            context=_values("--context", "name=value", context),
            separators=_values("--separator", "field=text", separator),
            template=_template(template),
            ask=_ask(ask),
            dry_run=dry_run,
            preview=preview,
        )
        if client := client_of(server):
            only_here(client, workers=workers, batch_rows=batch_rows)
    if client:
        from rowcall.cli.import_there import import_there

        import_there(client, file, into, _with_reading(config, read), as_json=as_json)
    from rowcall.cli.import_here import import_here

    import_here(file, into, config, read, workers=workers, batch_rows=batch_rows, as_json=as_json)


def resume(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")],
    workers: _Workers = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Go on with a job that was interrupted or paused; at a terminal, with the questions of one that waits.

    Elsewhere one that waits after its preview goes on with `submit`.
    """
    with failing(as_json=as_json):
        if client := client_of(server):
            only_here(client, workers=workers)
    if client:
        from rowcall.cli.import_there import resume_there

        resume_there(client, job, as_json=as_json)
    from rowcall.cli.import_here import resume_here

    resume_here(job, workers=workers, as_json=as_json)


# ------------------------------------------------------------------------------------------------------ what is asked


def _template(text: str | None) -> TemplateName | None:
    if text is None:
        return None
    source, sign, variant = (part.strip() for part in text.partition("/"))
    if not (source and sign and variant):
        raise Final(Code.BAD_OPTION, f"--template is written SOURCE/VARIANT; {text!r} isn't.")
    return TemplateName(source_system=source, variant=variant)


def _ask(text: str | None) -> Ask | None:
    """What isn't said is asked where somebody can answer."""
    one_of("--ask", text, get_args(Ask))
    given: Ask | None = cast("Ask | None", text)  # it is one of them
    return "unsure" if given is None and can_ask() else given


def _mode(text: str | None) -> Mode | None:
    return Mode(text) if one_of("--mode", text, list(Mode)) else None


def _mapping(texts: Sequence[str] | None) -> dict[str, str]:
    """Header to field. A header may hold an equals sign, a field doesn't."""
    parts = [text.rpartition("=") for text in texts or ()]
    _require("--map", "Header=field", [(header, sign) for header, sign, _ in parts])
    return {header: field.strip() for header, _, field in parts}


def _values(option: str, shape: str, texts: Sequence[str] | None) -> dict[str, str]:
    parts = [text.partition("=") for text in texts or ()]
    _require(option, shape, [(name, sign) for name, sign, _ in parts])
    return {name.strip(): value for name, _, value in parts}


def _require(option: str, shape: str, parts: Sequence[tuple[str, str]]) -> None:
    if not all(name and sign for name, sign in parts):
        raise Final(Code.BAD_OPTION, f"{option} is written so: {option} '{shape}'.")
    names = [name for name, _ in parts]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Final(Code.BAD_OPTION, f"{option} says more than once what {twice!r} is.", hint="Say it once.")


def _with_reading(config: ImportConfig, read: ReadOptions) -> ImportConfig:
    """The same with how the file is read. The limits are the server's own."""
    given = {option.name: getattr(read, option.name) for option in fields(read) if option.name != "limits"}
    return structs.replace(config, **given)
