"""`rowcall accounts`: who there is, and what they may be trusted with."""

import sys
from typing import Annotated, Any

import typer
from rich.markup import escape as literal

from rowcall.cli.options import AsJson, one_of
from rowcall.cli.screen import document, screen, table
from rowcall.config import settings_from
from rowcall.model import Role
from rowcall.store import accounts as store
from rowcall.store.accounts import Account
from rowcall.store.audit import Actor, add_entry
from rowcall.store.db import open_database
from rowcall.store.jobs import system_account

accounts = typer.Typer(
    help="List accounts, and change their role or whether they may do anything.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@accounts.command(name="list")
def list_(as_json: AsJson = False) -> None:
    """List the accounts of all organisations. `rowcall keys create` makes them."""
    with open_database(settings_from()) as database, database.connect("accounts") as connection:
        found = store.list_accounts(connection)
    if as_json:
        sys.stdout.write(document([_document(account) for account in found]) + "\n")
        return
    lines = [(literal(a.name), a.role, _state(a), literal(a.organisation)) for a in found]
    console = screen()
    shown = table(("account", "role", "state", "organisation"), lines, whole=3, width=console.width)
    console.print(shown if found else "No accounts.")


@accounts.command(name="set")
def change(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account's name.")],
    role: Annotated[
        str | None, typer.Option(help="operator (its own jobs) or admin (all of its organisation).")
    ] = None,
    disabled: Annotated[
        bool | None, typer.Option("--disabled/--enabled", help="Whether its keys are refused.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change an account; it counts for its keys from their next request on."""
    wanted = one_of("--role", role, list(Role))
    with (
        open_database(settings_from()) as database,
        database.connect("accounts") as connection,
        connection.transaction(),
    ):
        found = store.get_account(connection, account)
        changed = store.change_account(connection, found, role=Role(wanted) if wanted else None, disabled=disabled)
        actor = Actor(organisation=found.organisation_id, account=system_account())
        add_entry(connection, actor, "account.set", account, {"role": changed.role, "state": _state(changed)})
    if as_json:
        sys.stdout.write(document(_document(changed)) + "\n")
    else:
        screen().print(f"{account} is {changed.role} of {changed.organisation}, {_state(changed)}.", markup=False)


def _state(account: Account) -> str:
    return "disabled" if account.disabled_at else "active"


def _document(account: Account) -> dict[str, Any]:
    return {
        "id": account.id,
        "name": account.name,
        "role": account.role,
        "organisation": account.organisation,
        "state": _state(account),
        "createdAt": account.created_at,
        "disabledAt": account.disabled_at,
    }
