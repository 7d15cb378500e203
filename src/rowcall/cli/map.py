"""`rowcall map`: which column of a job's file is which field, to see and to say."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape as literal

from rowcall.cli.desk import Desk, Server, desk
from rowcall.cli.moves import tell_job
from rowcall.cli.options import AsJson
from rowcall.cli.screen import document, screen, short, table, there, visible
from rowcall.client.answers.columns import ColumnAnswers, ColumnMapping, ColumnMappings, ColumnUpdate, Join
from rowcall.errors import Final
from rowcall.formats.columns import normal
from rowcall.model import Code

_Job = Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")]
_SAMPLES = 40


def map_columns(
    job: _Job,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="HEADER=FIELD", help="The field of a column; HEADER+HEADER=FIELD joins. Repeat it."
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="HEADER", help="Leave a column out. Repeat it.")
    ] = None,
    const: Annotated[
        list[str] | None,
        typer.Option("--const", metavar="FIELD=VALUE", help="The same value for all rows; FIELD= for none. Repeat it."),
    ] = None,
    join: Annotated[
        list[str] | None,
        typer.Option("--join", metavar="FIELD=HEADER+HEADER", help="Put columns together for a field. Repeat it."),
    ] = None,
    separator: Annotated[str, typer.Option(help="What stands between columns that are joined.")] = " ",
    date_order: Annotated[
        list[str] | None,
        typer.Option("--dates", metavar="HEADER=dmy", help="Order of a column's dates: dmy, mdy, ymd."),
    ] = None,
    decimal: Annotated[
        list[str] | None,
        typer.Option("--decimals", metavar="HEADER=comma", help="Decimal mark of a column: point or comma."),
    ] = None,
    template: Annotated[
        str | None, typer.Option(metavar="SOURCE/VARIANT", help="Map the columns as a template has them, first.")
    ] = None,
    reopen: Annotated[
        bool, typer.Option("--reopen", help="Go back to the columns, if nothing is written yet.")
    ] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Let the job go on with its columns as they are.")] = False,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Show which column of a job's file is which field, or say so.

    What is said is kept while the job waits; --confirm lets it go on.
    """
    with desk(server) as at:
        if reopen:
            at.reopen_columns(job)
        if template:
            at.apply_template(job, *template_name(template))
        now = at.column_mappings(job)
        said = _said(now, set_ or [], ignore or [], const or [], join or [], separator, date_order or [], decimal or [])
        if said != ColumnAnswers():
            now = at.change_columns(job, said)
        confirmed = at.confirm_columns(job) if confirm else None
        if as_json:
            sys.stdout.write(document(confirmed or now) + "\n")
        elif confirmed:
            tell_job(confirmed)
        else:
            show_columns(at, job, now)
            if now.waiting:
                screen().print(
                    "It waits for you. Say more with --set, --ignore, --const, --join; "
                    f"then let it go on: rowcall map {job} --confirm{there(server)}"
                )


def template_name(text: str) -> tuple[str, str]:
    """Source system and variant, of SOURCE/VARIANT."""
    source, sign, variant = text.partition("/")
    if not (source.strip() and sign and variant.strip()):
        raise Final(Code.BAD_OPTION, f"A template is written SOURCE/VARIANT; {text!r} isn't.")
    return source.strip(), variant.strip()


# ------------------------------------------------------------------------------------------------------ what is said


