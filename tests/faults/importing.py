"""The process that the fault tests kill: works on one job, as `rowcall resume` does, or does what a person says.

Its settings come from the environment. Says when it begins, and at the end which state the job is in.
"""

import os
import sys

from rowcall.config import settings_from
from rowcall.engine.run import Run, run_job
from rowcall.store import jobs
from rowcall.store.db import open_database

from .deeds import DEEDS
from .parcels import IMPORTERS


def main(number: str) -> None:
    settings = settings_from()
    with open_database(settings) as database:
        with database.reconnect("resume") as connection:
            job = jobs.get_job(connection, number)
        sys.stdout.write("begins\n")
        sys.stdout.flush()
        if deed := DEEDS.get(os.environ.get("DEED", "")):
            with database.reconnect("deed") as connection, connection.transaction():
                deed(connection, job)
            return
        job = run_job(Run(database, IMPORTERS[job.importer], settings), job)
    sys.stdout.write(f"{job.state}\n")


if __name__ == "__main__":
    main(sys.argv[1])
