"""PostgreSQL's own COPY, nothing around it: no check before, no account after, and one bad row refuses them all."""

import os
import sys
from pathlib import Path

import psycopg

_PIECE = 2**20


def main() -> None:
    """Copy a file into the users."""
    copy_in(os.environ["ROWCALL_DATABASE_URL"], Path(sys.argv[1]))


def main_out() -> None:
    """Copy the users into a file."""
    with (
        Path(sys.argv[1]).open("wb") as out,
        psycopg.connect(os.environ["ROWCALL_DATABASE_URL"]) as connection,
        connection.cursor().copy("COPY users TO STDOUT (FORMAT csv, HEADER)") as copy,
    ):
        for data in copy:
            out.write(data)


def copy_in(url: str, file: Path) -> None:
    """One transaction on one connection."""
    with (
        file.open("rb", buffering=0) as raw,
        psycopg.connect(url) as connection,
        connection.cursor().copy("COPY users FROM STDIN (FORMAT csv, HEADER)") as copy,
    ):
        while data := raw.read(_PIECE):
            copy.write(data)
