"""`rowcall decisions`: what was decided of values and is remembered."""

import sys
from typing import Annotated
from uuid import UUID

import msgspec
import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.desk import Server, desk
from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen, short, table, visible
from rowcall.client.answers.values import ValueDecision
from rowcall.words import counted

decisions = typer.Typer(
    help="What was decided of values and is used for the next file.", no_args_is_help=True, rich_markup_mode=None
)
_WIDE = 110  # columns; narrower screens show less of a decision
_MEANING = {"empty": "nothing", "skip": "rows are skipped"}


@decisions.command("list")
def list_decisions(
    importer: Annotated[str | None, typer.Option(help="Only of this importer.")] = None,
    field: Annotated[str | None, typer.Option(help="Only of this field.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object per decision, one on each line.")] = False,
    server: Server = None,
) -> None:
    """List them, the latest first: what each value stands for, who said so, in which job."""
    with desk(server) as at:
        found = list(at.value_decisions(importer=importer, field=field, most=limit))
    if as_json:
        for each in found:
            sys.stdout.buffer.write(msgspec.json.encode(each) + b"\n")
    elif not found:
        screen().print("Nothing is remembered.")
    else:
        _show(screen(), found)


def _show(console: Console, found: list[ValueDecision]) -> None:
    columns: dict[str, list[str]] = {
        "id": [str(each.id) for each in found],
        "job": [each.job.number for each in found],
        "importer": [literal(each.importer) for each in found],
        "by": [literal(visible(each.decided_by)) for each in found],
        "field": [literal(each.field) for each in found],
        "value": [literal(short(_value(each), 60)) for each in found],
        "stands for": [literal(short(_target(each), 60)) for each in found],
    }
    for name in ("job", "importer", "by") if console.width < _WIDE else ():
        del columns[name]
    whole = 2 if "job" in columns else 1  # other commands ask for its number
    console.print(table(list(columns), list(zip(*columns.values(), strict=True)), whole=whole, width=console.width))


def _value(decision: ValueDecision) -> str:
    return f"{decision.value} in {decision.scope.label}" if decision.scope else decision.value


def _target(decision: ValueDecision) -> str:
    return decision.target.label if decision.target else _MEANING.get(decision.action, decision.action)


@decisions.command()
def revoke(
    decision: Annotated[UUID, typer.Argument(help="Its id.")],
    reprocess: Annotated[
        bool,
        typer.Option(
            "--reprocess",
            help="Try rows again that were left out for it, and have jobs ask anew that have written nothing.",
        ),
    ] = False,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Take one back: the next file asks again. What was written by it stays; the jobs that used it are told."""
    with desk(server) as at:
        revoked = at.revoke_value_decision(decision, reprocess=reprocess)
    if as_json:
        sys.stdout.write(document(revoked) + "\n")
        return
    screen().print(f"Nothing is remembered of {revoked.decision.value!r} any more.", markup=False)
    for job in revoked.jobs:
        used = f"Job {job.number} ({job.state}) used it for {counted(job.rows, 'row')}"
        screen().print(f"{used}: {job.way_on}", markup=False)
