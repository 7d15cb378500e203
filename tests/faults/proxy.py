"""Stands between importers and the server: loses answers, cuts connections, or lets nothing through."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from .trial import Trial

_COMMIT = b"COMMIT\0"


class Proxy:
    """Passes everything on, but for the answer to some COMMITs: then it hangs up, once the server has committed."""

    def __init__(self, folder: Path, server: Path, *, loses: Callable[[int], bool]) -> None:
        self._server = str(server)
        self._loses = loses
        self._commits = 0
        self._lock = threading.Lock()
        self.lost = 0
        self._open = threading.Event()
        self._open.set()
        self._clients: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, name="proxy")]
        self._threads[0].start()

    def lose(self, loses: Callable[[int], bool]) -> None:
        """From now on, lose the answers to these COMMITs."""
        with self._lock:
            self._loses = loses

    def cut(self) -> None:
        """Hang up on everybody."""
        with self._lock:
            clients = list(self._clients)
        for client in clients:
            _hang_up(client)

    def silence(self) -> None:
        """Let nothing through, in either direction, and tell nobody."""
        self._open.clear()

    def heal(self) -> None:
        """Let everything through again, also what was held back."""
        self._open.set()

    def close(self) -> None:
        """Take no more connections, and wait for those that are left to end."""
        self.heal()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=[client], name="proxied")
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            self._clients.add(client)
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):  # the server may be away
            server.connect(self._server)
            loses = threading.Event()
            back = threading.Thread(target=self._pass_back, args=[server, client, loses], name="answers")
            back.start()
            with suppress(OSError):
                while said := client.recv(1 << 20):
                    if said.endswith(_COMMIT) and self._to_be_lost():
                        loses.set()
                    self._open.wait()
                    server.sendall(said)
            _hang_up(server)
            back.join()
        with self._lock:
            self._clients.discard(client)

    def _to_be_lost(self) -> bool:
        with self._lock:
            self._commits += 1
            lost = self._loses(self._commits)
            self.lost += lost
            return lost

    def _pass_back(self, server: socket.socket, client: socket.socket, loses: threading.Event) -> None:
        with suppress(OSError):
            while (said := server.recv(1 << 20)) and not loses.is_set():
                self._open.wait()
                client.sendall(said)
        _hang_up(client)


def _hang_up(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy_before(trial: Trial, *, loses: Callable[[int], bool]) -> Generator[tuple[Proxy, str]]:
    """A proxy and the address of the trial's database behind it. `loses` is asked about the first, second… COMMIT."""
    folder = trial.server.folder / "proxy"
    folder.mkdir(exist_ok=True)
    proxy = Proxy(folder, trial.server.folder / ".s.PGSQL.5432", loses=loses)
    try:
        yield proxy, trial.url.replace(f"host={trial.server.folder}", f"host={folder}")
    finally:
        proxy.close()
        (folder / ".s.PGSQL.5432").unlink()
