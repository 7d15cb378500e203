"""`rowcall importers`: which there are, and what each takes."""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen, table
from rowcall.engine.documents import demands_of, importer_document, importer_summary, type_of
from rowcall.importer import Field, Importer
from rowcall.importer.registry import Registry, load_registry


def importers(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One importer, with its fields.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the importers with their tables, or tell all about one: fields, rules, key, what happens on a match."""
    registry = load_registry()
    if name is not None:
        importer = registry.importer(name)
        if as_json:
            sys.stdout.write(document(importer_document(importer)) + "\n")
        else:
            _show_one(screen(), importer)
    elif as_json:
        sys.stdout.write(document([importer_summary(*each) for each in _listed(registry)]) + "\n")
    else:
        _show_all(screen(), registry)


def _listed(registry: Registry) -> list[tuple[str, type[Importer]]]:
    return list(registry.by_name().items())


# ------------------------------------------------------------------------------------------------------- for a person


def _show_all(console: Console, registry: Registry) -> None:
    lines = [
        (literal(name), literal(importer.target), literal(importer.description)) for name, importer in _listed(registry)
    ]
    if lines:
        console.print(table(("importer", "table", "description"), lines, whole=2, width=console.width))
    else:
        console.print("No importers. Name the modules that declare them in rowcall.toml.")


def _show_one(console: Console, importer: type[Importer]) -> None:
    console.print(f"[bold]{literal(importer.name)}[/]  {literal(importer.description)}")
    console.print(f"[dim]table[/]     {literal(importer.target)}")
    for key in importer.keys:
        console.print(f"[dim]key[/]       {literal(', '.join(key))}")
    console.print(f"[dim]on match[/]  {type(importer.on_match).__name__.lower()}")
    flags = {
        "waits after its preview": importer.flow.preview,
        "all rows or none": importer.atomic,
        "each row once for ever": importer.once,
    }
    if told := [what for what, is_so in flags.items() if is_so]:
        console.print(f"[dim]jobs[/]      {', '.join(told)}")
    lines = [_field_line(field) for field in importer.fields.values()]
    console.print(table(("field", "type", "default", "also known as", "help"), lines, whole=3, width=console.width))
    for rule in importer.rules:
        console.print(f"[dim]rule[/]  {literal(rule.code)} {literal(rule.message)}")


def _field_line(field: Field) -> tuple[str, ...]:
    demands = " ".join(f"{name}={value}" for name, value in demands_of(field).items())
    return (
        literal(field.name) + (" [yellow]required[/]" if field.required else ""),
        type_of(field),
        literal(field.default_text() or ""),
        literal(", ".join(field.aliases)),
        literal(f"{field.help} {demands}".strip()),
    )
