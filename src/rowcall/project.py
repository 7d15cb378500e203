"""`rowcall.toml`: where it is and what it says.

importers = ["myapp.importers", "path/to/file.py"]

[settings]
workers = 4
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from rowcall.errors import Final
from rowcall.model import Code

CONFIG_NAME = "rowcall.toml"
CONFIG_SETTING = "ROWCALL_CONFIG"
_KEYS = ("importers", "settings")


@dataclass(frozen=True, slots=True)
class Project:
    """What a project's `rowcall.toml` says."""

    path: Path
    importers: list[str] = field(default_factory=list[str])
    """Modules and files."""
    settings: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def folder(self) -> Path:
        return self.path.parent


def find_project(environment: Mapping[str, str] = os.environ) -> Project | None:
    """The project of this folder or of one above it, unless the environment names another."""
    if told := environment.get(CONFIG_SETTING):
        return read_project(Path(told))
    here = Path.cwd()
    found = next((path for folder in (here, *here.parents) if (path := folder / CONFIG_NAME).is_file()), None)
    return read_project(found) if found else None


def read_project(path: Path) -> Project:
    """What a file says. What Rowcall doesn't know is refused."""
    try:
        said = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        told = f"{path} can't be read: {error}."
        raise Final(Code.BAD_SETTING, told, hint=f"Correct it, or set {CONFIG_SETTING} to another file.") from error
    for name in said.keys() - set(_KEYS):
        told = f"{path}: {name!r} means nothing to Rowcall. {near_miss(name, _KEYS)}"
        raise Final(Code.BAD_SETTING, told, hint="Correct or remove it; settings go under [settings].")
    return Project(path, _importers(path, said.get("importers", [])), _settings(path, said.get("settings", {})))


def _importers(path: Path, said: object) -> list[str]:
    if not isinstance(said, list) or not all(isinstance(source, str) for source in cast("list[object]", said)):
        told = f"{path}: importers is {said!r}; a list of modules and files is expected."
        raise Final(Code.BAD_SETTING, told, hint='Write importers = ["myapp.importers", "path/to/file.py"].')
    return cast("list[str]", said)


def _settings(path: Path, said: object) -> dict[str, str]:
    """The settings as texts, as the environment would have them."""
    if not isinstance(said, dict):
        told = f"{path}: settings is {said!r}; a table is expected."
        raise Final(Code.BAD_SETTING, told, hint="Write [settings], and below it a line for each, such as workers = 4.")
    settings = cast("dict[str, object]", said)
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            told = f"{path}: {name} is {value!r}; a text or a number is expected."
            raise Final(Code.BAD_SETTING, told, hint='Write it as workers = 4 or max_upload = "2GB".')
    return {name: str(value) for name, value in settings.items()}


def near_miss(name: str, known: Iterable[str]) -> str:
    """The sentence that helps with a misspelt name: the nearest known one, or nothing."""
    near = get_close_matches(name, list(known), n=1)
    return f"Did you mean {near[0]!r}?" if near else ""
