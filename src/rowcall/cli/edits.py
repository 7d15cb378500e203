"""`rowcall edit`, `replace`, `rejects`: rows are corrected, one by one, many at once, or in a workbook."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape as literal

from rowcall.cli.desk import Server, desk
from rowcall.cli.moves import tell_job
from rowcall.cli.options import AsJson
from rowcall.cli.screen import screen, short, table, tell, there, visible
from rowcall.client.answers import Edited, Merged, Replaced, Replacement, View
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.words import counted

_Job = Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")]
_SHOWN = 60


def edit(
    job: _Job,
    row: Annotated[int, typer.Argument(metavar="ROW", min=1, help="The number of the row.")],
    assigned: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=TEXT", help="A field or column and its text. May be given again."),
    ] = None,
    reverted: Annotated[
        list[str] | None,
        typer.Option("--revert", metavar="NAME", help="Take back the correction of a cell. May be given again."),
    ] = None,
    all_back: Annotated[bool, typer.Option("--revert-all", help="Take back all corrections of the row.")] = False,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Correct cells of a row. What came in stays as it is; the row is verified at once, by the code that imports it."""
    cells: dict[str, str | None] = dict(_pair(text) for text in assigned or ())
    cells |= dict.fromkeys(reverted or ())
    if bool(cells) == all_back:
        raise Final(Code.BAD_OPTION, "Say what to correct with --set or --revert, or --revert-all.")
    with desk(server) as at:
        seen = at.item(job, row).revision
        done = at.undo_edits(job, row, revision=seen) if all_back else at.edit(job, row, cells, revision=seen)
    if as_json:
        tell(done)
    else:
        _show_edit(done, there(server))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Final(Code.BAD_OPTION, f"--set is {text!r}; NAME=TEXT is expected.")
    return name, value


def _show_edit(done: Edited, where: str) -> None:
    console, item = screen(), done.item
    for name, before in (item.original or {}).items():
        now = short(item.values.get(name) or "", _SHOWN)
        console.print(f"{literal(visible(name))}: [dim]{literal(short(before or '', _SHOWN))}[/] → {literal(now)}")
    console.print(f"Row {item.row:,} would be {done.status}." if done.alone else f"Row {item.row:,} is corrected.")
    for issue in done.issues:
        field = f"{issue.field}: " if issue.field else ""
        console.print(f"  [yellow]{literal(visible(f'{field}{issue.code} {issue.message}'))}[/]")
    if "reprocess" in done.job.allowed:
        console.print(f"Run corrected rows with: rowcall reprocess {done.job.number} --edited{where}")
    else:
        tell_job(done.job)


def replace(
    job: _Job,
    field: Annotated[str, typer.Option("--in", metavar="NAME", help="The column: its field or its header.")],
    find: Annotated[str, typer.Option(help="The text to find; '' for cells that are empty.")],
    text: Annotated[str, typer.Option("--with", help="The text that takes its place.")],
    part: Annotated[bool, typer.Option("--part", help="Also where it is only a part of the cell.")] = False,
    status: Annotated[str | None, typer.Option(help="Only rows with this status.")] = None,
    code: Annotated[str | None, typer.Option(help="Only rows with an issue of this code.")] = None,
    rows: Annotated[list[int] | None, typer.Option("--row", min=1, help="Only this row. May be given again.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it, for just the rows that are counted.")] = False,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Count the rows in which a text would be replaced, with some of them; with --yes, replace it in just these."""
    view = View(statuses=(status,) if status else (), code=code)
    what = Replacement(field=field, find=find, text=text, part=part, view=view, rows=tuple(rows) if rows else None)
    with desk(server) as at:
        counted = at.replace(job, what)
        done = at.replace(job, what, token=counted.token) if yes and counted.rows else counted
    if as_json:
        tell(done)
    else:
        _show_replaced(counted, done, there(server))


def _show_replaced(found: Replaced, done: Replaced, where: str) -> None:
    console = screen()
    lines = [
        (f"{each.row:,}", literal(short(each.before or "", _SHOWN)), literal(short(each.after, _SHOWN)))
        for each in found.samples
    ]
    if lines:
        console.print(table(("row", "before", "after"), lines, whole=1, width=console.width))
    if done.job is None:
        more = " Add --yes to do it." if found.rows else ""
        console.print(f"It would be replaced in {counted(found.rows, 'row')}.{more}")
        return
    console.print(f"Replaced in {counted(done.rows, 'row')}.")
    if "reprocess" in done.job.allowed:
        console.print(f"Run corrected rows with: rowcall reprocess {done.job.number} --edited{where}")
    else:
        tell_job(done.job)


def rejects(
    job: _Job,
    out: Annotated[Path | None, typer.Option(help="Write the workbook of the rows that failed to this file.")] = None,
    upload: Annotated[Path | None, typer.Option(help="Bring back this workbook, or CSV of it, corrected.")] = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Take the failed rows away as a workbook, or bring it back: only rows that were changed in it run again.

    The exit code is 2 if rows that came back were refused.
    """
    if (out is None) == (upload is None):
        raise Final(Code.BAD_OPTION, "Say --out FILE to take the workbook away, or --upload FILE to bring it back.")
    with desk(server) as at:
        if upload is not None:
            done = at.merge(job, upload)
            _tell_merged(done, as_json=as_json)
            if done.refused:
                raise typer.Exit(2)
        elif out is not None:
            at.rejects(job, out)
            _tell_written(job, out, there(server), as_json=as_json)


def _tell_written(job: str, out: Path, where: str, *, as_json: bool) -> None:
    if as_json:
        tell({"job": job, "file": str(out), "bytes": out.stat().st_size})
        return
    back = f"rowcall rejects {job} --upload FILE{where}"
    screen().print(f"Written to {literal(str(out))}. Bring it back with: {back}", soft_wrap=True)


def _tell_merged(done: Merged, *, as_json: bool) -> None:
    if as_json:
        tell(done)
        return
    console = screen()
    became = f"{done.changed:,} changed, {done.unchanged:,} as they were, {done.refused:,} refused"
    console.print(f"{counted(done.rows, 'row')}: {became}.")
    for each in done.not_merged[:20]:
        console.print(f"  [yellow]line {each.line:,}: {each.code} {literal(each.message)}[/]")
    if done.ignored_columns:
        console.print(f"Columns that the file doesn't have: {literal(', '.join(map(visible, done.ignored_columns)))}")
    tell_job(done.job)
