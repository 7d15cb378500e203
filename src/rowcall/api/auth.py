"""Who sends a request: by its key; without one only this machine, and only while there are no keys at all."""

import math
import re
import time
from collections import OrderedDict
from ipaddress import ip_address
from urllib.parse import urlsplit

import psycopg
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from rowcall.api.limits import Buckets, neighbourhood
from rowcall.api.problems import problem, problem_of
from rowcall.api.service import Caller, Service
from rowcall.model import Code, Role, Scope
from rowcall.store.accounts import Found, any_key, find_key, hash_of, prefix_of
from rowcall.store.jobs import LOCAL

_BAD_KEYS = 20
"""Bad keys that an address may send at once; one every six seconds comes on top."""
_KNOWN = 10_000
_RECHECK = 1.0
"""Seconds until it is asked again whether there are keys by now."""
_READING = ("GET", "HEAD", "OPTIONS")
_JOB_EXPORT = re.compile(r"/v1/imports/[^/]+/export")
"""The same as an export that names the job."""
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


def scope_of(method: str, path: str) -> Scope:
    """What a key needs for a request."""
    if path.startswith(("/v1/audit", "/v1/webhooks")):  # these tell of all jobs of the organisation
        return Scope.ADMIN
    if path.startswith("/v1/exports") or (method == "POST" and _JOB_EXPORT.fullmatch(path)):
        return Scope.EXPORTS_READ
    return Scope.IMPORTS_READ if method in _READING else Scope.IMPORTS_WRITE


def allowed(caller: Caller, needed: Scope) -> bool:
    """Whether the caller's key is good for that; whoever may write may read."""
    return needed in caller.scopes or (needed is Scope.IMPORTS_READ and Scope.IMPORTS_WRITE in caller.scopes)


class _Refused(Exception):
    def __init__(self, answer: Response) -> None:
        super().__init__(answer)
        self.answer = answer


class Gate:
    """Lets nobody through to /v1 who isn't known and allowed to; whoever is, is the request's caller."""

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        per_minute = service.settings.rate_limit
        self._app = app
        self._service = service
        self._requests = Buckets(capacity=per_minute, per_second=per_minute / 60)
        self._failures = Buckets(capacity=_BAD_KEYS, per_second=1 / 6)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._has_keys = False
        self._asked = float("-inf")

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (scope["path"] + "/").startswith("/v1/"):
            try:
                scope.setdefault("state", {})["caller"] = await self._admitted(Request(scope))
            except _Refused as refused:
                await refused.answer(scope, receive, send)
                return
            except psycopg.Error as error:
                await problem_of(error, scope)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _admitted(self, request: Request) -> Caller:
        given = request.headers.getlist("authorization")
        caller = await (self._by_key(request, given) if given else self._without_key(request))
        needed = scope_of(request.method, request.scope["path"])
        if not allowed(caller, needed):
            raise _forbidden(caller, needed)
        return caller

    # ------------------------------------------------------------------------------------------------------ with a key

    async def _by_key(self, request: Request, given: list[str]) -> Caller:
        kind, _, key = given[0].partition(" ")
        key = key.strip()
        digest = hash_of(key)
        address = neighbourhood(_address(request) or "")
        self._not_too_often(digest, address)
        prefix = prefix_of(key)
        found = None
        if len(given) == 1 and kind.lower() == "bearer" and prefix:
            found = await run_in_threadpool(self._found, prefix, digest)
        if found is None or found.refusal:
            self._failures.take(address)
            self._known.pop(digest, None)
            raise _unknown(found)
        self._remember(digest)
        return _caller(request, found)

    def _not_too_often(self, digest: bytes, address: str) -> None:
        """Neither does a known key ask too often, nor is the database asked for ever about bad ones."""
        if digest in self._known:
            if wait := self._requests.take(digest):
                raise _too_many(wait, "This key is used too often (ROWCALL_RATE_LIMIT).")
        elif wait := self._failures.wait(address):
            raise _too_many(wait, "Too many requests with bad keys came from this address.")

    def _found(self, prefix: str, digest: bytes) -> Found | None:
        with self._service.pool.connection() as connection:
            return find_key(connection, prefix, digest)

    def _remember(self, digest: bytes) -> None:
        self._known[digest] = None
        self._known.move_to_end(digest)
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)

    # --------------------------------------------------------------------------------------------------- without a key

    async def _without_key(self, request: Request) -> Caller:
        if await self._keys_exist():
            raise _unauthenticated("A key is needed.", "Send it as `Authorization: Bearer KEY`.")
        if not is_local(request, self._service.settings.cors_origins):
            hint = (
                "Send one as `Authorization: Bearer KEY`; whoever runs the service makes them: `rowcall keys create`."
            )
            raise _unauthenticated("Without a key, only this machine itself is served.", hint)
        address, name = _address(request), request.state.request_id
        return Caller(LOCAL, "local", address, name, role=Role.ADMIN, scopes=frozenset(Scope))

    async def _keys_exist(self) -> bool:
        """Once there are keys there always will be; until then it is asked again."""
        if not self._has_keys and time.monotonic() - self._asked > _RECHECK:
            self._has_keys = await run_in_threadpool(self._ask_for_keys)
            self._asked = time.monotonic()
        return self._has_keys

    def _ask_for_keys(self) -> bool:
        with self._service.pool.connection() as connection:
            return any_key(connection)


