"""How an import ended: for a person, for a program, and as an exit code. The same wherever it was worked on."""

import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.jobs import coloured
from rowcall.cli.rows import issues_table
from rowcall.cli.screen import screen, tell, there, visible
from rowcall.client.answers import Fingerprint, Item, Job
from rowcall.engine.failures import failure_document, failure_of
from rowcall.errors import Final, RowcallError
from rowcall.model import Code, State
from rowcall.words import counted

SHOWN = 10
"""Failed rows that are shown."""
STOPPED = (State.FINGERPRINT_WARN, State.FINGERPRINT_ABORT)
"""Where a job waits because its file differs from the target."""
_WAITING = (State.COLUMN_MAPPING, State.CELL_MAPPING, *STOPPED)
"""Where a job waits for somebody to say something without which there is no plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where a job stands after the work on it: what became of its rows, and the first that failed."""

    job: Job
    mode: str | None = None
    unused: list[str]
    """Columns that no field takes."""
    failed: list[Item]
    milliseconds: int
    fingerprint: Fingerprint | None = None
    """What was found when the file was compared with the target, if it was."""
    server: str | None = None
    """The address of the service that worked on it, if one did."""


def tell_end(end: End, failure: RowcallError | None, *, as_json: bool) -> NoReturn:
    """Tell how it ended, and end the command with the code that says the same."""
    job = end.job
    if as_json:
        tell(_document(end, failure))
    elif failure is None:
        _show(screen(), end)
    elif job.counts.done:
        say(f"Job {job.number} has {job.counts.done:,} of {job.counts.rows:,} rows done.")
    elif job.state == State.FAILED:
        say(f"Job {job.number} has failed before its first row: nothing was changed.")
    if failure:
        raise failure
    raise typer.Exit(_exit_code(job))


def waits_for_submit(number: str, server: str | None = None) -> Final:
    """Going on with a preview is agreeing to it, which has a word of its own."""
    told = f"Job {number} waits after its preview: going on with it is to agree to its plan."
    see, commit = (f"rowcall {name} {number}{there(server)}" for name in ("preview", "submit"))
    return Final(Code.WRONG_STATE, told, hint=f"{see} shows it, {commit} commits it.")


@contextmanager
def failing(*, as_json: bool) -> Generator[None]:
    """What goes wrong before there is a job is told to programs too."""
    try:
        yield
    except Exception as error:
        if as_json:
            tell({"error": failure_document(failure_of(error))})
        raise


def say(text: str) -> None:
    """Tell a person something beside the output."""
    with suppress(OSError):  # the work goes on, whether or not somebody can be told of it
        sys.stderr.write(text + "\n")


def _exit_code(job: Job) -> int:
    if job.state in (State.COMPLETED, State.COMPLETED_WITH_ERRORS, State.VALIDATED):
        return 2 if job.counts.failed else 0
    if job.state in _WAITING:
        return 3
    return 0 if job.state == State.REVERTED else 1


def _document(end: End, failure: RowcallError | None) -> dict[str, Any]:
    return {
        "id": end.job.id,
        "number": end.job.number,
        "state": end.job.state,
        "importer": end.job.importer,
        "mode": end.mode,
        "dryRun": end.job.dry_run,
        "context": end.job.context,
        "supersedes": end.job.supersedes,
        "supersededBy": end.job.superseded_by,
        "file": end.job.file,
        "counts": end.job.counts,
        "durationMs": end.milliseconds,
        "unusedColumns": end.unused,
        "issues": end.failed,
        "fingerprint": end.fingerprint,
        "error": failure_document(failure) if failure else None,
        "wish": end.job.wish,
        "allowed": end.job.allowed,
        "wayOn": [{"message": what, "command": command} for what, command in _ways_on(end.job, end.server)],
    }


