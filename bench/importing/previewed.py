"""Rowcall with a person in between: what would happen is shown first, and then submitted."""

import subprocess
import sys
from pathlib import Path

import msgspec


class _Told(msgspec.Struct):
    """What `rowcall import --json` says."""

    id: str


def main() -> None:
    """Preview a file into the users, then submit what was shown: `FILE MODE`."""
    file, mode = sys.argv[1:]
    shown = _rowcall("import", file, "--into", "users", "--mode", mode, "--preview", "--json")
    print(_rowcall("submit", _id_in(shown), "--json"))


def main_undone() -> None:
    """Import a file into the users, then take it back; what is told is what was imported: `FILE`."""
    told = _rowcall("import", sys.argv[1], "--into", "users", "--mode", "insert", "--json")
    _rowcall("undo", _id_in(told), "--yes", "--json")
    print(told)


def _rowcall(*arguments: str) -> str:
    command = [Path(sys.executable).with_name("rowcall"), *arguments]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        sys.exit(f"rowcall {arguments[0]} ended with {ended.returncode}: {ended.stdout[-500:]}")
    return ended.stdout


def _id_in(told: str) -> str:
    return msgspec.json.decode(told, type=_Told).id
