"""`rowcall psql`: PostgreSQL's own client, on the database that Rowcall works with."""

import os
import signal
import subprocess
from shutil import which
from typing import Annotated

import typer
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from rowcall.config import settings_from
from rowcall.store.db import reach_database
from rowcall.store.embedded import programs


def psql(
    options: Annotated[list[str] | None, typer.Argument(help="What psql takes, such as -c 'TABLE users'.")] = None,
) -> None:
    """Open psql on Rowcall's database; the embedded server runs for as long as that is open."""
    signal.signal(signal.SIGINT, lambda _, __: None)  # Ctrl-C is meant for psql
    settings = settings_from()
    client = (which("psql") if settings.database_url else None) or programs() / "psql"
    with reach_database(settings) as database:
        database.connect("psql").close()  # if it can't be reached, we say so and what to do
        status = subprocess.call([client, *(options or ())], env=os.environ | _address(database.url))  # noqa: S603 (what the user asked for)
    raise typer.Exit(1 if status else 0)


def _address(url: str) -> dict[str, str]:
    """The address as psql's environment: everybody on the machine may see a command's arguments, and its password."""
    variables = {option.keyword.decode(): option.envvar for option in Conninfo.get_defaults()}
    given = ((variables[name], value) for name, value in conninfo_to_dict(url).items())
    return {variable.decode(): str(value) for variable, value in given if variable}
