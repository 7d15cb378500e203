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
from rowcall.client.answers.values import Candidate, Candidates, Value, ValueField, Values, ValueSaid
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.mappings import ColumnStatus
from rowcall.words import counted

_STATUSES: tuple[str, ...] = get_args(ColumnStatus)
_COLOURS = {"UNRESOLVED": "yellow", "AUTO_MATCHED": "dim", "USER_CONFIRMED": "green", "USER_OVERRIDDEN": "green"}
_SHAPE = "FIELD:VALUE"
_SEARCH = "FIELD:TEXT"
_WITHIN = " in "
"""Stands between a value and what it is looked up within, where they are shown, and where they are said."""


def values(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's number or id.")],
    field: Annotated[str | None, typer.Option(help="Only values of this field.")] = None,
    status: Annotated[str | None, typer.Option(help=f"Only values that are {', '.join(_STATUSES)}.")] = None,
    text: Annotated[str | None, typer.Option(help="Only values with this in them.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many values.")] = 50,
    search: Annotated[
        str | None, typer.Option(metavar=_SEARCH, help="Search for what values of a field can stand for.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar=f"{_SHAPE}=TARGET",
            help="It stands for this: an id, its name, or what it is looked up by. Repeat it. A value is written as it "
            "is shown, with what it is looked up within: 'city_id:Berln in Germany=Berlin'.",
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
            *_all_said(at, job, ignore, "--ignore", ignore=True),
            *_all_said(at, job, skip, "--skip", skip=True),
            *_all_said(at, job, create, "--create", create=True),
            *_all_said(at, job, accept, "--accept", confirm=True),
            *(said for each in set_ or () for said in _targeted(at, job, each)),
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


def _all_said(at: Desk, job: str, texts: Sequence[str] | None, option: str, **said: Any) -> list[ValueSaid]:
    found: list[ValueSaid] = []
    for each in texts or ():
        field, value = _parts(each, option, _SHAPE)
        if _WITHIN in value and (meant := _meant(at, job, field, value)):
            found.append(ValueSaid(ids=[one.id for one in meant], **said))
        elif value:
            found.append(ValueSaid(field=field, value=value, **said))
        else:  # all that are open
            found.append(ValueSaid(field=field, status="UNRESOLVED", **said))
    return found


def _parts(text: str, option: str, shape: str) -> tuple[str, str]:
    field, colon, value = text.partition(":")
    if not field or not colon:
        raise Final(Code.BAD_OPTION, f"{option} is written so: {option} '{shape}'.")
    return field, value


def _meant(at: Desk, job: str, field: str, text: str) -> list[Value]:
    """The values with this text; else the one that is shown so, with what it is looked up within."""
    what = text.partition(_WITHIN)[0]
    pages = [at.values(job, field=field, text=what, most=1000)]
    while after := pages[-1].next:
        pages.append(at.values(job, field=field, text=what, after=after, most=1000))
    found = [each for page in pages for each in page.items]
    return [each for each in found if each.value == text] or [each for each in found if text in _shown_as(each)]


def _shown_as(value: Value) -> list[str]:
    return [f"{value.value}{_WITHIN}{name}" for name in (value.scope.label, value.scope.id)] if value.scope else []


def _targeted(at: Desk, job: str, text: str) -> list[ValueSaid]:
    """A value may hold an equals sign, what it stands for doesn't."""
    shape = f"{_SHAPE}=TARGET"
    field, rest = _parts(text, "--set", shape)
    value, sign, target = rest.rpartition("=")
    if not sign or not value or not target:
        raise Final(Code.BAD_OPTION, f"--set is written so: --set '{shape}'.")
    meant = _meant(at, job, field, value)
    if not meant:
        told = f"{value!r} is none of the values of {field} in job {job}."
        raise Final(Code.BAD_MAPPING, told, hint=f"`rowcall values {job} --field {field}` lists them.")
    targets = [_named(at, job, each, target) for each in meant]
    if len(meant) > 1 and None in targets:
        there = " and ".join(each.scope.label if each.scope else "nothing" for each in meant[:5])
        told = f"{value!r} is looked up within {there}, and {target!r} is not the name of a row in each."
        where = next(_shown_as(each)[0] for each in meant if each.scope)
        raise Final(Code.BAD_OPTION, told, hint=f"Say which is meant, as in --set '{field}:{where}={target}'.")
    return [ValueSaid(ids=[each.id], target_id=found or target) for each, found in zip(meant, targets, strict=True)]


def _named(at: Desk, job: str, value: Value, target: str) -> str | None:
    """The id of the one row that is called so, in what a value is looked up within."""
    scope = value.scope.id if value.scope else None
    named = [each.id for each in at.candidates(job, value.field, target, scope=scope).items if each.label == target]
    if len(named) > 1:
        told = f"{target!r} is the name of several rows: {', '.join(named)}."
        raise Final(Code.BAD_OPTION, told, hint="Say which, by its id.")
    return named[0] if named else None


def _searched(at: Desk, job: str, search: str) -> Candidates:
    """What is found; of a text with the name of a scope behind it, as it is shown, what is found in that."""
    field, text = _parts(search, "--search", _SEARCH)
    what, sign, where = text.rpartition(_WITHIN)
    scopes = [each.scope for each in at.candidates(job, field, what, most=100).items if each.scope] if sign else []
    scope = next((each.id for each in scopes if where in (each.label, each.id)), None)
    return at.candidates(job, field, what, scope=scope) if scope else at.candidates(job, field, text)


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
    within = f"[dim]{_WITHIN}{literal(short(value.scope.label, 30))}[/]" if value.scope else ""
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


def _candidate(found: Candidate) -> str:
    within = f"[dim]{_WITHIN}{literal(short(found.scope.label, 30))}[/]" if found.scope else ""
    return literal(short(found.label, 100)) + within


def _show_candidates(found: Candidates, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        return
    console = screen()
    if not found.items:
        console.print("Nothing like it is there.")
        return
    lines = [(literal(short(each.id, 60)), f"{each.score}", _candidate(each)) for each in found.items]
    console.print(table(("id", "score", "name"), lines, whole=2, width=console.width))
    if found.more:
        console.print("[dim]There are more; say more of the name.[/]")
