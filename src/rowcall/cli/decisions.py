"""`rowcall decisions`: what was decided of values and is remembered."""

import sys
from typing import Annotated
from uuid import UUID

import msgspec
import typer
from rich.markup import escape as literal

from rowcall.cli.desk import Server, desk
from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen, short, table
from rowcall.client.answers.values import ValueDecision
from rowcall.words import counted

decisions = typer.Typer(
    help="What was decided of values and is used for the next file.", no_args_is_help=True, rich_markup_mode=None
)
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
        headers = ("id", "importer", "field", "by", "job", "value", "stands for")
        screen().print(table(headers, [_line(each) for each in found], whole=5, width=max(160, screen().width)))


def _line(decision: ValueDecision) -> tuple[str, ...]:
    target = decision.target.label if decision.target else _MEANING.get(decision.action, decision.action)
    within = f" in {decision.scope.label}" if decision.scope else ""
    return (
        str(decision.id),
        literal(decision.importer),
        literal(decision.field),
        literal(decision.decided_by),
        decision.job.number,
        literal(short(f"{decision.value}{within}", 60)),
        literal(short(target, 60)),
    )


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
