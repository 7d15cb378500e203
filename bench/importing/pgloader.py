"""pgloader, with its usual settings, into the same table: its indexes stay, as they do for everyone here."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from psycopg.conninfo import conninfo_to_dict

_COLUMNS = "(id, email, name, role, active, created_at, updated_at)"
_LOAD = """
LOAD CSV FROM '{file}' WITH ENCODING utf-8 {columns}
  INTO {target} TARGET TABLE public.users {columns}
  WITH skip header = 1, fields optionally enclosed by '"', fields escaped by double-quote, fields terminated by ',';
"""


def main() -> None:
    """Load a file into the users."""
    load = _LOAD.format(file=sys.argv[1], columns=_COLUMNS, target=_target(os.environ["ROWCALL_DATABASE_URL"]))
    with TemporaryDirectory() as folder:
        command = Path(folder) / "users.load"
        command.write_text(load, encoding="utf-8")
        subprocess.run(["pgloader", "--root-dir", folder, command], check=True)


def unavailable() -> str:
    """Why pgloader can't take part, or nothing. Installs it where that is possible."""
    if shutil.which("pgloader"):
        return ""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return "pgloader is not installed, and only root can install it, with apt-get"
    installed = subprocess.run(["apt-get", "install", "-y", "pgloader"], capture_output=True, text=True, check=False)
    said = installed.stderr.strip().splitlines() or [f"status {installed.returncode}"]
    return "" if shutil.which("pgloader") else f"apt-get install pgloader: {said[-1]}"


def release() -> str:
    if not shutil.which("pgloader"):
        return "not installed"
    told = subprocess.run(["pgloader", "--version"], capture_output=True, text=True, check=False).stdout
    return told.partition("\n")[0].removeprefix("pgloader version ").strip('"')


def _target(url: str) -> str:
    """The address as pgloader writes it, which has its own way with sockets."""
    parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    host, port = parts.get("host", "127.0.0.1"), parts.get("port", "5432")
    secret = f":{parts['password']}" if "password" in parts else ""
    place = f"unix:{host}" if host.startswith("/") else host
    return f"postgresql://{parts['user']}{secret}@{place}:{port}/{parts['dbname']}"