def _show(console: Console, end: End) -> None:
    """Tell a person what became of the rows."""
    job, counts = end.job, end.job.counts
    console.print(
        f"[bold]{literal(visible(job.file.name))}[/] into [bold]{literal(job.importer)}[/]  [dim]job {job.number}[/]"
    )
    console.print(coloured(job.state, counts.failed), end="  ")
    parts = ("created", "updated", "unchanged", "skipped", "failed", *(("reverted",) if counts.reverted else ()))
    balance = " + ".join(f"{getattr(counts, part):,} {part}" for part in parts)
    console.print(f"[bold]{counted(counts.rows, 'row')}[/] = {balance}")
    beside = f"beside them {counts.header:,} header, {counts.blank:,} blank, {counts.other:,} other lines"
    seconds = end.milliseconds / 1000
    rate = f", {counts.done / seconds:,.0f} rows/s" if seconds else ""
    console.print(f"[dim]{beside}; {seconds:,.1f} s in all{rate}[/]")
    if job.supersedes:
        console.print(f"It took the place of job {', '.join(each.number for each in job.supersedes)}.")
    if end.unused:
        console.print(f"[yellow]columns not used:[/] {literal(visible(', '.join(end.unused)))}")
    if end.failed:
        console.print(issues_table(end.failed, console.width))
    if counts.failed > len(end.failed):
        command = f"rowcall rows {job.number} --status failed{there(end.server)}"
        console.print(f"[dim]All {counts.failed:,} failed rows: {command}[/]", soft_wrap=True)
    if end.fingerprint and job.state in STOPPED:
        from rowcall.cli.fingerprint import show_fingerprint

        show_fingerprint(console, end.fingerprint, SHOWN)
    if said := _what_now(job):
        console.print(said)
    for what, command in _ways_on(job, end.server):
        console.print(f"{what}: [bold]{command}[/]", soft_wrap=True)


def way_on(state: str, number: str, server: str | None = None) -> str:
    """What can be done where a file differs from the target."""
    acknowledge, cancel = (f"rowcall {name} {number}{there(server)}" for name in ("acknowledge", "cancel"))
    if state == State.FINGERPRINT_WARN:
        return f"Go on with: {acknowledge}; end it with: {cancel}"
    return f"Too many rows differ from the target. End it with: {cancel}"


def _what_now(job: Job) -> str:
    if job.state == State.FINGERPRINT_WARN:
        return "It waits: some rows differ from the target. Nothing is changed."
    if job.state == State.FINGERPRINT_ABORT:
        return "Too many rows differ from the target. Nothing is changed."
    if job.dry_run and job.state in (State.VALIDATED, State.INVALID):
        return "A dry run: nothing was changed."
    if job.state == State.VALIDATED:
        return "This is its plan: nothing is changed yet."
    if job.state == State.COLUMN_MAPPING:
        return "It waits: it isn't sure which column is which field."
    if job.state == State.CELL_MAPPING:
        return "It waits: nobody has said what some values stand for."
    if job.state == State.PAUSED:
        return "It is paused."
    if job.state == State.CANCELLED:
        return "It was cancelled: what is done stays done, the other rows were not touched."
    if job.state == State.SUPERSEDED:
        newer = job.superseded_by.number if job.superseded_by else "a newer one"
        return f"Nothing was changed: job {newer} took its place."
    if job.state == State.REVERTED:
        return "Nothing of it is left: what it wrote was taken back."
    if job.state == State.INVALID:
        return f"[red]Nothing was imported:[/] {job.importer} takes all rows of a file or none."
    return ""


_QUESTIONS = "Be asked at a terminal"
_WAYS: dict[str, dict[str, str]] = {
    State.COLUMN_MAPPING: {"map": "See the columns, and say which they are", "resume": _QUESTIONS},
    State.CELL_MAPPING: {"values": "See the values, and say what they stand for", "resume": _QUESTIONS},
    State.FINGERPRINT_WARN: {"fingerprint": "See all of them", "acknowledge": "Go on", "cancel": "End it"},
    State.FINGERPRINT_ABORT: {"fingerprint": "See all of them", "cancel": "End it"},
    State.VALIDATED: {"preview": "See it", "submit": "Commit it", "cancel": "End it"},
    State.PAUSED: {"resume": "Go on"},
}


def _ways_on(job: Job, server: str | None) -> list[tuple[str, str]]:
    """What can be done with a job that waits: what it is for, and the command."""
    if job.dry_run and job.state == State.VALIDATED:
        return []
    ways = {name: what for name, what in _WAYS.get(job.state, {}).items() if name != "submit" or name in job.allowed}
    return [(what, f"rowcall {name} {job.number}{there(server)}") for name, what in ways.items()]
