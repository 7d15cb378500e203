"""`rowcall keys`: who may send requests, and with what."""

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.options import AsJson, one_of
from rowcall.cli.screen import beside, document, screen, table
from rowcall.config import settings_from
from rowcall.errors import Final
from rowcall.model import Code, Role, Scope
from rowcall.store import accounts
from rowcall.store.accounts import ApiKey
from rowcall.store.audit import Actor, add_entry
from rowcall.store.db import open_database
from rowcall.store.jobs import system_account
from rowcall.store.tenancy import EVERYBODY

keys = typer.Typer(help="Make, list and revoke keys for the HTTP service.", no_args_is_help=True, rich_markup_mode=None)
_SPAN = re.compile(r"([1-9]\d{0,4})([dh])")
_COLOURS = {"active": "green", "expired": "yellow", "disabled": "yellow", "revoked": "red"}


@keys.command()
def create(
    account: Annotated[str, typer.Option(help="Whose key it is: an e-mail address, or a program's name.")],
    organisation: Annotated[
        str | None,
        typer.Option(help="The organisation of a new account; else `local`, which has the command line's jobs."),
    ] = None,
    role: Annotated[str | None, typer.Option(help="The role of a new account: operator or admin.")] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help=f"What it is good for: {', '.join(Scope)}. Repeat it; else all of the role."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="When it ends: in 90d or 12h, or a date such as 2030-01-31; else never.")
    ] = None,
    name: Annotated[str, typer.Option(help="What it is for, to know it by later.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a key, and its account and organisation if they aren't there. It is shown this once."""
    _require_name("--account", account)
    _require_name("--organisation", organisation)
    wanted = one_of("--role", role, list(Role))
    until = _until(expires)
    with open_database(settings_from()) as database, database.connect("keys") as connection, connection.transaction():
        owner = accounts.ensure_account(
            connection, account, organisation=organisation, role=Role(wanted) if wanted else None
        )
        key, made = accounts.create_key(
            connection, owner, name=name, scopes=_scopes(scope, owner.role, account), expires=until
        )
        actor = Actor(organisation=owner.organisation_id, account=system_account())
        add_entry(connection, actor, "key.create", made.prefix, {"account": account, "scopes": made.scopes})
    if as_json:
        sys.stdout.write(document({"key": key, **_document(made)}) + "\n")
        return
    beside().print(
        f"A key of {made.account} ({made.role} of {made.organisation}): {', '.join(made.scopes)}; "
        f"{f'until {made.expires_at:%Y-%m-%d %H:%M} UTC' if made.expires_at else 'it does not expire'}. "
        "It is not kept and can't be shown again.",
        markup=False,
    )
    sys.stdout.write(f"{key}\n")


@keys.command(name="list")
def list_(
    account: Annotated[str | None, typer.Option(help="Only keys of this account.")] = None,
    organisation: Annotated[str | None, typer.Option(help="Only keys of this organisation.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the keys: whose they are, what they are good for, and when they were last used."""
    with open_database(settings_from()) as database, database.connect("keys") as connection:
        found = accounts.list_keys(connection, account=account, organisation=organisation)
    if as_json:
        sys.stdout.write(document([_document(key) for key in found]) + "\n")
    elif found:
        _show(screen(), found)
    else:
        screen().print("No keys.")


@keys.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="PREFIX", help="The key's beginning, as `rowcall keys list` shows it.")],
    as_json: AsJson = False,
) -> None:
    """Have a key refused from now on."""
    with open_database(settings_from()) as database, database.connect("keys") as connection, connection.transaction():
        found = accounts.get_key(connection, key)
        revoked = accounts.revoke_key(connection, found)
        actor = Actor(organisation=found.organisation_id, account=system_account())
        add_entry(connection, actor, "key.revoke", found.prefix, {"account": found.account})
    if as_json:
        sys.stdout.write(document(_document(revoked)) + "\n")
    else:
        was = " already" if found.revoked_at else ""
        screen().print(f"The key rowcall_{revoked.prefix} of {revoked.account} is{was} revoked.", markup=False)


def _require_name(option: str, name: str | None) -> None:
    """Somebody has to know by it who that is."""
    if name is not None and (not name.strip() or name != name.strip() or not name.isprintable() or name == EVERYBODY):
        told = f"{option} is {name!r}; a name is expected, such as an e-mail address, without blanks around it."
        raise Final(Code.BAD_OPTION, told)


def _scopes(given: list[str] | None, role: str, account: str) -> frozenset[Scope]:
    most = frozenset(Scope) if role == Role.ADMIN else frozenset(Scope) - {Scope.ADMIN}
    wanted = frozenset(Scope(one_of("--scope", text, list(Scope)) or "") for text in given or ()) or most
    if not wanted <= most:
        told = f"A key of {account}, who is {role}, can't have the scope admin."
        raise Final(Code.BAD_OPTION, told, hint=f"`rowcall accounts set {account} --role admin` comes first.")
    return wanted


def _until(text: str | None) -> datetime | None:
    if text is None or text == "never":
        return None
    now = datetime.now(UTC)
    if span := _SPAN.fullmatch(text):
        return now + (timedelta(days=int(span[1])) if span[2] == "d" else timedelta(hours=int(span[1])))
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        told = f"--expires is {text!r}; 90d, 12h or a date such as 2030-01-31 is expected."
        raise Final(Code.BAD_OPTION, told) from None
    until = given if given.tzinfo else given.replace(tzinfo=UTC)
    if until <= now:
        raise Final(Code.BAD_OPTION, f"--expires {text} is over: the key would never be taken.")
    return until


def _document(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "prefix": key.prefix,
        "name": key.name,
        "account": key.account,
        "role": key.role,
        "organisation": key.organisation,
        "scopes": key.scopes,
        "state": key.state,
        "createdAt": key.created_at,
        "expiresAt": key.expires_at,
        "lastUsedAt": key.last_used_at,
        "revokedAt": key.revoked_at,
    }


def _show(console: Console, found: list[ApiKey]) -> None:
    headers = ("key", "state", "last used", "expires", "account", "organisation", "scopes", "name")
    lines = [
        (
            f"rowcall_{key.prefix}",
            f"[{_COLOURS[key.state]}]{key.state}[/]",
            _day(key.last_used_at),
            _day(key.expires_at),
            literal(key.account),
            literal(key.organisation),
            ", ".join(key.scopes),
            literal(key.name),
        )
        for key in found
    ]
    console.print(table(headers, lines, whole=4, width=console.width))


def _day(at: datetime | None) -> str:
    return f"{at.astimezone():%d %b %Y}" if at else "never"
