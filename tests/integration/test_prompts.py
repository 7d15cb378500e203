"""`rowcall import` asks at a terminal where it isn't sure, and waits elsewhere."""

import os
import pty
import select
import subprocess
import time

import pytest

from .command import COMMAND
from .workspace import Workspace

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
UNSURE = ("Kontakt,who", "ada@example.org,Ada", "bob@example.org,Bob")
DOWN, ENTER, ESCAPE = b"\x1b[B", b"\r", b"\x1b"


class Terminal:
    """A command at a terminal, and somebody who reads and types."""

    def __init__(self, workspace: Workspace, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        environment = {**os.environ, **workspace.environment, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        self.process = subprocess.Popen(
            [COMMAND, *arguments],
            cwd=workspace.folder,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""

    def until(self, text: str) -> None:
        """Read until something is shown that wasn't before."""
        deadline = time.monotonic() + 60
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

    def ends(self) -> int:
        """Its exit code."""
        deadline = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.master, 10_000).decode("utf-8", "replace")
                except OSError:
                    break
        return self.process.wait(10)


def test_columns_are_asked_for_at_a_terminal_and_the_import_goes_on(workspace: Workspace) -> None:
    file = workspace.file("xyz,name", "ada@example.org,Ada", "bob@example.org,Bob")
    at = Terminal(workspace, "import", str(file), "--into", "people")
    at.until("email come from?")
    at.type(b"same" + b"\x7f" * 4 + b"xyz" + ENTER)
    at.until("Is that right?")
    at.until("Esc: leave it waiting")
    at.type(DOWN + DOWN + ENTER)
    assert at.ends() == 0, at.seen
    assert workspace.ask("SELECT email, name FROM people ORDER BY 1") == [
        ("ada@example.org", "Ada"),
        ("bob@example.org", "Bob"),
    ]


def test_whoever_leaves_finds_the_job_waiting(workspace: Workspace) -> None:
    file = workspace.file(*UNSURE)
    at = Terminal(workspace, "import", str(file), "--into", "people")
    at.until("Esc: leave it waiting")
    at.type(ESCAPE)
    at.until("rowcall map ")
    assert at.ends() == 3


def test_where_nobody_sits_the_job_waits_and_tells_how_to_go_on(workspace: Workspace) -> None:
    done = workspace.run("import", workspace.file(*UNSURE), "--into", "people", "--ask", "unsure")
    assert done.status == 3
    assert "rowcall map " in done.out
