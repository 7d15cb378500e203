"""A command at a terminal, and somebody who reads and types."""

import os
import pty
import select
import time

from ..forking import forked
from .workspace import Workspace

DOWN, ENTER, ESCAPE, CONTROL_C = b"\x1b[B", b"\r", b"\x1b", b"\x03"
_PROMPTED = "Esc: leave it waiting"


class Terminal:
    """Both of them."""

    def __init__(self, workspace: Workspace, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        environment = {**os.environ, **workspace.environment, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        self.process = forked(
            ["rowcall", *arguments], environment, stdin=slave, stdout=slave, stderr=slave, folder=workspace.folder
        )
        os.close(slave)
        self.seen = ""

    def until(self, text: str) -> None:
        """Read until something is shown that wasn't before."""
        deadline = time.monotonic() + 150
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.master, 10_000).decode("utf-8", "replace")
                except OSError:
                    break
        assert text in self.seen, self.seen
        self.seen = self.seen.partition(text)[2]

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def answer(self, question: str, keys: bytes) -> None:
        """Wait for a question, and for its answers to be there; then type."""
        self.until(question)
        self.until(_PROMPTED)
        self.type(keys)

    def ends(self) -> int:
        """Its exit code."""
        deadline = time.monotonic() + 150
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.master, 10_000).decode("utf-8", "replace")
                except OSError:
                    break
        return self.process.wait(10)
