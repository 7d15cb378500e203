"""One request and its answer, at an address that was checked.

No proxies, no redirects, no cookies, no decoding: httpcore itself does none of that, which is why it is used bare.
"""

import base64
import ssl
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore

from rowcall.errors import Final, Retryable
from rowcall.model import Code
from rowcall.sources.place import Place

_GLANCE = 0.25
"""Seconds between looks whether somebody wants it to end."""
Pulse = Callable[[], None]
"""Raises when it is to end."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said; the body comes as it is read."""

    status: int
    headers: Mapping[str, str]
    body: Iterator[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A request."""

    method: str
    place: Place
    headers: Mapping[str, str]
    content: bytes | None = None


@contextmanager
def exchanged(
    sending: Sending,
    addresses: Sequence[str],
    pulse: Pulse,
    *,
    connect: float,
    quiet: float,
    trust: ssl.SSLContext | None,
) -> Generator[Answer]:
    """The answer to a request that goes to one of these addresses. `quiet` is how long nothing may come."""
    place = sending.place
    url = httpcore.URL(scheme=place.scheme, host=place.host, port=place.port, target=place.target)
    timeouts = {"timeout": {"connect": connect, "read": quiet, "write": quiet, "pool": connect}}
    try:
        with (
            httpcore.ConnectionPool(
                ssl_context=trust or _trusted(), network_backend=_Pinned(addresses, pulse), max_keepalive_connections=0
            ) as pool,
            pool.stream(
                sending.method, url, headers=_headers(sending), content=sending.content, extensions=timeouts
            ) as response,
        ):
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            yield Answer(response.status, headers, response.iter_stream())
    except httpcore.TimeoutException as error:
        raise Retryable(Code.URL_UNREACHABLE, f"{place.shown} doesn't answer in time.") from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise _translated(place, error) from error


@cache
def _trusted() -> ssl.SSLContext:
    return httpcore.default_ssl_context()


def _headers(sending: Sending) -> list[tuple[str, str]]:
    place = sending.place
    host = ("Host", place.origin.partition("://")[2])
    login = base64.b64encode(":".join(place.login).encode()).decode() if place.login else ""
    return [host, *sending.headers.items(), *([("Authorization", f"Basic {login}")] if login else [])]


def _translated(place: Place, error: Exception) -> Final | Retryable:
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        told = f"The certificate of {place.host} is not to be trusted: {cause.verify_message}."
        return Final(Code.URL_UNREACHABLE, told)
    if isinstance(error, httpcore.ConnectError):
        return Retryable(Code.URL_UNREACHABLE, f"{place.shown} gives no connection.")
    return Retryable(Code.URL_UNREACHABLE, f"The connection to {place.shown} ended before its answer did.")


class _Pinned(httpcore.NetworkBackend):
    """Connects to given addresses, whatever the host's name is."""

    def __init__(self, addresses: Sequence[str], pulse: Pulse) -> None:
        self._addresses, self._pulse = addresses, pulse
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002 (it has been resolved)
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception | None = None
        for address in self._addresses:
            self._pulse()
            try:
                stream = self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
                return _Stream(stream, self._pulse)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError


class _Stream(httpcore.NetworkStream):
    """A connection that ends when it is to, not only when something comes."""

    def __init__(self, stream: httpcore.NetworkStream, pulse: Pulse) -> None:
        self._stream, self._pulse = stream, pulse

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        quiet = time.monotonic() + (timeout or 0)
        while True:
            self._pulse()
            try:
                return self._stream.read(max_bytes, _GLANCE)
            except httpcore.ReadTimeout:
                if timeout is not None and time.monotonic() > quiet:
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._pulse)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
