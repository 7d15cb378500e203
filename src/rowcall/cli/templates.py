"""`rowcall templates`: mappings of columns that are used again, and what is remembered of single columns."""

import sys
from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape as literal

from rowcall.cli.desk import Server, desk
from rowcall.cli.map import template_name
from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen, table, visible
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.words import counted

templates = typer.Typer(
    help="Mappings of columns that are used again: list, save, delete; and decisions that are remembered.",
    no_args_is_help=True,
)
_Name = Annotated[
    str, typer.Argument(metavar="SOURCE/VARIANT", help="The system that writes such files, and the kind.")
]


@templates.command("list")
def list_templates(
    source: Annotated[str | None, typer.Option(help="Only for files of this system.")] = None,
    importer: Annotated[str | None, typer.Option("--into", help="Only for this importer.")] = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """The templates that there are."""
    with desk(server) as at:
        found = at.templates(source_system=source, importer=importer)
    if as_json:
        sys.stdout.write(document(found) + "\n")
        return
    rows = [
        [
            literal(visible(f"{each.source_system}/{each.variant}")),
            each.importer,
            str(len(each.columns)),
            literal(visible(each.saved_by)),
            f"{each.saved_at:%Y-%m-%d %H:%M}",
        ]
        for each in found
    ]
    console = screen()
    console.print(table(["template", "importer", "columns", "by", "saved"], rows, whole=2, width=console.width))


@templates.command("save")
def save(
    name: _Name,
    job: Annotated[str, typer.Option(metavar="JOB", help="The job whose columns it is made of.")],
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Save the settled columns of a job as a template. One of the same name is replaced."""
    source, variant = template_name(name)
    if "/" in variant:
        raise Final(Code.BAD_OPTION, f"A template is written SOURCE/VARIANT; {name!r} isn't.", hint="Use one slash.")
    with desk(server) as at:
        saved = at.save_template(job, source, variant)
    if as_json:
        sys.stdout.write(document(saved) + "\n")
    else:
        said = (
            f"{saved.source_system}/{saved.variant} for {saved.importer} has {counted(len(saved.columns), 'column')}."
        )
        screen().print(literal(visible(said)))


@templates.command("delete")
def delete(
    name: _Name,
    importer: Annotated[str, typer.Option("--into", help="The importer that it is for.")],
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Take a template away. Jobs that used it keep their columns."""
    source, variant = template_name(name)
    with desk(server) as at:
        found = [each for each in at.templates(source_system=source, importer=importer) if each.variant == variant]
        if not found:
            raise Final(Code.TEMPLATE_NOT_FOUND, f"There is no template {source}/{variant} for {importer}.")
        at.delete_template(found[0].id)
    if as_json:
        sys.stdout.write(document(found[0]) + "\n")
    else:
        screen().print(literal(visible(f"{source}/{variant} for {importer} is gone.")))


@templates.command("decisions")
def decisions(
    importer: Annotated[str | None, typer.Option("--into", help="Only for this importer.")] = None,
    revoke: Annotated[UUID | None, typer.Option(metavar="ID", help="Have one proposed no more.")] = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """What was decided of columns, and is proposed when their headers come again."""
    with desk(server) as at:
        if revoke:
            at.revoke_column_decision(revoke)
        found = at.column_decisions(importer=importer)
    if as_json:
        sys.stdout.write(document(found) + "\n")
        return
    rows = [
        [
            str(each.id),
            each.importer,
            literal(visible(each.header)),
            literal(each.target_field or "left out"),
            literal(visible(each.decided_by)),
            f"{each.decided_at:%Y-%m-%d %H:%M}",
        ]
        for each in found
    ]
    console = screen()
    console.print(table(["id", "importer", "column", "field", "by", "when"], rows, whole=2, width=console.width))
