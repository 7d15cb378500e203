"""What a person at a terminal is asked before a job writes: whether its file is the right one, and about its plan."""

from typing import Literal

from rowcall.cli.desk import Desk
from rowcall.cli.fingerprint import show_fingerprint
from rowcall.cli.preview import show_plan
from rowcall.cli.prompt import Left, Option, choose
from rowcall.cli.rows import issues_table
from rowcall.cli.screen import screen
from rowcall.client.answers import Job, Preview, View
from rowcall.errors import Final
from rowcall.model import Code, Status
from rowcall.words import counted

_SHOWN = 20
_Answer = Literal["go on", "rows", "columns", "cancel", "leave"]
_LEAVE: Option[_Answer] = Option("leave", "leave it waiting")
_CANCEL: Option[_Answer] = Option("cancel", "cancel it", "nothing is changed")


def settle_fingerprint(at: Desk, job: Job) -> Job:
    """Show what differs from the target, and ask whether to go on all the same. Raises `Left`."""
    name = str(job.id)
    show_fingerprint(screen(), at.fingerprint(name))
    go_on: Option[_Answer] = Option("go on", "go on all the same", "it is kept who said so")
    said = choose("Is it the right file?", [_LEAVE, go_on, *_columns(job), _CANCEL])
    return at.acknowledge(name) if said == "go on" else _otherwise(at, name, said)


def settle_plan(at: Desk, job: Job) -> Job:
    """Show the plan of a job until somebody agrees to it, and have just that committed. Raises `Left`."""
    name = str(job.id)
    while True:
        made = at.preview(name)
        show_plan(screen(), made)
        while (said := choose("Is that to be done?", _for_plan(made, job))) == "rows":
            _show_failed(at, name)
        if said != "go on":
            return _otherwise(at, name, said)
        try:
            return at.submit(name, made.digest)
        except Final as error:
            if error.code != Code.PLAN_STALE:
                raise
            screen().print(error.message, markup=False)


def _for_plan(made: Preview, job: Job) -> list[Option[_Answer]]:
    counts = made.counts
    written = counted(counts.created + counts.updated, "row is", "rows are")
    commit: Option[_Answer] = Option("go on", "commit it", f"{written} written")
    look: Option[_Answer] = Option("rows", "see rows that fail", f"{counts.failed:,} of them")
    return [commit, *([look] if counts.failed else []), *_columns(job), _LEAVE, _CANCEL]


def _columns(job: Job) -> list[Option[_Answer]]:
    return [Option("columns", "change a column")] if "reopen" in job.allowed else []


def _otherwise(at: Desk, job: str, said: _Answer) -> Job:
    if said == "columns":
        return at.reopen_columns(job)
    if said == "cancel":
        return at.cancel(job)
    raise Left


def _show_failed(at: Desk, job: str) -> None:
    failed = list(at.items(job, View(statuses=(Status.FAILED,)), most=_SHOWN))
    screen().print(issues_table(failed, screen().width))
