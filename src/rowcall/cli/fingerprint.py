"""`rowcall fingerprint` and `acknowledge`: what differs between a file and the target, and going on all the same."""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.desk import Server, desk
from rowcall.cli.moves import tell_job
from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen, table, visible
from rowcall.client.answers import Fingerprint, FingerprintFinding

_Job = Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")]
_SHOWN = 20


def fingerprint(job: _Job, as_json: AsJson = False, server: Server = None) -> None:
    """Show what the check of a job's fingerprint found: rows whose key is somebody else's in the target."""
    with desk(server) as at:
        found = at.fingerprint(job)
    if as_json:
        sys.stdout.write(document(found) + "\n")
    else:
        show_fingerprint(screen(), found)


def acknowledge(job: _Job, as_json: AsJson = False, server: Server = None) -> None:
    """Let a job go on though some rows differ from the target; who said so is kept."""
    with desk(server) as at:
        tell_job(at.acknowledge(job), as_json=as_json)


def show_fingerprint(console: Console, found: Fingerprint, most: int = _SHOWN) -> None:
    """What was found, for a person."""
    console.print(f"[bold]fingerprint {found.verdict or 'not checked'}[/]  {literal(found.note)}")
    if found.acknowledged_by:
        who, when = literal(found.acknowledged_by), found.acknowledged_at
        console.print(f"[dim]acknowledged by {who}, {when:%Y-%m-%d %H:%M}[/]")
    lines = [
        (f"{each.row:,}", f"{each.line or 0:,}", *(literal(visible(text)) for text in _texts(each)))
        for each in found.findings[:most]
    ]
    if lines:
        columns = ("row", "line", "key", "field", "file", "target")
        console.print(table(columns, lines, whole=4, width=console.width))


def _texts(each: FingerprintFinding) -> tuple[str, str, str, str]:
    return ", ".join(each.key), each.field, each.found or "", each.expected or ""
