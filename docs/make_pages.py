"""Makes what the documentation shows of the product itself: the commands' help, the settings, the OpenAPI document,
the picture of `inspect`.

Run `make docs` after changing one; a test fails when the pages are stale.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text
from typer.testing import CliRunner

from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.cli import app
from rowcall.cli.inspect import look_through, show
from rowcall.config import LIMIT_SETTINGS, SETTINGS, Setting, Settings
from rowcall.formats import Profile, open_rows
from rowcall.importer.registry import Registry
from rowcall.store.db import Database

DOCS = Path(__file__).parent
SAMPLE = DOCS.parent / "samples" / "kunden.csv"
MADE = "<!-- {}: made by docs/make_pages.py -->"
END = "<!-- end of {} -->"


def commands() -> str:
    """The help of every command, as it is printed."""
    parts: list[str] = []
    for name in app.COMMANDS:
        for words in [[name], *([name, inner] for inner in _inside(name))]:
            done = CliRunner().invoke(app.commands(name), [*words, "--help"], prog_name="rowcall", terminal_width=78)
            parts.append(f"### `rowcall {' '.join(words)}`\n\n```text\n{done.stdout.strip()}\n```\n")
    return "\n".join(parts)


def _inside(name: str) -> list[str]:
    """The commands under a command, such as `create` under `keys`."""
    groups = [group.typer_instance for group in app.commands(name).registered_groups if group.name == name]
    return [str(command.name or command.callback.__name__) for group in groups for command in group.registered_commands]


def table(settings: Sequence[Setting], what: str) -> str:
    """Settings as a table."""
    rows = [f"| `{one.variable}` | {one.default} | {one.about} |" for one in settings]
    return "\n".join([f"| variable | default | what it {what} |", "|---|---|---|", *rows]) + "\n"


def reference(text: str) -> str:
    """The reference page with its commands and settings made anew."""
    text = _with(text, "commands", commands())
    text = _with(text, "settings", table(SETTINGS, "sets"))
    return _with(text, "limits", table(LIMIT_SETTINGS, "limits"))


def openapi() -> str:
    """The OpenAPI document, as every service has it."""
    nowhere = Database("postgresql://").pool("docs", 1)  # never opened
    service = Service(Settings(data_dir=Path()), Registry(()), nowhere)
    return json.dumps(create_app(service).openapi(), indent=1, ensure_ascii=False) + "\n"


def _with(text: str, part: str, made: str) -> str:
    before, rest = text.split(MADE.format(part))
    after = rest.split(END.format(part))[1]
    return f"{before}{MADE.format(part)}\n\n{made}\n{END.format(part)}{after}"


def picture() -> str:
    """What `rowcall inspect` shows of a messy file, as SVG."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=118, file=nowhere, highlight=False, force_terminal=True)
        with open_rows(SAMPLE) as reading:
            show(console, reading, look_through(reading, Profile(), 5))
    return console.export_svg(title="rowcall inspect samples/kunden.csv", unique_id="inspect")


def import_picture() -> str:
    """What `rowcall import` shows of a messy file, as SVG. It has the time in it, so no test asks if it is fresh."""
    with tempfile.TemporaryDirectory() as data:
        return _pictured(data, "import", "samples/content/users_messy.csv", "--into", "users", unique="import")


def preview_picture() -> str:
    """What `rowcall preview` shows of a job that would change some rows, as SVG. It has the time in it, too."""
    with tempfile.TemporaryDirectory() as data:
        _said(data, "import", "samples/content/users.csv", "--into", "users")
        messy = ("samples/content/users_messy.csv", "--into", "users", "--mode", "upsert", "--preview", "--json")
        job: str = json.loads(_said(data, "import", *messy))["number"]
        return _pictured(data, "preview", job, unique="preview")


def _pictured(data: str, *arguments: str, unique: str) -> str:
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=118, file=nowhere, highlight=False, force_terminal=True)
        console.print(Text.from_ansi(_said(data, *arguments)))
    return console.export_svg(title=f"rowcall {' '.join(arguments)}", unique_id=unique)


def _said(data: str, *arguments: str) -> str:
    """What a command says, with its own database in a folder."""
    program = Path(sys.executable).parent / "rowcall"
    colours = {} if "--json" in arguments else {"FORCE_COLOR": "1", "COLUMNS": "118", "TERM": "xterm-256color"}
    environment = {**os.environ, "ROWCALL_DATA_DIR": data, **colours}
    said = subprocess.run([program, *arguments], stdout=subprocess.PIPE, check=False, cwd=DOCS.parent, env=environment)
    return said.stdout.decode()


if __name__ == "__main__":
    page = DOCS / "reference.md"
    page.write_text(reference(page.read_text()))
    (DOCS / "openapi.json").write_text(openapi())
    (DOCS / "inspect.svg").write_text(picture())
    (DOCS / "import.svg").write_text(import_picture())
    (DOCS / "preview.svg").write_text(preview_picture())
