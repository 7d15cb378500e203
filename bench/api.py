"""Measures the service: `python bench/api.py --rows 300000`.

First the same file by `rowcall import` and through a service, in alternating rounds, each on a fresh database. Then
many clients that ask for jobs while twenty files come at once. Writes `api.json`, and ends with 1 when a must fails.
"""

import argparse
import asyncio
import os
import sys
import time
from functools import partial
from pathlib import Path

from rich.console import Console

from importing import files
from importing.files import Files
from importing.server import Server, Start, running_server
from importing.trial import Trial, measure
from measuring.files import HERE, folder, make_missing
from measuring.musts import musts_table
from measuring.people import people, texts
from serving.load import Crowd
from serving.results import Results
from serving.service import ORGANISATIONS, running_service

_FEWEST = 10_000
_ROUNDS = 2
_UPLOADS = 20
_APART = 10_000_000
"""The part of people whom no other file has, whatever its rows."""


def main() -> int:
    options, console, load = _options(), Console(), os.getloadavg()[0]
    wanted = Files(options.rows)
    _make(wanted)
    with running_server() as server:
        server.prepare(Start.EMPTY, wanted)
        results = _measured(server, wanted, options, console, load)
    console.print(results.table(), musts_table(results.musts, results.rows), sep="\n")
    for error in results.errors[:10]:
        console.print(error, style="red", markup=False)
    results.write(HERE / "api.json")
    return 0 if all(must.holds for must in results.musts) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Rowcall's service under load, and beside its engine.")
    parser.add_argument("--rows", type=int, default=300_000, help="rows of the file, and of all uploads together")
    parser.add_argument("--clients", type=int, default=200, help="how many ask for jobs at the same time")
    parser.add_argument("--seconds", type=float, default=40, help="how long they do so, at least")
    given = parser.parse_args()
    if given.rows < _FEWEST:
        parser.error(f"--rows must be at least {_FEWEST:,}: with fewer, only the start of a command is measured")
    return given


def _make(wanted: Files) -> None:
    """One file of all rows, and as many people again in twenty files and one small one."""

    def part(rows: int, number: int, path: Path) -> None:
        texts(people(rows, part=number)).write_csv(path)

    uploads = {file: partial(part, wanted.rows // _UPLOADS, number) for number, file in enumerate(_uploads(wanted), 1)}
    make_missing(
        {wanted.path(files.CLEAN): partial(part, wanted.rows, 0), _first(wanted): partial(part, 10, _APART), **uploads}
    )


def _uploads(wanted: Files) -> list[Path]:
    return [folder(wanted.rows) / f"upload-{number}.csv" for number in range(1, _UPLOADS + 1)]


def _first(wanted: Files) -> Path:
    return folder(wanted.rows) / "first.csv"


def _measured(server: Server, wanted: Files, options: argparse.Namespace, console: Console, load: float) -> Results:
    engine: list[float] = []
    service: list[float] = []
    errors: list[str] = []
    for number in range(1, _ROUNDS + 1):
        console.print(f"{wanted.rows:,} rows, round {number}: by the engine, then through the service")
        sample = measure(server, _trial(wanted))
        errors += [sample.error] if sample.error else []
        engine.append(sample.seconds)
        service.append(_through_service(server, wanted, errors))
    console.print(f"{options.clients} clients and {_UPLOADS} uploads")
    with running_service(server.begin(Start.EMPTY), clients=options.clients) as running:
        seen = asyncio.run(Crowd(running).run(_first(wanted), _uploads(wanted), seconds=options.seconds))
    return Results(
        rows=wanted.rows,
        clients=options.clients,
        uploads=_UPLOADS,
        engine=engine,
        service=service,
        seen=seen,
        errors=[*errors, *seen.errors],
        postgresql=server.release,
        load=round(load, 1),
    )


def _trial(wanted: Files) -> Trial:
    file = wanted.path(files.CLEAN)
    return Trial(
        key="engine",
        label="rowcall import",
        entry="rowcall.cli:main",
        arguments=("import", str(file), "--into", "users", "--json"),
        rows=wanted.rows,
        file=file,
        users=wanted.rows,
        outcomes={"created": wanted.rows},
    )


def _through_service(server: Server, wanted: Files, errors: list[str]) -> float:
    """Seconds from the file's first byte until it is known that its job has ended."""
    with running_service(server.begin(Start.EMPTY), clients=ORGANISATIONS) as running:
        crowd = Crowd(running)
        asyncio.run(crowd.bring(_first(wanted), 1))  # everybody is awake
        began = time.perf_counter()
        asyncio.run(crowd.bring(wanted.path(files.CLEAN), 0))
        seconds = time.perf_counter() - began
    errors += crowd.seen.errors
    return seconds


if __name__ == "__main__":
    sys.exit(main())
