"""Requests to a server: what it says is understood, and what may work later is tried again if that does no harm."""

import random
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from rowcall.decoding import from_json
from rowcall.errors import RequestRefused, RowcallError, ServerUnavailable
from rowcall.model import Code

_T = TypeVar("_T")
_CONNECT = 10.0
_FIRST_CONTACT = 3.0
"""Seconds to keep trying with a server that never answered: its address may just be wrong."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 8.0
_AWAY = (502, 503, 504)
_TOO_OFTEN = 429
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_PROBLEM = "application/problem+json"


class Asking:
    """The connections to one server."""

    def __init__(self, url: str, key: str | None, *, timeout: float, patience: float) -> None:
        self.url = _checked_url(url)
        self.patience = patience
        self._has_key = key is not None
        self._reached = False
        headers = {"User-Agent": f"rowcall/{version('rowcall')}", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {_checked_key(key)}"
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT))
        )

    def close(self) -> None:
        self._http.close()

    def ask(self, kind: type[_T], method: str, path: str, *, safe: bool = True, **more: Any) -> _T:
        """What the server answers, as this kind of thing. `safe`: asking twice does no more than asking once."""
        return self._understood(kind, self.answer(method, path, safe=safe, **more))

    def answer(self, method: str, path: str, *, safe: bool = True, **more: Any) -> httpx.Response:
        """The whole answer to a request that the server grants."""
        return self.tried(lambda: self.once(method, path, **more), safe=safe)

    def once(self, method: str, path: str, **more: Any) -> httpx.Response:
        """The same, asked for once."""
        with self.opened(method, path, **more) as response:
            response.read()
            return response

    @contextmanager
    def stream(self, method: str, path: str, **more: Any) -> Generator[httpx.Response]:
        """An answer that is read as it comes."""
        response, leave = self.tried(lambda: _entered(self.opened(method, path, **more)), safe=True)
        try:
            yield response
        finally:
            leave()

    @contextmanager
    def opened(self, method: str, path: str, *, also: Collection[int] = (), **more: Any) -> Generator[httpx.Response]:
        """The same, asked for once; `also` are statuses that are answers though they tell of trouble."""
        with self._http.stream(method, path.lstrip("/"), **more) as response:
            self._reached = True
            if not response.is_success and (response.status_code not in also or _problem_type(response)):
                response.read()
                raise self._refusal(response)
            yield response

    # ---------------------------------------------------------------------------------------------------- trying again

    def tried(self, attempt: Callable[[], _T], *, safe: bool) -> _T:
        """What an attempt gives; repeated for a while if that is safe, or nothing can have happened."""
        reached = self._reached
        pauses = Pauses(self.patience if reached else min(self.patience, _FIRST_CONTACT))
        while True:
            try:
                return attempt()
            except httpx.TransportError as error:
                failure, again = self.unreachable(error), safe or isinstance(error, _NOT_SENT)
            except ServerUnavailable as error:
                failure, again = error, safe or error.status == _TOO_OFTEN
                if not reached:  # it is there: more patience is worth while
                    reached, pauses = True, Pauses(self.patience)
            if not again or not pauses.take(failure.retry_after):
                raise failure

    def unreachable(self, error: httpx.TransportError) -> ServerUnavailable:
        """What a broken connection means to a person."""
        why = str(error) or type(error).__name__
        if isinstance(error, _NOT_SENT):
            hint = "Check the address, and that the server runs: `rowcall serve` starts one."
            return ServerUnavailable(Code.SERVER_UNREACHABLE, f"{self.url} can't be reached: {why}.", hint=hint)
        hint = "Whether it did what it was asked for is not known."
        return ServerUnavailable(Code.SERVER_UNREACHABLE, f"{self.url} gave no answer: {why}.", hint=hint)

    # ---------------------------------------------------------------------------------------------- what it says

    def _understood(self, kind: type[_T], response: httpx.Response) -> _T:
        try:
            return from_json(response.content, kind)
        except msgspec.DecodeError as error:
            raise self._not_rowcall(response) from error

    def _refusal(self, response: httpx.Response) -> RowcallError:
        """The error that an answer tells of."""
        told = _problem(response)
        named: dict[str, Any] = {
            "status": response.status_code,
            "request_id": response.headers.get("x-request-id"),
        }
        code, message, hint = (str(told.get(part) or "") for part in ("code", "detail", "hint"))
        if response.status_code in (*_AWAY, _TOO_OFTEN):
            message = message or f"{self.url} answers {response.status_code}."
            return ServerUnavailable(
                code or Code.SERVER_BUSY, message, hint=hint, retry_after=_retry_after(response), **named
            )
        if not code:
            return self._not_rowcall(response)
        if code == Code.NO_SUCH_PLACE:
            where = response.request.url.path
            message = f"The server at {self.url} doesn't know {where}: it is older than this client ({_own_version()})."
            return RequestRefused(Code.SERVER_TOO_OLD, message, hint="Upgrade the server.", **named)
        if code == Code.UNAUTHENTICATED and not self._has_key:
            hint = "Set ROWCALL_KEY, or give Client(url, key=…). `rowcall keys create` makes one, on the server."
        errors: Sequence[Mapping[str, str]] = told.get("errors") or ()
        untold = [each for each in errors if str(each.get("message")) not in message]
        if untold and message:
            wrong = "; ".join(f"{each.get('at')}: {each.get('message')}" for each in untold)
            message = f"{message.removesuffix('.')}: {wrong}."
        named |= {"allowed": told.get("allowed") or (), "errors": errors, "missing": told.get("missing") or ()}
        named["command_hint"] = told.get("commandHint") or ""
        return RequestRefused(code, message, hint=hint, **named)

    def _not_rowcall(self, response: httpx.Response) -> RequestRefused:
        kind = response.headers.get("content-type", "").partition(";")[0] or "nothing"
        return RequestRefused(
            Code.NOT_ROWCALL,
            f"What answers at {self.url} is not Rowcall: it says {response.status_code} with {kind}.",
            hint="Check the address, and any proxy on the way.",
            status=response.status_code,
        )


class Pauses:
    """Ever longer pauses between attempts, not all clients at the same time, until patience ends."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.begin_anew()

    def begin_anew(self) -> None:
        """It went on in between."""
        self._deadline = time.monotonic() + self._patience
        self._next = _FIRST_PAUSE

    def take(self, least: float = 0) -> bool:
        """Pause, unless it would take too long."""
        pause = max(least, self._next * random.uniform(0.5, 1.5))  # noqa: S311 (spreads the attempts, guards nothing)
        if time.monotonic() + pause > self._deadline:
            return False
        self._next = min(_LONGEST_PAUSE, 2 * self._next)
        time.sleep(pause)
        return True