def _said(
    now: ColumnMappings,
    set_: Sequence[str],
    ignore: Sequence[str],
    const: Sequence[str],
    join: Sequence[str],
    separator: str,
    dates: Sequence[str],
    decimals: Sequence[str],
) -> ColumnAnswers:
    updates: dict[int, ColumnUpdate] = {}
    joins: list[Join] = []
    for text in set_:
        headers, field = _parts("--set", "Header=field", text, last=True)
        positions = _positions(now, headers)
        if len(positions) > 1:
            joins.append(Join(target_field=field, positions=positions, separator=separator))
        else:
            updates[positions[0]] = ColumnUpdate(position=positions[0], target_field=field)
    for text in join:
        field, headers = _parts("--join", "field=Header+Header", text)
        joins.append(Join(target_field=field, positions=_positions(now, headers), separator=separator))
    for header in ignore:
        at = _position(now, header)
        updates[at] = ColumnUpdate(position=at, ignore=True)
    for text in (*dates, *decimals):
        header, how = _parts("--dates", "Header=dmy", text, last=True)
        at = _position(now, header)
        updates[at] = _read(updates.get(at) or ColumnUpdate(position=at, confirm=True), how)
    constants = dict(_parts("--const", "field=value", text) for text in const)
    return ColumnAnswers(
        updates=list(updates.values()),
        joins=joins,
        constants={name: value or None for name, value in constants.items()},
    )


def _read(update: ColumnUpdate, how: str) -> ColumnUpdate:
    from msgspec.structs import replace

    marks = {"point": ".", "comma": ",", ".": ".", ",": ","}
    if how in ("dmy", "mdy", "ymd"):
        return replace(update, date_order=how)
    if how in marks:
        return replace(update, decimal_mark=marks[how])
    raise Final(Code.BAD_OPTION, f"{how!r} is no way to read a column; dmy, mdy, ymd, point or comma is expected.")


def _parts(option: str, shape: str, text: str, *, last: bool = False) -> tuple[str, str]:
    """What is before and behind the equals sign; a header may have one, a field doesn't."""
    before, sign, behind = text.rpartition("=") if last else text.partition("=")
    if not (before and sign and (behind or option == "--const")):
        raise Final(Code.BAD_OPTION, f"{option} is written so: {option} '{shape}'.")
    return before.strip(), behind if option == "--const" else behind.strip()


def _positions(now: ColumnMappings, headers: str) -> list[int]:
    if (whole := _found(now, headers)) is not None:
        return [whole]
    return [_position(now, header.strip()) for header in headers.split("+")]


def _position(now: ColumnMappings, header: str) -> int:
    found = _found(now, header)
    if found is None:
        listed = ", ".join(visible(column.header) for column in now.columns)
        raise Final(Code.BAD_MAPPING, f"The file has no column {header!r}.", hint=f"It has {listed}.")
    return found


def _found(now: ColumnMappings, header: str) -> int | None:
    exact = [column.position for column in now.columns if column.header == header]
    alike = [column.position for column in now.columns if normal(column.header) == normal(header) != ""]
    return next(iter((*exact, *alike)), None)


# ------------------------------------------------------------------------------------------------------ what is shown


def show_columns(at: Desk, job: str, now: ColumnMappings) -> None:
    """Columns, constants, what is missing, and what should be known."""
    console = screen()
    headers = ["", "column", "field", "status", "sure", "filled", "samples", "why"]
    console.print(table(headers, [_row(column) for column in now.columns], whole=1, width=console.width))
    for name, value in now.constants.items():
        console.print(f"[bold]{literal(name)}[/] is {literal(repr(visible(value)))} in all rows.")
    for missing in now.missing:
        near = f" Is it {visible(missing.near_miss)!r}?" if missing.near_miss else ""
        console.print(f"[red]{missing.field} is required and gets no value.[/]{literal(near)}")
    for warning in at.column_warnings(job).warnings:
        console.print(f"[yellow]{literal(visible(warning.message))}[/]")


def _row(column: ColumnMapping) -> list[str]:
    field = literal(column.target_field or "")
    if column.place:
        field = f"{field} (part {column.place + 1})"
    share = "" if column.fill_share is None else f"{100 * column.fill_share:.0f} %"
    colour = {"UNRESOLVED": "yellow", "IGNORED": "dim"}.get(column.status, "green")
    samples = " · ".join(visible(sample or "") for sample in column.samples or [])
    return [
        str(column.position + 1),
        literal(visible(column.header)),
        field,
        f"[{colour}]{column.status}[/]",
        f"{100 * column.confidence:.0f} %" if column.target_field else "",
        share,
        literal(short(samples, _SAMPLES)),
        literal(visible(column.reason)),
    ]
