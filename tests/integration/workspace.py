"""A folder with importers of its own and a database: where the command line is tried."""

import json
import os
import subprocess
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowcall.store.db import Database

from .command import COMMAND, Done, rowcall

_TABLE = """
CREATE TABLE people (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email  text NOT NULL UNIQUE,
    name   text NOT NULL,
    age    smallint,
    born   date,
    paid   numeric(10, 2))
"""
SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep({}); RETURN NULL; END $$;
CREATE TRIGGER slow AFTER INSERT ON people EXECUTE FUNCTION slow()
"""
COMMITTED = "SELECT 1 FROM rowcall.batch WHERE state = 'done'"
_IMPORTERS = '''
from rowcall import Date, Decimal, Flow, Importer, Integer, Skip, Text, Update


class Base(Importer, abstract=True):
    target = "people"
    key = "email"
    email = Text(required=True, aliases=["E-Mail"])
    name_ = Text(required=True, help="As on the door.")
    age = Integer(min=0)
    born = Date()
    paid = Decimal()


class People(Base):
    """People we know."""

    on_match = Update()


class Previewed(Base):
    """People to look at first."""

    flow = Flow(preview=True)


class Whole(Base):
    """All people or none."""

    atomic = True


class Once(Base):
    """People that come once."""

    once = True
'''


@dataclass(frozen=True)
class Workspace:
    """Runs commands in a folder, on a database."""

    folder: Path
    database: Database

    @property
    def environment(self) -> dict[str, str]:
        return {
            "ROWCALL_CONFIG": str(self.folder / "rowcall.toml"),
            "ROWCALL_DATABASE_URL": self.database.url,
            "ROWCALL_DATA_DIR": str(self.folder / "data"),
        }

    def run(self, *arguments: str | Path, stdin: bytes = b"", **environment: str) -> Done:
        return rowcall(*arguments, stdin=stdin, **{**self.environment, **environment})

    def json(self, *arguments: str | Path, status: int = 0, stdin: bytes = b"") -> Any:
        done = self.run(*arguments, "--json", stdin=stdin)
        assert done.status == status, done.out + done.err
        return json.loads(done.out)

    @contextmanager
    def begun(self, *arguments: str | Path, **environment: str) -> Generator[subprocess.Popen[str]]:
        """A command that goes on while the test does something else."""
        with subprocess.Popen(
            [COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self.environment, **environment},
        ) as command:
            try:
                yield command
            finally:
                command.kill()

    def file(self, *lines: str, name: str = "people.csv") -> Path:
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n")
        return path

    def many(self, rows: Iterable[int]) -> Path:
        """A file of people with these numbers."""
        return self.file("email,name", *(f"p{number}@example.org,P{number}" for number in rows))

    def ask(self, statement: Any, *given: object) -> list[tuple[Any, ...]]:
        with self.database.connect() as connection:
            cursor = connection.execute(statement, given)
            return cursor.fetchall() if cursor.description else []

    def await_rows(self, statement: Any, command: subprocess.Popen[str]) -> None:
        """Wait until a command has brought it so far that a statement returns something."""
        deadline = time.monotonic() + 60
        while not self.ask(statement):
            assert command.poll() is None, command.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)


def make_workspace(folder: Path, database: Database) -> Workspace:
    (folder / "rowcall.toml").write_text('importers = ["importers.py"]\n')
    (folder / "importers.py").write_text(_IMPORTERS)
    workspace = Workspace(folder, database)
    workspace.ask(_TABLE)
    return workspace
