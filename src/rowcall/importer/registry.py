"""Finds the importers: in the modules that `rowcall.toml` names, and in installed packages.

    importers = ["myapp.importers", "path/to/file.py"]

Each such module is a pack, and so is each entry point of the group `rowcall.packs`.
"""

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from rowcall.errors import Final, RowcallError
from rowcall.importer.declaration import nearest
from rowcall.importer.importer import Importer
from rowcall.model import Code
from rowcall.project import CONFIG_NAME, find_project, read_project

_GROUP = "rowcall.packs"


@dataclass(frozen=True, slots=True)
class Pack:
    """A module with importers, and what belongs to them."""

    name: str
    module: str
    importers: tuple[type[Importer], ...]
    resources: tuple[object, ...] = ()
    """What can be exported."""
    migrations: Path | None = None
    """The folder with the SQL that makes its tables."""
    installed: bool = False
    """Found through an entry point; what the application itself declares comes before it."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The importers of an application."""

    packs: tuple[Pack, ...]

    def all(self) -> tuple[type[Importer], ...]:
        """Every importer, in the order in which they were declared."""
        return tuple(importer for pack in self.packs for importer in pack.importers)

    def by_name(self) -> dict[str, type[Importer]]:
        """Every importer under what it is asked for by: its name, or with its pack's where others have the same."""
        return {self.name_of(importer): importer for importer in self.all()}

    def name_of(self, importer: type[Importer]) -> str:
        """What an importer is asked for by."""
        found = self._named(importer.name)
        alone = len(found) == 1 and found[0][1] is importer
        return importer.name if alone else f"{self.pack_of(importer).name}.{importer.name}"

    def importer(self, name: str) -> type[Importer]:
        """The importer of this name: `users`, or `content.users` with its pack."""
        found = self._named(name)
        if not found:
            raise _unknown(name, list(self.by_name()))
        if len(found) > 1:
            told = f"Several importers are called {name!r}."
            raise Final(Code.UNKNOWN_IMPORTER, told, hint=f"Say which: {', '.join(full for full, _ in found)}.")
        return found[0][1]

    def find(self, name: str) -> type[Importer] | None:
        """The same, or None: a job may be of an importer that is no longer there."""
        found = self._named(name)
        return found[0][1] if len(found) == 1 else None

    def _named(self, name: str) -> list[tuple[str, type[Importer]]]:
        """The importers of this name with their full names: the application's own, else those of installed packs."""
        found = [
            (pack.installed, f"{pack.name}.{importer.name}", importer)
            for pack in self.packs
            for importer in pack.importers
            if name in (importer.name, f"{pack.name}.{importer.name}")
        ]
        own = [(full, importer) for installed, full, importer in found if not installed]
        return own or [(full, importer) for _, full, importer in found]

    def pack_of(self, importer: type[Importer]) -> Pack:
        """The pack that an importer belongs to."""
        return next(pack for pack in self.packs if importer in pack.importers)


def _unknown(name: str, known: Sequence[str]) -> Final:
    message = f"There is no importer {name!r}. {nearest(name, known)}".strip()
    if not known:
        return Final(Code.UNKNOWN_IMPORTER, message, hint=f"Name the modules with importers in {CONFIG_NAME}.")
    return Final(Code.UNKNOWN_IMPORTER, message, hint=f"Known importers: {', '.join(sorted(known))}.")


def load_registry(config: Path | None = None) -> Registry:
    """Load the importers that are declared for this application."""
    project = read_project(config) if config else find_project()
    modules = [_load(source, project.folder) for source in project.importers] if project else []
    points = sorted(entry_points(group=_GROUP), key=lambda point: point.name)
    installed = [module for point in points if (module := _load_entry(point.value)) not in modules]
    own = (_pack(module) for module in dict.fromkeys(modules))
    return Registry((*own, *(replace(_pack(module), installed=True) for module in installed)))


# -- modules


def _load(source: str, folder: Path) -> ModuleType:
    if source.endswith(".py"):
        return _load_file((folder / source).resolve(), source)
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)  # modules beside rowcall.toml are found from wherever the command is called
    return _import(source)


def _load_entry(value: str) -> ModuleType:
    return _import(value.partition(":")[0].strip())


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            told = f"There is no module {name!r}."
            raise Final(Code.BAD_DECLARATION, told, hint="Correct its name, or install what it is part of.") from error
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error


def _load_file(path: Path, source: str) -> ModuleType:
    name = f"rowcall_file_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}.{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise Final(Code.BAD_DECLARATION, f"There is no file {path}.", hint=f"{CONFIG_NAME} names it as {source!r}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise _broken(source, error) from error
    return module


def _broken(source: str, error: Exception) -> Final:
    """What is wrong with a module, and where: the last line that is neither ours nor the import system's."""
    what = error.message if isinstance(error, RowcallError) else f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return Final(Code.BAD_DECLARATION, f"{error.filename}, line {error.lineno}: {error.msg}.")
    ours = str(Path(__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", ours, str(Path(importlib.__file__ or "").parent)))
    ]
    where = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else source
    return Final(Code.BAD_DECLARATION, f"{where}: {what}")


def _pack(module: ModuleType) -> Pack:
    importers = tuple(value for value in vars(module).values() if _belongs(value, module))
    resources: Iterable[object] = getattr(module, "resources", ())
    return Pack(_pack_name(module.__name__), module.__name__, importers, tuple(resources), _migrations(module))


def _belongs(value: Any, module: ModuleType) -> bool:
    """Whether this is an importer of the module, or of a part of it; what it merely imports is another pack's."""
    if not isinstance(value, type) or not issubclass(value, Importer) or value.abstract:
        return False
    return value.__module__ == module.__name__ or value.__module__.startswith(f"{module.__name__}.")


def _pack_name(module: str) -> str:
    parts = module.split(".")
    return parts[2] if parts[:2] == ["rowcall", "packs"] and len(parts) > 2 else parts[-1]


def _migrations(module: ModuleType) -> Path | None:
    folders = [Path(path) / "migrations" for path in getattr(module, "__path__", ())]
    return next((folder for folder in folders if folder.is_dir()), None)
