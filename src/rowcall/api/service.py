"""What every request needs: settings, importers, connections, and who sent it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Depends, Query, Request
from psycopg import Connection
from psycopg_pool import ConnectionPool

from rowcall.config import Settings
from rowcall.errors import Final
from rowcall.importer.registry import Registry
from rowcall.model import Code, Role, Scope
from rowcall.store.accounts import any_key, is_key_good
from rowcall.store.tenancy import EVERYBODY, read_only_theirs, seeing_only


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request."""

    organisation: UUID
    account: str
    address: str | None
    request_id: str
    role: Role = Role.OPERATOR
    scopes: frozenset[Scope] = frozenset()
    key_id: UUID | None = None
    """The key that they came with; None where there are none yet."""

    @property
    def is_admin(self) -> bool:
        """Whether all of the organisation is theirs to see; others see what is their account's own."""
        return Scope.ADMIN in self.scopes

    @property
    def sees(self) -> str:
        """Whose things they see."""
        return EVERYBODY if self.is_admin else self.account

    def as_operator(self) -> "Caller":
        """The same caller, seeing only what is their own."""
        return replace(self, role=Role.OPERATOR, scopes=self.scopes - {Scope.ADMIN})


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    settings: Settings
    registry: Registry
    pool: ConnectionPool[Connection[Any]]

    @contextmanager
    def connection(self, caller: Caller) -> Generator[Connection[Any]]:
        """A connection in a transaction, which sees what the caller may see, and only of Rowcall's own tables."""
        with self.pool.connection() as connection, seeing_only(connection, caller.organisation, caller.sees):
            yield connection

    def read(self, caller: Caller, *names: str, **given: Any) -> list[list[dict[str, Any]]]:
        """The rows of some queries, by name, as the caller may see them: for what is asked again and again."""
        with self.pool.connection() as connection:
            return read_only_theirs(connection, caller.organisation, caller.sees, names, given)

    def still_welcome(self, caller: Caller) -> bool:
        """Whether the caller would still be let in: to be asked now and then by whatever goes on for long."""
        with self.pool.connection() as connection:
            return not any_key(connection) if caller.key_id is None else is_key_good(connection, caller.key_id)


# These are async so that they are called as they are: for others FastAPI asks a thread, which costs more than they do.


async def _service(request: Request) -> Service:
    return request.app.state.service


async def _caller(request: Request) -> Caller:
    return request.state.caller  # the gate has let them in


async def _caller_of_list(
    request: Request,
    user_id: Annotated[
        Literal["me", "all"] | None,
        Query(alias="userId", description="`me`: only one's own; `all`: the organisation's, for admins."),
    ] = None,
) -> Caller:
    return narrowed(await _caller(request), user_id)


def narrowed(caller: Caller, user_id: Literal["me", "all"] | None) -> Caller:
    """The caller of a list, who asks for their own or for all."""
    if user_id == "all" and not caller.is_admin:
        hint = "Leave `userId` out, or use a key with the scope `admin`."
        raise Final(Code.FORBIDDEN, "Only admins may list what is not their own.", hint=hint)
    return caller.as_operator() if user_id == "me" else caller


TheService = Annotated[Service, Depends(_service)]
TheCaller = Annotated[Caller, Depends(_caller)]
ListCaller = Annotated[Caller, Depends(_caller_of_list)]
"""Of routes that list things: with `userId=me`, an admin sees only their own."""