def _caller(request: Request, found: Found) -> Caller:
    scopes = frozenset(map(Scope, found.scopes))
    return Caller(
        found.organisation_id,
        found.account,
        _address(request),
        request.state.request_id,
        role=Role(found.role),
        scopes=scopes if found.role == Role.ADMIN else scopes - {Scope.ADMIN},
        key_id=found.id,
    )


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None


def is_local(request: Request, origins: tuple[str, ...]) -> bool:
    """Whether a request comes from this machine and not, through a browser on it or a proxy, from elsewhere."""
    if any(name in request.headers for name in _FORWARDED):
        return False
    origin = request.headers.get("origin")
    trusted = origin is None or origin in origins or _is_loopback(origin)
    address = _address(request) or ""
    sender = f"//[{address}]" if ":" in address else f"//{address}"
    return trusted and _is_loopback(f"//{request.headers.get('host', '')}") and _is_loopback(sender)


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


# ----------------------------------------------------------------------------------------------------------- refusals


def _unknown(found: Found | None) -> _Refused:
    """Only whoever has the right key learns what became of it."""
    if found is None:
        hint = "See that it is whole. Whoever runs the service sees how keys begin."
        return _unauthenticated("The key is not known.", hint, bad=True)
    what = {"revoked": "was revoked", "expired": "has expired", "disabled": "is of an account that is disabled"}
    return _unauthenticated(
        f"The key {what[found.refusal or '']}.", "Ask whoever runs the service for another.", bad=True
    )


def _unauthenticated(detail: str, hint: str, *, bad: bool = False) -> _Refused:
    answer = problem(401, Code.UNAUTHENTICATED, detail, hint=hint)
    answer.headers["WWW-Authenticate"] = 'Bearer realm="rowcall"' + (', error="invalid_token"' if bad else "")
    return _Refused(answer)


def _forbidden(caller: Caller, needed: Scope) -> _Refused:
    by_role = needed is Scope.ADMIN and caller.role is not Role.ADMIN
    detail = "Only admins may do that." if by_role else f"The key lacks the scope {needed}."
    answer = problem(403, Code.FORBIDDEN, detail, hint="Ask whoever runs the service for a key with other scopes.")
    answer.headers["WWW-Authenticate"] = f'Bearer realm="rowcall", error="insufficient_scope", scope="{needed}"'
    return _Refused(answer)


def _too_many(wait: float, detail: str) -> _Refused:
    seconds = max(1, math.ceil(wait))
    answer = problem(429, Code.TOO_MANY_REQUESTS, detail, hint=f"Try again in {seconds} s.")
    answer.headers["Retry-After"] = str(seconds)
    return _Refused(answer)
