"""A web server that behaves as a test says, badly if need be."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Route = Callable[[Request, socket.socket], None]


@dataclass
class Web:
    """A server on this machine: routes by path, and what was asked for."""

    port: int
    scheme: str = "http"
    routes: dict[str, Route] = field(default_factory=dict[str, Route])
    requests: list[Request] = field(default_factory=list[Request])

    def url(self, path: str, *, host: str = "127.0.0.1", login: str = "") -> str:
        return f"{self.scheme}://{login}{host}:{self.port}{path}"

    def at(self, path: str, body: bytes | str = b"", *, status: int = 200, **headers: str) -> str:
        """Have something served; its URL. Headers are written with underscores."""
        self.routes[path] = answer(body, status=status, **headers)
        return self.url(path)


def answer(body: bytes | str = b"", *, status: int = 200, **headers: str) -> Route:
    content = body.encode() if isinstance(body, str) else body
    given = {"content-length": str(len(content)), **{name.replace("_", "-"): text for name, text in headers.items()}}
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {text}" for name, text in given.items() if text)]

    def route(_: Request, connection: socket.socket) -> None:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    return route


def dripping(piece: bytes = b"x", *, every: float = 0.02) -> Route:
    """A body without an end."""

    def route(request: Request, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/csv\r\n\r\n")
        for _ in range(2000):
            connection.sendall(piece)
            time.sleep(every)

    return route


def silent(_: Request, connection: socket.socket) -> None:
    """Says nothing at all."""
    connection.settimeout(20)
    with suppress(OSError):
        connection.recv(1)


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Generator[Web]:
    """A server for as long as this lasts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        web = Web(listener.getsockname()[1], "https" if context else "http")
        thread = threading.Thread(target=_accept, args=(listener, web, context), daemon=True)
        thread.start()
        try:
            yield web
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, web: Web, context: ssl.SSLContext | None) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(connection, web, context), daemon=True).start()


def _serve(connection: socket.socket, web: Web, context: ssl.SSLContext | None) -> None:
    with suppress(OSError), connection:
        wrapped = context.wrap_socket(connection, server_side=True) if context else connection
        with wrapped:
            request = _read(wrapped)
            web.requests.append(request)
            web.routes.get(request.target.partition("?")[0], answer(status=404))(request, wrapped)


def _read(connection: socket.socket) -> Request:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    method, target, _ = first.split(" ")
    return Request(method, target, headers, body)
