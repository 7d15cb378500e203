"""`rowcall values`: what the values of a job's file stand for, to see and to say."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, get_args

import msgspec
import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.desk import Desk, Server, desk
from rowcall.cli.ended import failing
from rowcall.cli.moves import tell_job
from rowcall.cli.options import AsJson, one_of
from rowcall.cli.screen import document, screen, short, table, there
from rowcall.client.answers.values import Candidates, Value, ValueField, Values, ValueSaid
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.mappings import ColumnStatus
from rowcall.words import counted

_STATUSES: tuple[str, ...] = get_args(ColumnStatus)
_COLOURS = {"UNRESOLVED": "yellow", "AUTO_MATCHED": "dim", "USER_CONFIRMED": "green", "USER_OVERRIDDEN": "green"}
_SHAPE = "FIELD:VALUE"


def values(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")],
    field: Annotated[str | None, typer.Option(help="Only values of this field.")] = None,
    status: Annotated[str | None, typer.Option(help=f"Only values that are {', '.join(_STATUSES)}.")] = None,
    text: Annotated[str | None, typer.Option(help="Only values with this in them.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many values.")] = 50,
    search: Annotated[
        str | None, typer.Option(metavar="FIELD:TEXT", help="Search for what values of a field can stand for.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar=f"{_SHAPE}=TARGET",
            help="It stands for this: an id, its name, or what it is looked up by. Repeat it.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar=_SHAPE, help="It stands for nothing: the field stays empty. Repeat it.")
    ] = None,
    skip: Annotated[list[str] | None, typer.Option(metavar=_SHAPE, help="Skip rows with it. Repeat it.")] = None,
    create: Annotated[
        list[str] | None, typer.Option(metavar=_SHAPE, help="Create it, where the importer allows it. Repeat it.")
    ] = None,
    accept: Annotated[
        list[str] | None, typer.Option(metavar=_SHAPE, help="What is proposed is right; FIELD: for all. Repeat it.")
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Have the job go on with that.")] = False,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Show the distinct values of a job that waits, the most frequent first, and say what they stand for."""
    with failing(as_json=as_json), desk(server) as at:
        one_of("--status", status, _STATUSES)
        if search is not None:
            _show_candidates(_searched(at, job, search), as_json=as_json)
            return
        said = [
            *_all_said(ignore, "--ignore", ignore=True),
            *_all_said(skip, "--skip", skip=True),
            *_all_said(create, "--create", create=True),
            *_all_said(accept, "--accept", confirm=True),
            *(_targeted(at, job, each) for each in set_ or ()),
        ]
        updated = at.change_values(job, said).updated if said else None
        now = at.confirm_values(job) if confirm else None
        page = at.values(job, field=field, status=status, text=text, most=limit)
    if as_json:
        told: dict[str, Any] = {"fields": page.fields, "items": page.items, "next": page.next}
        sys.stdout.write(document({**told, "updated": updated, "job": now}) + "\n")
        return
    if updated is not None:
        screen().print(f"{counted(updated, 'value is', 'values are')} settled by that.")
    if now is not None:
        tell_job(now)
    else:
        _show(screen(), job, page, there(server))


# ------------------------------------------------------------------------------------------------------- what is said


def _all_said(texts: Sequence[str] | None, option: str, **said: Any) -> list[ValueSaid]:
    found: list[ValueSaid] = []
    for each in texts or ():
        field, value = _parts(each, option, _SHAPE)
        if value:
            found.append(ValueSaid(field=field, value=value, **said))
        else:  # all that are open
            found.append(ValueSaid(field=field, status="UNRESOLVED", **said))
    return found


def _parts(text: str, option: str, shape: str) -> tuple[str, str]:
    field, colon, value = text.partition(":")
    if not field or not colon:
        raise Final(Code.BAD_OPTION, f"{option} is written so: {option} '{shape}'.")
    return field, value


def _targeted(at: Desk, job: str, text: str) -> ValueSaid:
    """A value may hold an equals sign, what it stands for doesn't."""
    shape = f"{_SHAPE}=TARGET"
    field, rest = _parts(text, "--set", shape)
    value, sign, target = rest.rpartition("=")
    if not sign or not value or not target:
        raise Final(Code.BAD_OPTION, f"--set is written so: --set '{shape}'.")
    named = [each.id for each in at.candidates(job, field, target).items if each.label == target]
    if len(named) > 1:
        told = f"{target!r} is the name of several rows: {', '.join(named)}."
        raise Final(Code.BAD_OPTION, told, hint="Say which, by its id.")
    return ValueSaid(field=field, value=value, target_id=named[0] if named else target)


def _searched(at: Desk, job: str, search: str) -> Candidates:
    field, text = _parts(search, "--search", "FIELD:TEXT")
    return at.candidates(job, field, text)


# ------------------------------------------------------------------------------------------------------ what is shown


def _show(console: Console, job: str, page: Values, where: str) -> None:
    if not page.fields:
        console.print("No values of this job were asked about.")
        return
    for field in page.fields:
        console.print(_covered(field))
    if page.items:
        lines = [_line(value) for value in page.items]
        headers = ("field", "rows", "status", "value", "stands for", "because")
        console.print(table(headers, lines, whole=3, width=console.width))
    if page.next:
        console.print(
            "[dim]There are more; --limit, --field, --status and --text choose among them, --json tells all.[/]"
        )
    if page.unresolved:
        console.print(
            f"Say what they stand for: rowcall values {literal(job)}{where} --set FIELD:VALUE=TARGET, --accept, "
            "--ignore, --skip or --create; then --confirm."
        )


def _covered(field: ValueField) -> str:
    settled = field.values - field.unresolved
    left = f"; [yellow]{field.unresolved:,} left[/]" if field.unresolved else ""
    told = f"{counted(settled, 'value covers', 'values cover')} {field.covered_percent:g} % of rows"
    return f"[bold]{literal(field.field)}[/]: {told}{left}"


def _line(value: Value) -> tuple[str, ...]:
    within = f" [dim]in {literal(short(value.scope.label, 30))}[/]" if value.scope else ""
    status = f"[{_COLOURS.get(value.status, 'green')}]{value.status}[/]"
    return (
        literal(value.field),
        f"{value.occurrences:,}",
        status,
        literal(short(value.value, 60)) + within,
        _stands_for(value),
        f"[dim]{literal(short(value.reason, 80))}[/]",
    )


def _stands_for(value: Value) -> str:
    if value.action in ("empty", "skip", "create"):
        return {"empty": "nothing", "skip": "rows are skipped", "create": "is created"}[value.action]
    if value.target is None:
        near = ", ".join(short(each.label, 30) for each in value.candidates)
        return f"[yellow]? {literal(near)}[/]" if near else "[yellow]?[/]"
    question = "[yellow]?[/] " if value.action is None else ""
    return f"{question}{literal(short(value.target.label, 40))} [dim]({literal(short(value.target.id, 40))})[/]"


def _show_candidates(found: Candidates, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        return
    console = screen()
    if not found.items:
        console.print("Nothing like it is there.")
        return
    lines = [(literal(short(each.id, 60)), f"{each.score}", literal(short(each.label, 100))) for each in found.items]
    console.print(table(("id", "score", "name"), lines, whole=2, width=console.width))
    if found.more:
        console.print("[dim]There are more; say more of the name.[/]")
