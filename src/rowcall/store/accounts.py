"""Organisations, accounts and their keys."""

import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, scalar_row

from rowcall.errors import Final
from rowcall.model import Code, Role, Scope
from rowcall.store.jobs import new_id
from rowcall.store.queries import query

# rowcall_<what it is looked up by>_<256 random bits>: secret scanners know it by its beginning.
_KEY = re.compile(r"rowcall_([0-9a-z]{12})_[0-9A-Za-z]{43}")
_LETTERS = string.digits + string.ascii_letters
_NO_HASH = bytes(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A person or a program of an organisation."""

    id: UUID
    name: str
    role: Role
    created_at: datetime
    disabled_at: datetime | None
    organisation_id: UUID
    organisation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it can be told of: without its secret."""

    id: UUID
    prefix: str
    name: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    expired: bool | None
    account: str
    role: str
    disabled: bool
    organisation_id: UUID
    organisation: str

    @property
    def state(self) -> Literal["active", "revoked", "expired", "disabled"]:
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expired else "disabled" if self.disabled else "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is known of a key that somebody came with."""

    id: UUID
    hash: bytes
    scopes: list[str]
    revoked: bool
    expired: bool
    disabled: bool
    organisation_id: UUID
    account: str
    role: Role
    stale: bool

    @property
    def refusal(self) -> str | None:
        """Why it isn't taken; None if it is."""
        return "revoked" if self.revoked else "expired" if self.expired else "disabled" if self.disabled else None


def prefix_of(key: str) -> str | None:
    """What a key is looked up by; None if it can't be one."""
    found = _KEY.fullmatch(key)
    return found[1] if found else None


def hash_of(key: str) -> bytes:
    """What is kept of a key.

    A plain SHA-256: a key is 256 random bits, which nobody guesses however fast the hash is. Slow hashes are for what
    people think up, and would cost every request.
    """
    return hashlib.sha256(key.encode()).digest()


def find_key(connection: Connection[Any], prefix: str, digest: bytes) -> Found | None:
    """The key with that prefix and hash, compared without telling by time how much of it was right."""
    found = (
        connection.cursor(row_factory=class_row(Found)).execute(query("key_by_prefix"), {"prefix": prefix}).fetchone()
    )
    is_right = hmac.compare_digest(found.hash if found else _NO_HASH, digest)
    if found is None or not is_right:
        return None
    if found.stale and not found.refusal:
        connection.execute(query("key_used"), {"id": found.id})
    return found


def any_key(connection: Connection[Any]) -> bool:
    """Whether keys were ever made: from then on every request needs one."""
    return bool(connection.cursor(row_factory=scalar_row).execute(query("any_key")).fetchone())


def is_key_good(connection: Connection[Any], key_id: UUID) -> bool:
    """Whether a key that was taken would still be."""
    return bool(connection.cursor(row_factory=scalar_row).execute(query("is_key_good"), {"id": key_id}).fetchone())


def create_key(
    connection: Connection[Any], account: Account, *, name: str, scopes: frozenset[Scope], expires: datetime | None
) -> tuple[str, ApiKey]:
    """A new key of an account. Its text is not kept: this is the only time it can be shown."""
    prefix = "".join(secrets.choice(string.digits + string.ascii_lowercase) for _ in range(12))
    key = f"rowcall_{prefix}_{''.join(secrets.choice(_LETTERS) for _ in range(43))}"
    given = {"id": new_id(), "account": account.id, "name": name, "prefix": prefix, "hash": hash_of(key)}
    connection.execute(query("add_key"), {**given, "scopes": sorted(scopes), "expires": expires})
    return key, get_key(connection, prefix)


def list_keys(
    connection: Connection[Any], *, account: str | None = None, organisation: str | None = None
) -> list[ApiKey]:
    """Keys with whose they are, the newest first."""
    given = {"account": account, "organisation": organisation, "prefix": None}
    return connection.cursor(row_factory=class_row(ApiKey)).execute(query("list_keys"), given).fetchall()


def get_key(connection: Connection[Any], prefix: str) -> ApiKey:
    """A key by its prefix, or by its whole text."""
    given = {"account": None, "organisation": None, "prefix": prefix_of(prefix) or prefix.removeprefix("rowcall_")}
    found = connection.cursor(row_factory=class_row(ApiKey)).execute(query("list_keys"), given).fetchone()
    if found is None:
        raise Final(Code.API_KEY_NOT_FOUND, "There is no key with that prefix.", hint="`rowcall keys list` shows them.")
    return found


def revoke_key(connection: Connection[Any], key: ApiKey) -> ApiKey:
    """The same key, not to be taken any more."""
    connection.execute(query("revoke_key"), {"id": key.id})
    return get_key(connection, key.prefix)


def ensure_organisation(connection: Connection[Any], name: str) -> UUID:
    """The organisation of a name, made if there is none."""
    connection.execute(query("add_organisation"), {"id": new_id(), "name": name})
    return next(connection.cursor(row_factory=scalar_row).execute(query("find_organisation"), {"name": name}))


def ensure_account(connection: Connection[Any], name: str, *, organisation: str | None, role: Role | None) -> Account:
    """The account of a name, made if there is none: an operator of the organisation `local` unless said otherwise."""
    found = find_account(connection, name)
    if found is None:
        given = {"id": new_id(), "organisation": ensure_organisation(connection, organisation or "local")}
        connection.execute(query("add_account"), {**given, "name": name, "role": role or Role.OPERATOR})
        return get_account(connection, name)
    if organisation not in (None, found.organisation):
        told = f"Account {name} is of organisation {found.organisation}, not of {organisation}."
        raise Final(Code.ACCOUNT_EXISTS, told, hint="Names of accounts are unique: choose another.")
    if role not in (None, found.role):
        hint = f"`rowcall accounts set {name} --role {role}` changes that."
        raise Final(Code.ACCOUNT_EXISTS, f"Account {name} is there already, as {found.role}.", hint=hint)
    return found


def find_account(connection: Connection[Any], name: str) -> Account | None:
    """An account by its name."""
    return connection.cursor(row_factory=class_row(Account)).execute(query("find_account"), {"name": name}).fetchone()


def get_account(connection: Connection[Any], name: str) -> Account:
    """An account by its name, which must be there."""
    found = find_account(connection, name)
    if found is None:
        hint = "`rowcall accounts list` shows them; `rowcall keys create` makes them."
        raise Final(Code.ACCOUNT_NOT_FOUND, f"There is no account {name!r}.", hint=hint)
    return found


def list_accounts(connection: Connection[Any]) -> list[Account]:
    """All accounts, by organisation."""
    return connection.cursor(row_factory=class_row(Account)).execute(query("list_accounts")).fetchall()


def change_account(
    connection: Connection[Any], account: Account, *, role: Role | None, disabled: bool | None
) -> Account:
    """The same account with another role, or with its keys refused or taken again. None: as it is."""
    connection.execute(query("change_account"), {"id": account.id, "role": role, "disabled": disabled})
    return get_account(connection, account.name)
