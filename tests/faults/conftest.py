"""A server that may be killed, and trials on it."""

from collections.abc import Callable, Generator
from dataclasses import replace
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from ..database import Server, installed
from .invariants import Account, account_of
from .parcels import KNOWN, LATE_KINDS, TABLES, parcels
from .trial import Trial, new_job

ROWS = 2_000
_numbers = count(1)
NewTrial = Callable[..., Trial]


@pytest.fixture(scope="session")
def fault_server() -> Generator[Server]:
    """A server for the fault tests of this process. Who kills it starts it again."""
    server = Server(installed()["embedded18"])
    try:
        server.start()
        server.make_template()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER ROLE postgres SET synchronous_commit = on")  # committed is committed
        yield server
    finally:
        server.remove()


@pytest.fixture
def new_trial(fault_server: Server, tmp_path: Path) -> Generator[NewTrial]:
    """Makes trials; ends their processes and drops their databases."""
    trials: list[Trial] = []

    def new_trial(
        importer: str = "parcels",
        *,
        rows: int = ROWS,
        content: bytes | None = None,
        batch_rows: int = 200,
        workers: int = 2,
    ) -> Trial:
        name = f"fault_{next(_numbers)}"
        data = tmp_path / name
        data.mkdir()
        trial = make_trial(fault_server, name, data, importer, rows, content)
        trials.append(replace(trial, batch_rows=batch_rows, workers=workers))
        return trials[-1]

    yield new_trial
    for trial in trials:
        for importing in trial.importings:
            importing.kill()
        drop(fault_server, trial)


@pytest.fixture(scope="session")
def expected(fault_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Account]:
    """What an import comes to when nothing goes wrong: one worker, one batch."""
    known: dict[tuple[str, int], Account] = {}

    def expected(importer: str = "parcels", *, rows: int = ROWS) -> Account:
        if (importer, rows) not in known:
            name = f"fault_{next(_numbers)}"
            trial = make_trial(fault_server, name, tmp_path_factory.mktemp(name), importer, rows)
            trial.run_to_the_end(workers=1, batch_rows=rows)
            known[importer, rows] = account_of(trial)
            drop(fault_server, trial)
        return known[importer, rows]

    return expected


def make_trial(server: Server, name: str, data: Path, importer: str, rows: int, content: bytes | None = None) -> Trial:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {} TEMPLATE migrated STRATEGY file_copy").format(Identifier(name)))
    url = server.url_of(name)
    with psycopg.connect(url) as connection:
        connection.execute(TABLES)
        if importer == "parcels_of_late_kinds":
            connection.execute(LATE_KINDS)
        connection.execute(KNOWN, {"rows": rows})
    return Trial(server, url, data, new_job(url, data, importer, content or parcels(rows)))


def drop(server: Server, trial: Trial) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        name = trial.url.partition("@/")[2].partition("?")[0]
        connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))
