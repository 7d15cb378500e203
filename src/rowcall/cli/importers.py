"""`rowcall importers`: which there are, and what each takes."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.desk import Desk, Server, desk
from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen, table
from rowcall.client.answers import Importer, ImporterField, ImporterSummary
from rowcall.errors import Final
from rowcall.model import Code


def importers(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One importer, with its fields.")] = None,
    template: Annotated[Path | None, typer.Option(help="Write a workbook to fill in for it to this file.")] = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """List the importers with their tables, or tell all about one: fields, rules, key, what happens on a match."""
    with desk(server) as at:
        if template is not None:
            _write_template(at, name, template, as_json=as_json)
            return
        found = at.importers() if name is None else at.importer(name)
    if as_json:
        sys.stdout.write(document(found) + "\n")
    elif isinstance(found, Importer):
        _show_one(screen(), found)
    else:
        _show_all(screen(), found)


def _write_template(at: Desk, name: str | None, file: Path, *, as_json: bool) -> None:
    if name is None:
        raise Final(Code.BAD_OPTION, "--template is of one importer.", hint="Name it: rowcall importers NAME.")
    at.template(name, file)
    if as_json:
        sys.stdout.write(document({"importer": name, "file": str(file), "bytes": file.stat().st_size}) + "\n")
    else:
        filled = f"rowcall import {literal(str(file))} --into {literal(name)}"
        screen().print(f"Written to {literal(str(file))}. Bring it in, filled in, with: {filled}", soft_wrap=True)


# ------------------------------------------------------------------------------------------------------- for a person


def _show_all(console: Console, found: list[ImporterSummary]) -> None:
    lines = [(literal(one.name), literal(one.target), literal(one.description)) for one in found]
    if lines:
        console.print(table(("importer", "table", "description"), lines, whole=2, width=console.width))
    else:
        console.print("No importers. Name the modules that declare them in rowcall.toml.")


def _show_one(console: Console, importer: Importer) -> None:
    console.print(f"[bold]{literal(importer.name)}[/]  {literal(importer.description)}")
    console.print(f"[dim]table[/]     {literal(importer.target)}")
    for key in importer.keys:
        console.print(f"[dim]key[/]       {literal(', '.join(key))}")
    console.print(f"[dim]on match[/]  {importer.on_match}")
    flags = {
        "waits after its preview": importer.preview,
        "all rows or none": importer.atomic,
        "each row once for ever": importer.once,
    }
    if told := [what for what, is_so in flags.items() if is_so]:
        console.print(f"[dim]jobs[/]      {', '.join(told)}")
    if importer.context:
        told = [one.name if one.required else f"{one.name} if you like" for one in importer.context]
        console.print(f"[dim]context[/]   {literal(', '.join(told))}")
    if importer.scope is not None:
        each = literal(", ".join(importer.scope) or "organisation")
        console.print(f"[dim]scope[/]     one active job for each {each}")
    lines = [_field_line(field) for field in importer.fields]
    console.print(table(("field", "type", "default", "also known as", "help"), lines, whole=3, width=console.width))
    for rule in importer.rules:
        console.print(f"[dim]rule[/]  {literal(rule.code)} {literal(rule.message)}")


def _field_line(field: ImporterField) -> tuple[str, ...]:
    demands = " ".join(f"{name}={value}" for name, value in field.demands.items())
    when = " and ".join(f"{what} is {' or '.join(values)}" for what, values in field.only_when.items())
    return (
        literal(field.name) + (" [yellow]required[/]" if field.required else ""),
        field.type,
        literal(field.default or ""),
        literal(", ".join(field.aliases)),
        literal(f"{field.help} {demands} {when and f'(only when {when})'}".strip()),
    )