def _entered(context: Any) -> tuple[httpx.Response, Callable[[], None]]:
    """What a context gives, and how to leave it: opening may be repeated, what is done inside may not."""
    return context.__enter__(), lambda: context.__exit__(None, None, None)


def _problem_type(response: httpx.Response) -> bool:
    return response.headers.get("content-type", "").partition(";")[0] == _PROBLEM


def _problem(response: httpx.Response) -> Mapping[str, Any]:
    """The body, if it is a problem as RFC 9457 has it."""
    if _problem_type(response):
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(response.content, type=dict[str, Any])
    return {}


def _retry_after(response: httpx.Response) -> float:
    given = response.headers.get("retry-after", "")
    return float(given) if given.isdecimal() else 0  # a date would need clocks that agree


def _own_version() -> str:
    return version("rowcall")


def _checked_url(url: str) -> str:
    hint = "It looks like https://rowcall.example.org, or http://127.0.0.1:8765."
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise RequestRefused(Code.BAD_OPTION, f"{url!r} is no address of a server.", hint=hint) from None
    if parts.username or parts.password or parts.query or parts.fragment:  # not repeated here: it may be a secret
        told = "The server's address has more in it than host, port and path."
        raise RequestRefused(Code.BAD_OPTION, told, hint=hint)
    if not good:
        raise RequestRefused(Code.BAD_OPTION, f"{url!r} is no address of a server.", hint=hint)
    return url.rstrip("/")


def _checked_key(key: str) -> str:
    bare = key.strip()
    if not bare or not bare.isascii() or not bare.isprintable() or " " in bare:
        raise RequestRefused(Code.BAD_OPTION, "The key is not one: it is empty, or has characters that no key has.")
    return bare
