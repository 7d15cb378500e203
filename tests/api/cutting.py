"""Stands between a client and a server, and cuts connections when a test says so."""

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Cut:
    """Cut the connection of the first request that begins so, after so many bytes there or back."""

    start: bytes
    there: int | None = None
    back: int | None = None
    patience: float = 0
    """Seconds for which the server may read what it was sent."""


@dataclass
class Proxy:
    """Passes everything on, but for what is to be cut; and what was asked for."""

    server: tuple[str, int]
    port: int
    cuts: list[Cut] = field(default_factory=list[Cut])
    requests: list[bytes] = field(default_factory=list[bytes])
    """The first bytes of each, with its headers."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, start: bytes) -> list[bytes]:
        return [request for request in self.requests if request.startswith(start)]

    def _cut_for(self, said: bytes) -> Cut | None:
        for cut in self.cuts:
            if said.startswith(cut.start):
                self.cuts.remove(cut)
                return cut
        return None

    def serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self.server) as server:
            left: list[int | None] = [None]
            back = threading.Thread(target=self._pass_back, args=[server, client, left], daemon=True)
            back.start()
            with suppress(OSError):
                self._pass_there(client, server, left)
            hang_up(server)
            back.join()

    def _pass_there(self, client: socket.socket, server: socket.socket, left: list[int | None]) -> None:
        there: int | None = None
        patience = 0.0
        while said := client.recv(4096):
            if said.split(b" ", 1)[0] in (b"GET", b"POST", b"PATCH", b"HEAD", b"DELETE"):
                self.requests.append(said)
                if cut := self._cut_for(said):
                    there, left[0], patience = cut.there, cut.back, cut.patience
            if there is not None and there < len(said):
                server.sendall(said[:there])
                time.sleep(patience)
                hang_up(client)
                return
            there = None if there is None else there - len(said)
            server.sendall(said)

    def _pass_back(self, server: socket.socket, client: socket.socket, left: list[int | None]) -> None:
        with suppress(OSError):
            while said := server.recv(4096):
                if left[0] is not None and left[0] < len(said):
                    client.sendall(said[: left[0]])
                    break
                left[0] = None if left[0] is None else left[0] - len(said)
                client.sendall(said)
        hang_up(client)


def hang_up(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy_before(url: str, *cuts: Cut) -> Generator[Proxy]:
    parts = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy((parts.hostname or "", parts.port or 80), listener.getsockname()[1], list(cuts))

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=proxy.serve, args=[client], daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield proxy
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()
